//! The orientation of images.

use clap::ValueEnum;
use tl_decode::Exif;

/// The handling of an EXIF orientation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExifChoice {
    /// Leave the pixels as they are stored
    Ignore,
    /// Rotate and mirror them
    Apply,
}

impl From<ExifChoice> for Exif {
    fn from(choice: ExifChoice) -> Self {
        match choice {
            ExifChoice::Ignore => Self::Ignore,
            ExifChoice::Apply => Self::Apply,
        }
    }
}
