//! The checks of a change, quick ones and full ones, in order of how soon each fails, with a summary
//! at the end. CI runs the quick ones first.
//!
//! Checks that need a tool or target that is not installed are reported as skipped, never as passed.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{self, cargo, workspace_root};
use crate::{aarch64, packages, prove, ptx, python, tidy};

/// A target without an operating system, which has no `std`.
const BARE: &str = "thumbv7em-none-eabi";

/// All crates with [`FEATURES`]. Benchmarks are left out: their dependencies turn on features of
/// other dependencies, and nothing that is compiled for tests would serve the Python package.
const WORKSPACE: &str = "--workspace --exclude tl-benches";

/// Every feature that needs nothing but a C compiler.
pub(crate) const FEATURES: &str = "turboloader/hevc,turboloader/simulate,turboloader-cli/parquet,turboloader-cli/io-uring,tl-decode/avif,tl-decode/jpeg2000,tl-decode/jxl,tl-decode/tiff-lzma,tl-decode/tiff-zstd";

/// Tests of the workspace that take ten seconds and more on a slow machine: long runs, kills, waits,
/// every file of a corpus. Parts of names.
pub(crate) const SLOW: [&str; 20] = [
    "a_heavy_transform_is_named",
    "a_million_samples_stay_within_the_budget",
    "a_slow_training_step_is_named",
    "block_shuffles_are_even_over_samples_and_positions",
    "every_day_has_one_date",
    "every_file_comes_back_from_csv",
    "every_file_comes_back_from_parquet",
    "every_sample_is_as_likely_at_every_position",
    "flipped_bits_never_panic",
    "forks_are_told_while_requests_are_under_way",
    "many_faults_never_give_wrong_bytes",
    "neither_level_nor_row_index_changes_a_byte",
    "no_name_leads_out_of_the_folder",
    "ranks_that_come_and_go_get_the_rows_of_one_process",
    "samples_are_as_likely_at_every_position",
    "samples_cost_no_allocations",
    "starts_and_drops_leave_no_connection_behind",
    "the_independent_parser_reads_what_is_written",
    "the_next_run_is_right_after_every_kill",
    "what_costs_many_requests_or_bytes_is_noted_once",
];

/// The example that takes as long as these.
const SLOW_EXAMPLE: &str = "soak";

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Check {
    name: &'static str,
    run: fn() -> Result<Outcome, Box<dyn Error>>,
}

const QUICK: [Check; 9] = [
    Check { name: "format", run: || run_cargo("fmt --all --check") },
    Check { name: "tidy", run: || tidy::run().map(|()| Outcome::Passed) },
    Check { name: "clippy", run: clippy },
    Check { name: "tests", run: tests },
    Check { name: "examples", run: examples },
    Check { name: "docs", run: documentation },
    Check { name: "no_std", run: no_std },
    Check { name: "orderings", run: || prove::orderings().map(|()| Outcome::Passed) },
    Check { name: "python", run: || python_package(python::test) },
];

const FULL: [Check; 11] = [
    Check { name: "slow tests", run: slow_tests },
    Check { name: "data", run: data },
    Check { name: "python lints", run: || python_package(python::lint) },
    Check { name: "features", run: features },
    Check { name: "ptx", run: || python_package(ptx::check) },
    Check { name: "schedules", run: || prove::schedules().map(|()| Outcome::Passed) },
    Check { name: "aarch64", run: aarch64 },
    Check { name: "benches", run: || run_cargo("test --package tl-benches --benches") },
    Check { name: "site", run: || python_package(python::site) },
    Check { name: "publish", run: || packages::publish().map(|()| Outcome::Passed) },
    Check { name: "packages", run: || packages::run(&SLOW).map(|()| Outcome::Passed) },
];

/// The checks to run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    full: bool,
    /// Full checks that have not started after this many minutes are left out.
    minutes: Option<u64>,
    only: Option<String>,
}

impl Options {
    /// Reads `[--full [--minutes N | --only CHECK]]`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--full" => options.full = true,
                "--minutes" if options.full && options.only.is_none() => {
                    let minutes = arguments.next().ok_or("--minutes needs a number")?;
                    options.minutes = Some(minutes.parse()?);
                }
                "--only" if options.full && options.minutes.is_none() => {
                    let name = arguments.next().ok_or("--only needs the name of a check")?;
                    if FULL.iter().all(|check| check.name != name) {
                        return Err(format!("no check {name:?}; there are {}", names(&FULL)).into());
                    }
                    options.only = Some(name.clone());
                }
                _ => return Err(format!("test: unexpected argument {argument}").into()),
            }
        }
        Ok(options)
    }

    fn checks(&self) -> impl Iterator<Item = &'static Check> {
        let all: &'static [Check] = if self.full { &FULL } else { &QUICK };
        all.iter().filter(|check| self.only.as_ref().is_none_or(|only| only == check.name))
    }

    /// The reason to leave a check out that would start now.
    fn leave_out(&self, elapsed: Duration) -> Option<String> {
        let minutes = self.minutes.filter(|minutes| elapsed.as_secs() / 60 >= *minutes)?;
        Some(format!("{minutes} minutes are over"))
    }
}

fn names(checks: &[Check]) -> String {
    let names: Vec<_> = checks.iter().map(|check| format!("{:?}", check.name)).collect();
    names.join(", ")
}

/// Runs the quick checks or the full ones, also after a failure.
///
/// # Errors
/// If a check failed, or was chosen and cannot run here.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let results: Vec<(&str, Outcome, Duration)> = options
        .checks()
        .map(|check| match options.leave_out(start.elapsed()) {
            Some(reason) => (check.name, Outcome::Skipped(reason), Duration::ZERO),
            None => timed(check),
        })
        .collect();
    println!();
    for (name, outcome, time) in &results {
        let (word, detail) = match outcome {
            Outcome::Passed => ("ok", ""),
            Outcome::Failed(reason) => ("FAILED", reason.as_str()),
            Outcome::Skipped(reason) => ("skipped", reason.as_str()),
        };
        println!("{name:<13} {word:<8} {:>6.1} s  {detail}", time.as_secs_f64());
    }
    let failed = results.iter().filter(|result| matches!(result.1, Outcome::Failed(_))).count();
    let skipped = results.iter().filter(|result| matches!(result.1, Outcome::Skipped(_))).count();
    let passed = results.len() - failed - skipped;
    let (kind, rest) = if options.full {
        ("full", String::new())
    } else {
        ("quick", format!("; left to --full: {}", names(&FULL)))
    };
    let seconds = start.elapsed().as_secs_f64();
    println!("{kind}: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0} s{rest}");
    match (failed, passed, &options.only) {
        (0, 0, Some(only)) => Err(format!("{only} cannot run here").into()),
        (0, ..) => Ok(()),
        (failed, ..) => Err(format!("{failed} checks failed").into()),
    }
}

fn timed(check: &Check) -> (&'static str, Outcome, Duration) {
    println!("\n== {}", check.name);
    let start = Instant::now();
    let outcome = (check.run)().unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    (check.name, outcome, start.elapsed())
}

/// Runs a command of cargo on the workspace.
fn run_workspace(command: &str, rest: &str) -> Result<Outcome, Box<dyn Error>> {
    run_cargo(&format!("{command} {WORKSPACE} --features {FEATURES} {rest}"))
}

fn run_cargo(arguments: &str) -> Result<Outcome, Box<dyn Error>> {
    // Where a check's output is cut, a property's failing input counts more than a backtrace.
    let command = &mut check(arguments);
    command::run(command.env("RUST_BACKTRACE", "0")).map(|()| Outcome::Passed)
}

/// A command of cargo that compiles what the build of the Python package can use.
fn check(arguments: &str) -> Command {
    let mut command = cargo(arguments);
    if let Some(file) = python::pyo3_configuration() {
        command.env("PYO3_CONFIG_FILE", file);
    }
    command
}

fn tests() -> Result<Outcome, Box<dyn Error>> {
    let skipped: String = SLOW.iter().map(|name| format!(" --skip {name}")).collect();
    run_workspace("test", &format!("--no-fail-fast --{skipped}"))
}

fn slow_tests() -> Result<Outcome, Box<dyn Error>> {
    let chosen = SLOW.join(" ");
    run_workspace("test", &format!("--no-fail-fast --tests -- {chosen}"))?;
    run_workspace("build", "--examples")?;
    run_example(SLOW_EXAMPLE)
}

fn clippy() -> Result<Outcome, Box<dyn Error>> {
    run_workspace("clippy", "--all-targets -- -D warnings")
}

fn documentation() -> Result<Outcome, Box<dyn Error>> {
    let mut doc = check(&format!("doc {WORKSPACE} --features {FEATURES} --no-deps"));
    command::run(doc.env("RUSTDOCFLAGS", "-D warnings")).map(|()| Outcome::Passed)
}

/// Runs every example of every crate, as the tests have built it: they document by running. The slow
/// one runs with the slow tests.
fn examples() -> Result<Outcome, Box<dyn Error>> {
    let mut examples = Vec::new();
    for folder in fs::read_dir(workspace_root().join("crates"))? {
        for file in fs::read_dir(folder?.path().join("examples")).into_iter().flatten() {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "rs") {
                examples.extend(file.file_stem().map(PathBuf::from));
            }
        }
    }
    examples.retain(|example| example.as_os_str() != SLOW_EXAMPLE);
    examples.sort();
    for example in examples {
        run_example(&example)?;
    }
    Ok(Outcome::Passed)
}

fn run_example(name: impl AsRef<Path>) -> Result<Outcome, Box<dyn Error>> {
    let built = command::target().join("debug/examples");
    command::run(Command::new(built.join(name)).current_dir(workspace_root()))?;
    Ok(Outcome::Passed)
}

/// The crates with the feature `tables`, without it.
const WITHOUT_TABLES: &str = "--package tl-pipeline --package turboloader \
    --package turboloader-cli --package tl-python --no-default-features";

/// Tests the crates without the features that the tests of the workspace have.
fn features() -> Result<Outcome, Box<dyn Error>> {
    run_cargo("test --package tbf-format --package tbl-format --no-default-features")?;
    for feature in ["encryption", "lz4", "zstd"] {
        let tbf = format!("--package tbf-format --no-default-features --features {feature}");
        run_cargo(&format!("test {tbf} --test it -- packing"))?;
    }
    // The workspace's tests have the features of `tl-decode`; without them files are refused.
    run_cargo("test --package tl-decode --test it -- manifest")?;
    run_cargo("test --package idv-format --no-default-features --lib")?;
    // What clippy and the tests of the workspace see with features only.
    run_cargo("clippy --workspace --all-targets -- -D warnings")?;
    // Without tables, which refuses their files.
    run_cargo(&format!("clippy {WITHOUT_TABLES} --all-targets -- -D warnings"))?;
    // The Python package as it is built for users.
    run_cargo("check --package tl-python")?;
    // Without stores.
    let cli = "--package turboloader-cli --no-default-features --features tables";
    run_cargo(&format!("clippy {cli} --all-targets -- -D warnings"))?;
    run_cargo("test --package tl-pipeline --no-default-features --lib -- table::open")?;
    run_cargo("test --package turboloader-cli --test it -- table_conversion")
}

/// Runs a task of the Python package where there is Python.
fn python_package(task: fn() -> Result<(), Box<dyn Error>>) -> Result<Outcome, Box<dyn Error>> {
    match python::missing() {
        Some(missing) => Ok(Outcome::Skipped(missing)),
        None => task().map(|()| Outcome::Passed),
    }
}

/// Fails if the tests of the workspace ignore any for want of data.
fn data() -> Result<Outcome, Box<dyn Error>> {
    let list = "--tests --quiet -- --ignored --list";
    let arguments = format!("test {WORKSPACE} --features {FEATURES} {list}");
    let listed = cargo(&arguments).stderr(Stdio::inherit()).output()?;
    if !listed.status.success() {
        return Ok(Outcome::Failed(format!("cargo {arguments}: {}", listed.status)));
    }
    let listed = String::from_utf8_lossy(&listed.stdout);
    let ignored: Vec<_> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    Ok(match ignored.first() {
        None => Outcome::Passed,
        Some(first) => Outcome::Failed(format!(
            "{} tests are ignored, such as {first}: set TURBOLOADER_DATA",
            ignored.len()
        )),
    })
}

fn aarch64() -> Result<Outcome, Box<dyn Error>> {
    Ok(aarch64::check()?.map_or(Outcome::Passed, Outcome::Skipped))
}

/// The formats without `std`, also in what they depend on.
fn no_std() -> Result<Outcome, Box<dyn Error>> {
    if let Some(missing) = command::missing_target(BARE) {
        return Ok(Outcome::Skipped(missing));
    }
    let check = format!("check --target {BARE} --no-default-features --package");
    run_cargo(&format!("{check} tbl-format"))?;
    run_cargo(&format!("{check} idv-format"))?;
    run_cargo(&format!("{check} tbf-format --features encryption"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn checks_are_chosen_by_options() {
        assert_eq!(parse(""), Ok(Options::default()));
        let full = Options { full: true, ..Options::default() };
        assert_eq!(parse("--full"), Ok(full));
        let short = parse("--full --minutes 5").expect("valid options");
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        assert_eq!(short.leave_out(minutes(4)), None);
        assert!(short.leave_out(minutes(5)).is_some());
        let one = parse("--full --only aarch64").expect("valid options");
        assert_eq!(one.leave_out(minutes(99)), None);
        assert_eq!(one.checks().map(|check| check.name).collect::<Vec<_>>(), ["aarch64"]);
    }

    #[test]
    fn the_workflow_has_a_job_for_every_full_check() {
        let workflow = fs::read_to_string(workspace_root().join(".github/workflows/ci.yml"));
        let workflow = workflow.expect("the workflow is there");
        let (_, list) = workflow.split_once("        check:\n").expect("a list of checks");
        let names = list.lines().map_while(|line| line.strip_prefix("          - "));
        assert!(names.eq(FULL.iter().map(|check| check.name)), "{list}");
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for line in [
            "--ful",
            "--minutes 5",
            "--full --minutes",
            "--full --only x",
            "tbl-io",
            "--full --minutes 5 --only publish",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
