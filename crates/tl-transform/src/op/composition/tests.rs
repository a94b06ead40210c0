use super::*;
use crate::op::{CenterCrop, RandomHorizontalFlip, Resize, Size, ToFloat};
use crate::output::{Dtype, Layout, OutputSpec};
use crate::stream::Draw;
use crate::{Interpolation, Plan, Recipe, RecipeError};

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const DRAWS: u64 = 20_000;

fn crop(side: u32) -> Op {
    CenterCrop::new(side).into()
}

fn flip(p: f64) -> Op {
    RandomHorizontalFlip { p }.into()
}

fn plans(op: impl Into<Op>, count: u64) -> impl Iterator<Item = Plan> {
    let recipe = Recipe::new(vec![op.into()], PIXELS).unwrap();
    (0..count).map(move |sample| recipe.plan(64, 48, Draw { seed: 42, epoch: 0, sample }).unwrap())
}

/// Chi-square of `counts` against what is expected of them.
fn chi_square(counts: &[u32], expected: &[f64]) -> f64 {
    let terms = counts.iter().zip(expected);
    terms.map(|(count, expected)| (f64::from(*count) - expected).powi(2) / expected).sum()
}

#[test]
fn a_list_is_done_as_often_as_it_should_and_as_a_whole() {
    let ops = vec![crop(8), flip(1.0)];
    let done = plans(RandomApply { ops, p: 0.3 }, DRAWS).filter(|plan| {
        let cut = plan.output_size() == (8, 8);
        assert_eq!(plan.head.flip, cut, "{plan:?}");
        cut
    });
    let share = done.count() as f64 / DRAWS as f64;
    // Four deviations of a share of 0.3.
    assert!((share - 0.3).abs() < 0.013, "{share}");
    let ops = vec![crop(8)];
    let certain = |p| plans(RandomApply { ops: ops.clone(), p }, 100);
    assert!(certain(1.0).all(|plan| plan.output_size() == (8, 8)));
    assert!(certain(0.0).all(|plan| plan.output_size() == (64, 48)));
}

#[test]
fn a_choice_follows_its_weights() {
    let check = |p: Option<Vec<f64>>, shares: [f64; 3]| {
        let ops = vec![crop(1), crop(2), crop(3)];
        let mut counts = [0u32; 3];
        for plan in plans(RandomChoice { ops, p }, DRAWS) {
            counts[plan.output_size().0 as usize - 1] += 1;
        }
        let possible = || shares.iter().filter(|share| **share > 0.0);
        let counted: Vec<u32> =
            counts.iter().zip(shares).filter(|(_, share)| *share > 0.0).map(|(n, _)| *n).collect();
        assert_eq!(counted.iter().sum::<u32>(), 20_000, "{counts:?}");
        let expected: Vec<f64> = possible().map(|share| share * DRAWS as f64).collect();
        // 99.9 % point of chi-square with 2 degrees of freedom.
        assert!(chi_square(&counted, &expected) < 13.82, "{counts:?}");
    };
    check(None, [1.0 / 3.0; 3]);
    check(Some(vec![0.2, 0.5, 0.3]), [0.2, 0.5, 0.3]);
    check(Some(vec![6.0, 0.0, 2.0]), [0.75, 0.0, 0.25]);
    check(Some(vec![0.0, 0.0, 1e-300]), [0.0, 0.0, 1.0]);
}

/// The order shows in which of three crops cuts something off.
#[test]
fn every_order_is_as_likely() {
    let ops = vec![
        crop(10),
        Resize { interpolation: Interpolation::Box, ..Resize::new(20) }.into(),
        flip(1.0),
    ];
    let mut orders = std::collections::BTreeMap::new();
    for plan in plans(RandomOrder { ops }, DRAWS) {
        *orders.entry(format!("{plan:?}")).or_insert(0u32) += 1;
    }
    // Three places of the flip in two orders of the others; what is the same plan counts together.
    let counts: Vec<u32> = orders.values().copied().collect();
    assert_eq!(counts.iter().sum::<u32>(), 20_000);
    let sixths: Vec<f64> =
        counts.iter().map(|n| (f64::from(*n) / (20_000.0 / 6.0)).round()).collect();
    assert_eq!(sixths.iter().sum::<f64>(), 6.0, "{orders:?}");
    let expected: Vec<f64> = sixths.iter().map(|sixths| sixths * 20_000.0 / 6.0).collect();
    // 99.9 % point of chi-square with 5 degrees of freedom.
    assert!(chi_square(&counts, &expected) < 20.52, "{counts:?}");
}

#[test]
fn nested_operations_have_streams_of_their_own() {
    // Two coins in a list fall independently, and as those of a flat recipe with these numbers.
    let nested =
        Compose { ops: vec![crop(40), Compose { ops: vec![flip(0.5), flip(0.5)] }.into()] };
    let flat =
        Recipe::new(vec![crop(48), crop(47), crop(40), flip(0.5), flip(0.5)], PIXELS).unwrap();
    let mut counts = [0u32; 2];
    for (sample, plan) in (0..DRAWS).zip(plans(nested, DRAWS)) {
        counts[usize::from(plan.head.flip)] += 1;
        // Compose 0, CenterCrop 1, Compose 2, the coins 3 and 4.
        let draw = Draw { seed: 42, epoch: 0, sample };
        assert_eq!(flat.plan(64, 48, draw).unwrap().head.flip, plan.head.flip);
    }
    assert!(chi_square(&counts, &[1e4, 1e4]) < 10.83, "{counts:?}");
}

#[test]
fn sizes_are_known_when_every_way_leads_to_one() {
    let size = |op: Op, before| op.output_size(before, &FixedSizes::default());
    let exact = || Op::from(CenterCrop { size: Size::exact(7, 9) });
    let image = Some((64, 48));
    assert_eq!(size(Compose { ops: vec![crop(3), exact()] }.into(), None), Some((7, 9)));
    let apply = |ops, p| Op::from(RandomApply { ops, p });
    assert_eq!(size(apply(vec![exact()], 0.5), image), None);
    assert_eq!(size(apply(vec![exact()], 1.0), image), Some((7, 9)));
    assert_eq!(size(apply(vec![exact()], 0.0), image), image);
    assert_eq!(size(apply(vec![crop(3), exact()], 0.5), Some((7, 9))), Some((7, 9)));
    let choice = |ops| Op::from(RandomChoice { ops, p: None });
    assert_eq!(size(choice(vec![exact(), crop(3)]), image), None);
    assert_eq!(size(choice(vec![exact(), exact()]), None), Some((7, 9)));
    let order = |ops| Op::from(RandomOrder { ops });
    assert_eq!(size(order(vec![flip(0.5), exact()]), None), Some((7, 9)));
    assert_eq!(size(order(vec![crop(3), exact()]), image), None);
    assert_eq!(size(order(vec![flip(0.5), flip(0.1)]), image), image);
}

/// Operations in random order, `levels` around a flip, with `others` next to each.
fn nested(levels: usize, others: &[Op]) -> Op {
    (0..levels).fold(flip(0.5), |within, _| {
        let ops = std::iter::once(within).chain(others.iter().cloned()).collect();
        RandomOrder { ops }.into()
    })
}

#[test]
fn sizes_of_nested_orders_are_found_in_polynomial_time() {
    let exact = || Op::from(CenterCrop { size: Size::exact(7, 9) });
    let other = || Op::from(CenterCrop { size: Size::exact(3, 3) });
    for beside in [&[][..], &[exact()], &[exact(), other()], &[flip(0.1), exact()]] {
        for levels in [8, 60] {
            let op = nested(levels, beside);
            for before in [None, Some((64, 48)), Some((7, 9))] {
                let fixed = FixedSizes::default();
                op.output_size(before, &fixed);
                let found = fixed.evaluated.get();
                let limit = 2 * levels * op.count();
                assert!(found <= limit, "{levels} levels: {found} evaluations, {limit} expected");
            }
        }
    }
}

#[test]
fn operations_nested_too_deep_are_refused_by_name() {
    let limit = Recipe::MAX_DEPTH;
    Recipe::new(vec![nested(limit - 1, &[])], PIXELS).unwrap();
    let found = Recipe::new(vec![crop(9), nested(limit, &[])], PIXELS);
    let op = "RandomHorizontalFlip";
    assert_eq!(found, Err(RecipeError::TooDeep { position: 1, op, limit }));
    let json = |levels: usize| {
        let open = r#"{"op":"random_order","ops":["#.repeat(levels);
        let ops = format!(r#"{open}{{"op":"random_horizontal_flip"}}{}"#, "]}".repeat(levels));
        format!(r#"{{"ops":[{ops}],"output":{{"dtype":"u8","layout":"hwc"}}}}"#)
    };
    serde_json::from_str::<Recipe>(&json(limit - 1)).unwrap();
    let error = serde_json::from_str::<Recipe>(&json(limit + 5)).unwrap_err().to_string();
    let expected = "operation 0: RandomOrder is nested too deep, expected at most 50 levels";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn what_cannot_be_composed_is_refused() {
    let parameter = |op: Op, name: &str, number: f64| {
        let result = Recipe::new(vec![crop(9), op], PIXELS);
        let Err(RecipeError::Parameter { position: 1, invalid, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((invalid.parameter, invalid.value), (name, number.into()));
    };
    parameter(Compose { ops: vec![] }.into(), "number of ops", 0.0);
    parameter(RandomOrder { ops: vec![] }.into(), "number of ops", 0.0);
    parameter(RandomApply { ops: vec![flip(0.5)], p: 1.25 }.into(), "p", 1.25);
    parameter(RandomApply { ops: vec![flip(-0.5)], p: 0.5 }.into(), "p", -0.5);
    let choice =
        |p: &[f64]| RandomChoice { ops: vec![crop(1), crop(2)], p: Some(p.to_vec()) }.into();
    parameter(choice(&[1.0]), "length of p", 1.0);
    parameter(choice(&[1.0, -1.0]), "p", -1.0);
    parameter(choice(&[0.0, 0.0]), "sum of p", 0.0);
    parameter(choice(&[f64::MAX, f64::MAX]), "sum of p", f64::INFINITY);
    let float = Compose { ops: vec![crop(3), Compose { ops: vec![ToFloat {}.into()] }.into()] };
    let nested = RecipeError::Nested { position: 0, op: "ToFloat", within: "Compose" };
    assert_eq!(Recipe::new(vec![float.into()], PIXELS), Err(nested));
    let many = Compose { ops: vec![flip(0.5); 256] };
    let limit = Recipe::MAX_OPS;
    let too_many = RecipeError::TooManyOps { count: 257, limit };
    assert_eq!(Recipe::new(vec![many.into()], PIXELS), Err(too_many));
}
