//! The loader's threads under tools that explore what a test run does not happen to meet.

use std::error::Error;
use std::process::Command;

use crate::command::{self, cargo, workspace_root};

type Outcome = Result<(), Box<dyn Error>>;

/// Carries out what `kinds` names, or everything.
pub(crate) fn run(kinds: &[String]) -> Outcome {
    const ALL: [&str; 4] = ["schedules", "orderings", "miri", "threads"];
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    for kind in if kinds.is_empty() { &ALL[..] } else { &kinds } {
        match *kind {
            "schedules" => schedules()?,
            "orderings" => orderings()?,
            "miri" => miri()?,
            "threads" => threads()?,
            other => return Err(format!("`{other}` is none of {}", ALL.join(", ")).into()),
        }
    }
    Ok(())
}

/// Schedules of ring, slabs and whole loaders, with shuttle's threads in place of the system's.
/// `TURBOLOADER_SCHEDULES` says how many of each kind.
pub(crate) fn schedules() -> Outcome {
    let tests = "test --package tl-pipeline --lib --target-dir target/shuttle -- schedules";
    let mut test = cargo(tests);
    command::run(test.env("RUSTFLAGS", "--cfg shuttle"))
}

/// Everything that the memory orderings of slab and ring allow, by loom.
pub(crate) fn orderings() -> Outcome {
    let tests = "test --package tl-pipeline --lib --target-dir target/loom -- orderings";
    let mut test = cargo(tests);
    command::run(test.env("RUSTFLAGS", "--cfg loom"))
}

/// Undefined behaviour of the unsafe code and of what uses it; and the formats that lend numbers in
/// place, on machines with other byte orders and addresses too.
fn miri() -> Outcome {
    let tests = "miri test --package tl-pipeline --lib --target-dir target/miri";
    // The mixtures' tests only calculate, and one of them takes more than twenty minutes here.
    let which = "slab:: pool:: ring:: gate:: schedule:: order::tests --skip mixtures";
    command::run(&mut nightly(&format!("{tests} -- {which}")))?;
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
    // Counts allocations of long runs, which takes more than a quarter of an hour here.
    let but = "-- --skip samples_cost_no_allocations";
    let mut test = nightly(&format!("{tests} --package tl-pipeline --lib --tests {but}"));
    test.env("RUSTFLAGS", "-Zsanitizer=thread");
    // A test asks for more memory than there is, and expects to be refused.
    test.env("TSAN_OPTIONS", "allocator_may_return_null=1");
    command::run(&mut test)
}

/// Not `$CARGO`: that is the stable cargo of this task, and `+nightly` is for rustup's proxy.
fn nightly(arguments: &str) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(arguments.split_whitespace()).current_dir(workspace_root());
    command.env_remove("RUSTUP_TOOLCHAIN");
    command
}
