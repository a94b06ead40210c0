//! 64-bit ARM: a check that crates compile for it, and their tests in an emulator.

use std::error::Error;
use std::process::Command;

use crate::command::{self, cargo};
use crate::counts;

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The crates without C code, which check without a cross compiler.
const PURE_RUST: &str = "-p idv-format -p tbl-format -p tl-simd -p tl-decode -p tl-transform";

/// The compiler of the C libraries, which also links.
const COMPILER: &str = "aarch64-linux-gnu-gcc";

/// The emulator of single programs.
const EMULATOR: &str = "qemu-aarch64";

/// The folder of the C library that [`COMPILER`] links with.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The crates with kernels, decoders and formats. The loader and the stores have no code for an
/// architecture, and an emulator would take hours for their tests.
const TESTED: [&str; 9] = [
    "idv-format",
    "tbf-format",
    "tbl-format",
    "tl-av1",
    "tl-decode",
    "tl-handoff",
    "tl-simd",
    "tl-transform",
    "tl-video",
];

/// Every decoder of images.
const FEATURES: &str =
    "tl-decode/avif,tl-decode/jpeg2000,tl-decode/jxl,tl-decode/tiff-lzma,tl-decode/tiff-zstd";

/// Compiles the crates that need no other compiler; returns the reason if that is not possible here.
///
/// # Errors
/// If a crate does not compile.
pub(crate) fn check() -> Result<Option<String>, Box<dyn Error>> {
    if let Some(missing) = command::missing_target(TARGET) {
        return Ok(Some(missing));
    }
    let tbf = "--package tbf-format --no-default-features --features std,encryption";
    command::run(&mut cargo(&format!("check --target {TARGET} {tbf}")))?;
    command::run(&mut cargo(&format!("check --target {TARGET} {PURE_RUST}")))?;
    Ok(None)
}

/// Runs the tests of [`TESTED`] in the emulator, except those whose names contain one of `skipped`,
/// and prints how many there are of each crate.
///
/// # Errors
/// If a tool is missing, a crate does not compile, or a test fails.
pub(crate) fn test(skipped: &[&str]) -> Result<(), Box<dyn Error>> {
    if let Some(missing) = command::missing_target(TARGET) {
        return Err(missing.into());
    }
    for tool in [COMPILER, EMULATOR] {
        if command::output(tool, &["--version"]).is_none() {
            return Err(format!(
                "no {tool}: `apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
                 qemu-user` installs what is needed"
            )
            .into());
        }
    }
    let run = counts::run(&mut tests(skipped))?;
    println!("\n{run}");
    if run.is_success { Ok(()) } else { Err(format!("tests fail on {TARGET}").into()) }
}

/// The tests, each binary in the emulator.
fn tests(skipped: &[&str]) -> Command {
    let packages: String = TESTED.iter().map(|name| format!(" --package {name}")).collect();
    let skipped: String = skipped.iter().map(|name| format!(" --skip {name}")).collect();
    let mut command = cargo(&format!(
        "test --target {TARGET}{packages} --features {FEATURES} --tests --no-fail-fast --{skipped}"
    ));
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {LIBRARIES}"));
    command
}
