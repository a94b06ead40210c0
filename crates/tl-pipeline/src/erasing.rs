//! Erasing on a device: the rectangles of a row's numbers, which it gets besides the pixels.

use tl_cuda::Erasures;
use tl_simd::Level;
use tl_simd::resample::Rect;
use tl_transform::step::{Erase, Filling};
use tl_transform::{Channels, Draw, Layout, OutputSpec, Plan, PlanError, Recipe};

/// Draws what a recipe erases in the floats that a device makes.
#[derive(Debug)]
pub(crate) struct Erasing {
    recipe: Recipe,
    plan: Plan,
    level: Level,
}

impl Erasing {
    /// The erasing of `recipe`, if it does that to floats.
    pub(crate) fn of(recipe: &Recipe) -> Option<Self> {
        let plan = Plan::whole(0, 0);
        let level = Level::detect();
        recipe.erases_floats().then(|| Self { recipe: recipe.clone(), plan, level })
    }

    /// Adds the rectangles that are erased in the images that `plans` make of a sample.
    pub(crate) fn draw(
        &mut self,
        draw: Draw,
        plans: &[Plan],
        erasures: &mut Erasures,
    ) -> Result<(), PlanError> {
        let Self { recipe, plan, level } = self;
        for (view, size) in plans.iter().map(Plan::output_size).enumerate() {
            let number = u32::try_from(view).expect("a sample has few views");
            recipe.plan_erasures_into(size, draw, number, plan)?;
            for erase in &plan.erasures {
                add(erase, view, recipe.output(), *level, erasures);
            }
        }
        Ok(())
    }
}

fn add(erase: &Erase, view: usize, output: OutputSpec, level: Level, erasures: &mut Erasures) {
    let &Erase::Rectangle { rect, fill } = erase else {
        unreachable!("`Recipe::before_table` refuses other parts than rectangles")
    };
    let size = output.dtype.bytes();
    let (sides, numbers) = if matches!(fill, Filling::Normal { .. }) {
        ((rect.width, rect.height), erasures.add_numbers(view, rect, size))
    } else {
        ((1, 1), erasures.add_color(view, rect, size))
    };
    // The numbers of a rectangle do not depend on its place.
    let alone = Erase::Rectangle { rect: Rect::of_size(sides.0, sides.1), fill };
    let planes = OutputSpec { layout: Layout::Chw, ..output };
    alone.run(level, planes, Channels::Rgb, sides, numbers);
}
