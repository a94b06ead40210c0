//! The `tar_to_tbl` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    turboloader_cli::tar_to_tbl()
}
