use std::collections::BTreeMap;

use super::tables::{AUTO, MIX, MIX_PARTIAL, RAND, SubPolicy, WIDE};
use super::*;
use crate::output::{Dtype, Layout, OutputSpec};
use crate::step::Mix;
use crate::{Draw, InvalidValue, Op, Plan, Recipe, RecipeError};

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const DRAWS: u32 = 20_000;

/// torchvision's own numbers, written by `testdata/transforms/policies.py`.
#[derive(Deserialize)]
struct Reference {
    tables: BTreeMap<AutoAugmentPolicy, Vec<SubPolicy>>,
    spaces: BTreeMap<String, ReferenceSpace>,
}

#[derive(Deserialize)]
struct ReferenceSpace {
    names: Vec<Action>,
    signed: Vec<Action>,
    magnitudes: Vec<Magnitudes>,
}

#[derive(Deserialize)]
struct Magnitudes {
    bins: u32,
    size: (u32, u32),
    values: BTreeMap<Action, Option<Vec<f64>>>,
}

fn reference() -> Reference {
    serde_json::from_str(tl_testdata::shipped_text!("transforms/policies.json")).unwrap()
}

#[test]
fn pairs_are_those_of_torchvision() {
    let tables = reference().tables;
    assert_eq!(tables.len(), 3);
    for (policy, pairs) in tables {
        assert_eq!(policy.pairs()[..], pairs, "{policy}");
    }
}

#[test]
fn names_directions_and_magnitudes_are_those_of_torchvision() {
    let mut spaces = reference().spaces;
    let named: [(&str, &Space); 5] = [
        ("auto_augment", &AUTO),
        ("rand_augment", &RAND),
        ("trivial_augment_wide", &WIDE),
        ("aug_mix", &MIX),
        ("aug_mix_partial", &MIX_PARTIAL),
    ];
    for (name, space) in named {
        let expected = spaces.remove(name).unwrap();
        assert_eq!(space.actions, expected.names, "{name}");
        for action in &expected.names {
            assert_eq!(action.is_signed(), expected.signed.contains(action), "{name} {action:?}");
        }
        for Magnitudes { bins, size, values } in expected.magnitudes {
            assert_eq!(values.len(), space.actions.len());
            for (action, values) in values {
                let magnitude = |bin| space.magnitude(action, bin, bins, size);
                let found: Option<Vec<f64>> = (0..bins).map(magnitude).collect();
                assert_eq!(found, values, "{name} {action:?} {bins} {size:?}");
            }
        }
    }
    assert!(spaces.is_empty());
}

fn recipe(op: impl Into<Op>) -> Recipe {
    Recipe::new(vec![op.into()], PIXELS).unwrap()
}

fn plans(op: impl Into<Op>) -> impl Iterator<Item = Plan> {
    let recipe = recipe(op);
    (0..DRAWS).map(move |sample| {
        let draw = Draw { seed: 42, epoch: 0, sample: sample.into() };
        recipe.plan(500, 375, draw).unwrap()
    })
}

/// The name of what a step does, and whether its magnitude is negative.
fn named(step: &Step) -> (&'static str, Option<bool>) {
    let signed = |factor: f64| Some(factor < 1.0);
    let Step::Warp(warp) = step else {
        let Step::Color(color) = step else { panic!("{step:?}") };
        return match *color {
            Color::Brightness(factor) => ("Brightness", signed(factor)),
            Color::Saturation(factor) => ("Color", signed(factor)),
            Color::Contrast(factor) => ("Contrast", signed(factor)),
            Color::Sharpness(factor) => ("Sharpness", signed(factor)),
            Color::Posterize(_) => ("Posterize", None),
            Color::Solarize(_) => ("Solarize", None),
            Color::Autocontrast => ("AutoContrast", None),
            Color::Equalize => ("Equalize", None),
            Color::Invert => ("Invert", None),
            Color::Hue { .. } | Color::Grayscale | Color::PermuteChannels(_) => panic!("{color:?}"),
        };
    };
    match *warp {
        Warp::Rotate(rotate) => ("Rotate", Some(rotate.angle < 0.0)),
        Warp::Affine(Affine { translate, shear, center, .. }) => {
            let (name, value) = match (translate, shear) {
                ((x, _), _) if x != 0.0 => ("TranslateX", x),
                ((_, y), _) if y != 0.0 => ("TranslateY", y),
                (_, (x, _)) if x != 0.0 => ("ShearX", x),
                (_, (_, y)) => ("ShearY", y),
            };
            assert_eq!(center.is_some(), name.starts_with("Shear"));
            (name, Some(value < 0.0))
        }
        Warp::Perspective(_) | Warp::Elastic(_) => panic!("{warp:?}"),
    }
}

/// Holds counts of equally likely things to chi-square's point `limit`.
fn even(counts: &BTreeMap<&str, u32>, kinds: usize, limit: f64) {
    assert_eq!(counts.len(), kinds, "{counts:?}");
    let expected = f64::from(counts.values().sum::<u32>()) / kinds as f64;
    let chi: f64 = counts.values().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi < limit, "{chi} {counts:?}");
}

/// A share within four deviations of what it should be.
fn share(count: u32, of: u32, expected: f64) {
    let found = f64::from(count) / f64::from(of);
    let deviation = (expected * (1.0 - expected) / f64::from(of)).sqrt();
    assert!((found - expected).abs() <= 4.0 * deviation, "{count} of {of}, not {expected}");
}

#[test]
fn rand_augment_chooses_evenly() {
    let mut counts = BTreeMap::new();
    let mut negative = 0;
    let mut signed = 0;
    for plan in plans(RandAugment::default()) {
        *counts.entry("Identity").or_insert(0) += 2 - u32::try_from(plan.steps.len()).unwrap();
        for (name, sign) in plan.steps.iter().map(named) {
            *counts.entry(name).or_insert(0) += 1;
            negative += u32::from(sign == Some(true));
            signed += u32::from(sign.is_some());
        }
    }
    // 99.9 % point with 13 degrees of freedom.
    even(&counts, 14, 34.53);
    share(negative, signed, 0.5);
}

/// Magnitude 9 of 31, for an image of 500x375 pixels.
#[test]
fn rand_augment_takes_its_magnitude() {
    let first = |wanted: &str| {
        let mut steps = plans(RandAugment::default()).flat_map(|plan| plan.steps);
        steps.find(|step| named(step) == (wanted, Some(true)) || named(step) == (wanted, None))
    };
    let f = |value: f32| f64::from(value);
    let fill = None;
    let interpolation = Interpolation::Nearest;
    let affine = Affine { interpolation, fill, ..Affine::default() };
    // -0.09 of 0.3 as a shear, 67.97 of 226.59 pixels, 9 of 30 degrees.
    let degrees = -f(0.09).atan().to_degrees();
    let shear = Affine { shear: (degrees, 0.0), center: Some((0.0, 0.0)), ..affine };
    assert_eq!(first("ShearX"), Some(Step::Warp(Warp::Affine(shear))));
    let translate = Affine { translate: (-67.0, 0.0), ..affine };
    assert_eq!(first("TranslateX"), Some(Step::Warp(Warp::Affine(translate))));
    let translate = Affine { translate: (0.0, -50.0), ..affine };
    assert_eq!(first("TranslateY"), Some(Step::Warp(Warp::Affine(translate))));
    let rotate = Rotate { angle: -9.0, interpolation, expand: None, center: None, fill };
    assert_eq!(first("Rotate"), Some(Step::Warp(Warp::Rotate(rotate))));
    assert_eq!(first("Color"), Some(Step::Color(Color::Saturation(1.0 - f(0.269_999_98)))));
    // 8 - round(9 / 7.5) bits, a threshold of 255 * 0.7.
    assert_eq!(first("Posterize"), Some(Step::Color(Color::Posterize(7))));
    assert_eq!(first("Solarize"), Some(Step::Color(Color::Solarize(255.0 * f(0.7)))));
}

#[test]
fn trivial_augment_chooses_operation_magnitude_and_direction_evenly() {
    let mut counts = BTreeMap::new();
    let mut angles = BTreeMap::new();
    let mut negative = 0;
    let mut turned = 0;
    for plan in plans(TrivialAugmentWide::default()) {
        let name = match &plan.steps[..] {
            [] => "Identity",
            // What is not shifted or sheared at all has lost its name.
            [Step::Warp(Warp::Affine(_))] => "Affine",
            [step] => named(step).0,
            steps => panic!("{steps:?}"),
        };
        *counts.entry(name).or_insert(0) += 1;
        if let [Step::Warp(Warp::Rotate(rotate))] = plan.steps[..] {
            *angles.entry(format!("{:.6}", rotate.angle.abs())).or_insert(0) += 1;
            turned += u32::from(rotate.angle != 0.0);
            negative += u32::from(rotate.angle < 0.0);
        }
    }
    let affine = counts.remove("Affine").unwrap();
    share(affine, DRAWS, 4.0 / 14.0);
    // 99.9 % point with 9 degrees of freedom.
    even(&counts, 10, 27.88);
    let angles = angles.iter().map(|(angle, count)| (angle.as_str(), *count)).collect();
    // 99.9 % point with 30 degrees of freedom; angles are 0 to 135 degrees.
    even(&angles, 31, 59.70);
    assert!(angles.contains_key("135.000000"), "{angles:?}");
    share(negative, turned, 0.5);
}

/// Every pair is as likely, and its operations are done as often as the table says.
#[test]
fn auto_augment_follows_its_table() {
    for policy in [AutoAugmentPolicy::Imagenet, AutoAugmentPolicy::Cifar10, AutoAugmentPolicy::Svhn]
    {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut steps = 0;
        for plan in plans(AutoAugment { policy, ..AutoAugment::default() }) {
            for step in &plan.steps {
                steps += 1;
                let Step::Color(color) = step else { continue };
                // The direction does not matter here; without one the magnitude is 0.
                if !matches!(color, Color::Saturation(1.0)) {
                    *counts.entry(named(step).0).or_insert(0) += 1;
                }
            }
        }
        let pairs = policy.pairs();
        let expected = |wanted: &dyn Fn(&Action) -> bool| -> f64 {
            let chosen = pairs.iter().flatten().filter(|(action, ..)| wanted(action));
            chosen.map(|(_, probability, _)| probability).sum::<f64>() / 25.0
        };
        let total = expected(&|_| true) * f64::from(DRAWS);
        // No pair adds more than 2 to the sum, nor its two coins more than 1/2 to the variance.
        assert!(
            (f64::from(steps) - total).abs() < 4.0 * (1.5 * f64::from(DRAWS)).sqrt(),
            "{steps}"
        );
        for action in [Action::Equalize, Action::Invert, Action::Solarize, Action::AutoContrast] {
            let name = format!("{action:?}");
            let found = f64::from(counts.get(name.as_str()).copied().unwrap_or_default());
            let expected = expected(&|other| *other == action) * f64::from(DRAWS);
            let limit = 4.0 * (2.0 * expected).sqrt();
            assert!((found - expected).abs() <= limit, "{policy} {name}: {found}, not {expected}");
        }
    }
}

/// Operations with probability 0 and 1, which an off-by-one in the comparison would swap.
#[test]
fn certain_operations_are_always_done() {
    let mut seen = 0;
    for plan in plans(AutoAugment::default()) {
        let steps: Vec<_> = plan.steps.iter().map(|step| named(step).0).collect();
        // Pair 13 and 22: Invert with 0.6, then always Equalize. Invert is otherwise second.
        if steps.first() == Some(&"Invert") && steps.len() == 2 {
            assert_eq!(steps[1], "Equalize");
            seen += 1;
        }
    }
    // 2 of 25 pairs, 0.6 of them.
    share(seen, DRAWS, 2.0 / 25.0 * 0.6);
}

#[test]
fn mixtures_have_chains_and_shares_of_one() {
    let mut chains = 0u32;
    let mut depths = BTreeMap::new();
    let mut of_image = Vec::new();
    for plan in plans(AugMix::default()) {
        let mut sum = 0.0;
        let mut depth = 0u32;
        let Some(Step::Mix(Mix::Begin { weight })) = plan.steps.first() else { panic!() };
        of_image.push(f64::from(*weight));
        for step in &plan.steps {
            let Step::Mix(mix) = step else {
                depth += 1;
                continue;
            };
            let (Mix::Begin { weight } | Mix::Chain { weight } | Mix::End { weight }) = mix;
            sum += weight;
            if !matches!(mix, Mix::Begin { .. }) {
                chains += 1;
                *depths.entry(["0", "1", "2", "3", "4"][depth as usize]).or_insert(0) += 1;
                depth = 0;
            }
        }
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        assert!(matches!(plan.steps.last(), Some(Step::Mix(Mix::End { .. }))));
    }
    assert_eq!(chains, 3 * DRAWS);
    // 99.9 % point with 2 degrees of freedom.
    even(&depths, 3, 13.82);
    // With alpha 1 the share of the image is uniform: mean 1/2, deviation sqrt(1/12).
    let mean = of_image.iter().sum::<f64>() / f64::from(DRAWS);
    assert!(
        (mean - 0.5).abs() < 4.0 * (1.0f64 / 12.0).sqrt() / (f64::from(DRAWS)).sqrt(),
        "{mean}"
    );
}

#[test]
fn mixtures_keep_to_their_parameters() {
    let op = AugMix { severity: 1, chain_depth: 2, all_ops: false, ..AugMix::default() };
    for plan in plans(op) {
        assert_eq!(plan.steps.len(), 1 + 3 * 3);
        for step in &plan.steps {
            let still = match step {
                // The least magnitude moves nothing.
                Step::Warp(Warp::Rotate(rotate)) => rotate.angle == 0.0,
                Step::Warp(Warp::Affine(Affine { translate, shear, .. })) => {
                    [translate.0, translate.1, shear.0, shear.1] == [0.0; 4]
                }
                Step::Color(Color::Posterize(bits)) => *bits == 4,
                Step::Color(Color::Solarize(threshold)) => *threshold == 255.0,
                Step::Color(color) => matches!(color, Color::Autocontrast | Color::Equalize),
                Step::Mix(_) => true,
                Step::Warp(_) | Step::Pass(_) | Step::User(_) | _ => false,
            };
            assert!(still, "{step:?}");
        }
    }
}

#[test]
fn numbers_that_no_policy_has_are_refused() {
    let refused = |op: Op, name: &str, value: InvalidValue| {
        let result = Recipe::new(vec![op], PIXELS);
        let Err(RecipeError::Parameter { invalid, .. }) = result else { panic!("{result:?}") };
        assert_eq!((invalid.parameter, invalid.value), (name, value));
    };
    let check = |op: Op, name: &str, number: f64| refused(op, name, number.into());
    let rand = RandAugment::default();
    check(RandAugment { num_ops: 65, ..rand }.into(), "num_ops", 65.0);
    check(RandAugment { magnitude: 31, ..rand }.into(), "magnitude", 31.0);
    check(RandAugment { num_magnitude_bins: 1, ..rand }.into(), "num_magnitude_bins", 1.0);
    check(RandAugment { fill: Some(Fill::Grey(256.0)), ..rand }.into(), "fill", 256.0);
    let wide = TrivialAugmentWide { num_magnitude_bins: 0, ..TrivialAugmentWide::default() };
    check(wide.into(), "num_magnitude_bins", 0.0);
    let lanczos = Interpolation::Lanczos;
    let auto = AutoAugment { interpolation: lanczos, ..AutoAugment::default() };
    refused(auto.into(), "interpolation", InvalidValue::Name("lanczos"));
    let mix = AugMix::default();
    check(AugMix { severity: 0, ..mix }.into(), "severity", 0.0);
    check(AugMix { severity: 11, ..mix }.into(), "severity", 11.0);
    check(AugMix { mixture_width: 0, ..mix }.into(), "mixture_width", 0.0);
    check(AugMix { chain_depth: 17, ..mix }.into(), "chain_depth", 17.0);
    check(AugMix { alpha: 0.0, ..mix }.into(), "alpha", 0.0);
    let bicubic = Interpolation::Bicubic;
    check(
        AugMix { interpolation: bicubic, ..mix }.into(),
        "interpolation",
        f64::from(bicubic as u8),
    );
}

#[test]
fn policies_print_what_they_do() {
    let check = |op: Op, expected| assert_eq!(op.to_string(), expected);
    check(AutoAugment::default().into(), "AutoAugment(imagenet, nearest)");
    check(RandAugment::default().into(), "RandAugment(2 ops, magnitude 9 of 31, nearest)");
    let fill = Some(Fill::Grey(128.0));
    let wide = TrivialAugmentWide { fill, ..TrivialAugmentWide::default() };
    check(wide.into(), "TrivialAugmentWide(31 magnitudes, nearest, fill 128)");
    let mix = "AugMix(3 chains of 1 to 3 ops, severity 3, alpha 1, bilinear)";
    check(AugMix::default().into(), mix);
}
