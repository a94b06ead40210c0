//! Memory that other languages read and write, and how it is handed to them.
//!
//! This and `dlpack` are the only unsafe code of the crate. It rests on three facts:
//!
//! 1. A [`Memory`] has an owner, which is counted and keeps the bytes where they are until the last
//!    count is gone: a batch (its slab returns to the pool only then), an allocation of this module,
//!    or the mapping of a file, or what was unpacked from it. Every tensor and every exported
//!    capsule has a count of its own.
//! 2. Nothing in this crate makes a reference to the bytes of an owner that can be written once it
//!    is in a `Memory`; those that cannot are only ever read, here and elsewhere. What is copied out
//!    of a `Memory` goes through raw pointers. So code that writes through an exported
//!    view breaks no promise of Rust; that it does not write what another thread copies at the same
//!    time is up to it, as with every array in Python. All element types have a value for all bits.
//! 3. No owner holds an object of the interpreter, so the last count may go on any thread, also one
//!    that the interpreter does not know.
//!
//! Memory of a device is an address that nothing here reads or writes. Consumers' streams are ordered
//! after its copy, and before its next filling, by its [`DeviceBuffer`].
#![expect(unsafe_code, reason = "memory of other languages; docs/safety.md")]

mod dlpack;

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::PyErr;
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use tbl_io::{RawView, ReadError};
use tl_pipeline::{
    Batch, DeviceBatch, DeviceBuffer, DeviceReason, FieldPointers, PinnedUse, PipelineError,
    StreamHandle,
};

use crate::error::Error;
use dlpack::CUDA;
pub(crate) use dlpack::{CPU, DataType, Exported};

/// The alignment of every field of a batch, as JAX and TensorFlow want it: a cache line.
pub(crate) const ALIGNMENT: usize = 64;

/// Bytes that somebody keeps where they are.
#[derive(Clone)]
pub(crate) struct Memory {
    _owner: Arc<dyn Any + Send + Sync>,
    start: NonNull<u8>,
    bytes: usize,
    writable: bool,
    streams: Streams,
}

/// The streams of a device that read bytes.
#[derive(Clone)]
enum Streams {
    /// None, or only while a call lasts.
    None,
    /// Those that copy from pinned memory of the host.
    Pinned(Arc<PinnedUse>),
    /// Those that read a buffer on a device.
    Device(Arc<DeviceBuffer>),
}

// SAFETY: a `Memory` is an address and a counted owner that is `Send` and `Sync`; it hands out no
// reference to the bytes, and the two functions that read them say what they rest on.
unsafe impl Send for Memory {}
// SAFETY: as above; every method takes `&self` and changes nothing.
unsafe impl Sync for Memory {}

/// A part of an allocation that starts at a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// The fields of a batch, each with a count of the batch.
pub(crate) struct BatchMemory {
    pub(crate) images: Memory,
    pub(crate) masks: Memory,
    pub(crate) sizes: Memory,
    pub(crate) labels: Memory,
    pub(crate) indices: Memory,
    pub(crate) valid: Memory,
    /// Of a table.
    pub(crate) columns: Vec<Memory>,
}

/// How many bytes the fields have, which is not to be asked of a batch that is exported.
struct FieldBytes {
    images: usize,
    masks: usize,
}

impl BatchMemory {
    /// The memory of `batch`, which the caller from here on asks for nothing that lies in it.
    pub(crate) fn new(batch: &Arc<Batch>) -> Self {
        let FieldPointers { images, masks, sizes, labels, indices, valid, columns, .. } =
            batch.pointers();
        let rows = batch.len();
        let column_bytes: Vec<usize> = batch.columns().map(|column| column.bytes.len()).collect();
        let bytes = FieldBytes { images: batch.images().len(), masks: batch.masks().len() };
        let field = |start: *mut u8, bytes| {
            let owner: Arc<dyn Any + Send + Sync> = Arc::<Batch>::clone(batch);
            let pinned = batch.pinned().map(|pinned| Streams::Pinned(Arc::clone(pinned)));
            let streams = pinned.unwrap_or(Streams::None);
            Memory { _owner: owner, start: non_null(start), bytes, writable: true, streams }
        };
        Self {
            images: field(images, bytes.images),
            masks: field(masks, bytes.masks),
            sizes: field(sizes.cast(), rows * size_of::<[u32; 2]>()),
            labels: field(labels.cast(), rows * size_of::<i64>()),
            indices: field(indices.cast(), rows * size_of::<u64>()),
            valid: field(valid, rows),
            columns: columns
                .into_iter()
                .zip(column_bytes)
                .map(|(start, bytes)| field(start, bytes))
                .collect(),
        }
    }

    /// The copies of these fields on a device.
    pub(crate) fn on_device(&self, device: &DeviceBatch) -> Self {
        let there = |field: &Memory| {
            let place = device.place_of(field.start.as_ptr());
            Memory::of_device(device.buffer(), place, field.bytes)
        };
        Self {
            images: Memory::of_device(device.buffer(), 0, device.image_bytes()),
            masks: there(&self.masks),
            sizes: there(&self.sizes),
            labels: there(&self.labels),
            indices: there(&self.indices),
            valid: there(&self.valid),
            columns: self.columns.iter().map(there).collect(),
        }
    }
}

fn device_error(reason: DeviceReason) -> PyErr {
    Error::from(PipelineError::Device { reason }).into()
}

fn non_null(start: *mut u8) -> NonNull<u8> {
    NonNull::new(start).expect("a field lies in an allocation")
}

impl Memory {
    /// A copy of `bytes` at the start of a cache line.
    pub(crate) fn of(bytes: &[u8]) -> PyResult<Self> {
        let (memory, start) = Self::reserved(bytes.len())?;
        // SAFETY: `reserved` has just allocated so many bytes, which nobody else knows of.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Ok(memory)
    }

    /// Sample `row` of a batch of bytes, where it lies in its file or in the batch; not to be written.
    /// `None` if its file was cut short. As for [`of_file`](Self::of_file).
    pub(crate) fn of_sample(batch: &Arc<Batch>, row: usize) -> Option<Self> {
        let lent = batch.sample(row)?.bytes;
        let start = NonNull::from(lent).cast();
        let bytes = lent.len();
        let owner: Arc<dyn Any + Send + Sync> = Arc::<Batch>::clone(batch);
        Some(Self { _owner: owner, start, bytes, writable: false, streams: Streams::None })
    }

    /// The images of a file of raw ones, where they are mapped; not to be written.
    ///
    /// They stay where they are as long as the view does. A file that is cut short reads as zeros
    /// from there on, and one that is written to changes: that is said where the view is handed out.
    pub(crate) fn of_file(view: Arc<RawView>) -> Result<Self, ReadError> {
        let all = |pixels: &[u8]| (NonNull::from(pixels).cast(), pixels.len());
        let (start, bytes) = view.with(0, view.sample_count(), all)?;
        Ok(Self { _owner: view, start, bytes, writable: false, streams: Streams::None })
    }

    /// A part of a mapped file, where it lies; not to be written. As for [`of_file`](Self::of_file).
    #[cfg(feature = "tables")]
    pub(crate) fn of_mapped(
        mapped: &Arc<tbl_io::Mapped>,
        offset: u64,
        bytes: u64,
    ) -> Result<Self, ReadError> {
        let lent = mapped.slice(offset, bytes)?;
        let start = NonNull::from(lent).cast();
        let bytes = lent.len();
        let owner: Arc<dyn Any + Send + Sync> = Arc::<tbl_io::Mapped>::clone(mapped);
        Ok(Self { _owner: owner, start, bytes, writable: false, streams: Streams::None })
    }

    /// Bytes that were unpacked from a file, where they are; not to be written.
    #[cfg(feature = "tables")]
    pub(crate) fn of_aligned(bytes: &Arc<tbf_format::AlignedBytes>) -> Self {
        let lent = bytes.as_bytes();
        let start = NonNull::from(lent).cast();
        let len = lent.len();
        let owner: Arc<dyn Any + Send + Sync> = Arc::<tbf_format::AlignedBytes>::clone(bytes);
        Self { _owner: owner, start, bytes: len, writable: false, streams: Streams::None }
    }

    /// Memory of its own that `fill` has written, zeros before.
    #[cfg(feature = "tables")]
    pub(crate) fn filled<E: From<PyErr>>(
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (memory, start) = Self::reserved(bytes)?;
        // SAFETY: `reserved` has just allocated and initialised so many bytes, which nobody else
        // knows of before this returns; the allocation lives in `memory`.
        fill(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) })?;
        Ok(memory)
    }

    /// A part of a buffer on a device.
    ///
    /// # Panics
    /// When it is not inside.
    fn of_device(buffer: &Arc<DeviceBuffer>, offset: usize, bytes: usize) -> Self {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= buffer.bytes()), "{bytes} bytes from {offset} on");
        let address = usize::try_from(buffer.address()).expect("64 bits on both sides") + offset;
        let start = non_null(std::ptr::without_provenance_mut(address));
        let owner: Arc<dyn Any + Send + Sync> = Arc::<DeviceBuffer>::clone(buffer);
        let streams = Streams::Device(Arc::clone(buffer));
        Self { _owner: owner, start, bytes, writable: true, streams }
    }

    /// The device, as DLPack names it.
    pub(crate) fn device(&self) -> (i32, i32) {
        self.buffer().map_or(CPU, |buffer| {
            (CUDA, i32::try_from(buffer.device().ordinal()).unwrap_or(i32::MAX))
        })
    }

    fn buffer(&self) -> Option<&Arc<DeviceBuffer>> {
        if let Streams::Device(buffer) = &self.streams { Some(buffer) } else { None }
    }

    /// The number of the device that the memory was pinned with, if it is pinned.
    pub(crate) fn pinned_with(&self) -> Option<u32> {
        if let Streams::Pinned(pinned) = &self.streams {
            Some(pinned.device().ordinal())
        } else {
            None
        }
    }

    /// Orders a stream of the consumer's after the copy to the device, and the next filling after it.
    /// Streams are the numbers of the array API: 1 is the legacy stream, 2 the per-thread one. That
    /// others are streams of the device is up to the consumer, as with every library.
    pub(crate) fn hold_back(&self, stream: usize) -> PyResult<()> {
        let Some(buffer) = self.buffer() else { return Ok(()) };
        // SAFETY: the consumer passes its own stream, which it keeps while it uses the memory; the
        // protocol has nothing that could be checked.
        let stream = unsafe { StreamHandle::new(stream) };
        buffer.hold_back(stream).map_err(device_error)
    }

    /// Orders the next filling after what a stream does until the memory is given up.
    pub(crate) fn record_stream(&self, stream: usize) -> PyResult<()> {
        // SAFETY: as in `hold_back`.
        let stream = unsafe { StreamHandle::new(stream) };
        let recorded = match &self.streams {
            Streams::None => return Ok(()),
            Streams::Pinned(pinned) => pinned.record_stream(stream),
            Streams::Device(buffer) => buffer.record_stream(stream),
        };
        recorded.map_err(device_error)
    }

    /// Orders the next filling after all that the device has to do when the memory is given up: for
    /// consumers that do not say which streams read it.
    pub(crate) fn record_unknown_reader(&self) {
        if let Some(buffer) = self.buffer() {
            buffer.record_unknown_reader();
        }
    }

    /// A zeroed allocation, and its address.
    fn reserved(bytes: usize) -> PyResult<(Self, NonNull<u8>)> {
        let count = bytes.div_ceil(ALIGNMENT);
        let mut lines: Vec<Line> = Vec::new();
        lines.try_reserve_exact(count).map_err(|_| Error::memory(bytes))?;
        lines.resize(count, Line([0; ALIGNMENT]));
        let start = NonNull::from(lines.as_mut_slice()).cast();
        // The allocation stays in its place when the vector moves.
        let owner = Arc::new(lines);
        let streams = Streams::None;
        Ok((Self { _owner: owner, start, bytes, writable: true, streams }, start))
    }

    /// The address.
    pub(crate) fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Whether they may be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// The part of `bytes` bytes from `offset` on.
    ///
    /// # Panics
    /// When it is not inside.
    pub(crate) fn part(&self, offset: usize, bytes: usize) -> Self {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= self.bytes), "{bytes} bytes from {offset} on");
        let start = non_null(self.start.as_ptr().wrapping_add(offset));
        Self { start, bytes, ..self.clone() }
    }

    /// A copy with an owner of its own, at the start of a cache line.
    pub(crate) fn copied(&self) -> PyResult<Self> {
        if self.buffer().is_some() {
            let message = "memory of a device is not copied here: use the library that reads it";
            return Err(PyBufferError::new_err(message));
        }
        let (memory, start) = Self::reserved(self.bytes)?;
        // SAFETY: `self.start` is on the host, has so many initialised bytes while its owner lives, and no
        // mutable reference of Rust's (facts 1 and 2); the allocation is new, so they are apart.
        unsafe { start.copy_from_nonoverlapping(self.start, self.bytes) };
        Ok(memory)
    }
}
