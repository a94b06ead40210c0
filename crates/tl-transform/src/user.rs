//! Transforms of the caller's own: code under a name that recipes can carry.

mod annotations;
mod registry;

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::bounds::is_size;
use crate::error::UserFault;
use crate::image::Image;
use crate::rng::Rng;
use crate::stream::Stream;

pub use annotations::{UserAnnotations, UserKeypoints, UserMask};
pub use registry::UserTransforms;

/// The error of a user's transform: any type.
pub type UserError = Box<dyn Error + Send + Sync>;

/// A transform that is not built in, such as torchvision's `Lambda`.
///
/// A recipe holds its name and its parameters ([`op::UserTransform`](crate::op::UserTransform)), so
/// it stays data that can be stored and compared; the code is given to the loader under the same
/// name ([`UserTransforms`]). What it does must follow from its arguments alone: then batches do
/// not depend on threads either.
///
/// ```
/// use serde_json::{Value, json};
/// use tl_transform::{
///     Draw, Dtype, Image, Layout, OutputSpec, Recipe, Rng, Runner, UserError, UserTransform,
///     UserTransforms, op,
/// };
///
/// /// Sets pixels to white, each with probability `p`.
/// struct Snow;
///
/// impl UserTransform for Snow {
///     fn apply(
///         &self,
///         pixels: &mut [u8],
///         _size: (u32, u32),
///         rng: &mut Rng,
///         parameters: &Value,
///     ) -> Result<(), UserError> {
///         let p = parameters["p"].as_f64().ok_or("p is not a number")?;
///         pixels.chunks_exact_mut(3).filter(|_| rng.chance(p)).for_each(|pixel| pixel.fill(255));
///         Ok(())
///     }
/// }
///
/// let snow = op::UserTransform::new("snow", json!({"p": 1.0}));
/// let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
/// let recipe = Recipe::new(vec![snow.into()], output)?;
///
/// let mut transforms = UserTransforms::new();
/// transforms.insert("snow", Snow);
/// let mut runner = Runner::new().with_user_transforms(transforms.bind(&recipe)?);
/// let mut image = Image::from_pixels(1, 1, vec![1, 2, 3]);
/// let plan = recipe.plan(1, 1, Draw::default())?;
/// runner.run(&plan.steps, recipe.parity(), &mut image)?;
/// assert_eq!(image.pixels(), [255; 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait UserTransform: Send + Sync {
    /// Changes an image in place: `width * height` pixels of red, green and blue, row by row.
    ///
    /// `rng` is the stream of this sample and of this operation of the recipe; `parameters` are
    /// those of the recipe.
    ///
    /// # Errors
    /// Whatever makes the sample unusable. A panic is such an error as well. By default that the
    /// transform has only [`UserTransform::change`].
    fn apply(
        &self,
        pixels: &mut [u8],
        size: (u32, u32),
        rng: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        let _ = (pixels, size, rng, parameters);
        Err("the transform has neither `apply` nor `change`".into())
    }

    /// Changes an image, which may get another size where the recipe says so
    /// ([`UserSize`](crate::op::UserSize)), and the annotations that move with it. By default this is
    /// [`UserTransform::apply`], and annotations stay where they are.
    ///
    /// There are annotations only for transforms that [move](UserTransform::moves) pixels, in loaders
    /// with such fields. `rng` and `parameters` are as in [`UserTransform::apply`].
    ///
    /// # Errors
    /// As [`UserTransform::apply`]. What is returned is checked afterwards: the size of the image, and
    /// as many annotations as were given.
    fn change(
        &self,
        image: &mut Image,
        annotations: &mut UserAnnotations,
        rng: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        let _ = annotations;
        let size = image.size();
        self.apply(image.pixels_mut(), size, rng, parameters)
    }

    /// Whether it moves pixels, so that boxes, keypoints and masks have to move with them
    /// ([`UserTransform::change`]). By default it changes colours only, and they stay.
    fn moves(&self) -> bool {
        false
    }

    /// Refuses parameters that the transform cannot work with, before any sample is read. By
    /// default all are accepted.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self, parameters: &Value) -> Result<(), UserError> {
        let _ = parameters;
        Ok(())
    }
}

/// The user's transforms of one recipe, each at the number of its operation.
#[derive(Clone, Debug, Default)]
pub struct BoundTransforms {
    /// In the order of their numbers.
    transforms: Vec<Bound>,
}

#[derive(Clone)]
struct Bound {
    number: u32,
    name: String,
    transform: Arc<dyn UserTransform>,
    parameters: Value,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, name, parameters, .. } = self;
        write!(f, "{number}: {name}({parameters})")
    }
}

impl BoundTransforms {
    /// Whether the transform at this operation moves pixels.
    #[must_use]
    pub fn moves(&self, op: u8) -> bool {
        self.find(op).is_some_and(|bound| bound.transform.moves())
    }

    /// Runs the transform that `stream` belongs to; `None` when the recipe has none there. What
    /// went wrong comes with the transform's name. `expected` is the size that the image has to have
    /// afterwards, if the recipe tells it; it may have `max_bytes`.
    pub fn run(
        &self,
        stream: Stream,
        expected: Option<(u32, u32)>,
        max_bytes: u64,
        image: &mut Image,
        annotations: &mut UserAnnotations,
    ) -> Option<Result<(), (String, UserFault)>> {
        let found = self.find(stream.op)?;
        let mut rng = stream.rng();
        let counts = annotations.counts();
        let change = || found.transform.change(image, annotations, &mut rng, &found.parameters);
        let changed = guard(change).and_then(|()| {
            let made = image.size();
            if !is_size(made) || expected.is_some_and(|expected| made != expected) {
                return Err(UserFault::Size { made, expected });
            }
            let bytes = image.pixels().len() as u64;
            if bytes > max_bytes {
                let reason = format!("{bytes} bytes, and images may have {max_bytes}");
                return Err(UserFault::Returned { what: "image", reason });
            }
            annotations.check(&counts, made)
        });
        Some(changed.map_err(|fault| (found.name.clone(), fault)))
    }

    fn find(&self, op: u8) -> Option<&Bound> {
        self.transforms.iter().find(|bound| bound.number == u32::from(op))
    }
}

/// Makes a fault of an error and of a panic. The transform is shared and has to cope with having
/// been interrupted; the image is not used after a fault.
fn guard(call: impl FnOnce() -> Result<(), UserError>) -> Result<(), UserFault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(UserFault::Failed(Arc::from(error))),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().copied();
            let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(UserFault::Panicked { message: one_line(text.unwrap_or_default()) })
        }
    }
}

/// `text` with its control characters escaped.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests;
