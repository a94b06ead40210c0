//! The loader's threads under tools that explore what a test run does not happen to meet, and the
//! network for longer than a test run lasts.

use std::env;
use std::error::Error;
use std::process::Command;

use crate::command::{self, cargo, workspace_root};

type Outcome = Result<(), Box<dyn Error>>;

/// Carries out what `kinds` names, or everything.
pub(crate) fn run(kinds: &[String]) -> Outcome {
    const ALL: [&str; 5] = ["schedules", "orderings", "miri", "threads", "sockets"];
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    for kind in if kinds.is_empty() { &ALL[..] } else { &kinds } {
        match *kind {
            "schedules" => schedules()?,
            "orderings" => orderings()?,
            "miri" => miri()?,
            "threads" => threads()?,
            "sockets" => sockets()?,
            other => {
                return Err(format!(
                    "unknown argument `{other}`: expected one of {}",
                    ALL.join(", ")
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Schedules of the hand-over and of whole loaders, with shuttle's threads instead of the system's.
/// `TURBOLOADER_SCHEDULES` sets the number of each kind.
pub(crate) fn schedules() -> Outcome {
    let packages = "--package tl-handoff --package tl-pipeline --features tl-pipeline/shuttle";
    command::run(&mut cargo(&format!("test {packages} --lib -- schedules")))
}

/// Everything that the memory orderings of the hand-over allow, by loom.
pub(crate) fn orderings() -> Outcome {
    command::run(&mut cargo("test --package tl-handoff --features loom --lib -- orderings"))
}

/// Undefined behaviour of the unsafe code and of what uses it; and the formats that lend numbers in
/// place, on machines with other byte orders and addresses too.
fn miri() -> Outcome {
    command::run(&mut nightly("miri test --package tl-handoff --lib --target-dir target/miri"))?;
    for target in ["x86_64-unknown-linux-gnu", "i686-unknown-linux-gnu", "s390x-unknown-linux-gnu"]
    {
        // LZ4 and Zstandard are C.
        let tbf = "tbf-format --no-default-features --features std,encryption";
        for package in [tbf, "idv-format"] {
            let tests = format!("miri test --target {target} --lib --target-dir target/miri");
            command::run(&mut nightly(&format!("{tests} --package {package}")))?;
        }
    }
    Ok(())
}

/// Data races in all tests of the loader. The standard library is instrumented as well.
fn threads() -> Outcome {
    let tests = "test -Zbuild-std --target x86_64-unknown-linux-gnu --target-dir target/tsan";
    // Allocations and memory of long runs, which take more than a quarter of an hour here.
    let but = "-- --skip samples_cost_no_allocations --skip budget::resident";
    let mut test =
        nightly(&format!("{tests} --package tl-handoff --package tl-pipeline --lib --tests {but}"));
    test.env("RUSTFLAGS", "-Zsanitizer=thread");
    // A test asks for more memory than there is, and expects to be refused.
    test.env("TSAN_OPTIONS", "allocator_may_return_null=1");
    command::run(&mut test)
}

/// Batches from a faulty store over sockets against those from files, for an hour or as many seconds
/// as `TURBOLOADER_SOCKETS` has.
fn sockets() -> Outcome {
    const SECONDS: &str = "TURBOLOADER_SOCKETS";
    let mut example = cargo("run --release --package turboloader --example sockets");
    if env::var_os(SECONDS).is_none() {
        example.env(SECONDS, "3600");
    }
    command::run(&mut example)
}

/// Not `$CARGO`: that is the stable cargo of this task, and `+nightly` is for rustup's proxy.
fn nightly(arguments: &str) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(arguments.split_whitespace()).current_dir(workspace_root());
    command.env_remove("RUSTUP_TOOLCHAIN");
    command
}
