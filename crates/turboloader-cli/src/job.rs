//! Jobs over many shards, each of which is worked on by itself.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tbl_io::Location;
use turboloader::job::{Job, JobFolders, Report, Task, Totals};

use crate::args::{GlobalArgs, JobArgs};
use crate::failure::{Failure, Verdict};
use crate::interrupt;
use crate::output::{self, Progress};

pub(crate) const NEEDS_EACH: Failure =
    Failure::Usage { what: "--records and --report are for shards by themselves: pass --each" };

/// Does the task with each shard, writes the report, and names the shards that are not good.
pub(crate) fn run(
    sources: &[PathBuf],
    task: Task,
    output: Option<&Path>,
    args: &JobArgs,
    threads: Option<NonZeroUsize>,
    overwrite: bool,
    global: &GlobalArgs,
) -> Result<Totals, Failure> {
    if global.has_list_options() || global.has_tokens() {
        // No record has them, so that a run with others would take its results for its own.
        let what = "options of lists, labels and tokens are not for jobs over shards: convert such \
                    a data set without --each first";
        return Err(Failure::Usage { what });
    }
    #[cfg(feature = "remote")]
    let remote = global.remote();
    #[cfg(feature = "remote")]
    let stores = remote.add_to(global.without_remote());
    #[cfg(not(feature = "remote"))]
    let stores = global.stores();
    let start = Instant::now();
    let location = |path: &Path| Location::new(path);
    let folders = JobFolders {
        output: output.map(location),
        records: args.records.as_deref().map(location),
        report: args.report.as_deref().map(location),
        overwrite,
    };
    let job = Job::new(&stores, sources, task, &folders)?;
    let report = Report::new(&stores, &job)?;
    let mut progress = Progress::new(global, job.shards().len() as u64);
    let mut done = 0;
    let mut skipped = 0_u64;
    let threads = threads.unwrap_or_else(output::default_workers);
    let totals = interrupt::ended(&mut false, || {
        job.run(&stores, threads, report, &mut |_, outcome| {
            done += 1;
            skipped += u64::from(outcome.is_skipped);
            progress.set(done);
            ControlFlow::Continue(())
        })
    })?;
    drop(progress);
    let cleaned = job.clean_up(
        #[cfg(feature = "remote")]
        &remote,
    );
    if let Err(error) = cleaned {
        output::note(&format_args!(
            "incomplete files of killed processes are not removed: {error}"
        ));
    }
    for shard in &totals.not_good {
        output::note(&shard.reason);
    }
    if !global.quiet {
        let Totals { shards, samples, sample_bytes, .. } = totals;
        let seconds = start.elapsed().as_secs_f64();
        output::note(&format_args!(
            "{shards} shards ({skipped} done before), {samples} samples, {sample_bytes} bytes, \
             {seconds:.2} s"
        ));
    }
    Ok(totals)
}

/// The answer of a job whose results have been printed.
pub(crate) fn verdict(totals: &Totals) -> Result<Verdict, Failure> {
    let Totals { shards, damaged, failed, .. } = totals;
    let Some(first) = totals.not_good.first() else { return Ok(Verdict::Good) };
    let message = format!(
        "{} of {shards} shards are damaged, {failed} failed, the first: {}",
        damaged, first.reason
    );
    if *failed > 0 {
        return Err(Failure::system(message));
    }
    output::report(&message);
    Ok(Verdict::Bad)
}
