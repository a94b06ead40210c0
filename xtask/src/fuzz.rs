//! Runs the fuzz targets for a given time each, with the limits every decoder must keep.

use std::error::Error;
use std::fs;
use std::process::Command;

use crate::command::{self, workspace_root};

/// The limits of libFuzzer: seconds for one input, MiB of memory in all and for one allocation.
const LIMITS: [&str; 3] = ["-timeout=5", "-rss_limit_mb=1024", "-malloc_limit_mb=512"];

/// The targets to fuzz and the time for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    target: Option<String>,
    minutes: u64,
}

impl Options {
    /// Reads `[TARGET] [--minutes N]`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let mut options = Self { target: None, minutes: 1 };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--minutes" {
                options.minutes = arguments.next().ok_or("--minutes needs a number")?.parse()?;
            } else if argument.starts_with('-') || options.target.is_some() {
                return Err(format!("fuzz: unexpected argument {argument}").into());
            } else {
                options.target = Some(argument.clone());
            }
        }
        Ok(options)
    }
}

/// Fuzzes the chosen targets one after the other; the first crash ends the run.
pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if command::output("cargo", &["+nightly", "fuzz", "--version"]).is_none() {
        return Err("fuzzing needs a nightly toolchain and cargo-fuzz:\n  \
                    rustup toolchain install nightly\n  cargo install cargo-fuzz --locked"
            .into());
    }
    let targets = targets()?;
    if let Some(target) = &options.target
        && !targets.contains(target)
    {
        return Err(format!("no fuzz target {target}; there are {}", targets.join(", ")).into());
    }
    for target in targets {
        if options.target.as_ref().is_none_or(|chosen| *chosen == target) {
            fuzz(&target, options.minutes)?;
        }
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, Box<dyn Error>> {
    let mut targets = Vec::new();
    for file in fs::read_dir(workspace_root().join("fuzz/fuzz_targets"))? {
        let path = file?.path();
        targets.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    targets.sort();
    Ok(targets)
}

/// New inputs go to `fuzz/corpus`, which is not committed; the committed seeds are read only.
fn fuzz(target: &str, minutes: u64) -> Result<(), Box<dyn Error>> {
    let corpus = format!("fuzz/corpus/{target}");
    fs::create_dir_all(workspace_root().join(&corpus))?;
    // Not `$CARGO`: that is the stable cargo of this task, and `+nightly` is for rustup's proxy.
    let mut nightly = Command::new("cargo");
    nightly
        .current_dir(workspace_root())
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .args(["+nightly", "fuzz", "run", target, &corpus, &format!("fuzz/seeds/{target}"), "--"])
        .args(LIMITS)
        .arg(format!("-max_total_time={}", minutes * 60));
    command::run(&mut nightly)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, target: Option<&str>, minutes: u64) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let options = Options::parse(&arguments).expect("valid options");
        assert_eq!(options, Options { target: target.map(str::to_owned), minutes });
    }

    #[test]
    fn options_default_to_every_target_for_a_minute() {
        check("", None, 1);
        check("tar", Some("tar"), 1);
        check("--minutes 10 tbl2", Some("tbl2"), 10);
    }

    #[test]
    fn unknown_options_are_refused() {
        assert!(Options::parse(&["--hours".to_owned()]).is_err());
        assert!(Options::parse(&["tar".to_owned(), "tbl1".to_owned()]).is_err());
    }
}
