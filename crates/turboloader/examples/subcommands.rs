//! Prints every subcommand of `tl` with the first line of its help.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

fn main() {
    for subcommand in turboloader::command().get_subcommands() {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        println!("tl {:<12} {about}", subcommand.get_name());
    }
}
