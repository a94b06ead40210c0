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
}

impl User {
    /// Carries the step out.
    pub(crate) fn run(self, stage: &mut Stage<'_>) -> Result<(), StepError> {
        let position = stage.position;
        match stage.user_transform(self.stream) {
            None => Err(StepError::NoUserTransform { position, op: self.stream.op }),
            Some(Err((name, source))) => Err(StepError::UserTransform { position, name, source }),
            Some(Ok(())) => Ok(()),
        }
    }
}
