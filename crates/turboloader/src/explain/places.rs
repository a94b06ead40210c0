//! The operations of a recipe that produced each part of a plan.
//!
//! A plan grows operation by operation: each one changes what is pending or adds to it, and never
//! what lies before. So the plans of the recipe's beginnings, drawn for the same sample, tell
//! which of them made each part of the whole plan.

use tl_transform::{Draw, Dtype, Op, OutputSpec, Pass, Plan, PlanError, Recipe, RecipeError, Step};

/// The place where an operation is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In the pass over the rows that come from the decoder.
    Decoding,
    /// On an image of 8-bit pixels.
    Scratch,
    /// In the pass that writes the numbers of the batch.
    FinalPass,
    /// On the numbers that lie in the batch.
    Row,
    /// On the device that batches are copied to.
    Device,
    /// Nowhere: this draw leaves the image as it is.
    Nowhere,
}

impl Place {
    pub(super) const ALL: [Self; 6] =
        [Self::Decoding, Self::Scratch, Self::FinalPass, Self::Row, Self::Device, Self::Nowhere];

    /// As a word of JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Decoding => "decoding",
            Self::Scratch => "scratch",
            Self::FinalPass => "final_pass",
            Self::Row => "row",
            Self::Device => "device",
            Self::Nowhere => "nowhere",
        }
    }
}

/// The head of `plan`, its steps, its tail and its erasures, in order; a tail that changes nothing
/// is left out.
pub(super) fn parts(plan: &Plan) -> Vec<(Place, Step)> {
    let mut parts = vec![(Place::Decoding, Step::Pass(plan.head))];
    parts.extend(plan.steps.iter().map(|step| (Place::Scratch, *step)));
    let (width, height) = plan.size_before_tail();
    if plan.tail != Pass::whole(width, height) {
        parts.push((Place::FinalPass, Step::Pass(plan.tail)));
    }
    parts.extend(plan.erasures.iter().map(|erase| (Place::Row, Step::Erase(*erase))));
    parts
}

/// A recipe and its beginnings.
#[derive(Debug)]
pub(super) struct Beginnings {
    /// Results of the user's transforms that may have any size have the size of the image.
    recipe: Recipe,
    /// The recipe cut off after 0, 1, 2, ... operations.
    recipes: Vec<Recipe>,
}

impl Beginnings {
    pub(super) fn of(recipe: &Recipe) -> Result<Self, RecipeError> {
        let recipe = recipe.with_kept_sizes();
        let cut = |count| -> Result<Recipe, RecipeError> {
            let ops: Vec<Op> = recipe.ops().iter().take(count).cloned().collect();
            let pixels = recipe.pixels();
            let made = |ops, dtype| {
                let output = OutputSpec { dtype, ..recipe.output() };
                Recipe::on_pixels(pixels, recipe.channels(), ops, output)
            };
            // What makes floats cannot give integers, so that one of the two fits.
            let cut = made(ops.clone(), pixels.dtype()).or_else(|_| made(ops, Dtype::F32))?;
            cut.with_parity(recipe.parity())
        };
        let recipes = (0..=recipe.ops().len()).map(cut).collect::<Result<_, _>>()?;
        Ok(Self { recipe, recipes })
    }

    /// The plan for an image of this size, and which of its [`parts`] each operation has made,
    /// alone or with others.
    pub(super) fn plan(
        &self,
        size: (u32, u32),
        draw: Draw,
    ) -> Result<(Plan, Vec<Vec<usize>>), PlanError> {
        let (width, height) = size;
        let plan = self.recipe.plan(width, height, draw)?;
        let mut made = Vec::with_capacity(self.recipe.ops().len());
        let mut before = parts(&Plan::whole(width, height));
        for recipe in self.recipes.iter().skip(1) {
            let after = parts(&recipe.plan(width, height, draw)?);
            let kept = before.iter().zip(&after).take_while(|(old, new)| old.1 == new.1).count();
            made.push((kept..after.len()).collect());
            before = after;
        }
        Ok((plan, made))
    }
}

/// The place of the operation that produced these of the plan's `parts`.
pub(super) fn places(parts: &[(Place, Step)], made: &[usize]) -> Vec<Place> {
    let mut places: Vec<Place> =
        made.iter().filter_map(|&part| parts.get(part)).map(|(place, _)| *place).collect();
    places.dedup();
    if places.is_empty() {
        places.push(Place::Nowhere);
    }
    places
}
