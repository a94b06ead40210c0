//! Samplers that are refused, and by which name.

use super::*;

fn check(sampler: &Sampler, sample_count: u64, expected: &SamplerError) {
    let label = |sample| (sample != 6).then_some(0);
    let error = sampler.resolve_over(sample_count, 64, &[], label).map(|sequence| sequence.len());
    assert_eq!(error.as_ref(), Err(expected));
}

fn of(samples: Samples) -> Sampler {
    Sampler { samples, ..Sampler::from(Shuffle::Full) }
}

fn weighted(weights: &[u32], replacement: Replacement, count: Option<u64>) -> Sampler {
    of(Samples::Weighted { weights: weights.to_vec().into(), replacement, count })
}

#[test]
fn subsets_of_what_there_is_not_are_refused() {
    let check = |subset, expected| check(&of(Samples::Subset(subset)), 10, &expected);
    let sample = 10;
    let sample_count = 10;
    check(Subset::from(3..11), SamplerError::OutOfRange { sample, sample_count });
    check(Subset::List(vec![3, 10]), SamplerError::OutOfRange { sample, sample_count });
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    check(Subset::from(5..3), SamplerError::Reversed { start: 5, end: 3 });
    check(Subset::Ranges(vec![4..9, 0..5]), SamplerError::Overlap { sample: 4 });
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let with = Replacement::With;
    let without = Replacement::Without;
    let weights = 2;
    let sample_count = 3;
    check(&weighted(&[1, 1], with, None), 3, &SamplerError::WeightCount { weights, sample_count });
    let none = SamplerError::TooFew { count: 3, available: 0 };
    check(&weighted(&[0, 0, 0], with, None), 3, &none);
    let few = SamplerError::TooFew { count: 3, available: 2 };
    check(&weighted(&[0, 1, 5], without, Some(3)), 3, &few);
    let unshuffled = Sampler { shuffle: Shuffle::None, ..weighted(&[1], with, None) };
    check(&unshuffled, 1, &SamplerError::DrawnOrder { shuffle: Shuffle::None });
}

#[test]
fn parts_that_can_never_come_are_refused() {
    let part = |range, weight| Part { samples: Subset::from(range), weight };
    let mix = |parts| of(Samples::Mix { parts, length: Length::Samples, stages: vec![] });
    let empty = SamplerError::Part { part: 1, samples: 0, weight: 2 };
    check(&mix(vec![part(0..3, 1), part(3..3, 2)]), 10, &empty);
    let weightless = SamplerError::Part { part: 0, samples: 3, weight: 0 };
    check(&mix(vec![part(0..3, 0)]), 10, &weightless);
    let sum = (1 << 20) + 1;
    let limit = 1 << 20;
    let fine = mix(vec![part(0..3, 1 << 20), part(3..4, 1)]);
    check(&fine, 10, &SamplerError::Weights { sum, limit });
    let first_used_up =
        |parts| of(Samples::Mix { parts, length: Length::FirstUsedUp, stages: vec![] });
    let short = first_used_up(vec![part(0..3, 2), part(3..9, 14)]);
    check(&short, 10, &SamplerError::NoRound { part: 1, samples: 6, weight: 7 });
    let enough = first_used_up(vec![part(0..3, 2), part(3..10, 14)]);
    assert_eq!(enough.resolve_over(10, 64, &[], |_| None).unwrap().len(), 8);
    // Only their proportion counts.
    assert!(
        mix(vec![part(0..3, 1 << 31), part(3..4, 1 << 31)])
            .resolve_over(10, 64, &[], |_| None)
            .is_ok()
    );
}

#[test]
fn samples_without_a_class_cannot_be_balanced() {
    let balanced = |of| Sampler {
        samples: Samples::ClassBalanced { of, length: Length::Samples },
        ..Sampler::from(Shuffle::Full)
    };
    check(&balanced(None), 10, &SamplerError::Unlabelled { sample: 6 });
    let others = balanced(Some(Subset::Ranges(vec![7..10, 0..6])));
    assert_eq!(others.resolve_over(10, 64, &[], |_| Some(1)).unwrap().len(), 9);
}

#[test]
fn settings_out_of_range_are_refused() {
    let repeat = |repeat| Sampler { repeat, ..Sampler::from(Shuffle::Full) };
    for value in [0, (1 << 22) + 1] {
        let error = repeat(value).resolve_over(1, 64, &[], |_| None).unwrap_err();
        assert_eq!(error.to_string(), format!("repeat is {value}, expected 1 to 4194304"));
    }
    let most = repeat(1 << 22).resolve_over(2, 64, &[], |_| None).unwrap().order(1, 1);
    assert!(most.sample_at((2 << 22) - 1).is_some());
    for (samples, window) in [(0, 1), (1, 0)] {
        let shuffle = Shuffle::Block { blocks: Blocks::Samples(samples), window };
        let error = Sampler { shuffle, ..Sampler::default() }.resolve_over(1, 64, &[], |_| None);
        assert!(matches!(error, Err(SamplerError::Setting { value: 0, .. })), "{error:?}");
    }
    check(&Sampler::from(Shuffle::Full), 1 << 63, &SamplerError::TooLong);
    check(&repeat(2), 1 << 62, &SamplerError::TooLong);
}

#[test]
fn no_samples_are_an_order_without_positions() {
    let mixed = Samples::Mix { parts: vec![], length: Length::Positions(3), stages: vec![] };
    let balanced = Samples::ClassBalanced { of: None, length: Length::AllUsedUp };
    let weighted = weighted(&[], Replacement::With, None);
    for sampler in [Sampler::from(Shuffle::Full), of(mixed), of(balanced), weighted] {
        for shuffle in [sampler.shuffle, Shuffle::Full] {
            let sampler = Sampler { shuffle, repeat: 2, ..sampler.clone() };
            let order = sampler.resolve_over(0, 64, &[], |_| None).unwrap().order(1, 1);
            assert!(order.is_empty());
            assert_eq!((order.sample_at(0), order.position_of(0)), (None, None));
        }
    }
    let block = Shuffle::Block { blocks: Blocks::Samples(8), window: 2 };
    assert!(samples(&Sequence::of_all(0, block).order(1, 1)).is_empty());
}

#[test]
fn shuffles_are_read_as_they_are_printed() {
    for shuffle in
        [Shuffle::None, Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(512), window: 16 }]
    {
        assert_eq!(shuffle.to_string().parse(), Ok(shuffle));
    }
    for window in [1, 8] {
        let of_source = Shuffle::Block { blocks: Blocks::Source, window };
        assert_eq!(of_source.to_string(), format!("block:sourcex{window}"));
        assert_eq!(of_source.to_string().parse(), Ok(of_source));
    }
    let of_source = Shuffle::Block { blocks: Blocks::Source, window: 1 };
    assert_eq!("block:source".parse(), Ok(of_source));
    let deal = Deal::Epoch;
    let lanes = Shuffle::Lanes { lanes: 4, blocks: Blocks::Source, window: 2, deal };
    assert_eq!("lanes:4/sourcex2/epoch".parse(), Ok(lanes));
    assert_eq!("block:512".parse(), Ok(Shuffle::Block { blocks: Blocks::Samples(512), window: 1 }));
    for text in [
        "",
        "Full",
        "block",
        "block:",
        "block:0",
        "block:4x0",
        "block:4x",
        "block:-4",
        "block:sources",
    ] {
        assert_eq!(text.parse::<Shuffle>(), Err(SamplerError::Shuffle { text: text.to_owned() }));
    }
}

#[test]
fn a_length_is_a_rule_or_a_number() {
    let length = |text: &str| text.parse::<Length>();
    assert_eq!(length("samples"), Ok(Length::Samples));
    assert_eq!(length("first-used-up"), Ok(Length::FirstUsedUp));
    assert_eq!(length("all-used-up"), Ok(Length::AllUsedUp));
    assert_eq!(length("12"), Ok(Length::Positions(12)));
    for wrong in ["", "longest", "first_used_up", "-1", "1.5"] {
        assert_eq!(length(wrong), Err(SamplerError::Length { text: wrong.to_owned() }), "{wrong}");
    }
}
