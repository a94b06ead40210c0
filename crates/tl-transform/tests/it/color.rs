//! What the operations of colour draw, and how their parameters read.

use std::collections::BTreeMap;

use tl_simd::Level;
use tl_transform::op::{
    ColorJitter, Grayscale, RandomAdjustSharpness, RandomChannelPermutation,
    RandomPhotometricDistort, RandomPosterize, RandomSolarize, Range,
};
use tl_transform::step::{Color, HueMethod};
use tl_transform::{
    Draw, Dtype, Image, Layout, Op, OutputSpec, Parity, Recipe, RecipeError, Runner, Step,
};

const DRAWS: u32 = 24_000;

fn recipe(op: impl Into<Op>) -> Result<Recipe, RecipeError> {
    Recipe::new(vec![op.into()], OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc })
}

fn read(json: &str) -> Op {
    serde_json::from_str(json).expect("an operation")
}

/// The steps of many samples.
fn drawn(op: impl Into<Op>) -> Vec<Vec<Color>> {
    let recipe = recipe(op).expect("parameters in range");
    let samples = (0..u64::from(DRAWS)).map(|sample| {
        let plan = recipe.plan(8, 8, Draw { seed: 11, epoch: 2, sample });
        let plan = plan.expect("an image of any size");
        let color = |step: &Step| {
            let Step::Color(color) = step else {
                unreachable!("{step:?} is not a change of colours")
            };
            *color
        };
        plan.steps.iter().map(color).collect()
    });
    samples.collect()
}

/// The name of a change and its factor.
fn parts(color: Color) -> (&'static str, f64) {
    if let Color::Brightness(factor) = color {
        ("brightness", factor)
    } else if let Color::Contrast(factor) = color {
        ("contrast", factor)
    } else if let Color::Saturation(factor) = color {
        ("saturation", factor)
    } else if let Color::Hue { factor, .. } = color {
        ("hue", factor)
    } else {
        ("other", 0.0)
    }
}

/// Kolmogorov's distance between factors and the uniform distribution over an interval.
fn distance(mut factors: Vec<f64>, (low, high): (f64, f64)) -> f64 {
    factors.sort_by(f64::total_cmp);
    let count = factors.len() as f64;
    assert!(factors[0] >= low && factors[factors.len() - 1] < high, "{low}..{high}");
    let places = factors.iter().enumerate().map(|(index, factor)| {
        let share = (factor - low) / (high - low);
        (share - index as f64 / count).abs().max(((index + 1) as f64 / count - share).abs())
    });
    places.fold(0.0, f64::max)
}

/// The 99.9 % point of Kolmogorov's distance for `count` numbers.
fn farthest(count: usize) -> f64 {
    1.95 / (count as f64).sqrt()
}

fn factors_of(name: &str, steps: &[Vec<Color>]) -> Vec<f64> {
    let all = steps.iter().flatten().map(|&color| parts(color));
    all.filter(|(other, _)| *other == name).map(|(_, factor)| factor).collect()
}

fn chi_square(counts: impl IntoIterator<Item = u32>, expected: f64) -> f64 {
    counts.into_iter().map(|count| (f64::from(count) - expected).powi(2) / expected).sum()
}

#[test]
fn jittered_factors_are_uniform_and_every_order_is_as_likely() {
    let within = Range::Within;
    let jitter = ColorJitter {
        brightness: within(0.4),
        contrast: within(1.5),
        saturation: Range::Between(0.2, 3.0),
        hue: within(0.1),
        hue_method: None,
    };
    let steps = drawn(jitter);
    let intervals = [
        ("brightness", (0.6, 1.4)),
        ("contrast", (0.0, 2.5)),
        ("saturation", (0.2, 3.0)),
        ("hue", (-0.1, 0.1)),
    ];
    for (name, interval) in intervals {
        let factors = factors_of(name, &steps);
        assert_eq!(factors.len(), DRAWS as usize);
        let distance = distance(factors, interval);
        assert!(distance < farthest(DRAWS as usize), "{name}: {distance}");
    }
    let mut orders = BTreeMap::new();
    for steps in &steps {
        let order: Vec<&str> = steps.iter().map(|&color| parts(color).0).collect();
        *orders.entry(order).or_insert(0) += 1;
    }
    assert_eq!(orders.len(), 24);
    // 99.9 % point of chi-square with 23 degrees of freedom.
    let chi = chi_square(orders.into_values(), f64::from(DRAWS) / 24.0);
    assert!(chi < 49.73, "{chi}");
}

#[test]
fn a_change_that_is_off_draws_no_factor_and_takes_no_step() {
    let jitter = |hue| ColorJitter { contrast: Range::Within(0.5), hue, ..Default::default() };
    let alone = drawn(jitter(Range::default()));
    let off = drawn(jitter(Range::Between(0.0, 0.0)));
    assert!(alone.iter().all(|steps| matches!(steps[..], [Color::Contrast(_)])));
    assert_eq!(alone, off);
    let both = drawn(jitter(Range::Within(0.5)));
    assert_eq!(factors_of("contrast", &both), factors_of("contrast", &alone));
    // A brightness of exactly 1 is off, too, and drawn before contrast where it is on.
    let one = |brightness| drawn(ColorJitter { brightness, ..jitter(Range::default()) });
    assert_eq!(one(Range::Between(1.0, 1.0)), alone);
    assert_ne!(factors_of("contrast", &one(Range::Within(0.1))), factors_of("contrast", &alone));
}

#[test]
fn channels_are_permuted_evenly() {
    let mut orders = BTreeMap::new();
    for steps in drawn(RandomChannelPermutation {}) {
        let order = match steps[..] {
            [] => [0, 1, 2],
            [Color::PermuteChannels(order)] => order,
            _ => panic!("{steps:?}"),
        };
        *orders.entry(order).or_insert(0) += 1;
    }
    assert_eq!(orders.len(), 6);
    // 99.9 % point of chi-square with 5 degrees of freedom.
    let chi = chi_square(orders.into_values(), f64::from(DRAWS) / 6.0);
    assert!(chi < 20.52, "{chi}");
}

#[test]
fn photometric_distortion_makes_every_change_half_of_the_time() {
    let steps = drawn(RandomPhotometricDistort::default());
    let intervals = [
        ("brightness", (0.875, 1.125)),
        ("contrast", (0.5, 1.5)),
        ("saturation", (0.5, 1.5)),
        ("hue", (-0.05, 0.05)),
    ];
    // Within 3.3 standard deviations of a fair coin.
    let is_half = |count: usize, of: usize| {
        (count as f64 - of as f64 / 2.0).abs() < 3.3 * (of as f64 / 4.0).sqrt()
    };
    for (name, interval) in intervals {
        let factors = factors_of(name, &steps);
        assert!(is_half(factors.len(), steps.len()), "{name}: {}", factors.len());
        let count = factors.len();
        assert!(distance(factors, interval) < farthest(count), "{name}");
    }
    // One permutation in six changes nothing.
    let permuted = factors_of("other", &steps).len() as f64 / f64::from(DRAWS);
    assert!((permuted - 5.0 / 12.0).abs() < 0.0106, "{permuted}");
    let place = |steps: &[Color], name| steps.iter().position(|&color| parts(color).0 == name);
    let both = steps
        .iter()
        .filter_map(|steps| Some((place(steps, "contrast")?, place(steps, "saturation")?)));
    let both: Vec<(usize, usize)> = both.collect();
    let first = both.iter().filter(|(contrast, saturation)| contrast < saturation).count();
    assert!(is_half(first, both.len()), "{first} of {}", both.len());
    for steps in &steps {
        assert!(place(steps, "brightness").is_none_or(|place| place == 0));
        assert!(place(steps, "other").is_none_or(|place| place == steps.len() - 1));
    }
}

#[test]
fn parameters_read_as_torchvision_writes_them() {
    let json = r#"{"op":"color_jitter","brightness":0.4,"hue":[-0.1,0.2],"hue_method":"float"}"#;
    let op = read(json);
    let Op::ColorJitter(jitter) = op else { panic!("{op}") };
    assert_eq!(jitter.brightness, Range::Within(0.4));
    assert_eq!(jitter.hue, Range::Between(-0.1, 0.2));
    assert_eq!(jitter.contrast, Range::Within(0.0));
    assert_eq!(jitter.hue_method, Some(HueMethod::Float));
    assert_eq!(
        op.to_string(),
        "ColorJitter(brightness 0.4, contrast 0, saturation 0, hue -0.1..0.2 as float)"
    );
    assert_eq!(read(&serde_json::to_string(&op).unwrap()), op);
    for (json, text) in [
        (r#"{"op":"random_grayscale"}"#, "RandomGrayscale(p 0.1)"),
        (r#"{"op":"random_posterize","bits":3}"#, "RandomPosterize(bits 3, p 0.5)"),
        (r#"{"op":"random_equalize","p":1.0}"#, "RandomEqualize(p 1)"),
        (
            r#"{"op":"random_photometric_distort"}"#,
            "RandomPhotometricDistort(brightness 0.875..1.125, contrast 0.5..1.5, \
             saturation 0.5..1.5, hue -0.05..0.05, p 0.5)",
        ),
    ] {
        assert_eq!(read(json).to_string(), text);
    }
    assert!(serde_json::from_str::<Op>(r#"{"op":"random_solarize"}"#).is_err());
    assert!(serde_json::from_str::<Op>(r#"{"op":"random_invert","q":1}"#).is_err());
}

#[test]
fn parameters_out_of_range_are_refused() {
    let check = |op: Op, name: &str, number: f64| {
        let Err(RecipeError::Parameter { invalid, .. }) = recipe(op) else { panic!("{name}") };
        assert_eq!((invalid.parameter, invalid.value), (name, number.into()));
    };
    let jitter = |brightness, hue| ColorJitter { brightness, hue, ..Default::default() }.into();
    let off = Range::default();
    check(jitter(Range::Within(-0.1), off), "brightness", -0.1);
    check(jitter(Range::Between(-0.1, 1.0), off), "brightness", -0.1);
    check(jitter(Range::Between(1.5, 1.0), off), "brightness", 1.0);
    check(jitter(Range::Within(f64::INFINITY), off), "brightness", f64::INFINITY);
    check(jitter(off, Range::Within(0.6)), "hue", -0.6);
    check(jitter(off, Range::Between(-0.5, 0.51)), "hue", 0.51);
    check(Grayscale { num_output_channels: 1 }.into(), "num_output_channels", 1.0);
    check(RandomPosterize { bits: 9, p: 0.5 }.into(), "bits", 9.0);
    check(RandomSolarize { threshold: f64::INFINITY, p: 0.5 }.into(), "threshold", f64::INFINITY);
    let sharpness = |sharpness_factor, p| RandomAdjustSharpness { sharpness_factor, p }.into();
    check(sharpness(-1.0, 0.5), "sharpness_factor", -1.0);
    check(sharpness(1.0, 1.1), "p", 1.1);
    let distort = RandomPhotometricDistort { hue: (-1.0, 0.0), ..Default::default() };
    check(distort.into(), "hue", -1.0);
    // NaN equals nothing, itself included.
    let unordered = ColorJitter { contrast: Range::Within(f64::NAN), ..Default::default() };
    assert!(matches!(recipe(unordered), Err(RecipeError::Parameter { .. })));
}

#[test]
fn steps_of_any_numbers_leave_an_image() {
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300, 1e-300, 300.0];
    let mut steps: Vec<Color> = vec![
        Color::Posterize(255),
        Color::PermuteChannels([255, 3, 7]),
        Color::Autocontrast,
        Color::Equalize,
        Color::Grayscale,
        Color::Invert,
    ];
    for number in numbers {
        let method = |method| Color::Hue { factor: number, method };
        steps.extend([Color::Brightness, Color::Contrast].map(|change| change(number)));
        steps.extend([Color::Saturation, Color::Sharpness].map(|change| change(number)));
        steps.push(Color::Solarize(number));
        steps.extend([None, Some(HueMethod::Pil), Some(HueMethod::Float)].map(method));
    }
    let steps: Vec<Step> = steps.into_iter().map(Step::Color).collect();
    for (width, height) in [(1, 1), (1, 70), (70, 1), (2, 2), (3, 3), (67, 5)] {
        for parity in [Parity::Pil, Parity::Tensor] {
            let images = Level::available().map(|level| {
                let bytes = (0..width * height * 3).map(|byte: u32| byte.to_le_bytes()[0]);
                let mut image = Image::from_pixels(width, height, bytes.collect());
                let mut runner = Runner::new().with_level(level);
                steps
                    .iter()
                    .map(|step| {
                        runner.run(&[*step], parity, &mut image).expect("a step for any size");
                        image.pixels().to_vec()
                    })
                    .collect::<Vec<_>>()
            });
            let images: Vec<_> = images.collect();
            assert!(images.windows(2).all(|levels| levels[0] == levels[1]), "{width}x{height}");
        }
    }
}
