//! `cargo xtask store`: a slow and faulty store on a port of this machine.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a development tool reports here")]

use std::process::ExitCode;

use tl_store_server::Options;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Options::parse(&arguments).and_then(Options::serve) {
        Ok(serving) => {
            println!("{}", serving.endpoint());
            serving.join();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("store: {error}");
            ExitCode::FAILURE
        }
    }
}
