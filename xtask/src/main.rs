//! Development tasks, run as `cargo xtask <task>`.
//!
//! What this deliberately does not do: install anything outside `target`. A missing tool is named
//! together with the command that installs it.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a development tool reports here")]

mod aarch64;
mod bench;
mod command;
mod counts;
mod demo;
mod fuzz;
mod goldens;
mod packages;
mod prove;
mod ptx;
mod python;
mod release;
mod test;
mod tidy;

use std::error::Error;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  demo                      convert testdata/photos, stream training batches, write a contact sheet
  test                      what every change must pass: format, lints, tests, examples, docs, Python
  test --full [--minutes N | --only CHECK]
                            the checks that take longer: all, those that start within N minutes, or
                            one
  prove [KIND]              explore the loader's threads: schedules (shuttle), orderings (loom), miri,
                            threads (ThreadSanitizer); read from a faulty store for an hour: sockets;
                            or all of them
  python [PYTEST ARGUMENT...]
                            check the Python package, build it in target/python, run its tests
  frameworks [PYTEST ARGUMENT...]
                            run the tests with torch, JAX, TensorFlow, Ray and trainers installed
  stubs                     write the type stubs of the Python package
  wheel [TARGET]            build the wheel for every Linux with glibc, and test it with every Python
                            there is; or that for aarch64 or musl, by the name of the target
  release VERSION           prepare a release: set the version, date the changelogs, run all checks,
                            build the packages and wheels; print the commands that upload them
  aarch64                   run the tests of kernels, decoders and formats for 64-bit ARM in QEMU
  tidy                      house rules that the compiler does not check
  bench [GROUP] [--save NAME | --against NAME]
                            run the benchmarks of one group or all, print a table
  fuzz [TARGET] [--minutes N]
                            fuzz one target or all, N minutes each (default 1)
  store FOLDER [OPTION VALUE]...
                            serve a folder as a slow and faulty object store on this machine
  simulate [OPTION VALUE]...
                            simulate loaders of many machines that read from a store; simulate check
                            compares simulations with loaders on this machine
  site                      make the site of the documentation in target/site
  ptx [--check]             compile the kernels of tl-cuda, or compare them with what is committed
  goldens                   write what torchvision and Pillow make of small images, for the tests";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let Some((task, rest)) = arguments.split_first() else {
        return Err(USAGE.into());
    };
    match (task.as_str(), rest) {
        ("demo", []) => demo::run(),
        ("test", rest) => test::run(&test::Options::parse(rest)?),
        ("aarch64", []) => aarch64::test(&test::SLOW),
        ("tidy", []) => tidy::run(),
        ("bench", rest) => bench::run(&bench::Options::parse(rest)?),
        ("prove", kinds) => prove::run(kinds),
        ("python", rest) => python::run(rest),
        ("frameworks", rest) => python::frameworks(rest),
        ("stubs", []) => python::stubs(),
        ("wheel", []) => python::wheel(None),
        ("wheel", [target]) => python::wheel(Some(target)),
        ("release", [version]) => release::run(version),
        ("simulate", rest) => {
            let run =
                "run --release --quiet -p turboloader --features simulate --example simulate --";
            command::run(command::cargo(run).args(rest))
        }
        ("store", rest) => {
            command::run(command::cargo("run --release --quiet -p tl-store-server --").args(rest))
        }
        ("ptx", []) => ptx::write(),
        ("ptx", [check]) if check == "--check" => ptx::check(),
        ("site", []) => python::site(),
        ("goldens", []) => goldens::run(),
        ("fuzz", rest) => fuzz::run(&fuzz::Options::parse(rest)?),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
