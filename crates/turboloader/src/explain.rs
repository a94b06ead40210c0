//! The operations of a recipe and their places, or their effect on one sample.

mod places;
mod words;

use std::fmt;

use serde_json::{Map, Value, json};
use tbl_io::ErrorKind;
use tl_pipeline::{DevicePart, Fault};
use tl_transform::{Draw, Mixing, Op, Plan, PlanError, Recipe, RecipeError, Step, StepError};

use places::{Beginnings, Place, parts, places};

/// So many plans are drawn to see where operations are carried out: what happens in one of fifty
/// is then missed once in two hundred times.
const DRAWS: u64 = 256;

/// The reason why a recipe cannot be explained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// One of its prefixes is not a recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// An image of this size cannot be what it asks for.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A step cannot be done to such an image.
    #[error(transparent)]
    Step(#[from] StepError),
}

impl Fault for ExplainError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Setting
    }
}

/// The effect and place of a recipe's operations for images of one size: the output of `tl
/// explain`. Prints as text.
///
/// ```
/// use turboloader::{Explanation, Recipe};
///
/// let recipe = Recipe::imagenet_train(224)?;
/// let explanation = Explanation::new(&recipe, (500, 375), 0)?;
/// assert!(explanation.to_string().contains("RandomResizedCrop"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Explanation<'a> {
    recipe: &'a Recipe,
    seed: u64,
    beginnings: Beginnings,
    summary: Summary,
    device: Option<DevicePart>,
    sample: Option<Sample>,
    batch: Option<Batch>,
}

impl<'a> Explanation<'a> {
    /// Explains a recipe for images of this width and height.
    ///
    /// # Errors
    /// [`ExplainError`] when the recipe has no plan for an image of this size.
    pub fn new(recipe: &'a Recipe, size: (u32, u32), seed: u64) -> Result<Self, ExplainError> {
        let beginnings = Beginnings::of(recipe)?;
        let summary = Summary::new(recipe, &beginnings, size, seed)?;
        Ok(Self { recipe, seed, beginnings, summary, device: None, sample: None, batch: None })
    }

    /// Adds the part of a device that batches are copied to, as [`DevicePart::of`] says.
    #[must_use]
    pub fn with_device(self) -> Self {
        let part = DevicePart::of(self.recipe);
        self.with_device_part(part)
    }

    /// Adds the part of a device, such as that of a loader.
    #[must_use]
    pub fn with_device_part(mut self, part: DevicePart) -> Self {
        if part.converts {
            self.summary.ops.iter_mut().for_each(OpSummary::convert_on_device);
        }
        self.device = Some(part);
        self
    }

    /// Adds what is drawn for one sample.
    ///
    /// # Errors
    /// [`PlanError`] when the recipe has no plan for an image of this size.
    pub fn with_sample(mut self, epoch: u32, sample: u64) -> Result<Self, PlanError> {
        let draw = Draw { seed: self.seed, epoch, sample };
        let size = self.summary.size;
        let (plan, made) = self.beginnings.plan(size, draw)?;
        self.sample = Some(Sample { draw, size, plan, made });
        Ok(self)
    }

    /// Adds how one batch is mixed.
    #[must_use]
    pub fn with_batch(mut self, epoch: u32, number: u64) -> Self {
        let mixing = self.recipe.mixing(self.seed, epoch, number);
        self.batch = Some(Batch { number, epoch, seed: self.seed, mixing });
        self
    }

    /// The explanation as JSON, of the schema `tl.explain/1`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { recipe, summary, device, sample, batch, .. } = self;
        let mut object = json!({
            "schema": "tl.explain/1",
            "recipe": recipe,
            "text": recipe.to_string(),
            "hash": recipe.hash().to_string(),
            "size": [summary.size.0, summary.size.1],
            "output_size": recipe.output_size(),
            "ops": summary.ops.iter().map(OpSummary::json).collect::<Vec<_>>(),
            "draws": DRAWS,
            "scratch_pixels": summary.scratch_pixels,
            "scratch_bytes": summary.scratch_bytes,
        });
        if let Some(part) = device {
            object["device"] = json!({
                "decodes": part.decodes,
                "converts": part.converts,
                "text": part.to_string(),
            });
        }
        if let Some(Sample { draw, size, plan, made }) = sample {
            let made: Vec<Value> = (summary.ops.iter().zip(made))
                .map(|(op, made)| json!({ "number": op.number, "parts": made }))
                .collect();
            object["sample"] =
                json!({ "draw": draw, "size": [size.0, size.1], "plan": plan, "ops": made });
        }
        if let Some(Batch { number, epoch, seed, mixing }) = batch {
            object["batch"] =
                json!({ "number": number, "epoch": epoch, "seed": seed, "mixing": mixing });
        }
        object
    }
}

/// The counts over many draws.
#[derive(Debug)]
struct Summary {
    size: (u32, u32),
    ops: Vec<OpSummary>,
    /// Pixels of the largest image between the first and the last pass.
    scratch_pixels: u64,
    /// The most bytes that a worker holds on the way to a result.
    scratch_bytes: u64,
}

/// An operation of the recipe, and how often it was carried out at each place.
#[derive(Debug)]
struct OpSummary {
    number: usize,
    op: Op,
    /// For each of [`Place::ALL`].
    draws: [u64; Place::ALL.len()],
}

impl Summary {
    fn new(
        recipe: &Recipe,
        beginnings: &Beginnings,
        size: (u32, u32),
        seed: u64,
    ) -> Result<Self, ExplainError> {
        let mut next = 0;
        let mut ops: Vec<OpSummary> = recipe
            .ops()
            .iter()
            .map(|op| {
                let number = next;
                next += op.count();
                OpSummary { number, op: op.clone(), draws: [0; Place::ALL.len()] }
            })
            .collect();
        let mut scratch_pixels = 0;
        let mut scratch_bytes = 0;
        for sample in 0..DRAWS {
            let draw = Draw { seed, epoch: 0, sample };
            let (plan, made) = beginnings.plan(size, draw)?;
            let parts = parts(&plan);
            scratch_pixels = plan.largest_step().max(scratch_pixels);
            scratch_bytes = recipe.scratch_bytes(&plan)?.max(scratch_bytes);
            for (op, made) in ops.iter_mut().zip(&made) {
                for place in op.places(&parts, made) {
                    let known = Place::ALL.iter().zip(&mut op.draws);
                    known.filter(|(known, _)| **known == place).for_each(|(_, draws)| *draws += 1);
                }
            }
        }
        Ok(Self { size, ops, scratch_pixels, scratch_bytes })
    }
}

impl OpSummary {
    /// Moves the conversion to numbers, and what is done to these, to the device.
    fn convert_on_device(&mut self) {
        let is_conversion = matches!(self.op, Op::ToFloat(_) | Op::Normalize(_));
        let mut moved = 0;
        for (place, draws) in Place::ALL.iter().zip(&mut self.draws) {
            match place {
                Place::FinalPass if is_conversion => moved += std::mem::take(draws),
                Place::Row => moved += std::mem::take(draws),
                Place::Device => *draws = moved,
                Place::Decoding | Place::Scratch | Place::FinalPass | Place::Nowhere => {}
            }
        }
    }

    fn places(&self, parts: &[(Place, Step)], made: &[usize]) -> Vec<Place> {
        if matches!(self.op, Op::ToFloat(_) | Op::Normalize(_)) {
            return vec![Place::FinalPass];
        }
        places(parts, made)
    }

    /// The places with the number of draws that had it there.
    fn counted(&self) -> impl Iterator<Item = (Place, u64)> {
        Place::ALL.into_iter().zip(self.draws).filter(|(_, draws)| *draws > 0)
    }

    fn json(&self) -> Value {
        let places: Map<String, Value> = self
            .counted()
            .map(|(place, draws)| (place.name().to_owned(), json!(share(draws))))
            .collect();
        json!({ "number": self.number, "op": self.op, "text": self.op.to_string(), "places": places })
    }
}

#[expect(clippy::cast_precision_loss, reason = "both are small")]
fn share(draws: u64) -> f64 {
    draws as f64 / DRAWS as f64
}

/// The draws for one sample.
#[derive(Debug)]
struct Sample {
    draw: Draw,
    size: (u32, u32),
    plan: Plan,
    /// For each operation, the parts of the plan it has a share in.
    made: Vec<Vec<usize>>,
}

/// The draws for one batch.
#[derive(Debug)]
struct Batch {
    number: u64,
    epoch: u32,
    seed: u64,
    /// `None` where its images stay as they are.
    mixing: Option<Mixing>,
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (recipe, (width, height)) = (self.recipe, self.summary.size);
        writeln!(f, "hash     {}", recipe.hash())?;
        writeln!(f, "pixels   {}", words::pixels(recipe))?;
        writeln!(f, "decode   {}", words::decode_mode(recipe))?;
        writeln!(f, "parity   {}", words::parity(recipe))?;
        write!(f, "output   {} {}, ", recipe.output().dtype, recipe.output().layout)?;
        match recipe.output_size() {
            Some((width, height)) => writeln!(f, "{width}x{height}")?,
            None => writeln!(f, "in the size that the image has then")?,
        }
        if let Some(part) = &self.device {
            writeln!(f, "device   {part}")?;
        }
        let pixels = self.summary.scratch_pixels;
        let kilobytes = self.summary.scratch_bytes.div_ceil(1000);
        let of = format!("for images of {width}x{height}");
        if recipe.is_wide() && kilobytes > 0 {
            writeln!(f, "scratch  at most {kilobytes} KB of pixels and rows, {of}")?;
        } else if pixels > 0 {
            writeln!(f, "scratch  images of at most {pixels} pixels, {kilobytes} KB, {of}")?;
        } else {
            writeln!(
                f,
                "scratch  none, the rows of {width}x{height} go from the decoder to the batch"
            )?;
        }
        if recipe.is_of_any_size() {
            let note = "a user's transform tells its own; here it leaves that of the image";
            writeln!(f, "sizes    {note}")?;
        }
        self.summary.write(recipe.is_wide(), f)?;
        words::batch_ops(f, recipe.batch_ops())?;
        if let Some(sample) = &self.sample {
            sample.write(&self.summary.ops, f)?;
        }
        self.batch.as_ref().map_or(Ok(()), |batch| batch.write(recipe.output_size(), f))
    }
}

impl Summary {
    fn write(&self, is_wide: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seen = Vec::new();
        for op in &self.ops {
            write!(f, "\n{:>3}  {}\n     ", op.number, op.op)?;
            let always = op.counted().any(|(_, draws)| draws == DRAWS);
            for (place, (what, draws)) in op.counted().enumerate() {
                seen.push(what);
                f.write_str(if place > 0 { ", " } else { "" })?;
                f.write_str(words::place(what))?;
                if !always || draws < DRAWS {
                    write!(f, " {:.0} %", 100.0 * share(draws))?;
                }
            }
            words::children(f, &op.op, op.number + 1, 1)?;
        }
        writeln!(f)?;
        for place in Place::ALL.into_iter().filter(|place| seen.contains(place)) {
            write!(f, "\n{}: {}.", words::place(place), words::why(place, is_wide))?;
        }
        Ok(())
    }
}

impl Sample {
    fn write(&self, ops: &[OpSummary], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { draw: Draw { seed, epoch, sample }, size, plan, made } = self;
        writeln!(f, "\n\nsample {sample} of {}x{}, epoch {epoch}, seed {seed}:", size.0, size.1)?;
        let by = |part: usize| {
            let ops = ops.iter().zip(made).filter(move |(_, made)| made.contains(&part));
            ops.map(|(op, _)| format!("{} {}", op.number, op.op.name())).collect::<Vec<_>>()
        };
        let mut before = *size;
        for (part, (place, step)) in parts(plan).iter().enumerate() {
            write!(f, "\n  {}", words::place(*place))?;
            let by = by(part);
            write!(
                f,
                " ({})",
                if by.is_empty() { "nothing to do".to_owned() } else { by.join(", ") }
            )?;
            write!(f, "\n    {}", words::step(step, before))?;
            before = step.output_size(before);
        }
        let (width, height) = plan.output_size();
        write!(f, "\n  result of {width}x{height}")
    }
}

impl Batch {
    fn write(&self, size: Option<(u32, u32)>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, epoch, seed, mixing } = self;
        writeln!(f, "\n\nbatch {number}, epoch {epoch}, seed {seed}:")?;
        let Some((mixing, size)) = mixing.zip(size) else {
            return write!(f, "\n  its images stay as they are");
        };
        let weights = mixing.weights(size).map(|weight| format!("{weight:.4}"));
        write!(f, "\n  {}", words::described(&mixing))?;
        write!(f, "\n  labels of the image and of the three before it weigh {}", weights.join(", "))
    }
}
