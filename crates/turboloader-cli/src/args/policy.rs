//! Arguments for the handling of bad samples, and for the processors of workers.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tbl_io::RetryPolicy;
use tl_pipeline::{Cpus, ErrorBudget, OnError};

/// The handling of samples that cannot be used.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Handling of samples that cannot be used: raise stops with the error, skip leaves the
    /// sample out, replace uses another sample, fill uses zeros (default: raise for bench, skip for
    /// doctor)
    #[arg(long, value_enum, value_name = "CHOICE")]
    on_error: Option<OnErrorChoice>,

    /// The number of bad samples in an epoch that is still accepted: a count (100), a part of the
    /// samples read (0.1%), or both (100,0.1%); 100% accepts any number (default: 50%)
    #[arg(long, value_name = "LIMIT", value_parser = error_budget, requires = "on_error")]
    error_budget: Option<ErrorBudget>,

    /// Attempts at a local read that fails for a reason that may pass, such as EIO, ESTALE and
    /// ETIMEDOUT of network file systems; 1 repeats nothing (default: 4)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    read_attempts: Option<u32>,

    /// Seconds from the first such failure after which no further attempt begins (default: 3)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=3600))]
    read_deadline: Option<u64>,
}

impl PolicyArgs {
    /// The handling that was asked for, if any.
    pub(super) fn on_error(&self) -> Option<OnError> {
        self.on_error.map(OnError::from)
    }

    /// The repetition of reads.
    pub(super) fn retry(&self) -> RetryPolicy {
        let usual = RetryPolicy::default();
        let deadline = self.read_deadline.map_or(usual.deadline, Duration::from_secs);
        RetryPolicy { attempts: self.read_attempts.unwrap_or(usual.attempts), deadline, ..usual }
    }

    /// How many are too many.
    pub(super) fn error_budget(&self) -> ErrorBudget {
        self.error_budget.unwrap_or_default()
    }
}

/// The processors and priority of workers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Processors that workers run on, such as 0,2-5 (default: the operating system chooses)
    #[arg(long, value_name = "LIST")]
    cpus: Option<Cpus>,

    /// Niceness of the workers, 0 to 19: they give way to other threads
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(i32).range(0..=19))]
    pub(super) nice: i32,
}

impl ThreadArgs {
    /// The processors named.
    pub(super) fn cpus(&self) -> Cpus {
        self.cpus.clone().unwrap_or_default()
    }

    /// How many processors workers may use. No core is left free: nothing else should run at the
    /// same time as the commands that load.
    pub(super) fn cores(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.cpus.as_ref().map_or_else(all, |cpus| cpus.numbers().len())
    }
}

/// The values of `--on-error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnErrorChoice {
    /// Stop with the error
    Raise,
    /// Leave the sample out
    Skip,
    /// Use another sample instead
    Replace,
    /// Use zeros instead
    Fill,
}

impl From<OnErrorChoice> for OnError {
    fn from(choice: OnErrorChoice) -> Self {
        match choice {
            OnErrorChoice::Raise => Self::Raise,
            OnErrorChoice::Skip => Self::Skip,
            OnErrorChoice::Replace => Self::Replace,
            OnErrorChoice::Fill => Self::Fill,
        }
    }
}

/// Reads `100`, `0.1%` or both with a comma between them.
fn error_budget(text: &str) -> Result<ErrorBudget, &'static str> {
    const EXPECTED: &str = "expected a number, a percentage, or both: 100,0.1%";
    let mut budget = ErrorBudget::UNLIMITED;
    for part in text.split(',') {
        let twice = match part.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.parse().map_err(|_| EXPECTED)?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(EXPECTED);
                }
                budget.rate.replace(percent / 100.0).is_some()
            }
            None => budget.count.replace(part.parse().map_err(|_| EXPECTED)?).is_some(),
        };
        if twice {
            return Err(EXPECTED);
        }
    }
    Ok(budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Policy {
        #[command(flatten)]
        policy: PolicyArgs,
    }

    #[test]
    fn reads_are_repeated_as_the_arguments_say() {
        use clap::Parser as _;

        let retry = |arguments: &[&str]| {
            let all = ["tl"].into_iter().chain(arguments.iter().copied());
            Policy::try_parse_from(all).ok().map(|parsed| parsed.policy.retry())
        };
        assert_eq!(retry(&[]), Some(RetryPolicy::default()));
        let found = retry(&["--read-attempts", "7", "--read-deadline", "60"]);
        let deadline = Duration::from_secs(60);
        assert_eq!(found, Some(RetryPolicy { attempts: 7, deadline, ..RetryPolicy::default() }));
        for wrong in
            [["--read-attempts", "0"], ["--read-attempts", "101"], ["--read-deadline", "-1"]]
        {
            assert_eq!(retry(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn error_budgets_are_counts_and_percentages() {
        let check = |text, count, rate| {
            assert_eq!(error_budget(text), Ok(ErrorBudget { count, rate }), "{text}");
        };
        check("0", Some(0), None);
        check("0.5%", None, Some(0.005));
        check("100,25%", Some(100), Some(0.25));
        check("25%,100", Some(100), Some(0.25));
        for wrong in ["", "x", "1,", "1,2", "1%,2%", "101%", "-1%", "-1", "1.5", "NaN%"] {
            assert!(error_budget(wrong).is_err(), "{wrong}");
        }
    }
}
