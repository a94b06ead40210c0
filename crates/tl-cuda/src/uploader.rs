//! Copies of batches to a device, on streams of their own.
#![expect(unsafe_code, reason = "copies that continue after the call; docs/safety.md")]

mod erasures;
mod lanes;
mod memory;
mod pictures;

use std::fmt;
use std::time::{Duration, Instant};

use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock, process_id, thread};

use crate::anchor::Anchor;
use crate::buffers::{BufferLimits, BufferPool, DeviceBuffer, Rest};
use crate::conversion::{CHANNELS, Conversion};
use crate::driver::{Device, Event, PinnedMemory, Stream};
use crate::erasures::RowErasures;
use crate::jobs::{Copy, Job, Jobs};
use crate::picture::RowPicture;
use crate::picture::batch::Room;
use crate::picture::decoder::PictureDecoder;
use crate::reason::DeviceReason;
use lanes::{LaneMemory, Lanes, Turn};
use memory::CopyPool;
pub(crate) use pictures::Verdict;
use pictures::{HostCopy, copy_images};

/// The alignment of what follows converted images in a buffer.
const ALIGNMENT: usize = 256;

/// Bytes of the host that stay where they are and as they are while somebody counts their owner.
pub trait HostBytes: Send + Sync {
    /// The bytes: the same ones each time.
    fn bytes(&self) -> &[u8];

    /// Called once the copy is complete: the device began with it at `start` and was done with it, and
    /// with the conversion, after `time`.
    fn copied(&self, _start: Instant, _time: Duration) {}
}

impl HostBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl HostBytes for PinnedMemory {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The images of a batch that are decoded or converted on the device: interleaved RGB of 8 bits, at
/// the front of the batch's bytes unless the device decodes them.
#[derive(Clone, Debug)]
pub struct Images {
    /// The conversion; without one the pixels stay as they are.
    pub conversion: Option<Arc<Conversion>>,
    /// The decoder of pictures.
    pub decoder: Option<Arc<PictureDecoder>>,
    /// The number of images.
    pub count: usize,
    /// The pixels of each.
    pub pixels: usize,
    /// The pixels of a row of each.
    pub width: usize,
    /// Bytes before those that follow the images, and are copied as they are.
    pub area: usize,
}

/// Counters of an uploader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadStats {
    /// Batches that were copied.
    pub batches: u64,
    /// Images that were decoded on the device.
    pub pictures: u64,
    /// Those of them that nvJPEG decoded.
    pub nvjpeg: u64,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Nanoseconds in which the device had a batch, from the start of its copy to the end of its
    /// conversion. Where several batches were under way, they count once.
    pub device_nanos: u64,
    /// Bytes of the device's memory that are allocated by this `Device` and its clones: of batches,
    /// of what is between copy and result, and tables.
    pub allocated: u64,
}

impl UploadStats {
    /// The device's time for copies and conversions.
    #[must_use]
    pub fn device_time(&self) -> Duration {
        Duration::from_nanos(self.device_nanos)
    }

    /// Bytes that were copied in a second of the device's time; 0 without copies.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let bytes = self.bytes as f64;
        let seconds = self.device_time().as_secs_f64();
        if seconds > 0.0 { bytes / seconds } else { 0.0 }
    }

    /// The difference to `earlier`; the memory stays as it is.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            batches: self.batches.saturating_sub(earlier.batches),
            pictures: self.pictures.saturating_sub(earlier.pictures),
            nvjpeg: self.nvjpeg.saturating_sub(earlier.nvjpeg),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            device_nanos: self.device_nanos.saturating_sub(earlier.device_nanos),
            allocated: self.allocated,
        }
    }
}

impl fmt::Display for UploadStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, bytes, .. } = self;
        let rate = self.bytes_per_second() / 1e9;
        let milliseconds = self.device_time().as_secs_f64() * 1e3;
        let megabytes = bytes / 1_000_000;
        write!(
            f,
            "{batches} batches, {megabytes} MB, {rate:.1} GB/s, {milliseconds:.1} ms of the device"
        )?;
        match self.nvjpeg {
            0 => Ok(()),
            images => write!(f, ", {images} images by nvJPEG"),
        }
    }
}

/// Copies batches to a device without anybody waiting: a batch is handed on at once, with an event that
/// happens when it is there.
pub struct Uploader {
    shared: Arc<Shared>,
    /// `None` only inside `drop`.
    keeper: Option<thread::JoinHandle<()>>,
}

struct Shared {
    /// The process of the keeper.
    process: u32,
    device: Device,
    lanes: Lanes,
    pool: Arc<BufferPool>,
    copies: Arc<CopyPool>,
    /// Bytes in which pictures are decoded.
    room: Room,
    jobs: Arc<Jobs>,
    /// The first copy that failed.
    failed: Mutex<Option<DeviceReason>>,
    batches: AtomicU64,
    pictures: AtomicU64,
    nvjpeg: AtomicU64,
    bytes: AtomicU64,
    device_nanos: AtomicU64,
}

/// A copy that has begun: unless it is handed on, its sources and its target stay until the stream has
/// come so far.
struct Begun<'a> {
    stream: &'a Stream,
    copies: &'a CopyPool,
    /// `None` once it was handed on.
    kept: Option<Kept>,
}

/// Memory of a copy.
struct Kept {
    source: Arc<dyn HostBytes>,
    copy: Option<HostCopy>,
    buffer: DeviceBuffer,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // Other streams may use the target as soon as it is dropped.
        if self.kept.is_some()
            && let Err(reason) = self.stream.synchronize()
        {
            self.copies.fail(reason);
            std::mem::forget(self.kept.take());
        }
    }
}

impl Uploader {
    /// An uploader to `device`.
    ///
    /// # Errors
    /// A call of the driver that failed, or [`DeviceReason::Forked`].
    pub fn new(device: &Device, limits: BufferLimits) -> Result<Self, DeviceReason> {
        let jobs = Arc::new(Jobs::default());
        let shared = Arc::new(Shared {
            process: process_id(),
            device: device.clone(),
            lanes: Lanes::new(device, limits.lanes)?,
            pool: Arc::new(BufferPool::new(device.clone(), limits, Arc::clone(&jobs))),
            copies: Arc::new(CopyPool::new(limits.keep, limits.requires_pinned)),
            room: Room { scratch: limits.scratch, payload: limits.payload },
            jobs,
            failed: Mutex::default(),
            batches: AtomicU64::new(0),
            pictures: AtomicU64::new(0),
            nvjpeg: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            device_nanos: AtomicU64::new(0),
        });
        let kept = Arc::clone(&shared);
        let keeper = thread::Builder::new().name("tl-uploads".to_owned());
        let keeper = keeper.spawn(move || kept.keep()).map_err(|error| DeviceReason::Library {
            function: "a thread for copies",
            error: error.to_string(),
        })?;
        Ok(Self { shared, keeper: Some(keeper) })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.shared.device
    }

    #[cfg(test)]
    pub(crate) fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.shared.lanes.streams()
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> UploadStats {
        let Shared { device, batches, pictures, nvjpeg, bytes, device_nanos, .. } = &*self.shared;
        UploadStats {
            batches: batches.load(Ordering::Relaxed),
            pictures: pictures.load(Ordering::Relaxed),
            nvjpeg: nvjpeg.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
            device_nanos: device_nanos.load(Ordering::Relaxed),
            allocated: device.allocated(),
        }
    }

    /// Bounds the bytes of the host's memory that pictures and erasures are copied from. A thread that
    /// finds it exhausted waits for copies that are under way; a batch that needs more is alone.
    pub fn limit_copies(&self, bytes: u64) {
        self.shared.copies.limit(bytes);
    }

    /// The reason for which pictures and erasures are copied from ordinary memory, which is slower: on
    /// the first call after it happened.
    #[must_use]
    pub fn take_unpinned(&self) -> Option<DeviceReason> {
        self.shared.copies.take_unpinned()
    }

    #[cfg(test)]
    pub(crate) fn copy_bytes(&self) -> u64 {
        self.shared.copies.bytes()
    }

    /// Enqueues the copy of `source`. Images are converted, and what follows them is copied as it is;
    /// [`DeviceBuffer::place`] finds it. Nobody writes the bytes of the source until the copy is
    /// complete; it is counted for as long.
    ///
    /// Images that `pictures` has are decoded on the device, and not copied from the source. What
    /// `erasures` has is erased after the conversion. Both are free for others when the call returns.
    /// [`DeviceBuffer::wrong_index`] says whether the rows of all pictures were those of their index.
    ///
    /// # Errors
    /// [`DeviceReason::OutOfMemory`]; [`DeviceReason::Erasures`]; a call of the driver that failed,
    /// also in an earlier copy; [`DeviceReason::Forked`].
    ///
    /// # Panics
    /// If the source has fewer bytes than `images` says, or if pictures have no decoder, are not in
    /// the order of their rows, are empty, or are of another size; if images are erased that are not
    /// converted or not there.
    pub fn upload(
        &self,
        source: Arc<dyn HostBytes>,
        images: Option<&Images>,
        pictures: &[RowPicture<'_>],
        erasures: &[RowErasures<'_>],
    ) -> Result<DeviceBuffer, DeviceReason> {
        self.shared.upload(source, images, pictures, erasures)
    }
}

impl fmt::Debug for Uploader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uploader").field("device", self.device()).finish_non_exhaustive()
    }
}

impl Drop for Uploader {
    fn drop(&mut self) {
        let Some(keeper) = self.keeper.take() else { return };
        if self.shared.process != process_id() {
            // The thread, and maybe the release of a lock, are in the other process.
            std::mem::forget(keeper);
            return;
        }
        self.shared.jobs.close();
        if keeper.join().is_err() {
            debug_assert!(false, "the keeper calls the driver and drops values");
        }
    }
}

impl Shared {
    fn upload(
        &self,
        source: Arc<dyn HostBytes>,
        images: Option<&Images>,
        pictures: &[RowPicture<'_>],
        erasures: &[RowErasures<'_>],
    ) -> Result<DeviceBuffer, DeviceReason> {
        let Self { device, pool, .. } = self;
        if self.process != process_id() {
            return Err(DeviceReason::Forked);
        }
        if let Some(reason) = &*lock(&self.failed) {
            return Err(reason.clone());
        }
        let start = device.event()?;
        let end = Arc::new(device.event()?);
        let area = images.map_or(0, |images| images.area);
        let converted = images.map_or(0, Images::converted_bytes);
        let bytes = source.bytes().len();
        assert!(area <= bytes, "images of {area} bytes in {bytes}");
        let bytes = converted + (bytes - area);
        let erased = images.map(|images| images.erased(erasures)).transpose()?;
        let copy = self.gather(pictures, images.map_or(0, |images| images.pixels), &erased)?;
        // One batch at a time is enqueued to a lane.
        let Turn { stream, memory: mut own } = self.lanes.take();
        let memory = pool.take(bytes, stream)?;
        let buffer = DeviceBuffer::new(Arc::clone(pool), memory, bytes, Arc::clone(&end))
            .with_rest(Rest { source: area, target: converted });
        let kept = Kept { source, copy, buffer };
        let mut begun = Begun { stream, copies: &self.copies, kept: None };
        let kept = begun.kept.insert(kept);
        stream.record(&start)?;
        let mut copied = self.enqueue(stream, &mut own, images, pictures, kept)?;
        if let (Some(images), Some(erased)) = (images, &erased) {
            // SAFETY: the images are in the target, whose work is done in order; the jobs keep the
            // memory, and `begun` until then.
            copied += unsafe { self.erase(stream, images, erased, &mut own.erasures, kept) }?;
        }
        stream.record(&end)?;
        let kept = begun.kept.take().expect("a copy has its memory until it is handed on");
        let Kept { source, copy, buffer } = kept;
        drop(begun);
        drop(own);
        let by_nvjpeg = copy.as_ref().map_or(0, HostCopy::files);
        let verdict = copy.map(|copy| Arc::new(Verdict::new(copy)));
        let buffer = buffer.with_verdict(verdict.clone());
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.pictures.fetch_add(pictures.len() as u64, Ordering::Relaxed);
        self.nvjpeg.fetch_add(by_nvjpeg, Ordering::Relaxed);
        self.bytes.fetch_add(copied as u64, Ordering::Relaxed);
        let images = images.cloned();
        let copy = Copy { start, end, source, _images: images, verdict };
        // The queue is closed when the uploader is dropped, which nobody uses then.
        let pushed = self.jobs.push(Job::Copy(Box::new(copy)));
        debug_assert!(pushed.is_ok(), "somebody takes copies");
        Ok(buffer)
    }

    /// Enqueues a batch; the bytes that are copied.
    fn enqueue(
        &self,
        stream: &Stream,
        own: &mut LaneMemory,
        images: Option<&Images>,
        pictures: &[RowPicture<'_>],
        kept: &mut Kept,
    ) -> Result<usize, DeviceReason> {
        let Kept { source, copy, buffer } = kept;
        let bytes = source.bytes();
        let target = buffer.memory();
        let Rest { source: area, target: rest } = buffer.rest();
        let mut copied = bytes.len() - area;
        assert!(images.is_some() || pictures.is_empty(), "pictures are images");
        if let Some(images) = images {
            let Images { conversion, decoder, count, pixels, .. } = images;
            let LaneMemory { pixels: staging, pictures: memory, .. } = own;
            let need = count * pixels * CHANNELS;
            let staging = match conversion {
                Some(_) => self.reserve(stream, staging, need, need)?,
                None => target,
            };
            // SAFETY: `upload` keeps the bytes. Memory of the lane is freed only after its stream was
            // waited for, and the target is free for its work, said `BufferPool::take`.
            copied += unsafe { copy_images(stream, bytes, images, pictures, staging) }?;
            if let Some(copy) = copy.as_mut().filter(|_| !pictures.is_empty()) {
                let decoder = decoder.as_ref().expect("pictures have a decoder");
                // SAFETY: as above; `upload` has made the copy, and keeps it and the decoder.
                copied += unsafe { self.decode(stream, copy, decoder, memory, staging) }?;
            }
            if let Some(conversion) = conversion {
                // SAFETY: as above, and everything that writes is on this stream.
                unsafe { conversion.enqueue(stream, staging, target, *count, *pixels) }?;
            }
        }
        // SAFETY: as above.
        unsafe { stream.copy_to_device(&bytes[area..], target, rest) }?;
        Ok(copied)
    }

    /// Drops copies when they are complete, and waits for the readers of memory that was dropped.
    fn keep(&self) {
        let mut anchor = None;
        let mut latest = None;
        while let Some(job) = self.jobs.next() {
            let copy = match job {
                Job::Copy(copy) => copy,
                Job::Retired => {
                    self.pool.settle_retired();
                    continue;
                }
            };
            match copy.end.synchronize() {
                // The device is lost, and copies nothing any more.
                Err(reason) => {
                    self.copies.fail(reason.clone());
                    lock(&self.failed).get_or_insert(reason);
                    continue;
                }
                Ok(()) => drop(copy.verdict.as_deref().map(Verdict::settle)),
            }
            let Copy { start, end, source, .. } = *copy;
            if let Ok(time) = start.time_until(&end) {
                let ended = Anchor::place(&mut anchor, &end);
                source.copied(ended.checked_sub(time).unwrap_or(ended), time);
            }
            self.count_time(&start, end, &mut latest);
        }
    }

    /// Counts the time of a complete copy that is after `latest`, the latest end of those before.
    fn count_time(&self, start: &Event, end: Arc<Event>, latest: &mut Option<Arc<Event>>) {
        let Ok(mut milliseconds) = start.milliseconds_until(&end) else { return };
        if let Some(latest) = latest {
            let Ok(later) = latest.milliseconds_until(&end) else { return };
            milliseconds = milliseconds.min(later);
        }
        // Another lane was through later.
        if milliseconds < 0.0 {
            return;
        }
        let nanos = Duration::from_secs_f32(milliseconds / 1e3).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.device_nanos.fetch_add(nanos, Ordering::Relaxed);
        *latest = Some(end);
    }
}

impl Images {
    /// Bytes of the numbers that the pixels become, up to what follows.
    fn converted_bytes(&self) -> usize {
        let number = self.conversion.as_ref().map_or(1, |conversion| conversion.dtype().bytes());
        let bytes = [self.pixels, CHANNELS, number];
        let bytes = bytes.into_iter().try_fold(self.count, usize::checked_mul);
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(ALIGNMENT));
        bytes.expect("images fit the address space")
    }
}
