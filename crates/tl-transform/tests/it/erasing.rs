//! Blurring, noise and erasing: where they may stand, and how what they draw is distributed.

use tl_simd::resample::Rect;
use tl_transform::op::{
    CenterCrop, ErasingValue, FiveCrop, GaussianBlur, GaussianNoise, GridMask, Normalize,
    RandomApply, RandomErasing, RandomResizedCrop, Size, ToFloat,
};
use tl_transform::step::{Erase, Filling, Filter, Noise};
use tl_transform::{Draw, Image, Op, Parity, Plan, Recipe, RecipeError, Runner, Step, StepError};

use crate::{F32, U8};

const SAMPLES: u32 = 20_000;

fn plan(ops: Vec<Op>, (width, height): (u32, u32), sample: u32) -> Plan {
    let float = ops.iter().any(|op| matches!(op, Op::ToFloat(_)));
    let recipe = Recipe::new(ops, if float { F32 } else { U8 }).expect("a recipe");
    recipe.plan(width, height, Draw { seed: 9, epoch: 0, sample: sample.into() }).expect("a plan")
}

/// The rectangles of as many samples, `None` where nothing is erased.
fn rectangles(erasing: RandomErasing, size: (u32, u32)) -> Vec<Option<Rect>> {
    let rectangle = |sample| {
        let step = plan(vec![erasing.into()], size, sample).steps.pop()?;
        let Step::Erase(Erase::Rectangle { rect, .. }) = step else { return None };
        Some(rect)
    };
    (0..SAMPLES).map(rectangle).collect()
}

#[test]
fn erased_areas_and_ratios_are_those_of_torchvision() {
    let erasing = RandomErasing { p: 1.0, ..RandomErasing::default() };
    let rects: Vec<Rect> = rectangles(erasing, (400, 300)).into_iter().flatten().collect();
    // Nearly every try fits: a rectangle of a third of the area and ratio 3.3 is 348 rows high.
    assert!(rects.len() > SAMPLES as usize * 999 / 1000, "{}", rects.len());
    let n = rects.len() as f64;
    let area = |rect: &Rect| f64::from(rect.width) * f64::from(rect.height) / 120_000.0;
    assert!(rects.iter().all(|rect| rect.fits(400, 300) && (0.015..0.34).contains(&area(rect))));
    // 20,000 draws of torchvision's make_params for this size have means of 0.1712 and -0.032.
    let mean_area = rects.iter().map(area).sum::<f64>() / n;
    assert!((mean_area - 0.1712).abs() < 0.003, "{mean_area}");
    let log_ratio = |rect: &Rect| (f64::from(rect.height) / f64::from(rect.width)).ln();
    let bound = 3.3_f64.ln();
    assert!(rects.iter().all(|rect| log_ratio(rect).abs() < bound + 0.05));
    let mean_ratio = rects.iter().map(log_ratio).sum::<f64>() / n;
    assert!((mean_ratio + 0.032).abs() < 0.02, "{mean_ratio}");
    // Places are even over what is left.
    let share = rects.iter().map(|rect| f64::from(rect.x) / f64::from(400 - rect.width));
    let mean = share.sum::<f64>() / n;
    assert!((mean - 0.5).abs() < 4.0 * (1.0 / 12.0 / n).sqrt(), "{mean}");
}

#[test]
fn erasing_gives_up_after_ten_tries_and_leaves_the_image() {
    // Height is sqrt(part * ratio): 1.0 to 1.73 times the side, and never less than it.
    let tall = RandomErasing { p: 1.0, scale: (1.0, 1.0), ratio: (1.0, 3.0), ..Default::default() };
    assert!(rectangles(tall, (50, 50)).iter().all(Option::is_none));
    // One try in two fits: 1 - 2^-10 of the images have a rectangle.
    let half = RandomErasing { scale: (0.5, 0.5), ratio: (1.0, 4.0), ..tall };
    let failed = rectangles(half, (1000, 1000)).iter().filter(|rect| rect.is_none()).count();
    assert!((5..=40).contains(&failed), "{failed} of 20000, expected 20");
    let mostly = RandomErasing { p: 0.25, ..RandomErasing::default() };
    let erased = rectangles(mostly, (400, 300)).iter().flatten().count();
    assert!((4_750..=5_250).contains(&erased), "{erased} of 20000, expected 5000");
    // No rectangle is smaller than one pixel, so nothing is erased.
    let tiny = rectangles(RandomErasing { p: 1.0, ..mostly }, (1, 1));
    assert!(tiny.iter().flatten().all(|rect| rect.width * rect.height == 0));
}

#[test]
fn erasing_works_on_pixels_before_floats_and_on_the_batch_after_them() {
    let erase = RandomErasing { p: 1.0, ..RandomErasing::default() };
    let grid = GridMask { p: 1.0, ..GridMask::default() };
    let before = plan(vec![erase.into(), grid.into(), ToFloat {}.into()], (64, 64), 0);
    assert_eq!((before.steps.len(), before.erasures.len()), (2, 0));
    let random = RandomErasing { value: ErasingValue::RANDOM, ..erase };
    let ops = vec![ToFloat {}.into(), Normalize::IMAGENET.into(), random.into(), grid.into()];
    let after = plan(ops, (64, 64), 0);
    assert!(after.is_one_pass(), "{after:?}");
    let [Erase::Rectangle { fill: Filling::Normal { key }, .. }, Erase::Grid { .. }] =
        after.erasures[..]
    else {
        panic!("{after:?}")
    };
    let again = plan(vec![ToFloat {}.into(), random.into()], (64, 64), 1);
    let [Erase::Rectangle { fill: Filling::Normal { key: other }, .. }] = again.erasures[..] else {
        panic!("{again:?}")
    };
    assert_ne!(key, other);
    for (ops, position) in [
        (vec![random.into()], 0),
        (vec![ToFloat {}.into(), erase.into(), CenterCrop::new(8).into()], 2),
        (vec![ToFloat {}.into(), erase.into(), Normalize::IMAGENET.into()], 2),
    ] {
        let error = Recipe::new(ops, F32).unwrap_err();
        assert!(matches!(error, RecipeError::Order { position: at, .. } if at == position));
    }
    let recipe = Recipe::new(vec![erase.into(), ToFloat {}.into(), erase.into()], F32).unwrap();
    assert_eq!(recipe.into_pixels(U8.layout).ops(), [Op::from(erase)]);
}

#[test]
fn grids_are_drawn_within_their_bounds() {
    let mut turned = 0;
    for sample in 0..2_000 {
        let grid = GridMask { p: 1.0, ..GridMask::default() };
        let [Step::Erase(Erase::Grid { distance, length, offset, degrees, squares, .. })] =
            plan(vec![grid.into()], (224, 224), sample).steps[..]
        else {
            panic!("a grid")
        };
        assert!((96..224).contains(&distance) && degrees < 360 && squares);
        assert_eq!(length, (distance * 6).div_ceil(10), "{distance}");
        assert!(offset.0 < distance && offset.1 < distance);
        turned += degrees;
    }
    assert!((340_000..378_000).contains(&turned), "mean of 179.5 degrees: {turned}");
}

#[test]
fn parameters_out_of_range_are_refused() {
    let blur = |kernel_size, sigma| GaussianBlur { kernel_size, sigma }.into();
    let noise = |mean, sigma| GaussianNoise { mean, sigma, clip: true }.into();
    let erasing = |scale, ratio| RandomErasing { scale, ratio, ..Default::default() }.into();
    let refused: Vec<Op> = vec![
        blur((4, 3), (0.1, 2.0)),
        blur((3, 257), (0.1, 2.0)),
        blur((3, 3), (0.0, 2.0)),
        blur((3, 3), (1e-60, 2.0)),
        blur((3, 3), (2.0, 1.0)),
        blur((3, 3), (1.0, f64::INFINITY)),
        noise(0.0, -0.1),
        noise(f64::NAN, 0.1),
        noise(0.0, 17.0),
        erasing((-0.1, 0.3), (0.3, 3.3)),
        erasing((0.1, 1.1), (0.3, 3.3)),
        erasing((0.3, 0.1), (0.3, 3.3)),
        erasing((0.1, 0.3), (0.0, 3.3)),
        RandomErasing { value: ErasingValue::All(f32::NAN), ..Default::default() }.into(),
        GridMask { distance: (5, 5), ..Default::default() }.into(),
        GridMask { ratio: 1.5, ..Default::default() }.into(),
        GridMask { mode: 2, ..Default::default() }.into(),
        GridMask { rotate: 0, ..Default::default() }.into(),
        GridMask { value: ErasingValue::RANDOM, ..Default::default() }.into(),
    ];
    for op in refused {
        let error = Recipe::new(vec![op.clone()], U8).unwrap_err();
        assert!(matches!(error, RecipeError::Parameter { .. }), "{op}: {error}");
    }
}

#[test]
fn operations_are_read_with_the_defaults_of_torchvision() {
    let check = |json, op: Op| assert_eq!(serde_json::from_str::<Op>(json).unwrap(), op, "{json}");
    check(r#"{"op": "gaussian_blur", "kernel_size": 5}"#, GaussianBlur::new(5).into());
    check(
        r#"{"op": "gaussian_blur", "kernel_size": [5, 9], "sigma": 1.5}"#,
        GaussianBlur { kernel_size: (5, 9), sigma: (1.5, 1.5) }.into(),
    );
    check(r#"{"op": "gaussian_noise"}"#, GaussianNoise::default().into());
    check(r#"{"op": "random_erasing"}"#, RandomErasing::default().into());
    let random = RandomErasing { value: ErasingValue::RANDOM, ..Default::default() };
    check(r#"{"op": "random_erasing", "value": "random"}"#, random.into());
    check(
        r#"{"op": "grid_mask", "value": [1, 2, 3]}"#,
        GridMask { value: ErasingValue::Each([1.0, 2.0, 3.0]), ..Default::default() }.into(),
    );
    assert!(serde_json::from_str::<Op>(r#"{"op": "random_erasing", "value": "noise"}"#).is_err());
}

#[test]
fn steps_that_make_no_sense_are_refused_and_not_run() {
    let mut image = Image::from_pixels(4, 4, vec![7; 48]);
    let rect = Rect { x: 2, y: 0, width: 3, height: 1 };
    let blur = |kernel_size, sigma| Step::Filter(Filter::GaussianBlur { kernel_size, sigma });
    for step in [
        Step::Erase(Erase::Rectangle { rect, fill: Filling::Value([0.0; 3]) }),
        blur((2, 3), (1.0, 1.0)),
        blur((3, 3), (f64::NAN, 1.0)),
        blur((301, 3), (1.0, 1.0)),
        Step::Noise(Noise::Gaussian { mean: 0.0, sigma: -1.0, clip: true, key: 0 }),
    ] {
        let refused = Runner::new().run(&[step], Parity::Pil, &mut image);
        assert!(matches!(refused, Err(StepError::Size { position: 0, .. })), "{step:?}");
    }
    assert_eq!(image.pixels(), [7; 48]);
    let step = blur((255, 255), (0.5, 40.0));
    Runner::new().run(&[step], Parity::Tensor, &mut image).unwrap();
    assert_eq!(image.pixels(), [7; 48]);
}

#[test]
fn erasures_of_floats_are_drawn_without_the_rest() {
    let erase = |p, value| Op::from(RandomErasing { p, value, ..Default::default() });
    let all = erase(0.7, ErasingValue::All(0.25));
    let crop = RandomResizedCrop::new(40);
    let ops = vec![
        crop.into(),
        erase(0.5, ErasingValue::All(0.0)),
        FiveCrop { size: Size::exact(24, 20) }.into(),
        ToFloat {}.into(),
        Normalize::IMAGENET.into(),
        all.clone(),
        RandomApply { p: 0.5, ops: vec![erase(1.0, ErasingValue::RANDOM), all] }.into(),
    ];
    let recipe = Recipe::new(ops, F32).unwrap().with_draws(2).unwrap();
    assert!(recipe.erases_floats() && recipe.before_table().is_ok());
    let mut plan = Plan::whole(0, 0);
    let mut count = 0;
    for (sample, view) in (0..200).flat_map(|sample| (0..10).map(move |view| (sample, view))) {
        let draw = Draw { seed: 5, epoch: 2, sample };
        let mut whole = Plan::whole(0, 0);
        recipe.plan_view_into((90, 70), draw, view, &mut whole).unwrap();
        recipe.plan_erasures_into(whole.output_size(), draw, view, &mut plan).unwrap();
        assert_eq!(plan.erasures, whole.erasures);
        count += plan.erasures.len();
    }
    assert!(count > 1500, "{count}");
    let grid = vec![ToFloat {}.into(), GridMask::default().into()];
    assert_eq!(Recipe::new(grid, F32).unwrap().before_table(), Err("GridMask"));
}
