//! An error's kind and place, and those of the errors of the crates below.

use std::error::Error;

use tbl_io::{ConvertError, ErrorKind, ErrorPlace, IndexError, ReadError, WriteError};
use tl_decode::DecodeError;
use tl_transform::{PlanError, RecipeError, StepError};

/// An error with a kind and a place, on which callers act without knowing its type.
pub trait Fault: Error {
    /// The party at fault.
    fn kind(&self) -> ErrorKind;

    /// The place that the error is about, as far as it is known.
    fn place(&self) -> ErrorPlace {
        ErrorPlace::default()
    }
}

/// Errors that know both themselves.
macro_rules! delegate {
    ($($error:ty),+) => {
        $(impl Fault for $error {
            fn kind(&self) -> ErrorKind {
                self.kind()
            }

            fn place(&self) -> ErrorPlace {
                self.place()
            }
        })+
    };
}

delegate!(ReadError, WriteError, ConvertError, IndexError);

/// Errors of one kind by construction.
macro_rules! always {
    ($kind:ident: $($error:ty),+) => {
        $(impl Fault for $error {
            fn kind(&self) -> tbl_io::ErrorKind {
                tbl_io::ErrorKind::$kind
            }
        })+
    };
}

pub(crate) use always;

always!(Data: DecodeError);
always!(Setting: RecipeError, PlanError, StepError);
