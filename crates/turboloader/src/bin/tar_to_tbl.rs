//! The `tar_to_tbl` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    turboloader::tar_to_tbl()
}
