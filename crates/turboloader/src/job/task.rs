//! The work on one shard.

use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use tbl_io::{
    AsStored, Compression, ConvertError, ConvertEvent, ConvertOptions, ConvertSummary, Entry,
    ErrorKind, Escaped, Finding as Found, Location, Prepare, ReadError, Selection, SourceKind,
    Stores, TarDefect, Target, WriteError, is_interrupted,
};
use tl_pipeline::{Dataset, Fault, PipelineError};

use super::Shard;
use super::record::{Finding, Record, Status};
use super::stored::StoredRecord;
use crate::notes::ConversionNotes;
use crate::prepare::{HeaderCheck, IndexKinds, Indexer, Probe, StrictDecode};
use crate::statistics::{Statistics, Uncounted};

/// The work of a job on each of its shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Task {
    /// Converts each shard into a file.
    Convert {
        /// The format of the files.
        to: OutputFormat,
        /// The compression of their samples, in TBL files.
        #[serde(serialize_with = "as_text", deserialize_with = "of_text")]
        compression: Compression,
        /// The indexes to store with samples, in TBL files.
        #[serde(flatten)]
        indexes: IndexKinds,
    },
    /// Checks each shard, as [`tbl_io::verify`] does.
    Verify {
        /// Whether to decode all images.
        decode: bool,
    },
    /// Makes the [`Statistics`] of each shard.
    Stats,
}

/// The formats of the files that a job writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OutputFormat {
    /// TBL version 2.
    Tbl,
    /// TBL version 1.
    Tbl1,
    /// TAR archives in WebDataset layout.
    Tar,
    /// Parquet files as `datasets` writes them.
    Parquet,
}

fn as_text<S: Serializer>(value: &Compression, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn of_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Compression, D::Error> {
    Compression::from_str(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// The end of the work on a shard.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The result.
    pub record: Record,
    /// Whether an earlier run has made it.
    pub is_skipped: bool,
}

/// The reason why a shard could not be worked on.
#[derive(Debug, thiserror::Error)]
enum ShardError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Open(#[from] PipelineError),
    #[error("{location}: no samples, expected at least one file that is not hidden")]
    NoSamples { location: Location },
    #[error("{location}: tables have rows, not samples")]
    Table { location: Location },
    #[error(
        "{output}: exists, and no record says that it was made from {shard}, expected no file; to \
         replace it, pass --force (overwrite=True in Python)"
    )]
    Occupied { output: Location, shard: Location },
    #[error("Parquet files need the feature `arrow`, which this program was built without")]
    NoParquet,
    #[error("{location}: the work on it panicked, which is a bug")]
    Panicked { location: Location },
}

impl ShardError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::Convert(error) => error.kind(),
            Self::Open(error) => error.kind(),
            Self::NoSamples { .. } => ErrorKind::Data,
            Self::Table { .. } | Self::Occupied { .. } | Self::NoParquet => ErrorKind::Setting,
            Self::Panicked { .. } => ErrorKind::Internal,
        }
    }
}

impl ShardError {
    /// Whether the bytes of the shard are damaged, so that only a change of them mends it. Limits,
    /// labels and missing options are not: another run may have others.
    fn is_defect(&self) -> bool {
        match self {
            Self::Read(error)
            | Self::Open(PipelineError::Open(error))
            | Self::Convert(ConvertError::Read(error) | ConvertError::Structure(error)) => {
                is_defect(error)
            }
            Self::Convert(ConvertError::Prepare { .. }) => true,
            Self::Write(_)
            | Self::Convert(_)
            | Self::Open(_)
            | Self::NoSamples { .. }
            | Self::Table { .. }
            | Self::Occupied { .. }
            | Self::NoParquet
            | Self::Panicked { .. } => false,
        }
    }
}

fn is_defect(error: &ReadError) -> bool {
    if let ReadError::Sample { source, .. } = error {
        return is_defect(source);
    }
    // An error of the system is one of the place that it is unpacked to, such as a full disk.
    if let ReadError::Compressed { source, .. } = error {
        return source.raw_os_error().is_none();
    }
    // The archive is whole, and read once it is unpacked.
    let is_packed = matches!(error, ReadError::Tar { source: TarDefect::Compressed { .. }, .. });
    let is_format = matches!(
        error,
        ReadError::Format { .. }
            | ReadError::Tar { .. }
            | ReadError::Images { .. }
            | ReadError::Rows { .. }
            | ReadError::Checksum { .. }
    );
    is_format && !is_packed && error.kind() == ErrorKind::Data
}

impl Task {
    /// Its word in records.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Convert { .. } => "convert",
            Self::Verify { .. } => "verify",
            Self::Stats => "stats",
        }
    }

    /// The extension of the files that it writes, if it writes some.
    pub(super) const fn extension(&self) -> Option<&'static str> {
        match self {
            Self::Convert { to: OutputFormat::Tbl | OutputFormat::Tbl1, .. } => Some("tbl"),
            Self::Convert { to: OutputFormat::Tar, .. } => Some("tar"),
            Self::Convert { to: OutputFormat::Parquet, .. } => Some("parquet"),
            Self::Verify { .. } | Self::Stats => None,
        }
    }

    /// The task as JSON, as records have it.
    #[must_use]
    pub fn settings(&self) -> Value {
        // Texts and flags can be JSON.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Works on a shard on this thread, unless its record says that this was done: by this version of the
    /// crate, with these settings, from this version of the source, and with the output that is there.
    ///
    /// An output that is there is replaced only if a record says that it is one of this shard, or if
    /// [`Shard::overwrite`] allows it. A record without a result is written before the output, and the one
    /// with the result after it. An error is a part of the record, which is written for damaged bytes
    /// alone: the next run tries other shards again.
    #[must_use]
    pub fn run(&self, stores: &Stores, shard: &Shard) -> Outcome {
        let source = stores.printable(&shard.source);
        let mut record = Record::new(&source, self.settings());
        record.output = shard.output.as_ref().map(|output| stores.printable(output).to_string());
        let worked = catch_unwind(AssertUnwindSafe(|| self.work(stores, shard, &mut record)));
        let worked = worked.unwrap_or(Err(ShardError::Panicked { location: source }));
        let is_skipped = worked.unwrap_or_else(|error| {
            record.fail(&error);
            false
        });
        Outcome { record, is_skipped }
    }

    /// Completes the record and writes it, or replaces it by that of an earlier run; true for the
    /// latter.
    fn work(
        &self,
        stores: &Stores,
        shard: &Shard,
        record: &mut Record,
    ) -> Result<bool, ShardError> {
        let mut stored = StoredRecord::begun(stores, shard);
        if let Some(file) = stores.open_file(&shard.source)? {
            record.identify(&file)?;
            stored.identify(&file)?;
        }
        let mut is_own = false;
        if let Some(location) = &shard.record
            && let Some(earlier) = StoredRecord::read(stores, location)?
        {
            is_own = earlier.is_of(&stored);
            if let Some(result) = earlier.answer(stores, shard, &stored, record)? {
                *record = result;
                return Ok(true);
            }
        }
        let overwrite = is_own || shard.overwrite;
        if let Some(output) = &shard.output {
            if !overwrite && stores.open_existing(output)?.is_some() {
                let output = stores.printable(output);
                let shard = stores.printable(&shard.source);
                return Err(ShardError::Occupied { output, shard });
            }
            // From here on the earlier result holds no more, even if this process is killed after the
            // output has its name. The next run may replace the output.
            if let Some(location) = &shard.record {
                stored.write(stores, location)?;
            }
        }
        let produced = self.produce(stores, shard, overwrite, record);
        let is_lasting = produced.as_ref().err().is_none_or(ShardError::is_defect);
        if let Err(error) = &produced {
            record.fail(error);
        }
        if is_lasting && let Some(location) = &shard.record {
            stored.complete(stores, shard, record)?;
            stored.write(stores, location)?;
        }
        Ok(false)
    }

    /// Converts, checks or counts the shard.
    fn produce(
        &self,
        stores: &Stores,
        shard: &Shard,
        overwrite: bool,
        record: &mut Record,
    ) -> Result<(), ShardError> {
        // Compressed archives are read as a conversion reads them.
        let temporary = || std::env::temp_dir().join("shard");
        let place = shard.output.as_ref().map_or_else(temporary, |to| to.as_os_str().into());
        let stores = &stores.clone().unpacking_for(&place);
        match (self, &shard.output) {
            (&Self::Convert { to, compression, indexes }, Some(output)) => {
                let target = to.target(compression)?;
                let options = ConvertOptions { overwrite, ..ConvertOptions::new(target) };
                let is_tbl2 = matches!(target, Target::Tbl2(_));
                if is_tbl2 && indexes.is_empty() {
                    convert(stores, shard, output, &options, Probe::default, record)
                } else if is_tbl2 {
                    let indexer = || Indexer::new(indexes);
                    convert(stores, shard, output, &options, indexer, record)
                } else {
                    convert(stores, shard, output, &options, AsStored::default, record)
                }
            }
            (Self::Verify { decode: true }, _) => verify(stores, shard, StrictDecode::new, record),
            (Self::Verify { decode: false }, _) => {
                verify(stores, shard, HeaderCheck::default, record)
            }
            (Self::Stats, _) => count(stores, shard, record),
            // `Job::new` refuses it.
            (Self::Convert { .. }, None) => Ok(()),
        }
    }
}

impl OutputFormat {
    fn target(self, compression: Compression) -> Result<Target, ShardError> {
        match self {
            Self::Tbl => Ok(Target::Tbl2(compression)),
            Self::Tbl1 => Ok(Target::Tbl1),
            Self::Tar => Ok(Target::Tar),
            Self::Parquet => tl_pipeline::parquet_target().ok_or(ShardError::NoParquet),
        }
    }
}

impl Record {
    fn fail(&mut self, error: &ShardError) {
        let is_damage = error.kind() == ErrorKind::Data;
        self.status = if is_damage { Status::Damaged } else { Status::Failed };
        self.error = Some(error.to_string());
        self.output = None;
        self.output_bytes = None;
    }

    /// The error of a shard that is not good, or its first defect; either names the shard.
    pub(super) fn reason(&self) -> String {
        let defect = || self.findings.iter().find(|finding| finding.kind != WARNING);
        let defect = defect().map(|finding| match finding.index {
            Some(index) => format!("{}: sample {index}: {}", self.source, finding.reason),
            None => format!("{}: {}", self.source, finding.reason),
        });
        self.error.clone().or(defect).unwrap_or_default()
    }

    fn warn(&mut self, reason: String) {
        self.add(Finding {
            kind: WARNING.to_owned(),
            index: None,
            key: None,
            offset: None,
            reason,
        });
    }
}

const WARNING: &str = "warning";

/// Opens a shard whose samples are wanted.
fn open(stores: &Stores, shard: &Shard) -> Result<Dataset, ShardError> {
    let dataset = Dataset::from_sources(tbl_io::open_all_in(stores, &[&shard.source])?)?;
    let location = || stores.printable(&shard.source);
    if dataset.tables().next().is_some() {
        return Err(ShardError::Table { location: location() });
    }
    // A TBL file says that it is empty. Nothing tells an empty archive or folder from a wrong one.
    let is_unknown = |kind| matches!(kind, SourceKind::Folder | SourceKind::Tar);
    if dataset.is_empty() && dataset.shards().iter().any(|source| is_unknown(source.kind())) {
        return Err(ShardError::NoSamples { location: location() });
    }
    Ok(dataset)
}

fn convert<P: Prepare>(
    stores: &Stores,
    shard: &Shard,
    output: &Location,
    options: &ConvertOptions,
    new_prepare: impl Fn() -> P + Sync,
    record: &mut Record,
) -> Result<(), ShardError> {
    let path = Path::new(output.as_os_str());
    let dataset = open(stores, shard)?;
    let mut notes = ConversionNotes::default();
    let mut on_event = |event: ConvertEvent<'_>| {
        notes.add(&event);
        if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let selection = Selection::all(dataset.shards(), dataset.labels())?;
    let summary =
        tbl_io::convert_in(stores, &selection, output, options, new_prepare, &mut on_event)?;
    let ConvertSummary { samples, sample_bytes, file_bytes, .. } = summary;
    record.samples = samples;
    record.sample_bytes = sample_bytes;
    record.output_bytes = Some(file_bytes);
    let lines = ConversionNotes::of_sources(dataset.shards(), dataset.labels())
        .into_iter()
        .chain(notes.of_samples(&summary))
        .chain(ConversionNotes::of_destination(path, &summary));
    lines.for_each(|line| record.warn(line));
    Ok(())
}

fn verify<P: Prepare>(
    stores: &Stores,
    shard: &Shard,
    new_check: impl Fn() -> P + Sync,
    record: &mut Record,
) -> Result<(), ShardError> {
    let mut on_finding = |found: Found<'_>| {
        match found {
            Found::Damage { reason, .. } => record.add(Finding {
                kind: "damage".to_owned(),
                index: None,
                key: None,
                offset: None,
                reason: reason.to_string(),
            }),
            Found::BadSample { index, key, offset, reason, .. } => {
                let key = key.map(|key| Escaped(key).to_string());
                record.add(bad_sample(index, key, offset, reason.to_string()));
            }
            Found::Oddity { oddity, .. } => record.warn(oddity.to_string()),
            Found::Progress { .. } | _ => {}
        }
        if is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let sources = [&shard.source];
    let summary = tbl_io::verify(stores, &sources, NonZeroUsize::MIN, new_check, &mut on_finding)?;
    record.samples = summary.samples;
    record.sample_bytes = summary.sample_bytes;
    record.bad_samples = summary.bad_samples;
    if !summary.is_good() {
        record.status = Status::Damaged;
    }
    Ok(())
}

fn bad_sample(index: u64, key: Option<String>, offset: Option<u64>, reason: String) -> Finding {
    Finding { kind: "sample".to_owned(), index: Some(index), key, offset, reason }
}

fn count(stores: &Stores, shard: &Shard, record: &mut Record) -> Result<(), ShardError> {
    let dataset = open(stores, shard)?;
    let mut on_damage = |Uncounted { index, reason }: Uncounted<'_>| {
        let place = match dataset.entry(index) {
            Ok(Entry { key, offset, .. }) => Place { key, offset: Some(offset) },
            Err(ReadError::Sample { key, .. }) => Place { key: key.map(Cow::Owned), offset: None },
            Err(_) => Place { key: None, offset: None },
        };
        let key = place.key.map(|key| Escaped(&key).to_string());
        record.bad_samples += 1;
        record.add(bad_sample(index, key, place.offset, reason.to_string()));
    };
    let statistics = Statistics::of(&dataset, &mut on_damage)?;
    record.samples = dataset.len();
    record.sample_bytes = statistics.bytes;
    if record.bad_samples > 0 {
        record.status = Status::Damaged;
    }
    record.statistics = Some(statistics);
    Ok(())
}

/// The place of a sample, as far as its source says it.
struct Place<'a> {
    key: Option<Cow<'a, [u8]>>,
    offset: Option<u64>,
}
