//! Reads a whole data set and says what is wrong with it: damage, which makes it bad, and
//! oddities, which do not.

mod duplicates;
mod overlaps;
mod shards;

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use tbl_format::SampleFormat;

use crate::convert::{ConvertError, Prepare, Prepared, heard};
use crate::error::{Detail, ReadError};
use crate::escape::Escaped;
use crate::labels::Labels;
use crate::location::Location;
use crate::note::Note;
use crate::ordered::{self, Plan};
use crate::sample::{Entry, SampleSourceExt, SourceKind, announce_with_fields_after};
use crate::storage::Stores;
use crate::tar::SkippedMember;
use shards::{Examined, Place, Report, Shards};

/// Samples that are being looked at hold at most this together, unless a single one is larger.
const IN_FLIGHT_BYTES: u64 = 24 << 20;

/// A finding of a data set's check, in the order found.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Finding<'a> {
    /// Something outside the samples is damaged.
    Damage {
        /// The damaged shard, if the data set has several.
        shard: Option<&'a Location>,
        /// The defect.
        reason: &'a (dyn Error + 'static),
    },
    /// A sample is damaged.
    BadSample {
        /// The shard that it is stored in, if the data set has several.
        shard: Option<&'a Location>,
        /// Its number in the data set.
        index: u64,
        /// Its name, when it has one that can be read.
        key: Option<&'a [u8]>,
        /// The offset of its stored bytes, when its index entry can be read.
        offset: Option<u64>,
        /// The defect.
        reason: &'a (dyn Error + 'static),
    },
    /// Odd, but not damaged.
    Oddity {
        /// The shard, if the data set has several and the oddity is in one of them.
        shard: Option<&'a Location>,
        /// The oddity. Numbers of samples are those in the data set.
        oddity: &'a Oddity,
    },
    /// Another sample has been looked at.
    Progress {
        /// Samples looked at so far.
        samples: u64,
        /// The number of samples.
        of: u64,
    },
}

/// An unusual property of a data set that is not damage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// Two samples share stored bytes.
    Overlap {
        /// The sample whose bytes start first.
        first: u64,
        /// The sample that starts inside it.
        second: u64,
        /// The offset of the second.
        offset: u64,
    },
    /// Several samples have one name.
    DuplicateKey {
        /// The name.
        key: Vec<u8>,
        /// How many samples have it.
        samples: u64,
    },
    /// A TAR archive without the two zero blocks that end one: it may have been cut short between
    /// two members.
    NoEndMarker,
    /// A single block of zeros in front of a header, where a member without bytes may be lost.
    LoneZeroBlock {
        /// The offset of the block.
        offset: u64,
    },
    /// Bytes after the end of the archive that belong to nothing.
    TrailingBytes {
        /// The offset of the bytes.
        offset: u64,
    },
    /// A member of a TAR archive that is neither a sample nor a field.
    SkippedMember(SkippedMember),
    /// The bytes of a sample are an image of another format than its index entry states.
    Format {
        /// The sample.
        index: u64,
        /// The checksum as stated.
        stated: SampleFormat,
        /// The checksum of the bytes.
        found: SampleFormat,
    },
    /// Width and height of a TIFF sample in its index entry are those of the image before it is
    /// turned upright, as other writers store them. Converting the data set measures it anew.
    Turned {
        /// The sample.
        index: u64,
        /// Width and height as stated.
        stated: (u32, u32),
    },
    /// A note of the source on its files, such as those that are passed over, or on its labels.
    Note(Note),
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { first, second, offset } => {
                write!(f, "samples {first} and {second} share bytes from byte {offset} on")
            }
            Self::DuplicateKey { key, samples } => {
                write!(f, "{samples} samples are called {}", Escaped(key))
            }
            Self::NoEndMarker => f.write_str("no end marker"),
            Self::LoneZeroBlock { offset } => {
                write!(f, "a single block of zeros at byte {offset} does not end the archive")
            }
            Self::TrailingBytes { offset } => {
                write!(f, "bytes from byte {offset} on are not part of the archive")
            }
            Self::SkippedMember(SkippedMember { path, kind, offset }) => {
                let path = Escaped(path);
                write!(f, "member {path} at byte {offset} is passed over: {kind}")
            }
            Self::Format { index, stated, found } => {
                write!(f, "sample {index} is {found}, the index says {stated}")
            }
            Self::Turned { index, stated: (width, height) } => write!(
                f,
                "sample {index} is a TIFF image that is turned when it is decoded, the index says \
                 {width}x{height} pixels; tl convert stores the size it then has"
            ),
            Self::Note(note) => note.fmt(f),
        }
    }
}

/// All findings of a data set's check, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifySummary {
    /// The number of shards.
    pub shards: u64,
    /// The number of samples checked.
    pub samples: u64,
    /// Samples that are damaged.
    pub bad_samples: u64,
    /// Damage outside the samples.
    pub damaged_structures: u64,
    /// Oddities.
    pub oddities: u64,
    /// Bytes of the samples that are well.
    pub sample_bytes: u64,
}

impl VerifySummary {
    /// Whether nothing is damaged.
    pub fn is_good(&self) -> bool {
        self.bad_samples == 0 && self.damaged_structures == 0
    }
}

/// Reads every sample and every field of the data set at `locations`, paths or URLs of `stores`, and
/// checks every checksum and extent there is. What the locations [stand for](Stores::expand), and the
/// shards of a [shard index](crate::index_shards), are one data set: samples are numbered in order,
/// and labels are joined by class name. `new_check` makes, for each thread, what looks at the bytes:
/// [`AsStored`] or a decoder. It ends where `on_finding` breaks off.
///
/// Of a shard index only the versions of the shards are used. An archive or a folder without a single
/// sample is not good. If one of several shards is too damaged to be opened, that is a finding, and
/// the samples of the others are numbered without it.
///
/// [`AsStored`]: crate::AsStored
///
/// # Errors
/// [`ConvertError::Read`] when the data set cannot be opened, or the system, not the data, is at
/// fault; [`ConvertError::TooManySamples`] past 64 bits; [`ConvertError::WorkerPanicked`];
/// [`ConvertError::Stopped`].
pub fn verify<L: AsRef<OsStr>, C: Prepare>(
    stores: &Stores,
    locations: &[L],
    workers: NonZeroUsize,
    new_check: impl Fn() -> C + Sync,
    on_finding: &mut dyn FnMut(Finding<'_>) -> ControlFlow<()>,
) -> Result<VerifySummary, ConvertError> {
    let examined = Examined::open_each(stores, locations)?;
    let mut summary = VerifySummary { shards: examined.len() as u64, ..VerifySummary::default() };
    let mut sources = Vec::new();
    let mut reports = Vec::new();
    for examined in examined {
        match examined {
            Ok(Examined { source, report }) => {
                sources.push(source);
                reports.push(report);
            }
            Err(error) if summary.shards == 1 => return Err(error.into()),
            Err(error) => {
                summary.damaged_structures += 1;
                let shard = error.location().clone();
                let reason = &Detail(error);
                heard(on_finding(Finding::Damage { shard: Some(&shard), reason }))?;
            }
        }
    }
    let labels = Labels::resolve(&sources)?;
    let shards = Shards::new(&sources, &labels, summary.shards > 1)?;
    summary.samples = shards.starts.sample_count;
    report_shards(&shards, reports, &mut summary, on_finding)?;
    let plan = Plan {
        item_count: summary.samples,
        workers: if C::COSTLY { workers } else { NonZeroUsize::MIN },
        budget_bytes: IN_FLIGHT_BYTES,
    };
    let new_worker = || {
        let check = new_check();
        let bytes = Vec::new();
        let row_index = Vec::new();
        let mut worker = Worker { shards: &shards, check, bytes, row_index };
        move |index| (worker.look_at(index), 0)
    };
    let cost = |index| {
        let place = shards.place(index);
        place.source.entry(place.index).map_or(0, |entry| entry.bytes)
    };
    ordered::in_order(plan, cost, new_worker, |index, seen: Result<Seen, BadSample>| {
        let place = shards.place(index);
        let shard = shards.named(place.source);
        match seen {
            Ok(Seen { bytes, oddity }) => {
                summary.sample_bytes += bytes;
                if let Some(oddity) = &oddity {
                    summary.oddities += 1;
                    heard(on_finding(Finding::Oddity { shard, oddity }))?;
                }
            }
            Err(BadSample::System(error)) => {
                return Err(ConvertError::Read(error.in_data_set(index)));
            }
            Err(BadSample::Damaged(reason)) => {
                summary.bad_samples += 1;
                let (key, offset) = match place.source.entry(place.index) {
                    Ok(Entry { key, offset, .. }) => (key, Some(offset)),
                    Err(ReadError::Sample { key, .. }) => (key.map(Cow::Owned), None),
                    Err(_) => (None, None),
                };
                let key = key.as_deref();
                let reason = &*reason;
                heard(on_finding(Finding::BadSample { shard, index, key, offset, reason }))?;
            }
        }
        heard(on_finding(Finding::Progress { samples: index + 1, of: shards.starts.sample_count }))
    })?;
    Ok(summary)
}

/// Reports everything but the samples.
fn report_shards(
    shards: &Shards<'_>,
    reports: Vec<Report>,
    summary: &mut VerifySummary,
    on_finding: &mut dyn FnMut(Finding<'_>) -> ControlFlow<()>,
) -> Result<(), ConvertError> {
    for (number, Report { damage, oddities }) in reports.into_iter().enumerate() {
        let source = &*shards.sources[number];
        let shard = shards.named(source);
        for error in damage {
            let reason = &Detail(error);
            summary.damaged_structures += 1;
            heard(on_finding(Finding::Damage { shard, reason }))?;
        }
        // A TBL file says that it is empty. Nothing tells an empty archive or folder from a wrong one.
        let is_tbl = matches!(source.kind(), SourceKind::Tbl1 | SourceKind::Tbl2);
        if !is_tbl && source.sample_count() == 0 {
            summary.damaged_structures += 1;
            heard(on_finding(Finding::Damage { shard, reason: &NoSamples }))?;
        }
        for oddity in &oddities {
            summary.oddities += 1;
            heard(on_finding(Finding::Oddity { shard, oddity }))?;
        }
    }
    let of_labels = shards.labels.notes().iter().cloned().map(Oddity::Note);
    for oddity in of_labels.chain(duplicates::find(shards.sources)) {
        summary.oddities += 1;
        heard(on_finding(Finding::Oddity { shard: None, oddity: &oddity }))?;
    }
    for (number, source) in shards.sources.iter().enumerate() {
        if matches!(
            source.kind(),
            SourceKind::Folder
                | SourceKind::Files
                | SourceKind::Manifest
                | SourceKind::Memory
                // Samples share a compressed page.
                | SourceKind::Parquet
                | SourceKind::Arrow
        ) {
            continue;
        }
        let shard = shards.named(&**source);
        for oddity in overlaps::find(&**source, shards.starts.of_source(number)) {
            summary.oddities += 1;
            heard(on_finding(Finding::Oddity { shard, oddity: &oddity }))?;
        }
    }
    Ok(())
}

/// One thread's part of the work.
struct Worker<'a, C> {
    shards: &'a Shards<'a>,
    check: C,
    bytes: Vec<u8>,
    row_index: Vec<u8>,
}

/// A sample that is not damaged.
struct Seen {
    bytes: u64,
    oddity: Option<Oddity>,
}

/// The reason why a sample could not be checked.
enum BadSample {
    System(ReadError),
    Damaged(Box<dyn Error + Send + Sync>),
}

impl From<ReadError> for BadSample {
    fn from(error: ReadError) -> Self {
        if error.is_damage() { Self::Damaged(Box::new(Detail(error))) } else { Self::System(error) }
    }
}

/// An archive or a folder in which nothing is a sample.
#[derive(Debug, thiserror::Error)]
#[error("no samples")]
struct NoSamples;

/// The dimensions in the index are not those of the image.
#[derive(Debug, thiserror::Error)]
#[error("the index says {}x{} pixels, the image has {}x{}", stored.0, stored.1, found.0, found.1)]
struct WrongDimensions {
    stored: (u32, u32),
    found: (u32, u32),
}

impl<C: Prepare> Worker<'_, C> {
    fn look_at(&mut self, index: u64) -> Result<Seen, BadSample> {
        let Shards { sources, labels, .. } = self.shards;
        let Place { shard, source, index: local } = self.shards.place(index);
        announce_with_fields_after(source, local);
        let entry = source.entry(local)?;
        source.read_into(local, &mut self.bytes)?;
        source.read_fields(local, &mut Vec::new())?;
        labels.try_label(sources, shard, local)?;
        if source.row_index_into(local, &mut self.row_index)? {
            let check = self.check.check_row_index(&self.bytes, &self.row_index);
            check.map_err(BadSample::Damaged)?;
        }
        let bytes = self.bytes.len() as u64;
        let prepared = self.check.prepare(&entry, &mut self.bytes).map_err(BadSample::Damaged)?;
        let Prepared { format, width, height, unmeasured, .. } = prepared;
        if let Some(reason) = unmeasured {
            return Err(BadSample::Damaged(reason));
        }
        let stored = (entry.width, entry.height);
        let found = (width, height);
        let is_other = stored != (0, 0) && found != (0, 0) && stored != found;
        let is_turned = format == SampleFormat::Tiff && stored == (height, width);
        if is_other && !is_turned {
            return Err(BadSample::Damaged(Box::new(WrongDimensions { stored, found })));
        }
        let oddity = if is_other {
            Some(Oddity::Turned { index, stated: stored })
        } else if entry.format != format {
            Some(Oddity::Format { index, stated: entry.format, found: format })
        } else {
            None
        };
        Ok(Seen { bytes, oddity })
    }
}
