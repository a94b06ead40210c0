//! Streams, events and kernels.
#![expect(unsafe_code, reason = "calls of a C library; docs/safety.md")]

use std::ffi::{CStr, c_uint, c_void};
use std::fmt;
use std::time::Duration;

use tl_handoff::sync::Arc;

use super::{Context, DeviceMemory};
use crate::library::Opaque;
use crate::reason::DeviceReason;

/// Threads of a block where nothing else is needed.
pub(crate) const BLOCK: c_uint = 256;

/// The legacy stream, and the stream of the thread that calls, by number.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

/// A stream of a library, by the number that it has there: 0 and 1 are the legacy stream, 2 is the
/// per-thread one, any other is a `CUstream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamHandle(usize);

impl StreamHandle {
    /// The legacy stream, which always exists.
    pub const LEGACY: Self = Self(LEGACY);

    /// The stream with this number.
    ///
    /// # Safety
    /// It is 0, 1, 2, or the `CUstream` of a stream of the device that the handle is used with, which
    /// exists until the last such use.
    #[must_use]
    pub const unsafe fn new(number: usize) -> Self {
        Self(number)
    }
}

/// Work of a device that is done in order.
pub struct Stream {
    pub(super) context: Arc<Context>,
    pub(super) raw: Opaque,
}

// SAFETY: the stream is a handle that the driver lets every thread use.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Stream {}

impl Stream {
    /// The number by which other libraries know the stream.
    ///
    /// # Safety
    /// The stream exists until the last use of the handle, which [`DeviceBuffer`](crate::DeviceBuffer)
    /// makes when it is dropped.
    #[must_use]
    pub unsafe fn handle(&self) -> StreamHandle {
        StreamHandle(self.raw.expose_provenance())
    }

    /// The stream for libraries of C, while it exists.
    pub(crate) fn raw(&self) -> Opaque {
        self.raw
    }

    /// `event` happens when all work that the stream has now is done.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn record(&self, event: &Event) -> Result<(), DeviceReason> {
        event.record_on(self.raw)
    }

    /// Waits until the stream has no work left.
    ///
    /// # Errors
    /// A call of the driver that failed, also of the work; [`DeviceReason::Forked`].
    pub fn synchronize(&self) -> Result<(), DeviceReason> {
        let scope = self.context.enter()?;
        // SAFETY: the stream exists as long as `self`.
        let code = unsafe { (scope.functions.synchronize_stream)(self.raw) };
        scope.functions.check("cuStreamSynchronize", code)
    }

    /// Later work of the stream begins after `event`. No thread waits.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn wait(&self, event: &Event) -> Result<(), DeviceReason> {
        event.hold_back_raw(self.raw)
    }

    /// Copies `bytes` to `offset` of `to`.
    ///
    /// # Safety
    /// Until the stream has come so far, the bytes stay where they are, nobody writes them, and `to`
    /// lives.
    ///
    /// # Panics
    /// When they leave `to`.
    pub(crate) unsafe fn copy_to_device(
        &self,
        bytes: &[u8],
        to: &DeviceMemory,
        offset: usize,
    ) -> Result<(), DeviceReason> {
        let end = offset.checked_add(bytes.len());
        assert!(end.is_some_and(|end| end <= to.bytes), "{} bytes at {offset}", bytes.len());
        if bytes.is_empty() {
            return Ok(());
        }
        let scope = self.context.enter()?;
        let address = to.address + offset as u64;
        let from = bytes.as_ptr().cast();
        // SAFETY: the target was checked above, and the caller vouches for the source.
        let code =
            unsafe { (scope.functions.copy_to_device)(address, from, bytes.len(), self.raw) };
        scope.functions.check("cuMemcpyHtoDAsync", code)
    }

    /// Copies the front of `from` to `to`.
    ///
    /// # Safety
    /// Until the stream has come so far, both live and nobody looks at `to`.
    ///
    /// # Panics
    /// When `to` is longer.
    pub(crate) unsafe fn copy_to_host(
        &self,
        to: &mut [u8],
        from: &DeviceMemory,
    ) -> Result<(), DeviceReason> {
        assert!(to.len() <= from.bytes, "{} bytes of {}", to.len(), from.bytes);
        if to.is_empty() {
            return Ok(());
        }
        let scope = self.context.enter()?;
        let start = to.as_mut_ptr().cast();
        // SAFETY: the source has so many bytes, checked above; the caller vouches for the target.
        let code =
            unsafe { (scope.functions.copy_to_host)(start, from.address, to.len(), self.raw) };
        scope.functions.check("cuMemcpyDtoHAsync", code)
    }

    /// Copies `bytes` from the front of `from`, and waits for them.
    pub(crate) fn read(&self, from: &DeviceMemory, bytes: usize) -> Result<Vec<u8>, DeviceReason> {
        let mut read = vec![0; bytes];
        // SAFETY: the stream is waited for before anything happens to either.
        let copied = unsafe { self.copy_to_host(&mut read, from) };
        if let Err(reason) = copied.and_then(|()| self.synchronize()) {
            // A copy may still be under way.
            std::mem::forget(read);
            return Err(reason);
        }
        Ok(read)
    }

    /// Runs a kernel over `columns` items for each of `rows`, in blocks of `block` threads.
    ///
    /// # Safety
    /// `A` is the kernel's only argument, and the kernel touches only memory of the device that is
    /// there until the stream has come so far.
    pub(crate) unsafe fn launch<A: Copy>(
        &self,
        kernel: Kernel,
        columns: u32,
        rows: u32,
        block: u32,
        mut argument: A,
    ) -> Result<(), DeviceReason> {
        if columns == 0 || rows == 0 {
            return Ok(());
        }
        let scope = self.context.enter()?;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        let blocks = columns.div_ceil(block);
        // SAFETY: the driver copies the argument before it returns; the caller vouches for the rest.
        let code = unsafe {
            (scope.functions.launch)(
                kernel.raw,
                blocks,
                rows,
                1,
                block,
                1,
                1,
                0,
                self.raw,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        scope.functions.check("cuLaunchKernel", code)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stream").field(&self.raw).finish()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nobody else destroys it. Its work is still done.
        self.context.release(|functions| unsafe { (functions.destroy_stream)(self.raw) });
    }
}

/// A point in the work of a stream.
pub struct Event {
    pub(super) context: Arc<Context>,
    pub(super) raw: Opaque,
}

// SAFETY: as for `Stream`.
unsafe impl Send for Event {}
// SAFETY: as for `Stream`.
unsafe impl Sync for Event {}

impl Event {
    /// The event happens when all work that `stream` has now is done.
    ///
    /// # Errors
    /// A call of the driver that failed, as for a stream that does not exist any more;
    /// [`DeviceReason::Forked`].
    pub fn record(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.record_on(std::ptr::with_exposed_provenance_mut(stream.0))
    }

    /// The event happens when all work that `stream` has now is done, on whichever thread it was
    /// enqueued and this is called.
    ///
    /// # Errors
    /// As [`record`](Self::record); a stream that is being captured, whose work happens later.
    pub(crate) fn record_end(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        // The legacy stream waits for the per-thread ones of all threads.
        let number = if stream.0 == PER_THREAD { LEGACY } else { stream.0 };
        let raw = std::ptr::with_exposed_provenance_mut(number);
        let scope = self.context.enter()?;
        let mut status = 0;
        // SAFETY: the stream exists, as `StreamHandle::new` says; the pointer is to a local variable.
        let code = unsafe { (scope.functions.capture_status)(raw, &raw mut status) };
        scope.functions.check("cuStreamIsCapturing", code)?;
        if status != 0 {
            let error = "a capture of the stream is under way: take batches before it".to_owned();
            return Err(DeviceReason::Library { function: "cuStreamIsCapturing", error });
        }
        drop(scope);
        self.record_on(raw)
    }

    /// The stream exists: it is one of a `Stream` that is borrowed, or as `StreamHandle::new` says.
    fn record_on(&self, stream: Opaque) -> Result<(), DeviceReason> {
        let scope = self.context.enter()?;
        // SAFETY: the event exists as long as `self`, and the stream as said above.
        let code = unsafe { (scope.functions.record_event)(self.raw, stream) };
        scope.functions.check("cuEventRecord", code)
    }

    /// Work that `stream` gets from now on begins after the event. No thread waits.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn hold_back(&self, stream: StreamHandle) -> Result<(), DeviceReason> {
        self.hold_back_raw(std::ptr::with_exposed_provenance_mut(stream.0))
    }

    /// The stream exists, as for `record_on`.
    fn hold_back_raw(&self, stream: Opaque) -> Result<(), DeviceReason> {
        let scope = self.context.enter()?;
        // SAFETY: as in `record_on`.
        let code = unsafe { (scope.functions.wait_event)(stream, self.raw, 0) };
        scope.functions.check("cuStreamWaitEvent", code)
    }

    /// Waits until it has happened.
    ///
    /// # Errors
    /// A call of the driver that failed, also of the work before it; [`DeviceReason::Forked`].
    pub fn synchronize(&self) -> Result<(), DeviceReason> {
        let scope = self.context.enter()?;
        // SAFETY: the event exists as long as `self`.
        let code = unsafe { (scope.functions.synchronize_event)(self.raw) };
        scope.functions.check("cuEventSynchronize", code)
    }

    /// Milliseconds from this event to `end`; both have happened.
    ///
    /// # Errors
    /// As [`synchronize`](Self::synchronize).
    pub fn milliseconds_until(&self, end: &Self) -> Result<f32, DeviceReason> {
        let scope = self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: the events exist, and the pointer is to a local variable.
        let code =
            unsafe { (scope.functions.elapsed_time)(&raw mut milliseconds, self.raw, end.raw) };
        scope.functions.check("cuEventElapsedTime", code)?;
        Ok(milliseconds)
    }
}

impl Event {
    /// The time from this event to `end`; both have happened.
    pub(crate) fn time_until(&self, end: &Self) -> Result<Duration, DeviceReason> {
        let milliseconds = self.milliseconds_until(end)?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or_default())
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.raw).finish()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody else destroys it. Who waits for it still does.
        self.context.release(|functions| unsafe { (functions.destroy_event)(self.raw) });
    }
}

/// A loaded module of kernels.
pub(crate) struct Module {
    pub(super) context: Arc<Context>,
    pub(super) raw: Opaque,
}

// SAFETY: as for `Stream`.
unsafe impl Send for Module {}
// SAFETY: as for `Stream`.
unsafe impl Sync for Module {}

/// A kernel of a module, usable while that is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    raw: Opaque,
}

// SAFETY: as for `Stream`.
unsafe impl Send for Kernel {}
// SAFETY: as for `Stream`.
unsafe impl Sync for Kernel {}

impl Module {
    pub(crate) fn kernel(&self, name: &CStr) -> Result<Kernel, DeviceReason> {
        let scope = self.context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded as long as `self` lives, and the name ends with a zero byte.
        let code = unsafe { (scope.functions.function)(&raw mut raw, self.raw, name.as_ptr()) };
        scope.functions.check("cuModuleGetFunction", code)?;
        Ok(Kernel { raw })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: nobody else unloads it.
        self.context.release(|functions| unsafe { (functions.unload_module)(self.raw) });
    }
}
