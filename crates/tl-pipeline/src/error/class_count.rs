//! The end of a message that asks for a number of classes.

use std::fmt;

/// The number of classes that a data set names, if it does.
pub(super) struct ClassCount(pub(super) usize);

impl fmt::Display for ClassCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str(" to the number of classes"),
            classes => write!(f, ", the data set names {classes} classes"),
        }
    }
}
