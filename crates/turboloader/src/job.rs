//! Jobs over many shards: each is converted, checked or counted by itself, and has a record that says
//! how that went. The record is written last, so that a job that is started again does what has none.
//!
//! [`Job::run`] does all of it on threads of one machine. Engines that spread work over machines call
//! [`Task::run`] for each shard and give the records to a [`Report`], with the same results.

mod record;
mod report;
mod stored;
mod task;

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use tbl_io::{ErrorKind, Location, ReadError, Stores, WriteError, remove_drafts};
use tl_pipeline::Fault;

pub use record::{Finding, Record, Status};
pub use report::{Report, Totals};
pub use task::{Outcome, OutputFormat, Task};

/// The folder of the records of a conversion, below that of the files. Readers of folders pass over
/// names that begin with an underscore.
const RECORDS: &[u8] = b"_records";

/// The time of a wait for a shard before an interrupt is looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// How many shards after the first one without a record threads begin, because their records stay in
/// memory until then. A record has up to 1,000 findings, about 200 KB.
const WINDOW: usize = 256;

/// Data sets, each of which is the work of one task.
#[derive(Clone, Debug)]
pub struct Job {
    task: Task,
    shards: Vec<Shard>,
    /// The folders for files and records.
    folders: BTreeSet<Location>,
    report: Option<Location>,
}

/// A data set, and the places of its results. Local paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The data set.
    pub source: Location,
    /// The file to write, if the task writes one.
    pub output: Option<Location>,
    /// The place of its record; none in a job that always does all of its work.
    pub record: Option<Location>,
    /// Whether to replace an output that has no record of this shard.
    pub overwrite: bool,
}

/// The reason why a job ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum JobError {
    /// The sources cannot be listed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The report cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A folder for results cannot be made, or not cleaned.
    #[error("{location}: {source}")]
    Folder { location: Location, source: io::Error },
    /// Two shards would have one output.
    #[error("several shards would become {output}: give them other names")]
    SameOutput { output: Location },
    /// Two shards would have one record.
    #[error(
        "{shard}: named several times, or in URLs that differ only in their query, expected each \
         shard once"
    )]
    SameShard { shard: Location },
    /// A result would replace a shard.
    #[error("{output}: is one of the shards, expected another folder for results")]
    OutputIsShard { output: Location },
    /// The file of a shard would have no name.
    #[error("{shard}: has no name for its file, expected one such as train.tar")]
    NoName { shard: Location },
    /// The shards of an index would become one file.
    #[error("{index}: is a shard index, expected its shards: pass a pattern such as *.tar")]
    ShardIndex { index: Location },
    /// A conversion has no folder.
    #[error("a conversion needs a folder for its files")]
    NoOutput,
    /// No thread can be started.
    #[error("worker {worker} of {workers} cannot be started: {source}")]
    NotStarted { worker: usize, workers: usize, source: io::Error },
    /// The caller or an interrupt has ended the job.
    #[error("stopped after {done} of {shards} shards; the same command continues")]
    Stopped { done: usize, shards: usize },
}

impl Fault for JobError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::Folder { .. } | Self::NotStarted { .. } | Self::Stopped { .. } => {
                ErrorKind::System
            }
            Self::SameOutput { .. }
            | Self::SameShard { .. }
            | Self::OutputIsShard { .. }
            | Self::NoName { .. }
            | Self::ShardIndex { .. }
            | Self::NoOutput => ErrorKind::Setting,
        }
    }
}

/// The places for the results of a job, as paths or URLs.
#[derive(Clone, Debug, Default)]
pub struct JobFolders {
    /// The folder for the files of a conversion.
    pub output: Option<Location>,
    /// The folder for records, by default `_records` in that of the files. Without either, a job
    /// does all of its work each time.
    pub records: Option<Location>,
    /// The file for the report, which replaces an earlier one.
    pub report: Option<Location>,
    /// Whether to replace files in the folder for files that have no record of this job.
    pub overwrite: bool,
}

impl Job {
    /// A job over all that the sources [stand for](Stores::expand). Local folders for results are made.
    ///
    /// A conversion writes a file for each shard, with the shard's name and the format's extension.
    ///
    /// # Errors
    /// [`JobError`], also for two shards of one name in a conversion, and for a shard that is named twice.
    pub fn new<L: AsRef<OsStr>>(
        stores: &Stores,
        sources: &[L],
        task: Task,
        folders: &JobFolders,
    ) -> Result<Self, JobError> {
        let output = folders.output.as_ref().map(absolute).transpose()?;
        let records = match (&folders.records, &output) {
            (Some(records), _) => Some(absolute(records)?),
            (None, Some(output)) => Some(output.join(RECORDS)),
            (None, None) => None,
        };
        let results = output.iter().chain(&records).cloned().collect::<BTreeSet<Location>>();
        for location in &results {
            if let Some(path) = location.path() {
                let fault = |source| JobError::Folder { location: location.clone(), source };
                fs::create_dir_all(path).map_err(fault)?;
            }
        }
        let mut shards = Vec::new();
        let mut outputs = BTreeSet::new();
        let mut recorded = BTreeSet::new();
        for source in stores.expand_all(sources)? {
            if source.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tlidx")) {
                return Err(JobError::ShardIndex { index: stores.printable(&source) });
            }
            let source = absolute(&source)?;
            let printable = stores.printable(&source);
            let output = match (task.extension(), &output) {
                (None, _) => None,
                (Some(_), None) => return Err(JobError::NoOutput),
                (Some(extension), Some(folder)) => {
                    let no_name = || JobError::NoName { shard: printable.clone() };
                    Some(folder.join(&output_name(&printable, extension).ok_or_else(no_name)?))
                }
            };
            if let Some(output) =
                output.as_ref().filter(|output| !outputs.insert((*output).clone()))
            {
                return Err(JobError::SameOutput { output: stores.printable(output) });
            }
            let named =
                output.as_ref().map_or_else(|| printable.clone(), |to| stores.printable(to));
            let record = records.as_ref().map(|records| records.join(&record_name(&named, &task)));
            if let Some(record) = &record
                && !recorded.insert(record.clone())
            {
                return Err(JobError::SameShard { shard: printable });
            }
            let overwrite = folders.overwrite;
            shards.push(Shard { source, output, record, overwrite });
        }
        let places: HashSet<Location> =
            shards.iter().map(|shard| resolved(&shard.source)).collect();
        let report = folders.report.as_ref().map(absolute).transpose()?;
        let mut outputs = shards.iter().filter_map(|shard| shard.output.as_ref()).chain(&report);
        if let Some(output) = outputs.find(|output| places.contains(&resolved(output))) {
            return Err(JobError::OutputIsShard { output: stores.printable(output) });
        }
        Ok(Self { task, shards, folders: results, report })
    }

    /// The work on each shard.
    #[must_use]
    pub const fn task(&self) -> &Task {
        &self.task
    }

    /// The shards, in the order of the sources.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Does what has no record yet on `threads` threads, writes the report, and returns its totals.
    /// `on_shard` is called with the number and the outcome of each shard as it is done; to break ends
    /// the job.
    ///
    /// Damaged shards, and those that the system refuses, do not end a job: [`Totals`] counts them.
    ///
    /// # Errors
    /// [`JobError::Write`], [`JobError::NotStarted`], [`JobError::Stopped`].
    pub fn run(
        &self,
        stores: &Stores,
        threads: NonZeroUsize,
        mut report: Report,
        on_shard: &mut dyn FnMut(usize, &Outcome) -> ControlFlow<()>,
    ) -> Result<Totals, JobError> {
        let shards = self.shards.len();
        let workers = threads.get().min(shards);
        let is_over = Arc::new(AtomicBool::new(false));
        let next = AtomicUsize::new(0);
        let written = AtomicUsize::new(0);
        let window = WINDOW.max(2 * workers);
        // Bounded, so that threads wait for a report that is slow.
        let (sender, receiver) = mpsc::sync_channel(workers);
        thread::scope(|scope| {
            let receiver = receiver;
            let _stop = StopOnDrop(Arc::clone(&is_over));
            for worker in 0..workers {
                let sender = sender.clone();
                let is_over = Arc::clone(&is_over);
                let next = &next;
                let written = &written;
                let work = move || {
                    let has_ended = Arc::clone(&is_over);
                    tbl_io::interruptible(
                        move || has_ended.load(Ordering::Relaxed),
                        || {
                            while !is_over.load(Ordering::Relaxed) {
                                let number = next.fetch_add(1, Ordering::Relaxed);
                                let Some(shard) = self.shards.get(number) else { return };
                                // A shard far before this one is not done yet.
                                while number >= written.load(Ordering::Relaxed) + window {
                                    if is_over.load(Ordering::Relaxed) {
                                        return;
                                    }
                                    thread::sleep(PATIENCE);
                                }
                                let outcome = self.task.run(stores, shard);
                                // The job has ended.
                                let Ok(()) = sender.send(Done { number, outcome }) else { return };
                            }
                        },
                    );
                };
                let started = thread::Builder::new().spawn_scoped(scope, work);
                started.map_err(|source| JobError::NotStarted { worker, workers, source })?;
            }
            drop(sender);
            for done in 0..shards {
                let stopped = || JobError::Stopped { done, shards };
                let Done { number, outcome } = loop {
                    if tbl_io::is_interrupted() {
                        return Err(stopped());
                    }
                    match receiver.recv_timeout(PATIENCE) {
                        Ok(done) => break done,
                        Err(mpsc::RecvTimeoutError::Timeout) => {}
                        Err(mpsc::RecvTimeoutError::Disconnected) => return Err(stopped()),
                    }
                };
                if on_shard(number, &outcome).is_break() {
                    return Err(stopped());
                }
                report.add(number, outcome.record)?;
                written.store(report.written(), Ordering::Relaxed);
            }
            Ok(())
        })?;
        report.finish()
    }

    /// Whether an object or a file is a result of this job.
    fn has_result(&self) -> impl Fn(&Location) -> bool {
        let results = self.shards.iter().flat_map(|shard| shard.output.iter().chain(&shard.record));
        let results = results.chain(&self.report);
        let results: BTreeSet<Location> = results.cloned().collect();
        move |location| results.contains(location)
    }

    /// Removes incomplete results of killed processes of this job: temporary files and, in S3, uploads.
    /// The caller ensures that no task of the job runs.
    ///
    /// # Errors
    /// [`JobError::Folder`], [`JobError::Read`].
    pub fn clean_up(
        &self,
        #[cfg(feature = "remote")] remote: &tl_store::RemoteStores,
    ) -> Result<(), JobError> {
        let has_result = self.has_result();
        let of_report = self.report.as_ref().map(Location::folder);
        for folder in self.folders.iter().chain(&of_report) {
            if let Some(path) = folder.path() {
                let is_result = |name: &OsStr| has_result(&folder.join(name.as_bytes()));
                let fault = |source| JobError::Folder { location: folder.clone(), source };
                remove_drafts(path, is_result).map_err(fault)?;
            }
            #[cfg(feature = "remote")]
            if folder.scheme() == Some("s3") {
                for upload in remote.pending_uploads(&folder.join(b""))? {
                    if has_result(&upload.object) {
                        remote.end_upload(&upload)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A shard's result on its way to the report.
struct Done {
    number: usize,
    outcome: Outcome,
}

/// Ends the threads however the job ends.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A path that means the same in every folder; a URL does anyway.
fn absolute(location: &Location) -> Result<Location, JobError> {
    let Some(path) = location.path() else { return Ok(location.clone()) };
    let fault = |source| JobError::Folder { location: location.clone(), source };
    std::path::absolute(path).map(Location::new).map_err(fault)
}

/// The file that a path leads to, also by links; a file that does not exist, in the folder that its
/// path leads to. A URL means itself.
fn resolved(location: &Location) -> Location {
    let Some(path) = location.path() else { return location.clone() };
    let in_folder = || {
        let folder = fs::canonicalize(path.parent()?).ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = fs::canonicalize(path).ok().or_else(in_folder);
    found.map_or_else(|| location.clone(), Location::new)
}

/// The last name of a location without credentials and without the query of a web server; of a folder
/// that ends with a slash, the name of the folder.
fn last_name(printable: &Location) -> Vec<u8> {
    let name = printable.file_name();
    // The form in which a query is printed.
    let name = name.strip_suffix(b"?...").unwrap_or(name);
    if !name.is_empty() {
        return name.to_vec();
    }
    if let Some(path) = printable.path() {
        return path.file_name().unwrap_or_default().as_bytes().to_vec();
    }
    let folder = printable.folder();
    let text = folder.as_os_str().as_bytes();
    let end = text.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let text = OsStr::from_bytes(text.get(..end).unwrap_or(text));
    Location::new(text).file_name().to_vec()
}

/// The name of the file that a shard becomes; none if the shard has no name.
fn output_name(printable: &Location, extension: &str) -> Option<Vec<u8>> {
    let name = last_name(printable);
    let is_folder = printable.file_name().is_empty() || printable.path().is_some_and(Path::is_dir);
    let stem = if is_folder {
        // `v1.5` has no extension.
        name.as_slice()
    } else {
        let stem = Path::new(OsStr::from_bytes(&name)).file_stem().unwrap_or_default().as_bytes();
        // `a.tar.gz` and `a.tar.zst` are `a`.
        stem.strip_suffix(b".tar").unwrap_or(stem)
    };
    let is_name = !stem.is_empty() && stem != b"." && stem != b"..";
    is_name.then(|| [stem, b".", extension.as_bytes()].concat())
}

/// The name of the record of a shard, or of its output. The digest of the whole location tells files of
/// one name in several folders apart.
fn record_name(printable: &Location, task: &Task) -> Vec<u8> {
    let digest = printable
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(FNV_BASIS, |digest, &byte| (digest ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    let mut name = last_name(printable);
    if name.len() > MAX_NAME_BYTES {
        let is_boundary = |&end: &usize| name.get(end).is_none_or(|byte| byte & 0xc0 != 0x80);
        // A character of UTF-8 has at most 4 bytes; other names have no characters.
        let end = (MAX_NAME_BYTES - 3..=MAX_NAME_BYTES).rev().find(is_boundary);
        name.truncate(end.unwrap_or(MAX_NAME_BYTES));
    }
    name.extend_from_slice(format!("-{digest:016x}-{}.json", task.name()).as_bytes());
    name
}

/// How much of a shard's name its record has in its own; file systems take 255 bytes.
const MAX_NAME_BYTES: usize = 180;

/// Of the hash FNV-1a of 64 bits.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;
