//! Copies samples from any sources into a new TBL file, TAR archive or file of another format, with their names, labels
//! and sidecar fields. What the bytes mean is left to the caller's [`Prepare`].

mod dictionary;
mod error;
mod format;
mod metadata;
mod pack;
mod prepare;
mod selection;
mod tar_layout;

use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use error::ConvertError;
pub use format::{SampleWriter, TargetFormat};
pub use prepare::{AsStored, Prepare, Prepared, RowIndex};
pub use selection::Selection;
pub use tar_layout::FileLayout;

use crate::atomic_file::Placement;
use crate::location::Location;
use crate::ordered::{self, Plan};
use crate::sample::{Field, SampleSourceExt, announce_with_fields_after};
use crate::storage::Stores;
use crate::tbl_version::TblVersion;
use crate::writer::{Compressed, Compression, Unstored};
use format::FormatSink;
use pack::{Pack, Sink, TblSink, Written};
use selection::Located;
use tar_layout::TarSink;

/// Samples on their way from a reading thread to the writer hold at most this together, unless a
/// single one is larger. With the writer's own buffers a conversion stays below 64 MiB.
const IN_FLIGHT_BYTES: u64 = 24 << 20;

/// Buffers up to this size are kept for the next sample, a few per thread.
const MAX_KEPT_BUFFER_BYTES: usize = 1 << 20;

/// The kind of output that a conversion writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// TBL version 1, without names, labels, dimensions and checksums.
    Tbl1,
    /// TBL version 2.
    Tbl2(Compression),
    /// A TAR archive in WebDataset layout. Labels that do not follow from the class folders
    /// become `.cls` members. A sample whose key a reader would mix up with another one's, as
    /// when shards are merged that all count from zero, gets its number into its name.
    Tar,
    /// A file of a format that another crate writes, such as Parquet.
    Other(&'static dyn TargetFormat),
}

/// Options of a conversion.
#[derive(Clone, Copy, Debug)]
pub struct ConvertOptions {
    /// The kind of output.
    pub target: Target,
    /// Threads for work that costs more than copying. The result does not depend on it.
    pub workers: NonZeroUsize,
    /// Wait until the file is on the disk before it gets its name.
    pub sync: bool,
    /// Replace a file of that name.
    pub overwrite: bool,
}

impl ConvertOptions {
    /// Writes `target` on one thread, durably, and never replaces anything.
    pub fn new(target: Target) -> Self {
        Self { target, workers: NonZeroUsize::MIN, sync: true, overwrite: false }
    }

    fn placement(&self) -> Placement {
        Placement { overwrite: self.overwrite, sync: self.sync }
    }
}

/// The place of a file that is made.
#[derive(Clone, Copy)]
struct Destination<'a> {
    stores: &'a Stores,
    location: &'a Location,
}

impl Destination<'_> {
    /// The path or the URL, as errors name it.
    fn name(&self) -> PathBuf {
        self.stores.printable(self.location).as_os_str().into()
    }

    /// About how many bytes the file will have, for an object; a local file need not know.
    fn expected_bytes(&self, selection: &Selection<'_>) -> u64 {
        if self.location.url().is_none() {
            return 0;
        }
        (0..selection.sample_count()).map(|number| selection.held_bytes(number)).sum()
    }
}

/// An event of a conversion.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ConvertEvent<'a> {
    /// A sample has been written.
    Written {
        /// Samples written so far.
        samples: u64,
        /// Their own bytes.
        bytes: u64,
    },
    /// A sample that claims to be an image has been written without dimensions.
    Unmeasured {
        /// The source.
        location: &'a Location,
        /// The sample's number in it.
        index: u64,
        /// The sample's name, when it has one.
        key: Option<&'a [u8]>,
        /// The defect.
        reason: &'a (dyn Error + Send + Sync),
    },
    /// A sample has been written without the row index that was wanted.
    Unindexed {
        /// The source.
        location: &'a Location,
        /// The sample's number in it.
        index: u64,
        /// The sample's name, when it has one.
        key: Option<&'a [u8]>,
        /// The defect.
        reason: &'a (dyn Error + Send + Sync),
    },
}

/// A summary of the output of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConvertSummary {
    /// Samples.
    pub samples: u64,
    /// The samples' own bytes together.
    pub sample_bytes: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// Samples stored compressed.
    pub compressed_samples: u64,
    /// Samples that claim to be images and could not be measured.
    pub unmeasured_samples: u64,
    /// Samples stored with a row index.
    pub row_indexes: u64,
    /// Samples for which one was wanted and could not be made.
    pub unindexed_samples: u64,
    /// The data that the target cannot store.
    pub unstored: Unstored,
    /// Metadata blocks of the sources that were left out because the sample they describe does not
    /// exist, or because only a later version knows how to keep them.
    pub unreachable_metadata: u64,
}

/// Writes the selected samples to `destination`, which gets its name only when all is well.
///
/// Every sample is checked against the checksums its source has. The file depends on the
/// samples and the target alone, whatever the number of workers. It ends, without a file, where
/// `on_event` breaks off.
///
/// # Errors
/// The first damaged sample, refused sample or failed write, by name; [`ConvertError::Stopped`].
pub fn convert<P: Prepare>(
    selection: &Selection<'_>,
    destination: &Path,
    options: &ConvertOptions,
    new_prepare: impl Fn() -> P + Sync,
    on_event: &mut dyn FnMut(ConvertEvent<'_>) -> ControlFlow<()>,
) -> Result<ConvertSummary, ConvertError> {
    let destination = Location::new(destination);
    convert_in(&Stores::new(), selection, &destination, options, new_prepare, on_event)
}

/// As [`convert`], also for a destination in one of the stores, which has the bytes of a local file.
///
/// # Errors
/// As for [`convert`], and the fault of the store.
pub fn convert_in<P: Prepare>(
    stores: &Stores,
    selection: &Selection<'_>,
    destination: &Location,
    options: &ConvertOptions,
    new_prepare: impl Fn() -> P + Sync,
    on_event: &mut dyn FnMut(ConvertEvent<'_>) -> ControlFlow<()>,
) -> Result<ConvertSummary, ConvertError> {
    let destination = Destination { stores, location: destination };
    let (version, compression) = match options.target {
        Target::Tar => {
            let sink = TarSink::create(selection, destination, options)?;
            return run(selection, sink, options, new_prepare, on_event);
        }
        Target::Other(format) => {
            let sink = FormatSink::create(format, selection, destination, options)?;
            return run(selection, sink, options, new_prepare, on_event);
        }
        Target::Tbl1 => (TblVersion::V1, Compression::None),
        Target::Tbl2(compression) => (TblVersion::V2, compression),
    };
    let sink =
        TblSink::create(selection, destination, version, compression, options, &new_prepare)?;
    run(selection, sink, options, new_prepare, on_event)
}

fn run<S: Sink, P: Prepare>(
    selection: &Selection<'_>,
    mut sink: S,
    options: &ConvertOptions,
    new_prepare: impl Fn() -> P + Sync,
    on_event: &mut dyn FnMut(ConvertEvent<'_>) -> ControlFlow<()>,
) -> Result<ConvertSummary, ConvertError> {
    let compresses = match options.target {
        Target::Tbl2(Compression::Lz4 | Compression::Zstd(_)) => true,
        Target::Tbl2(Compression::None | Compression::AsStored)
        | Target::Tbl1
        | Target::Tar
        | Target::Other(_) => false,
    };
    let costly = P::COSTLY || compresses;
    let plan = Plan {
        item_count: selection.sample_count(),
        workers: if costly { options.workers } else { NonZeroUsize::MIN },
        budget_bytes: IN_FLIGHT_BYTES,
    };
    let packer = sink.packer();
    let buffers = Buffers::default();
    let new_worker = || {
        let buffers = &buffers;
        let prepare = new_prepare();
        let packer = packer.clone();
        let block = Vec::new();
        let row_index = Vec::new();
        let mut worker = Worker { selection, packer, buffers, prepare, block, row_index };
        move |number| {
            let work = worker.work(number);
            let held = work.as_ref().map_or(0, Work::held_bytes);
            (work, held)
        }
    };
    let mut summary = ConvertSummary::default();
    let consume = |number, work: Result<Work<S::Packer>, ConvertError>| {
        let Work { bytes, packed, unmeasured, unindexed } = work?;
        sink.write(number, &packed, &bytes)?;
        summary.samples += 1;
        summary.sample_bytes += bytes.len() as u64;
        buffers.put(bytes);
        if let Some(reason) = unmeasured {
            summary.unmeasured_samples += 1;
            let Located { source, index, .. } = selection.locate(number);
            let key = source.entry(index)?.key;
            let location = source.location();
            let key = key.as_deref();
            heard(on_event(ConvertEvent::Unmeasured { location, index, key, reason: &*reason }))?;
        }
        if let Some(reason) = unindexed {
            summary.unindexed_samples += 1;
            let Located { source, index, .. } = selection.locate(number);
            let key = source.entry(index)?.key;
            let location = source.location();
            let key = key.as_deref();
            heard(on_event(ConvertEvent::Unindexed { location, index, key, reason: &*reason }))?;
        }
        let ConvertSummary { samples, sample_bytes: bytes, .. } = summary;
        heard(on_event(ConvertEvent::Written { samples, bytes }))
    };
    ordered::in_order(plan, |number| selection.held_bytes(number), new_worker, consume)?;
    let Written { file_bytes, compressed_samples, row_indexes, unstored } = sink.finish()?;
    let unreachable_metadata = metadata::unreachable_blocks(selection)?;
    Ok(ConvertSummary {
        file_bytes,
        compressed_samples,
        row_indexes,
        unstored,
        unreachable_metadata,
        ..summary
    })
}

/// Ends the work where its caller breaks off.
pub(crate) fn heard(flow: ControlFlow<()>) -> Result<(), ConvertError> {
    if flow.is_break() { Err(ConvertError::Stopped) } else { Ok(()) }
}

/// A sample ready to be written.
struct Work<K: Pack> {
    bytes: Vec<u8>,
    packed: K::Packed,
    unmeasured: Option<Box<dyn Error + Send + Sync>>,
    unindexed: Option<Box<dyn Error + Send + Sync>>,
}

impl<K: Pack> Work<K> {
    fn held_bytes(&self) -> u64 {
        (self.bytes.capacity() as u64).saturating_add(K::held_bytes(&self.packed))
    }
}

/// One thread's part of the work.
struct Worker<'a, K, P> {
    selection: &'a Selection<'a>,
    packer: K,
    buffers: &'a Buffers,
    prepare: P,
    block: Vec<u8>,
    row_index: Vec<u8>,
}

impl<K: Pack, P: Prepare> Worker<'_, K, P> {
    fn work(&mut self, number: u64) -> Result<Work<K>, ConvertError> {
        let Located { source, index, .. } = self.selection.locate(number);
        announce_with_fields_after(source, index);
        let label = self.selection.try_label(number)?;
        let entry = source.entry(index)?;
        let key = entry.key.as_deref();
        let for_sample = |error: crate::ReadError| error.for_sample(index, key);
        let mut bytes = self.buffers.take();
        let codec = if self.packer.keeps_compressed() {
            source.read_with_block(index, &mut bytes, &mut self.block).map_err(for_sample)?
        } else {
            source.read_into(index, &mut bytes).map_err(for_sample)?;
            None
        };
        let mut fields: Vec<Field> = Vec::new();
        self.selection
            .read_fields_where(number, &mut |_, _| true, &mut fields)
            .map_err(for_sample)?;
        let metadata = metadata::of_sample(source, index, &entry, label).map_err(for_sample)?;
        let refused = |source_error| ConvertError::Prepare {
            location: source.location().clone(),
            index,
            key: key.map(<[u8]>::to_vec),
            source: source_error,
        };
        let mut prepared = self.prepare.prepare(&entry, &mut bytes).map_err(refused)?;
        let unmeasured = prepared.unmeasured.take();
        let mut unindexed = None;
        let has_row_index = match std::mem::replace(&mut prepared.row_index, RowIndex::None) {
            RowIndex::AsStored if self.packer.keeps_row_indexes() => {
                source.row_index_into(index, &mut self.row_index).map_err(for_sample)?
            }
            RowIndex::Made(row_index) => {
                self.row_index = row_index;
                true
            }
            RowIndex::Failed(reason) => {
                unindexed = Some(reason);
                false
            }
            RowIndex::None | RowIndex::AsStored => false,
        };
        let sample = pack::Sample {
            bytes: &bytes,
            compressed: codec
                .map(|codec| Compressed { codec, bytes: std::mem::take(&mut self.block) }),
            prepared,
            key,
            label,
            fields,
            row_index: has_row_index.then_some(self.row_index.as_slice()),
            metadata,
        };
        let packed = self.packer.pack(sample).map_err(|error| refused(Box::new(error)))?;
        Ok(Work { bytes, packed, unmeasured, unindexed })
    }
}

/// Sample buffers that wait to be used again.
#[derive(Debug, Default)]
struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put(&self, buffer: Vec<u8>) {
        if buffer.capacity() <= MAX_KEPT_BUFFER_BYTES {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}
