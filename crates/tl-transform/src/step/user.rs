//! Running a user's transform.

use serde::{Deserialize, Serialize};

use super::stage::Stage;
use crate::error::StepError;
use crate::stream::Stream;

/// A user's transform, known by the number of its operation in the recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The operation, and the random numbers it has.
    pub stream: Stream,
    /// Width and height of the result; `None` for those of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
}

impl User {
    /// Width and height afterwards, for an image of `size`.
    pub(crate) fn output_size(self, size: (u32, u32)) -> (u32, u32) {
        self.size.unwrap_or(size)
    }

    /// Carries the step out.
    pub(crate) fn run(self, stage: &mut Stage<'_>) -> Result<(), StepError> {
        let position = stage.position;
        match stage.user_transform(self) {
            None => Err(StepError::NoUserTransform { position, op: self.stream.op }),
            Some(Err((name, source))) => Err(StepError::UserTransform { position, name, source }),
            Some(Ok(())) => Ok(()),
        }
    }
}
