//! The user's own code for whole batches.

use std::any::Any;
use std::fmt;

use tl_handoff::sync::Arc;
use tl_transform::{UserError, UserFault};

use crate::batch::Batch;
use crate::error::PipelineError;
use crate::panics::catch_panic;

/// Whatever a batch was made into.
pub(crate) type Collated = Arc<dyn Any + Send + Sync>;

type Code = dyn Fn(&Batch) -> Result<Collated, UserError> + Send + Sync;

/// Code that makes something of every batch, on the worker that finishes it.
///
/// What it makes comes with the batch ([`Batch::collated`]), so that it is ready when the batch is.
/// It has to follow from the batch alone: batches are finished on any thread and in any order.
///
/// ```
/// use tl_pipeline::{Batch, Collate};
///
/// let count = Collate::new(|batch: &Batch| Ok(batch.labels().iter().filter(|&&l| l == 3).count()));
/// ```
#[derive(Clone)]
pub struct Collate {
    code: Arc<Code>,
}

impl Collate {
    /// Collates with `code`. Its error or panic is the batch's error.
    pub fn new<T: Any + Send + Sync>(
        code: impl Fn(&Batch) -> Result<T, UserError> + Send + Sync + 'static,
    ) -> Self {
        let code = move |batch: &Batch| Ok(Arc::new(code(batch)?) as Collated);
        Self { code: Arc::new(code) }
    }

    pub(crate) fn run(&self, batch: &Batch) -> Result<Collated, PipelineError> {
        let result = match catch_panic(|| (self.code)(batch)) {
            Ok(result) => result.map_err(|error| UserFault::Failed(error.into())),
            Err(message) => Err(UserFault::Panicked { message }),
        };
        result.map_err(|fault| PipelineError::Collate { batch: batch.number(), fault })
    }
}

impl PartialEq for Collate {
    /// True if both are the same closure.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.code, &other.code)
    }
}

impl fmt::Debug for Collate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Collate(..)")
    }
}
