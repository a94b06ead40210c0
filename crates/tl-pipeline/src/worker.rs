//! Workers: the threads that turn positions of the epoch into rows of batches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tbl_format::SampleFormat;
use tbl_io::ReadError;
use tl_decode::{Damage, DecodeError, Image};
use tl_simd::Level;
use tl_transform::{BoundTransforms, Draw, Mixing};

use crate::batch::{Batch, Extra};
use crate::config::{LoaderConfig, OnError, Work};
use crate::dataset::Dataset;
use crate::error::{PipelineError, SampleError, SampleFault};
use crate::loader::EpochState;
use crate::pool::Lease;
use crate::sample::{SampleRenderer, Stored, Target};
use crate::slab::{Complete, Identity, Parts, RowMut};
use crate::sync::{Arc, thread};

/// How many positions ahead the system is told what will be read: enough to keep a disk busy
/// while a few samples are decoded, and at 100 KB a sample a few megabytes of page cache.
const READ_AHEAD: u64 = 32;

/// Buffers above this size are given back after the sample that needed them. Few photographs
/// decode to more, and one giant must not cost every worker its size for good.
const KEEP_BYTES: usize = 32 << 20;

/// What a published batch comes with.
pub(crate) struct Filled {
    pub(crate) batch: Result<Batch, Arc<SampleError>>,
    pub(crate) skipped: Vec<Arc<SampleError>>,
    /// What is wrong with samples that are in the batch.
    pub(crate) damaged: Vec<Arc<SampleError>>,
}

/// The memory of one worker, reused from sample to sample and from epoch to epoch.
#[derive(Debug)]
pub(crate) struct Scratch {
    bytes: Vec<u8>,
    row_index: Vec<u8>,
    /// `None` where samples are not decoded.
    renderer: Option<SampleRenderer>,
    /// Rows of a batch as they were before it was mixed.
    unmixed: Vec<u8>,
}

impl Scratch {
    pub(crate) fn new(config: &LoaderConfig, user_transforms: &BoundTransforms) -> Self {
        let renderer = match &config.work {
            Work::Bytes => None,
            Work::Images(recipe) => {
                let renderer = SampleRenderer::new(recipe, config.decode);
                Some(renderer.with_user_transforms(user_transforms.clone()))
            }
        };
        Self { bytes: Vec::new(), row_index: Vec::new(), renderer, unmixed: Vec::new() }
    }

    fn trim(&mut self) {
        trim(&mut self.bytes);
        trim(&mut self.unmixed);
        if let Some(renderer) = &mut self.renderer {
            renderer.trim(KEEP_BYTES);
        }
    }
}

fn trim(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEEP_BYTES {
        *buffer = Vec::new();
    }
}

/// Works until there is nothing left to claim, or the epoch is closed.
pub(crate) fn run(epoch: &EpochState, scratch: &mut Scratch) {
    let batch_size = epoch.config().batch_size as u64;
    let mut current: Option<(u64, Arc<Lease<Extra>>)> = None;
    while let Some(position) = epoch.ring.claim() {
        let (number, row) = (position / batch_size, position % batch_size);
        if current.as_ref().is_none_or(|(current, _)| *current != number) {
            // Let go of the last batch before sleeping: its memory may be what is waited for.
            drop(current.take());
            let Some(lease) = epoch.enter(number) else { return };
            current = Some((number, lease));
        }
        let Some((_, lease)) = &current else { return };
        let row = usize::try_from(row).expect("a row is below the batch size");
        let claimed = lease.claim(row).expect("a position is claimed once");
        if let Some(complete) = fill(epoch, scratch, position, claimed) {
            publish(epoch, scratch, number, lease, complete);
        }
    }
}

/// Puts the sample at `position` into its row, or the reason why not. Returns the batch when this
/// was its last row.
fn fill<'a>(
    epoch: &EpochState,
    scratch: &mut Scratch,
    position: u64,
    mut row: RowMut<'a, Extra>,
) -> Option<Complete<'a, Extra>> {
    let index = epoch.order.sample_at(position).expect("positions are below the sample count");
    if let Some(ahead) = position.checked_add(READ_AHEAD)
        && let Some(sample) = epoch.order.sample_at(ahead)
    {
        epoch.dataset().will_need(sample);
    }
    let Parts { image: out, extra, .. } = row.parts();
    (extra.error, extra.damage) = (None, None);
    let work = AssertUnwindSafe(|| process(epoch, scratch, index, out, &mut extra.image));
    let result = catch_unwind(work).unwrap_or_else(|panic| {
        // Whatever the panic interrupted is in an unknown state.
        *scratch = epoch.new_scratch();
        extra.image = Image::new();
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = tbl_io::Escaped(text.unwrap_or_default().as_bytes()).to_string();
        Err(SampleFault::Panicked { message })
    });
    scratch.trim();
    let label = match result {
        Ok(Processed { label, damage }) => {
            extra.damage = damage.map(|damage| {
                let fault = DecodeError::from(damage).into();
                Arc::new(identify(epoch.dataset(), index, fault))
            });
            label
        }
        Err(fault) => {
            extra.error = Some(Arc::new(identify(epoch.dataset(), index, fault)));
            None
        }
    };
    let (label, image) = (label.unwrap_or(-1), &extra.image);
    let size = epoch.spec().map_or([image.height, image.width], |spec| [spec.height, spec.width]);
    row.identify(Identity { label, index, size, valid: true });
    row.finish()
}

/// Leaves the failed rows out, or reports the first of them, mixes the others where the recipe says
/// so, and hands the batch over.
fn publish(
    epoch: &EpochState,
    scratch: &mut Scratch,
    number: u64,
    lease: &Arc<Lease<Extra>>,
    mut complete: Complete<'_, Extra>,
) {
    let (mut len, mut skipped, mut damaged) = (0, Vec::new(), Vec::new());
    for row in 0..complete.rows() {
        let extra = complete.extra(row);
        damaged.extend(extra.damage.take());
        if let Some(error) = extra.error.take() {
            skipped.push(error);
        } else {
            complete.move_row(row, len);
            len += 1;
        }
    }
    let mixing = mix(epoch, scratch, number, &mut complete, len);
    complete.publish();
    let filled = if epoch.config().on_error == OnError::Raise && !skipped.is_empty() {
        Filled { batch: Err(skipped.swap_remove(0)), skipped: Vec::new(), damaged: Vec::new() }
    } else {
        let batch = Batch::new(Arc::clone(lease), number, len, epoch.spec(), mixing);
        Filled { batch: Ok(batch), skipped, damaged }
    };
    epoch.ring.publish(number, filled);
}

/// Mixes the first `len` images of a batch as its number says. Whoever publishes the batch does so,
/// alone and in the order of the rows, so that the result depends on neither.
fn mix(
    epoch: &EpochState,
    scratch: &mut Scratch,
    number: u64,
    complete: &mut Complete<'_, Extra>,
    len: usize,
) -> Option<Mixing> {
    let (Work::Images(recipe), Some(spec)) = (&epoch.config().work, epoch.spec()) else {
        return None;
    };
    let mixing = recipe.mixing(epoch.config().seed, epoch.number, number)?;
    let size = (spec.width, spec.height);
    let images = complete.images(len);
    mixing.run(Level::detect(), spec.output, size, images, &mut scratch.unmixed);
    Some(mixing)
}

/// A sample that is in its row.
struct Processed {
    label: Option<i64>,
    damage: Option<Damage>,
}

/// Reads, decodes and renders one sample.
fn process(
    epoch: &EpochState,
    scratch: &mut Scratch,
    index: u64,
    out: &mut [u8],
    image: &mut Image,
) -> Result<Processed, SampleFault> {
    let dataset = epoch.dataset();
    trim(&mut image.data);
    let Some(renderer) = &mut scratch.renderer else {
        (image.width, image.height) = (0, 0);
        dataset.read_into(index, &mut image.data)?;
        epoch.count_bytes(image.data.len());
        return Ok(Processed { label: dataset.label(index), damage: None });
    };
    let facts = dataset.facts(index)?;
    dataset.read_into(index, &mut scratch.bytes)?;
    epoch.count_bytes(scratch.bytes.len());
    let (format, size) = (facts.format, (facts.width, facts.height));
    let indexed =
        format == SampleFormat::Jpeg && dataset.row_index_into(index, &mut scratch.row_index)?;
    let row_index = indexed.then_some(&scratch.row_index[..]);
    let stored = Stored { format, size, bytes: &mut scratch.bytes, row_index };
    let draw = Draw { seed: epoch.config().seed, epoch: epoch.number, sample: index };
    let target = if epoch.spec().is_some() { Target::Row(out) } else { Target::Image(image) };
    renderer.render(stored, draw, target)?;
    Ok(Processed { label: dataset.label(index), damage: renderer.damage() })
}

/// Says which sample it was, as far as its index can still be read.
fn identify(dataset: &Dataset, index: u64, fault: SampleFault) -> SampleError {
    let shard = dataset.locate(index).map(|(source, _)| source.path().to_path_buf());
    let (key, offset) = match dataset.entry(index) {
        Ok(entry) => (entry.key.map(std::borrow::Cow::into_owned), Some(entry.offset)),
        Err(ReadError::Sample { key, .. }) => (key, None),
        Err(_) => (None, None),
    };
    SampleError { index, key, shard: shard.unwrap_or_default(), offset, fault }
}

/// Tells the consumer when a worker dies of anything but a sample.
pub(crate) struct Watch<'a> {
    pub(crate) epoch: &'a EpochState,
    pub(crate) worker: usize,
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.epoch.ring.fail(PipelineError::WorkerPanicked { worker: self.worker });
        }
    }
}
