//! The key of an encrypted segment.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The key of an encrypted segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct KeyArgs {
    /// The key of an encrypted TBF segment: a file of 32 bytes, or of 64 hexadecimal digits
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath)]
    pub(crate) key_file: Option<PathBuf>,
}
