//! Recipes: what is read can be printed, hashed and read again, and its plans can be carried out.

use tl_transform::{Draw, Image, Plan, Recipe, Runner, Step, StepError};

use crate::recipe_json::recipe_json;

/// Sides of the images that plans are made for.
const SIZES: [(u32, u32); 4] = [(1, 1), (13, 11), (1, 9), (32, 2)];

/// Larger images are not carried out: a run of the fuzzer is to be fast.
const MAX_PIXELS: u64 = 1 << 14;

/// As many steps of small images take about as long as a run may.
const MAX_STEPS: usize = 200;

/// Reads `data` as a recipe, or as the description of one, and runs it on small images.
pub fn recipe(data: &[u8]) {
    let Ok(recipe) = serde_json::from_slice::<Recipe>(&recipe_json(data)) else { return };
    let text = serde_json::to_string(&recipe).expect("a recipe has finite numbers");
    let again: Recipe = serde_json::from_str(&text).expect("a recipe is read as it was written");
    assert_eq!(again, recipe);
    assert_eq!(again.hash(), recipe.hash());
    assert!(!recipe.to_string().is_empty());
    let mut runner = Runner::new();
    for (sample, (width, height)) in (0..).zip(SIZES) {
        let draw = Draw { seed: 42, epoch: 0, sample };
        let Ok(plan) = recipe.plan(width, height, draw) else { continue };
        assert_eq!(recipe.plan(width, height, draw).as_ref(), Ok(&plan));
        if let Some(size) = recipe.output_size() {
            assert_eq!(plan.output_size(), size, "{recipe}");
        }
        run(&recipe, &plan, (width, height), &mut runner);
    }
}

/// Carries a plan out on an image of `size`, its passes as steps.
fn run(recipe: &Recipe, plan: &Plan, size: (u32, u32), runner: &mut Runner) {
    let (width, height) = plan.output_size();
    let pixels = u64::from(width) * u64::from(height);
    let (head, tail) = (Step::Pass(plan.head), Step::Pass(plan.tail));
    let (head_width, head_height) = plan.head.output_size();
    let head_pixels = u64::from(head_width) * u64::from(head_height);
    let largest = plan.largest_step().max(pixels).max(head_pixels);
    if plan.steps.len() > MAX_STEPS || largest > MAX_PIXELS {
        return;
    }
    let bytes = size.0 as usize * size.1 as usize * 3;
    let samples = (0..bytes).map(|place| (place * 31 % 256).to_le_bytes()[0]).collect();
    let mut image = Image::from_pixels(size.0, size.1, samples);
    let steps: Vec<Step> =
        std::iter::once(head).chain(plan.steps.iter().copied()).chain([tail]).collect();
    match runner.run(&steps, recipe.parity(), &mut image) {
        Ok(()) => assert_eq!(image.size(), plan.output_size(), "{recipe}"),
        // There is no code behind the names.
        Err(StepError::NoUserTransform { .. }) => {}
        Err(error) => panic!("{error} on {size:?}: {recipe}"),
    }
}
