//! Prints every subcommand of `tl` with the first line of its help.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for subcommand in turboloader_cli::command().get_subcommands() {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(stdout, "tl {:<12} {about}", subcommand.get_name())?;
    }
    Ok(())
}
