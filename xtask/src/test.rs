//! Everything a change must pass, in order of how soon each check fails, with a summary at the end.
//!
//! Checks that need a tool or target that is not installed are reported as skipped, never as passed.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::command::{self, cargo, workspace_root};
use crate::{prove, python, tidy};

const AARCH64: &str = "aarch64-unknown-linux-gnu";

/// A machine without an operating system, for which there is no `std`.
const BARE: &str = "thumbv7em-none-eabi";

/// The crates without C code, which check for another architecture without a cross compiler.
const PURE_RUST: &str = "-p idv-format -p tbl-format -p tl-simd -p tl-decode -p tl-transform";

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Check {
    name: &'static str,
    run: fn() -> Result<Outcome, Box<dyn Error>>,
}

const CHECKS: [Check; 15] = [
    Check { name: "format", run: || run_cargo("fmt --all --check") },
    Check { name: "tidy", run: || tidy::run().map(|()| Outcome::Passed) },
    Check { name: "clippy", run: || run_cargo("clippy --workspace --all-targets -- -D warnings") },
    Check { name: "tests", run: || run_cargo("test --workspace --no-fail-fast") },
    Check { name: "docs", run: documentation },
    Check { name: "examples", run: examples },
    Check { name: "features", run: features },
    Check { name: "schedules", run: || prove::schedules().map(|()| Outcome::Passed) },
    Check { name: "orderings", run: || prove::orderings().map(|()| Outcome::Passed) },
    Check { name: "benches", run: || run_cargo("test --package tl-benches --benches") },
    Check { name: "python", run: python_package },
    Check { name: "fuzz seeds", run: fuzz_seeds },
    Check { name: "aarch64", run: aarch64 },
    Check { name: "no_std", run: no_std },
    Check { name: "publish", run: publish },
];

/// Runs every check, also after a failure, and fails when one did.
pub(crate) fn run() -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let results: Vec<(&str, Outcome, Duration)> = CHECKS.iter().map(timed).collect();
    println!();
    for (name, outcome, time) in &results {
        let (word, detail) = match outcome {
            Outcome::Passed => ("ok", ""),
            Outcome::Failed(reason) => ("FAILED", reason.as_str()),
            Outcome::Skipped(reason) => ("skipped", reason.as_str()),
        };
        println!("{name:<12} {word:<8} {:>6.1} s  {detail}", time.as_secs_f64());
    }
    println!("total {:.0} s", start.elapsed().as_secs_f64());
    let failed = results.iter().filter(|result| matches!(result.1, Outcome::Failed(_))).count();
    if failed == 0 { Ok(()) } else { Err(format!("{failed} checks failed").into()) }
}

fn timed(check: &Check) -> (&'static str, Outcome, Duration) {
    println!("\n== {}", check.name);
    let start = Instant::now();
    let outcome = (check.run)().unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    (check.name, outcome, start.elapsed())
}

fn run_cargo(arguments: &str) -> Result<Outcome, Box<dyn Error>> {
    command::run(&mut cargo(arguments)).map(|()| Outcome::Passed)
}

fn documentation() -> Result<Outcome, Box<dyn Error>> {
    let mut doc = cargo("doc --workspace --no-deps");
    command::run(doc.env("RUSTDOCFLAGS", "-D warnings")).map(|()| Outcome::Passed)
}

/// Runs every example of every crate: they document by running.
fn examples() -> Result<Outcome, Box<dyn Error>> {
    let mut examples = Vec::new();
    for folder in fs::read_dir(workspace_root().join("crates"))? {
        let folder = folder?.path();
        let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for file in fs::read_dir(folder.join("examples")).into_iter().flatten() {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "rs") {
                let example = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                examples.push((package.clone(), example));
            }
        }
    }
    examples.sort();
    for (package, example) in examples {
        run_cargo(&format!("run --quiet --package {package} --example {example}"))?;
    }
    Ok(Outcome::Passed)
}

/// Tests the crates that have default features without them, and what the others' features add.
fn features() -> Result<Outcome, Box<dyn Error>> {
    run_cargo("test --package tbf-format --package tbl-format --no-default-features")?;
    for feature in ["encryption", "lz4", "zstd"] {
        let tbf = format!("--package tbf-format --no-default-features --features {feature}");
        run_cargo(&format!("test {tbf} --test it -- packing"))?;
    }
    // The workspace's tests have the features of `tl-decode`; without them files are refused.
    run_cargo("test --package tl-decode --test it -- manifest")?;
    run_cargo("test --package idv-format --no-default-features --lib")?;
    let arrow = "--package idv-format --features arrow --all-targets";
    run_cargo(&format!("clippy {arrow} -- -D warnings"))?;
    run_cargo("test --package idv-format --features arrow arrow")?;
    let both = "--package tbl-io --package tl-pipeline --package turboloader \
                --features turboloader/io-uring,turboloader/parquet";
    run_cargo(&format!("clippy {both} --all-targets -- -D warnings"))?;
    run_cargo("test --package turboloader --features parquet --test it -- table_conversion")?;
    let uring = "--package tbl-io --package tl-pipeline --features tl-pipeline/io-uring";
    run_cargo(&format!("test {uring} --test it -- uring readers"))
}

/// Builds the wheel and runs the tests of the package.
fn python_package() -> Result<Outcome, Box<dyn Error>> {
    if let Some(missing) = python::missing() {
        return Ok(Outcome::Skipped(missing));
    }
    python::run(&[]).map(|()| Outcome::Passed)
}

/// Replays the committed seeds and past crashes on the stable compiler.
fn fuzz_seeds() -> Result<Outcome, Box<dyn Error>> {
    run_cargo("test --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features")
}

fn aarch64() -> Result<Outcome, Box<dyn Error>> {
    if let Some(missing) = missing_target(AARCH64) {
        return Ok(missing);
    }
    let tbf = "--package tbf-format --no-default-features --features std,encryption";
    run_cargo(&format!("check --target {AARCH64} {tbf}"))?;
    run_cargo(&format!("check --target {AARCH64} {PURE_RUST}"))
}

/// The formats without `std`, also in what they depend on.
fn no_std() -> Result<Outcome, Box<dyn Error>> {
    if let Some(missing) = missing_target(BARE) {
        return Ok(missing);
    }
    let check = format!("check --target {BARE} --no-default-features --package");
    run_cargo(&format!("{check} tbl-format"))?;
    run_cargo(&format!("{check} idv-format"))?;
    run_cargo(&format!("{check} tbf-format --features encryption"))
}

/// Why a target's check is left out, when it is.
fn missing_target(target: &str) -> Option<Outcome> {
    let libraries = command::output("rustc", &["--print", "target-libdir", "--target", target]);
    let is_there = libraries.is_some_and(|folder| fs::exists(folder).unwrap_or(false));
    let how = format!("`rustup target add {target}` installs the target");
    (!is_there).then_some(Outcome::Skipped(how))
}

/// Packages every published crate as the registry would receive it, and builds the packages.
fn publish() -> Result<Outcome, Box<dyn Error>> {
    forget_unpacked_packages()?;
    run_cargo("publish --workspace --dry-run --allow-dirty")
}

/// Removes what earlier dry runs unpacked. Cargo takes it for this run's packages, because a crate
/// of a version never changes in a registry, and here it does.
///
/// The folder of a registry is named `HOST-HASH`, and the registry of a dry run has no host.
fn forget_unpacked_packages() -> Result<(), Box<dyn Error>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))) else {
        return Ok(());
    };
    let Ok(registries) = fs::read_dir(home.join("registry/src")) else { return Ok(()) };
    for registry in registries {
        let registry = registry?;
        if registry.file_name().to_string_lossy().starts_with('-') {
            fs::remove_dir_all(registry.path())?;
        }
    }
    Ok(())
}
