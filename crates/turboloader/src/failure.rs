//! Why a command could not answer, and the exit code each reason has.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use tbl_io::ReadError;

/// What a command that ran to its end found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Good,
    /// The command said what is wrong: damage, lost samples, differences.
    Bad,
}

/// Why a command stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file or folder refused to be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Standard output refused.
    #[error("standard output: {source}")]
    Stdout {
        /// What the operating system said.
        source: io::Error,
    },
    /// The reader of standard output has gone, which is no error: it had enough.
    #[error("standard output is closed")]
    ClosedPipe,
    /// The output file is already there.
    #[error("{}: exists already (-f replaces it)", path.display())]
    Exists {
        /// The output file.
        path: PathBuf,
    },
    /// Bytes of an image do not belong on a terminal.
    #[error("refusing to write binary data to a terminal (redirect it, or name a file with -o)")]
    BinaryOnTerminal,
    /// A data set is damaged or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The command line names a part that this build does not have.
    #[error("`{command}` is not part of this build")]
    NotBuilt {
        /// The subcommand.
        command: &'static str,
    },
}

impl Failure {
    /// An error of standard output; a closed pipe is told apart.
    pub(crate) fn stdout(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Stdout { source },
        }
    }

    /// The exit code: 1 when the data is at fault, 2 when the usage or the system is.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::SUCCESS,
            Self::Io { .. }
            | Self::Stdout { .. }
            | Self::Exists { .. }
            | Self::BinaryOnTerminal
            | Self::NotBuilt { .. } => EXIT_USAGE.into(),
            Self::Read(ReadError::Io { .. } | ReadError::SampleOutOfRange { .. }) => {
                EXIT_USAGE.into()
            }
            Self::Read(_) => EXIT_BAD.into(),
        }
    }
}

/// The answer is bad.
pub(crate) const EXIT_BAD: u8 = 1;
/// Wrong usage, or the operating system refused.
pub(crate) const EXIT_USAGE: u8 = 2;
/// A bug: `EX_SOFTWARE` of sysexits.h, told apart from every answer.
pub(crate) const EXIT_INTERNAL: u8 = 70;
