//! Notes: what a user of a loader should know that is not an error.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use tbl_io::{Escaped, Location, Note, SampleSource, TarArchive};
use tl_cuda::DeviceReason;
use tl_decode::{Color, PixelType, Reductions};

use crate::audit::{AuditEntry, Outcome};
use crate::dataset::Dataset;

/// Archives that are smaller together are read in about a second.
const NOTED_BYTES: u64 = 64 << 20;

/// A finding about a loader that is not an error, but that its user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoaderNote {
    /// Threads read instead of `io_uring`.
    NoUring {
        /// The number of threads.
        threads: usize,
        /// The reason; `None` without the feature.
        error: Option<String>,
    },
    /// The workers read from here on: a reader could not be started, or `io_uring` failed.
    ReadersGone {
        /// The message of the system.
        error: String,
    },
    /// The source of a sample panicked when it was asked before the sample's turn: to announce it,
    /// where its bytes are, or for them. The first of such panics. The sample is read in its turn,
    /// and if that panics too it is the sample's error.
    ReadAheadPanicked {
        /// The sample's number in the data set.
        sample: u64,
        /// The panic's message on one line, or empty.
        message: String,
    },
    /// Blocks of a shuffle over objects in stores are requested in parts, because fewer bytes are read
    /// ahead than two windows of the shuffle have.
    ShortReadAhead {
        /// The bytes that are read ahead.
        bytes: u64,
        /// Those that it would take.
        wanted: u64,
    },
    /// Blocks of a shuffle are unpacked more than once, because the memory for them does not hold a
    /// window.
    FewBlocks {
        /// The bytes of unpacked blocks that are kept.
        bytes: u64,
        /// Those of a window.
        wanted: u64,
    },
    /// A full shuffle unpacks a block of samples for nearly every sample.
    PackedBlocks {
        /// A file with such blocks.
        location: Location,
        /// The bytes of a typical block.
        bytes: u64,
    },
    /// A full shuffle requests nearly every sample of a store by itself.
    FullShuffle {
        /// The requests of an epoch of this rank, at most.
        requests: u64,
    },
    /// The cache of blocks keeps nothing, because blocks take more memory than there is for them until they
    /// are written.
    LargeBlocks {
        /// The bytes of a block, on average.
        bytes: u64,
        /// The most that it may have: half of the bytes that are read ahead.
        most: u64,
    },
    /// Objects that are read with credentials are kept in a folder that all users of the machine can read.
    OpenCache {
        /// The folder.
        folder: PathBuf,
    },
    /// Archives in stores have no shard index and were read whole to find their samples.
    UnindexedArchives {
        /// How many archives.
        archives: u64,
        /// The bytes of all.
        bytes: u64,
        /// The first one.
        first: Location,
    },
    /// A sample was bad, and was skipped, replaced or filled: the first one of the loader.
    /// [`Loader::audit`](crate::Loader::audit) lists all, [`Loader::stats`](crate::Loader::stats)
    /// counts them.
    BadSample {
        /// The outcome for this sample.
        outcome: Outcome,
        /// The sample and its defect.
        error: String,
    },
    /// Images lose something in the channels and pixels that are asked for: one that a worker found. Of JPEG files
    /// only the first 64 of each worker are looked at, since hardly any has more than 8 bits, and
    /// images from a cache of decoded images are not.
    Reduced {
        /// The sample's number in the data set.
        sample: u64,
        /// The properties that it loses.
        lost: Reductions,
        /// The channels of the images.
        color: Color,
        /// The type of their pixels.
        pixels: PixelType,
    },
    /// Some samples have no label, labels in files differ from the class folders, or folders may be
    /// classes or splits.
    Labels {
        /// The finding.
        note: Note,
    },
    /// A device is not used, or not for everything.
    Device {
        /// The thing that was asked for.
        wanted: &'static str,
        /// The alternative that is used.
        used: &'static str,
        /// The reason.
        reason: DeviceReason,
    },
    /// The names of a label's categories are damaged; the labels are usable.
    NoClassNames {
        /// The defect.
        error: String,
    },
}

impl LoaderNote {
    /// The note on archives in stores that were opened without a shard index.
    pub(crate) fn unindexed_archives(dataset: &Dataset) -> Option<Self> {
        let shards = dataset.shards().iter().map(|shard| &**shard);
        let archives = shards.filter_map(|shard| (shard as &dyn Any).downcast_ref());
        let is_read =
            |archive: &&TarArchive| archive.location().url().is_some() && !archive.is_indexed();
        let read: Vec<&TarArchive> = archives.filter(is_read).collect();
        let bytes = read.iter().map(|archive| archive.file_bytes());
        let bytes = bytes.fold(0, u64::saturating_add);
        if bytes < NOTED_BYTES {
            return None;
        }
        let first = read.first()?.location().clone();
        Some(Self::UnindexedArchives { archives: read.len() as u64, bytes, first })
    }

    /// The note on the first bad sample.
    pub(crate) fn bad_sample(entry: &AuditEntry) -> Self {
        Self::BadSample { outcome: entry.outcome, error: entry.error.to_string() }
    }
}

impl fmt::Display for LoaderNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUring { threads, error: Some(error) } => {
                write!(f, "io_uring is refused here ({error}), {threads} threads read instead")
            }
            Self::NoUring { threads, error: None } => {
                write!(f, "built without io_uring, {threads} threads read instead")
            }
            Self::ReadersGone { error } => {
                write!(f, "read-ahead stopped ({error}); workers now read directly")
            }
            Self::ReadAheadPanicked { sample, message } => {
                write!(f, "reading ahead panicked at sample {sample}: {message}")
            }
            Self::ShortReadAhead { bytes, wanted } => write!(
                f,
                "{} MiB are read ahead, and the shuffle needs {} MiB to request its blocks whole: it \
                 takes more requests, each for fewer samples",
                bytes >> 20,
                wanted.div_ceil(1 << 20)
            ),
            Self::FewBlocks { bytes, wanted } => write!(
                f,
                "{} MiB of unpacked blocks are kept, and a window of the shuffle has {} MiB, so blocks \
                 are unpacked more than once; use a smaller window",
                bytes >> 20,
                wanted.div_ceil(1 << 20)
            ),
            Self::PackedBlocks { location, bytes } => write!(
                f,
                "{location}: a full shuffle unpacks a block of {} KiB for nearly every sample; the \
                 shuffle block:sourcex8 unpacks each block once, and `tl convert` stores samples \
                 without blocks",
                bytes >> 10
            ),
            Self::LargeBlocks { bytes, most } => large_blocks(f, *bytes, *most),
            Self::OpenCache { folder } => open_cache(f, folder),
            Self::FullShuffle { requests } => write!(
                f,
                "a full shuffle of samples in a store takes up to {requests} requests per epoch, one \
                 for each sample; the shuffle block:16x256 takes about a fifteenth of them with the \
                 default read-ahead"
            ),
            Self::UnindexedArchives { archives, bytes, first } => {
                unindexed_archives(f, *archives, *bytes, first)
            }
            Self::BadSample { outcome, error } => {
                let policy = match outcome {
                    Outcome::Replaced { .. } => "replaced",
                    Outcome::Filled => "filled with zeros",
                    Outcome::Skipped | Outcome::Raised | Outcome::Kept => "skipped",
                };
                write!(f, "bad samples are {policy}, the first: {error}")
            }
            Self::Reduced { sample, lost, color, pixels } => {
                let lost = names_of(*lost);
                let color = name_of_color(*color);
                let pixels = match pixels {
                    PixelType::U8 => "8 bits",
                    PixelType::U16 => "16 bits",
                    PixelType::F32 => "floats",
                };
                write!(
                    f,
                    "images become {color} of {pixels}; the first that differs, sample {sample}, has \
                     {lost}"
                )
            }
            Self::Labels { note } => note.fmt(f),
            Self::Device { wanted, used, reason } => write!(f, "{wanted}: {used}; {reason}"),
            Self::NoClassNames { error } => {
                write!(f, "the names of classes cannot be read: {error}")
            }
        }
    }
}

fn large_blocks(f: &mut fmt::Formatter<'_>, bytes: u64, most: u64) -> fmt::Result {
    write!(
        f,
        "a block for the cache has {} KiB, and {} KiB are the most for one: nothing is kept; read ahead at \
         least {} MiB",
        bytes.div_ceil(1 << 10),
        most >> 10,
        bytes.saturating_mul(2).div_ceil(1 << 20)
    )
}

fn open_cache(f: &mut fmt::Formatter<'_>, folder: &Path) -> fmt::Result {
    let folder = Escaped(folder.as_os_str().as_encoded_bytes());
    write!(
        f,
        "all users of this machine can read the cache in {folder}, and its data is read with credentials; \
         `chmod o-rx` the folder"
    )
}

fn unindexed_archives(
    f: &mut fmt::Formatter<'_>,
    archives: u64,
    bytes: u64,
    first: &Location,
) -> fmt::Result {
    let more = match archives.saturating_sub(1) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let mib = bytes.div_ceil(1 << 20);
    write!(
        f,
        "{first}{more}: opening archives in a store without a shard index reads all of them ({mib} MiB); \
         make one with `tl index`"
    )
}

fn name_of_color(color: Color) -> &'static str {
    match color {
        Color::Grey => "grey",
        Color::Rgb => "RGB",
        Color::Rgba => "RGBA",
    }
}

/// The properties of an image that are lost.
fn names_of(lost: Reductions) -> String {
    // Equal channels have all that one has.
    let kinds = [
        (lost.bit_depth, "samples of more than 8 bits (see `pixels`)"),
        (lost.sample_format, "signed or floating-point samples (see `pixels`)"),
        (lost.alpha, "transparency (see `channels`)"),
    ];
    let lost: Vec<_> = kinds.iter().filter(|kind| kind.0).map(|kind| kind.1).collect();
    lost.join(", ")
}
