//! `tl completions`: a shell's completion script, from the command line's own definition.

use clap_complete::Shell;

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;

/// Print a completion script for a shell
///
/// Example:
///   tl completions bash > ~/.local/share/bash-completion/completions/tl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The shell to complete for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args, _global: &GlobalArgs) -> Result<Verdict, Failure> {
    // `generate` panics when its writer fails, and a vector does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "tl", &mut script);
    let mut stdout = Stdout::open()?;
    stdout.bytes(&script)?;
    stdout.finish()?;
    Ok(Verdict::Good)
}
