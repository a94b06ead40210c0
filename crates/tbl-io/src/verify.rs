//! Reads a whole data set and says what is wrong with it: damage, which makes it bad, and
//! oddities, which do not.

mod duplicates;
mod overlaps;

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use tbl_format::SampleFormat;

use crate::convert::{ConvertError, Prepare, Prepared, heard};
use crate::error::{Detail, ReadError, TarDefect};
use crate::escape::Escaped;
use crate::labels::Labels;
use crate::location::Location;
use crate::note::Note;
use crate::open::Container;
use crate::ordered::{self, Plan};
use crate::reader::{ReadOptions, TblFile, Verify};
use crate::sample::{Entry, SampleSource, SampleSourceExt, SourceKind, announce_with_fields_after};
use crate::storage::{Opened, Stores};
use crate::tar::{SkippedMember, TarArchive};

/// Samples that are being looked at hold at most this together, unless a single one is larger.
const IN_FLIGHT_BYTES: u64 = 24 << 20;

/// A finding of a data set's check, in the order found.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Finding<'a> {
    /// Something outside the samples is damaged.
    Damage {
        /// The defect.
        reason: &'a (dyn Error + 'static),
    },
    /// A sample is damaged.
    BadSample {
        /// Its number.
        index: u64,
        /// Its name, when it has one that can be read.
        key: Option<&'a [u8]>,
        /// The offset of its stored bytes, when its index entry can be read.
        offset: Option<u64>,
        /// The defect.
        reason: &'a (dyn Error + 'static),
    },
    /// Odd, but not damaged.
    Oddity(&'a Oddity),
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

/// Reads every sample and every field of the data set at `location`, a path or a URL of `stores`,
/// and checks every checksum and extent there is. `new_check` makes, for each thread, what looks at
/// the bytes: [`AsStored`] or a decoder. It ends where `on_finding` breaks off.
///
/// An archive or a folder without a single sample is not good.
///
/// [`AsStored`]: crate::AsStored
///
/// # Errors
/// [`ConvertError::Read`] when the data set cannot be opened, or the system, not the data, is at
/// fault; [`ConvertError::WorkerPanicked`]; [`ConvertError::Stopped`].
pub fn verify<C: Prepare>(
    stores: &Stores,
    location: impl AsRef<OsStr>,
    workers: NonZeroUsize,
    new_check: impl Fn() -> C + Sync,
    on_finding: &mut dyn FnMut(Finding<'_>) -> ControlFlow<()>,
) -> Result<VerifySummary, ConvertError> {
    let location = stores.expand_one(location)?;
    let Examined { source, damage, oddities } = Examined::open(stores.open(&location)?, &location)?;
    let sources = [source];
    let labels = Labels::resolve(&sources)?;
    let source = &*sources[0];
    let of = source.sample_count();
    let mut summary = VerifySummary { samples: of, ..VerifySummary::default() };
    for error in damage {
        let reason = &Detail(error);
        summary.damaged_structures += 1;
        heard(on_finding(Finding::Damage { reason }))?;
    }
    // A TBL file says that it is empty. Nothing tells an empty archive or folder from a wrong one.
    if of == 0 && matches!(source.kind(), SourceKind::Tar | SourceKind::Folder) {
        summary.damaged_structures += 1;
        heard(on_finding(Finding::Damage { reason: &NoSamples }))?;
    }
    let mut odd = |oddity: &Oddity| {
        summary.oddities += 1;
        heard(on_finding(Finding::Oddity(oddity)))
    };
    oddities.iter().try_for_each(&mut odd)?;
    labels.notes().iter().cloned().map(Oddity::Note).try_for_each(|note| odd(&note))?;
    duplicates::find(source).iter().try_for_each(&mut odd)?;
    if source.kind() != SourceKind::Folder {
        overlaps::find(source).iter().try_for_each(&mut odd)?;
    }
    let plan = Plan {
        item_count: summary.samples,
        workers: if C::COSTLY { workers } else { NonZeroUsize::MIN },
        budget_bytes: IN_FLIGHT_BYTES,
    };
    let new_worker = || {
        let check = new_check();
        let bytes = Vec::new();
        let row_index = Vec::new();
        let mut worker = Worker { sources: &sources, labels: &labels, check, bytes, row_index };
        move |index| (worker.look_at(index), 0)
    };
    let cost = |index| source.entry(index).map_or(0, |entry| entry.bytes);
    ordered::in_order(plan, cost, new_worker, |index, seen: Result<Seen, BadSample>| {
        match seen {
            Ok(Seen { bytes, oddity }) => {
                summary.sample_bytes += bytes;
                if let Some(oddity) = oddity {
                    summary.oddities += 1;
                    heard(on_finding(Finding::Oddity(&oddity)))?;
                }
            }
            Err(BadSample::System(error)) => return Err(ConvertError::Read(error)),
            Err(BadSample::Damaged(reason)) => {
                summary.bad_samples += 1;
                let (key, offset) = match source.entry(index) {
                    Ok(Entry { key, offset, .. }) => (key, Some(offset)),
                    Err(ReadError::Sample { key, .. }) => (key.map(Cow::Owned), None),
                    Err(_) => (None, None),
                };
                let key = key.as_deref();
                heard(on_finding(Finding::BadSample { index, key, offset, reason: &*reason }))?;
            }
        }
        heard(on_finding(Finding::Progress { samples: index + 1, of }))
    })?;
    Ok(summary)
}

/// An open data set and what there is to say of it as a whole.
struct Examined {
    source: Box<dyn SampleSource>,
    damage: Vec<ReadError>,
    oddities: Vec<Oddity>,
}

impl Examined {
    fn open(opened: Opened, location: &Location) -> Result<Self, ReadError> {
        let options = ReadOptions { verify: Verify::All, ..ReadOptions::default() };
        let mut damage = Vec::new();
        let mut oddities = Vec::new();
        let source: Box<dyn SampleSource> = match Container::open(opened, options)? {
            Container::Folder(folder) => {
                let notes = folder.notes().into_iter().filter(|note| *note != Note::NoSamples);
                oddities.extend(notes.map(Oddity::Note));
                folder
            }
            Container::Tar(archive) => {
                oddities = tar_oddities(&archive);
                if let Some(offset) = archive.find_header_behind_end()? {
                    let location = location.clone();
                    let source = TarDefect::BehindEnd;
                    damage.push(ReadError::Tar { location, offset, source });
                }
                Box::new(archive)
            }
            Container::Tbl(file) => {
                for check in [TblFile::verify_metadata, TblFile::verify_index] {
                    match check(&file) {
                        Err(error) if error.is_damage() => damage.push(error),
                        other => other?,
                    }
                }
                Box::new(file)
            }
        };
        Ok(Self { source, damage, oddities })
    }
}

fn tar_oddities(archive: &TarArchive) -> Vec<Oddity> {
    let mut oddities = Vec::new();
    if !archive.has_end_marker() {
        oddities.push(Oddity::NoEndMarker);
    }
    if let Some(offset) = archive.lone_zero_block() {
        oddities.push(Oddity::LoneZeroBlock { offset });
    }
    if let Some(offset) = archive.trailing_garbage() {
        oddities.push(Oddity::TrailingBytes { offset });
    }
    oddities.extend(archive.skipped().iter().cloned().map(Oddity::SkippedMember));
    oddities.extend(archive.file_notes().map(Oddity::Note));
    oddities
}

/// One thread's part of the work.
struct Worker<'a, C> {
    /// The one that is checked.
    sources: &'a [Box<dyn SampleSource>; 1],
    labels: &'a Labels,
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
        let source = &*self.sources[0];
        announce_with_fields_after(source, index);
        let entry = source.entry(index)?;
        source.read_into(index, &mut self.bytes)?;
        source.read_fields(index, &mut Vec::new())?;
        self.labels.try_label(self.sources, 0, index)?;
        if source.row_index_into(index, &mut self.row_index)? {
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
