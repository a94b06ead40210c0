//! The `tl` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    turboloader_cli::tl()
}
