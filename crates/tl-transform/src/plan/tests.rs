use tl_simd::resample::Rect;

use super::*;
use crate::error::{PlanError, RecipeError};
use crate::interpolation::Interpolation;
use crate::op::{CenterCrop, FiveCrop, RandomResizedCrop, Resize, Size};
use crate::output::{Dtype, Layout, OutputSpec};
use crate::pass::Padding;
use crate::recipe::Recipe;
use crate::stream::Draw;

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

fn train() -> Recipe {
    Recipe::imagenet_train(224).unwrap()
}

fn draw(seed: u64, epoch: u32, sample: u64) -> Draw {
    Draw { seed, epoch, sample }
}

/// The recipe's plan for an image, which fits one pass.
fn pass(recipe: &Recipe, size: (u32, u32), draw: Draw) -> Pass {
    let plan = recipe.plan(size.0, size.1, draw).unwrap();
    assert!(plan.is_one_pass(), "{plan:?}");
    plan.head
}

fn crops(width: u32, height: u32, count: u64) -> Vec<Pass> {
    (0..count).map(|sample| pass(&train(), (width, height), draw(42, 0, sample))).collect()
}

fn rect(x: u32, y: u32, width: u32, height: u32) -> Rect {
    Rect { x, y, width, height }
}

fn eval_geometry(size: u32, crop: u32, image: (u32, u32)) -> Pass {
    let resize = Resize::new(size);
    let ops = vec![resize.into(), CenterCrop::new(crop).into()];
    pass(&Recipe::new(ops, PIXELS).unwrap(), image, Draw::default())
}

/// Kolmogorov-Smirnov distance from the uniform distribution on `[low, high)`, times sqrt(n).
fn ks(mut values: Vec<f64>, low: f64, high: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = values.iter().enumerate().map(|(rank, value)| {
        let expected = (value - low) / (high - low);
        (expected - rank as f64 / n).abs().max((expected - (rank + 1) as f64 / n).abs())
    });
    distance.fold(0.0, f64::max) * n.sqrt()
}

/// 99.9 % point of the Kolmogorov distribution.
const KS_LIMIT: f64 = 1.95;

/// The constants are printed by `testdata/tools/reference.py`.
#[test]
fn plans_of_fixed_seeds_stay_as_they_are() {
    let check = |seed, epoch, sample, region, flip| {
        let pass = pass(&train(), (500, 375), draw(seed, epoch, sample));
        let window = rect(0, 0, 224, 224);
        let resized = (224, 224);
        let padding = Padding::default();
        let interpolation = Interpolation::Bilinear;
        assert_eq!(pass, Pass { region, resized, window, padding, flip, interpolation, ..pass });
    };
    check(0, 0, 0, rect(82, 1, 244, 318), false);
    check(0, 0, 1, rect(65, 2, 397, 361), true);
    check(42, 0, 7, rect(228, 9, 257, 310), true);
    check(42, 1, 7, rect(120, 0, 370, 346), true);
    check(u64::MAX, u32::MAX, 1 << 40, rect(24, 20, 408, 350), false);
}

#[test]
fn evaluation_truncates_the_longer_side_and_cuts_the_middle() {
    let check = |width, resized, window| {
        let plan = pass(&Recipe::imagenet_eval(224).unwrap(), (width, 375), draw(9, 9, 9));
        assert_eq!((plan.resized, plan.window), (resized, window));
        assert_eq!((plan.region, plan.flip), (rect(0, 0, width, 375), false));
        assert_eq!(plan.padding, Padding::default());
    };
    // 256 * 500 / 375 = 341.33; (341 - 224) / 2 = 58.5 rounds to the even 58.
    check(500, (341, 256), rect(58, 16, 224, 224));
    check(375, (256, 256), rect(16, 16, 224, 224));
    // 256 * 375 / 281 = 341.64 is cut to 341.
    check(281, (256, 341), rect(16, 58, 224, 224));
    // 256 * 502 / 375 = 342.70; (342 - 224) / 2 = 59 exactly.
    check(502, (342, 256), rect(59, 16, 224, 224));
    // 256 * 509 / 375 = 347.48; 61.5 rounds to the even 62.
    check(509, (347, 256), rect(62, 16, 224, 224));
}

#[test]
fn a_crop_larger_than_the_image_pads_with_the_odd_pixel_last() {
    let plan = eval_geometry(4, 9, (4, 8));
    assert_eq!(plan.resized, (4, 8));
    assert_eq!(plan.window, rect(0, 0, 4, 8));
    assert_eq!(plan.padding, Padding { left: 2, top: 0, right: 3, bottom: 1 });
    assert_eq!(plan.output_size(), (9, 9));
    // Only one side is short; the other's surplus of 5 is a tie between 2 and 3.
    let plan = eval_geometry(4, 6, (4, 11));
    assert_eq!(plan.region, rect(0, 2, 4, 6));
    assert_eq!(plan.padding, Padding { left: 1, top: 0, right: 1, bottom: 0 });
}

#[test]
fn crops_stay_inside_the_image() {
    for (width, height) in [(500, 375), (375, 500), (1, 1), (2, 1), (1, 900), (65_535, 65_535)] {
        for plan in crops(width, height, 300) {
            let crop = plan.region;
            assert!(crop.width >= 1 && crop.height >= 1, "{plan:?}");
            assert!(crop.x + crop.width <= width && crop.y + crop.height <= height, "{plan:?}");
            assert_eq!(plan.output_size(), (224, 224));
        }
    }
}

/// A square image admits every ratio up to an area of 3/4, so below it nothing is rejected and both
/// draws must look uniform. Above it the share that fits is `ln(1/A) / ln(4/3)`, which fixes how
/// many crops lie below: 0.67 / (0.67 + 0.1190) = 0.849.
#[test]
fn area_and_log_ratio_are_uniform() {
    let side = 8_000.0;
    let plans = crops(8_000, 8_000, 20_000);
    let small: Vec<(f64, f64)> = plans
        .iter()
        .map(|plan| (f64::from(plan.region.width), f64::from(plan.region.height)))
        .map(|(width, height)| (width * height / (side * side), (width / height).ln()))
        .filter(|(area, _)| *area < 0.75)
        .collect();
    let share = small.len() as f64 / plans.len() as f64;
    assert!((share - 0.849).abs() < 0.008, "{share}");
    let areas = ks(small.iter().map(|(area, _)| *area).collect(), 0.08, 0.75);
    let bound = (4.0f64 / 3.0).ln();
    let ratios = ks(small.iter().map(|(_, ratio)| *ratio).collect(), -bound, bound);
    assert!(areas < KS_LIMIT && ratios < KS_LIMIT, "area {areas}, ratio {ratios}");
}

#[test]
fn positions_and_flips_are_uniform() {
    let plans = crops(8_000, 8_000, 20_000);
    let place = |plan: &Pass| f64::from(plan.region.x) / f64::from(8_001 - plan.region.width);
    // Crops about as wide as the image have few places to be in; leave them out.
    let narrow = plans.iter().filter(|plan| plan.region.width < 7_000);
    let across = ks(narrow.map(place).collect(), 0.0, 1.0);
    assert!(across < KS_LIMIT, "{across}");
    let flips = plans.iter().filter(|plan| plan.flip).count();
    assert!((9_700..10_300).contains(&flips), "{flips}");
}

/// On a 10:1 image a draw fits when `area share <= 0.101 * ratio` (height rounds to at most 100):
/// the integral of `0.101 e^u - 0.08` over the admissible log-ratios gives 0.0246 a try, so ten
/// fail with probability 0.780. The fallback is the middle, 133 pixels wide.
#[test]
fn narrow_images_fall_back_as_often_as_they_should() {
    for (width, height, middle) in
        [(1_000, 100, rect(433, 0, 133, 100)), (100, 1_000, rect(0, 433, 100, 133))]
    {
        let plans = crops(width, height, 20_000);
        let fallbacks = plans.iter().filter(|plan| plan.region == middle).count();
        let share = fallbacks as f64 / plans.len() as f64;
        assert!((share - 0.780).abs() < 0.012, "{share}");
    }
}

#[test]
fn sides_beyond_the_limit_are_refused() {
    for (width, height) in [(0, 5), (5, 0), (65_536, 1), (1, u32::MAX)] {
        let error = train().plan(width, height, Draw::default()).unwrap_err();
        assert_eq!(error, PlanError::ImageSize { width, height });
    }
    let plan = eval_geometry(16, 1, (1, 65_535));
    assert_eq!(plan.resized, (16, 16 * 65_535));
}

#[test]
fn plans_that_end_in_impossible_sizes_are_refused() {
    let plan = |size, crop: Option<u32>| {
        let crop = crop.map(|crop| CenterCrop::new(crop).into());
        let ops = [Resize::new(size).into()].into_iter().chain(crop).collect();
        Recipe::new(ops, PIXELS).unwrap().plan(1, 65_535, Draw::default())
    };
    let width = 16;
    let height = 1_048_560;
    assert_eq!(plan(16, None), Err(PlanError::ImageSize { width, height }));
    assert_eq!(plan(16, Some(16)).unwrap().output_size(), (16, 16));
    let width = 65_535;
    let height = 4_294_836_225;
    let refused = Err(PlanError::ResizedSide { width, height });
    assert_eq!(plan(65_535, None), refused);
    assert_eq!(plan(65_535, Some(65_535)), refused);
}

#[test]
fn every_draw_of_a_recipe_has_the_plan_of_its_own_seed() {
    let ops = vec![RandomResizedCrop::new(9).into(), FiveCrop { size: Size::exact(4, 4) }.into()];
    let once = Recipe::new(ops, PIXELS).unwrap();
    let recipe = once.clone().with_draws(3).unwrap();
    assert_eq!((recipe.views(), recipe.draws()), (15, 3));
    let draw = Draw { seed: 8, epoch: 2, sample: 4 };
    let plan = |recipe: &Recipe, draw, view| {
        let mut plan = Plan::whole(1, 1);
        recipe.plan_view_into((40, 30), draw, view, &mut plan).unwrap();
        plan
    };
    for view in 0..15 {
        let expected = plan(&once, draw.of_image(view / 5), view % 5);
        assert_eq!(plan(&recipe, draw, view), expected, "view {view}");
    }
    assert_ne!(plan(&recipe, draw, 0), plan(&recipe, draw, 5));
    assert!(recipe.to_string().ends_with("u8 HWC, 3 draws"), "{recipe}");
    let json = serde_json::to_string(&recipe).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
    assert!(!serde_json::to_string(&once).unwrap().contains("draws"));
    assert_eq!(once.clone().with_draws(0).unwrap_err(), RecipeError::NoDraws);
    let limit = Recipe::MAX_VIEWS;
    let error = once.with_draws(52).unwrap_err();
    assert_eq!(error, RecipeError::TooManyViews { views: 260, limit });
}
