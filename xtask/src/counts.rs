//! Runs of tests whose results are counted while their output is shown.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::command_line;

/// The tests of one or more test binaries, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    passed: u64,
    failed: u64,
    /// Ignored tests, most of them for want of data.
    ignored: u64,
    /// Tests that the arguments leave out.
    filtered: u64,
}

impl Counts {
    /// Reads the last line of a test binary's output; `None` for every other line.
    ///
    /// It has the form `test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out`,
    /// followed by the time.
    fn parse(line: &str) -> Option<Self> {
        let results = line.trim_start().strip_prefix("test result: ")?;
        let results = results.split_once(". ")?.1;
        let mut counts = Self::default();
        for part in results.split("; ") {
            let mut words = part.split(' ');
            let number = words.next()?.parse().ok();
            match words.next() {
                Some("passed") => counts.passed = number?,
                Some("failed") => counts.failed = number?,
                Some("ignored") => counts.ignored = number?,
                Some("filtered") => counts.filtered = number?,
                Some(_) | None => {}
            }
        }
        Some(counts)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        let Self { passed, failed, ignored, filtered } = other;
        self.passed += passed;
        self.failed += failed;
        self.ignored += ignored;
        self.filtered += filtered;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, ignored, filtered } = self;
        write!(f, "{passed} passed, {failed} failed, {ignored} ignored, {filtered} left out")
    }
}

/// The results of a run of `cargo test`.
pub(crate) struct Run {
    /// The tests of each crate, by its name.
    pub(crate) crates: BTreeMap<String, Counts>,
    pub(crate) is_success: bool,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total = Counts::default();
        for (name, counts) in &self.crates {
            writeln!(f, "{name:<16} {counts}")?;
            total += *counts;
        }
        write!(f, "{:<16} {total}", "all")
    }
}

/// Prints the command line and runs `cargo test`, with its output shown and counted.
///
/// # Errors
/// If the command cannot be started or its output cannot be read. A failed test is not an error.
pub(crate) fn run(command: &mut Command) -> Result<Run, Box<dyn Error>> {
    println!("$ {}", command_line(command));
    // Cargo names binaries on one stream and these print results on the other: together they say
    // which results are of which crate.
    let (output, input) = io::pipe()?;
    command.env("CARGO_TERM_COLOR", "never").stdout(input.try_clone()?).stderr(input);
    let child = command.spawn();
    // The pipe ends when the last copy of its input does.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        child.map_err(|error| format!("cannot start `{}`: {error}", command_line(command)))?;
    let mut crates: BTreeMap<String, Counts> = BTreeMap::new();
    let mut current = String::new();
    let mut output = BufReader::new(output);
    // Lines of bytes, because a test may print names that are not UTF-8.
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        print!("{text}");
        if let Some(name) = crate_of(text.trim()) {
            current = name;
        }
        if let Some(counts) = Counts::parse(text.trim()) {
            *crates.entry(current.clone()).or_default() += counts;
        }
        line.clear();
    }
    Ok(Run { crates, is_success: child.wait()?.success() })
}

/// The crate whose tests begin after this line of cargo. Those of its other binaries follow the tests
/// of its library.
fn crate_of(line: &str) -> Option<String> {
    let name = match line.strip_prefix("Doc-tests ") {
        Some(name) => name,
        None => {
            let binary = line.strip_prefix("Running unittests src/lib.rs (")?.strip_suffix(')')?;
            Path::new(binary).file_name()?.to_str()?.rsplit_once('-')?.0
        }
    };
    Some(name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_of_the_crate_before() {
        let output = "
   Running unittests src/lib.rs (target/debug/deps/tl_simd-0123456789abcdef)
running 10 tests
test a::b ... ok
test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s
   Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)
test result: FAILED. 3 passed; 4 failed; 0 ignored; 5 measured; 6 filtered out; finished in 1.5s
   Running unittests src/lib.rs (target/debug/deps/tbl_io-0123456789abcdef)
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
   Doc-tests tl_simd
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s
";
        let mut shell = Command::new("sh");
        shell.args(["-c", "printf '%s\\377\\n' \"$1\"; exit 3", "sh", output]);
        let run = run(&mut shell).expect("a shell");
        assert!(!run.is_success);
        let expected = "\
tbl-io           1 passed, 0 failed, 0 ignored, 0 left out
tl-simd          11 passed, 4 failed, 1 ignored, 8 left out
all              12 passed, 4 failed, 1 ignored, 8 left out";
        assert_eq!(run.to_string(), expected);
    }

    #[test]
    fn a_result_without_a_number_is_none() {
        assert_eq!(Counts::parse("test result: ok. many passed; 0 failed"), None);
        assert_eq!(Counts::parse("test result: unknown"), None);
    }
}
