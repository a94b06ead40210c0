//! `tl completions`: a shell's completion script, from the command line's own definition.

use crate::args::CompletionsArgs;
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Verdict, Failure> {
    // `generate` panics when its writer fails, and a vector does not.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "tl", &mut script);
    let mut stdout = Stdout::open()?;
    stdout.bytes(&script)?;
    stdout.finish()?;
    Ok(Verdict::Good)
}
