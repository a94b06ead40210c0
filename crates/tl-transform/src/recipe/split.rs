//! Recipes around a user's transform that runs between two plans.

use super::Recipe;
use crate::error::{RecipeError, UserTransformError};
use crate::op::{Op, UserSize};
use crate::output::{Layout, OutputSpec};
use crate::user::BoundTransforms;

/// A recipe around one of its user's transforms, which decides the image that the rest begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The operations before it, into pixels.
    pub before: Recipe,
    /// The number of its operation in the random streams.
    pub op: u8,
    /// The size of its results.
    pub size: UserSize,
    /// The operations after it. They have the random numbers that they have in the whole recipe.
    pub after: Recipe,
}

impl Recipe {
    /// Splits the recipe at the first user's transform that no plan goes across: one of
    /// [any size](crate::op::UserSizeName::Any), or with `has_annotations` one that
    /// [moves](crate::UserTransform::moves) pixels, as `bound` tells.
    #[must_use]
    pub fn split(&self, bound: &BoundTransforms, has_annotations: bool) -> Option<Split> {
        let mut number = self.first_op;
        for (position, op) in self.ops.iter().enumerate() {
            if let Op::UserTransform(user) = op
                && (user.size.is_any() || (has_annotations && bound.moves(number)))
            {
                let output = OutputSpec { dtype: self.pixels.dtype(), layout: Layout::Hwc };
                let before = self.ops[..position].to_vec();
                let after = self.ops[position + 1..].to_vec();
                return Some(Split {
                    before: Self { ops: before, output, batch_ops: Vec::new(), ..self.clone() },
                    op: number,
                    size: user.size,
                    after: Self { ops: after, first_op: number.wrapping_add(1), ..self.clone() },
                });
            }
            // Wrapping never happens: a recipe has no more operations than numbers.
            number = number.wrapping_add(op.count().to_le_bytes()[0]);
        }
        None
    }

    /// Whether one of the user's transforms alone tells the size of its results.
    #[must_use]
    pub fn is_of_any_size(&self) -> bool {
        self.ops.iter().any(Op::is_of_any_size)
    }

    /// The same recipe, as if all results of the user's transforms had the size of the image: it has
    /// plans without the code.
    #[must_use]
    pub fn with_kept_sizes(&self) -> Self {
        let mut recipe = self.clone();
        for op in &mut recipe.ops {
            if let Op::UserTransform(user) = op
                && user.size.is_any()
            {
                user.size = UserSize::default();
            }
        }
        recipe
    }

    /// Checks that annotations can go through all of the user's transforms, as `bound` has them.
    ///
    /// # Errors
    /// [`UserTransformError::Within`] for one that moves pixels within another operation,
    /// [`UserTransformError::Still`] for one that changes the size and does not
    /// [move](crate::UserTransform::moves) annotations.
    pub fn check_annotations(&self, bound: &BoundTransforms) -> Result<(), UserTransformError> {
        let mut number = self.first_op;
        for outer in &self.ops {
            for (depth, op) in outer.walk().enumerate() {
                let Op::UserTransform(user) = op else {
                    number = number.wrapping_add(1);
                    continue;
                };
                let name = user.name.clone();
                match bound.moves(number) {
                    true if depth > 0 => return Err(UserTransformError::Within { name }),
                    false if user.size != UserSize::default() => {
                        return Err(UserTransformError::Still { name });
                    }
                    true | false => {}
                }
                number = number.wrapping_add(1);
            }
        }
        Ok(())
    }

    /// Refuses user's transforms of any size where a sample becomes several images.
    pub(super) fn check_sizes(&self) -> Result<(), RecipeError> {
        let views = self.views();
        let found = self.ops.iter().position(Op::is_of_any_size);
        match found.map(|position| (position, &self.ops[position])) {
            Some((position, Op::UserTransform(op))) if views > 1 => {
                Err(RecipeError::AnySize { position, name: op.name.clone(), views })
            }
            Some(_) | None => Ok(()),
        }
    }
}
