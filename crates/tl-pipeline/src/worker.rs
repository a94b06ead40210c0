//! Workers: the threads that turn positions of the epoch into rows of batches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tbl_format::SampleFormat;
use tbl_io::ReadError;
use tl_decode::{Color, DecodeOptions, Decoder, Image};

use crate::batch::{Batch, Extra};
use crate::config::{LoaderConfig, OnError, Work};
use crate::dataset::Dataset;
use crate::error::{PipelineError, SampleError, SampleFault};
use crate::loader::EpochState;
use crate::pool::Lease;
use crate::render::Renderer;
use crate::slab::{Complete, RowMut};
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
}

/// The memory of one worker, reused from sample to sample and from epoch to epoch.
#[derive(Debug)]
pub(crate) struct Scratch {
    decoder: Decoder,
    image: Image,
    bytes: Vec<u8>,
    renderer: Option<Renderer>,
}

impl Scratch {
    pub(crate) fn new(config: &LoaderConfig) -> Self {
        let decoder = Decoder::new(DecodeOptions { color: Color::Rgb8, ..config.decode });
        let renderer = match &config.work {
            Work::Bytes => None,
            Work::Images(recipe) => Some(Renderer::new(recipe)),
        };
        Self { decoder, image: Image::new(), bytes: Vec::new(), renderer }
    }

    fn trim(&mut self) {
        trim(&mut self.bytes);
        trim(&mut self.image.data);
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
            publish(epoch, number, lease, complete);
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
    let (out, extra) = row.parts();
    extra.error = None;
    let work = AssertUnwindSafe(|| process(epoch, scratch, index, out, &mut extra.image));
    let result = catch_unwind(work).unwrap_or_else(|panic| {
        // Whatever the panic interrupted is in an unknown state.
        *scratch = Scratch::new(epoch.config());
        extra.image = Image::new();
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = tbl_io::Escaped(text.unwrap_or_default().as_bytes()).to_string();
        Err(SampleFault::Panicked { message })
    });
    scratch.trim();
    let label = match result {
        Ok(label) => label,
        Err(fault) => {
            extra.error = Some(Arc::new(identify(epoch.dataset(), index, fault)));
            None
        }
    };
    row.identify(label.unwrap_or(-1), index);
    row.finish()
}

/// Leaves the failed rows out, or reports the first of them, and hands the batch over.
fn publish(
    epoch: &EpochState,
    number: u64,
    lease: &Arc<Lease<Extra>>,
    mut complete: Complete<'_, Extra>,
) {
    let (mut len, mut skipped) = (0, Vec::new());
    for row in 0..complete.rows() {
        if let Some(error) = complete.extra(row).error.take() {
            skipped.push(error);
        } else {
            complete.move_row(row, len);
            len += 1;
        }
    }
    complete.publish();
    let filled = if epoch.config().on_error == OnError::Raise && !skipped.is_empty() {
        Filled { batch: Err(skipped.swap_remove(0)), skipped: Vec::new() }
    } else {
        let batch = Batch::new(Arc::clone(lease), number, len, epoch.spec());
        Filled { batch: Ok(batch), skipped }
    };
    epoch.ring.publish(number, filled);
}

/// Reads, decodes and renders one sample, and returns its label.
fn process(
    epoch: &EpochState,
    scratch: &mut Scratch,
    index: u64,
    out: &mut [u8],
    image: &mut Image,
) -> Result<Option<i64>, SampleFault> {
    let dataset = epoch.dataset();
    let recipe = match &epoch.config().work {
        Work::Bytes => {
            (image.width, image.height) = (0, 0);
            trim(&mut image.data);
            dataset.read_into(index, &mut image.data)?;
            epoch.count_bytes(image.data.len());
            return Ok(dataset.label(index));
        }
        Work::Images(recipe) => recipe,
    };
    trim(&mut image.data);
    // Without operations the pixels are the result, and go where it belongs at once.
    let as_is = recipe.ops().is_empty();
    let decoded = if as_is { &mut *image } else { &mut scratch.image };
    let (width, height) = decode(epoch, &mut scratch.decoder, index, &mut scratch.bytes, decoded)?;
    if !as_is {
        let plan = recipe.plan(width, height, epoch.config().seed, epoch.number, index)?;
        let renderer = scratch.renderer.as_mut().expect("work on images has a renderer");
        let target = if epoch.spec().is_some() {
            out
        } else {
            let bytes = renderer.output_bytes(plan.output_size());
            let limit = epoch.config().decode.limits.max_decoded_bytes;
            if bytes as u64 > limit {
                return Err(SampleFault::OutputSize { bytes: bytes as u64, limit });
            }
            (image.width, image.height) = plan.output_size();
            image.channels = Color::Rgb8.channels();
            image.data.resize(bytes, 0);
            &mut image.data[..]
        };
        renderer.render(&plan, &scratch.image.data, width, height, target);
    }
    Ok(dataset.label(index))
}

/// Makes sample `index`'s RGB pixels, and returns its width and height.
fn decode(
    epoch: &EpochState,
    decoder: &mut Decoder,
    index: u64,
    bytes: &mut Vec<u8>,
    image: &mut Image,
) -> Result<(u32, u32), SampleFault> {
    let dataset = epoch.dataset();
    let facts = dataset.facts(index)?;
    if facts.format == SampleFormat::RawU8 {
        let (width, height) = (facts.width, facts.height);
        dataset.read_into(index, &mut image.data)?;
        let have = image.data.len() as u64;
        let need = 3 * u64::from(width) * u64::from(height);
        if have != need || need == 0 {
            return Err(SampleFault::RawSize { width, height, need, have });
        }
        (image.width, image.height, image.channels) = (width, height, Color::Rgb8.channels());
    } else {
        dataset.read_into(index, bytes)?;
        decoder.decode_into(bytes, image)?;
    }
    epoch.count_bytes(usize::try_from(facts.bytes).unwrap_or(usize::MAX));
    Ok((image.width, image.height))
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
