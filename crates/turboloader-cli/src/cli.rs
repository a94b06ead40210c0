//! The command line as a type: global options and the commands, each with its module.

use clap::{Parser, Subcommand};

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};

/// Turns files into training batches: converts, inspects, verifies, previews and benchmarks
/// TAR archives, folders of images and TBL files.
#[derive(Debug, Parser)]
#[command(name = "tl", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   done, and the answer is good
  1   the answer is bad: damaged data, an image that does not decode
  2   wrong usage, or the operating system refused (missing file, permission, full disk)
  70  an internal error, which is a bug in tl

Data goes to standard output, everything else to standard error. A reader that closes the pipe
early (`tl ls FILE | head`) ends the command silently with code 0. NO_COLOR is respected.";

/// Lists the commands. The module of each has `Args`, with the help text, and `run`.
macro_rules! commands {
    ($($(#[$only:meta])? $command:ident => $($module:ident)::+,)+) => {
        /// The command to run.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$only])? $command(Box<crate::$($module)::+::Args>),)+
        }

        impl Command {
            /// Runs the command.
            pub(crate) fn run(&self, global: &GlobalArgs) -> Result<Verdict, Failure> {
                match self {
                    $($(#[$only])? Self::$command(args) => crate::$($module)::+::run(args, global),)+
                }
            }
        }
    };
}

// In the order of the help.
commands! {
    Convert => convert,
    #[cfg(feature = "text")]
    Tokenize => tokenize,
    Index => index,
    Info => info,
    Ls => ls,
    Cat => cat,
    Extract => extract,
    Verify => verify,
    Stats => stats,
    Digest => digest,
    #[cfg(feature = "tables")]
    Find => table::find,
    #[cfg(feature = "tables")]
    Edges => table::edges,
    Merge => merge,
    #[cfg(feature = "tables")]
    Compact => table::compact,
    Split => split,
    Repair => repair,
    #[cfg(feature = "remote")]
    Rm => rm,
    Decode => decode,
    Preview => preview,
    Explain => explain,
    Bench => bench,
    Doctor => doctor,
    Completions => completions,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
