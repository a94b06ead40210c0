//! The `tl` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    turboloader::tl()
}
