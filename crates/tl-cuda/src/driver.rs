//! Devices, their memory, streams and events, as values that own what they stand for.
//!
//! Every call makes the device's context the thread's current one and restores what was current
//! before, so that it does not matter which thread calls, or what other libraries do there. In a fork
//! of the process nothing is called any more, not even to free: CUDA does not work there.
#![expect(unsafe_code, reason = "calls of a C library; docs/safety.md")]

mod work;

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::ptr::NonNull;

use tl_handoff::slab::Backing;
use tl_handoff::sync::{Arc, AtomicU64, Mutex, Ordering, lock, process_id};

use crate::library::{Code, Functions, OUT_OF_MEMORY, Opaque, SUCCESS};
use crate::reason::DeviceReason;
pub(crate) use work::{BLOCK, Kernel, Module};
pub use work::{Event, Stream, StreamHandle};

/// `CU_STREAM_NON_BLOCKING`: the legacy stream of other libraries does not wait for it.
const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_BLOCKING_SYNC`: a waiting thread sleeps.
const BLOCKING_SYNC: c_uint = 1;
/// `CU_MEMHOSTALLOC_PORTABLE`: pinned for all devices.
const PORTABLE: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_RELAXED`: captures of other threads forbid this one nothing.
const RELAXED: c_int = 2;

/// The primary context of a device, which torch, JAX and others use too.
struct Context {
    functions: &'static Functions,
    raw: Opaque,
    device: c_int,
    ordinal: u32,
    name: String,
    process: u32,
    /// Bytes of the device that are allocated by way of this value.
    allocated: AtomicU64,
}

// SAFETY: the context is a handle that the driver lets every thread use, once it is current there.
unsafe impl Send for Context {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Context {}

/// The context is current in this thread until this is dropped.
struct Scope<'a> {
    functions: &'a Functions,
    /// The thread's mode of captures before.
    mode: c_int,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // Failures are those of a lost device, which later calls report.
        // SAFETY: the pointer is to a field of the type that the function exchanges.
        unsafe { (self.functions.exchange_capture_mode)(&raw mut self.mode) };
        // SAFETY: the pointer is to a local variable; `Context::enter` has pushed what is popped.
        unsafe { (self.functions.pop_context)(&raw mut popped) };
    }
}

impl Context {
    fn enter(&self) -> Result<Scope<'_>, DeviceReason> {
        if self.process != process_id() {
            return Err(DeviceReason::Forked);
        }
        // SAFETY: the context is retained as long as `self` lives.
        let code = unsafe { (self.functions.push_context)(self.raw) };
        self.functions.check("cuCtxPushCurrent", code)?;
        let mut mode = RELAXED;
        // SAFETY: the pointer is to a local variable of the type that the function exchanges.
        let code = unsafe { (self.functions.exchange_capture_mode)(&raw mut mode) };
        // Without success the mode is as it was, and exchanging it again changes nothing.
        let mode = if code == SUCCESS { mode } else { RELAXED };
        Ok(Scope { functions: self.functions, mode })
    }

    /// Calls `free` in the context. Failures are of no use to the caller: memory of a lost device, or
    /// of a process that this is a fork of, is gone.
    fn release(&self, free: impl FnOnce(&Functions) -> Code) {
        if let Ok(scope) = self.enter() {
            free(scope.functions);
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.process == process_id() {
            // SAFETY: the context of this device was retained once for this value.
            // It fails for a lost device, which has nothing to release.
            unsafe { (self.functions.release_context)(self.device) };
        }
    }
}

/// The memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Those that no process has.
    pub free: u64,
    /// All of them.
    pub total: u64,
}

/// The kernels as the driver compiles them; `cargo xtask ptx` makes the text of `kernels.cu`.
const PTX: &CStr = match CStr::from_bytes_with_nul(
    concat!(include_str!("../kernels/kernels.ptx"), "\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"",
};

/// A CUDA device, opened for this process. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    context: Arc<Context>,
    /// The kernels, once they are loaded.
    kernels: Arc<Mutex<Option<Arc<Module>>>>,
}

impl Device {
    /// Opens device `ordinal` of those that the process sees, with the system's driver. The driver is
    /// loaded by the first call.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn open(ordinal: u32) -> Result<Self, DeviceReason> {
        Self::of(Functions::of_system(), ordinal)
    }

    /// Opens a device with the driver at `library`, for tests without one.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(library: &Path, ordinal: u32) -> Result<Self, DeviceReason> {
        // It stays loaded, as the system's does.
        Self::of(
            Functions::load(library).map(|functions| &*Box::leak(Box::new(functions))),
            ordinal,
        )
    }

    fn of(
        functions: Result<&'static Functions, DeviceReason>,
        ordinal: u32,
    ) -> Result<Self, DeviceReason> {
        let functions = functions.map_err(|reason| match reason {
            DeviceReason::NoDevice { devices, .. } => DeviceReason::NoDevice { ordinal, devices },
            reason @ (DeviceReason::NoDriver { .. }
            | DeviceReason::DriverTooOld { .. }
            | DeviceReason::OutOfMemory { .. }
            | DeviceReason::Library { .. }
            | DeviceReason::LocalRank { .. }
            | DeviceReason::NoNvJpeg { .. }
            | DeviceReason::NvJpeg { .. }
            | DeviceReason::NvJpegFile { .. }
            | DeviceReason::Forked
            | DeviceReason::Erasures { .. }
            | DeviceReason::RowIndex { .. }
            | DeviceReason::Recipe { .. }) => reason,
        })?;
        let devices = functions.devices()?;
        let number = c_int::try_from(ordinal).ok().filter(|_| ordinal < devices);
        let number = number.ok_or(DeviceReason::NoDevice { ordinal, devices })?;
        let mut device = 0;
        // SAFETY: the pointer is to a local variable of the type that the function writes.
        let code = unsafe { (functions.device)(&raw mut device, number) };
        functions.check("cuDeviceGet", code)?;
        let mut name: [c_char; 128] = [0; 128];
        // SAFETY: the array has one byte more than the driver may write, which stays zero.
        let code = unsafe { (functions.device_name)(name.as_mut_ptr(), 127, device) };
        functions.check("cuDeviceGetName", code)?;
        // SAFETY: the array ends with a zero byte.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut raw = std::ptr::null_mut();
        // SAFETY: as above; `Context` releases it.
        let code = unsafe { (functions.retain_context)(&raw mut raw, device) };
        functions.check("cuDevicePrimaryCtxRetain", code)?;
        let process = process_id();
        let allocated = AtomicU64::new(0);
        let context = Context { functions, raw, device, ordinal, name, process, allocated };
        Ok(Self { context: Arc::new(context), kernels: Arc::default() })
    }

    /// The device's number among those that the process sees.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.context.ordinal
    }

    /// The name that the driver gives it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.context.name
    }

    /// Bytes of the device's memory that this value and its clones have allocated, for all that they
    /// are used for.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.context.allocated.load(Ordering::Relaxed)
    }

    /// Whether this process is a fork of the one that opened the device.
    pub(crate) fn is_forked(&self) -> bool {
        self.context.process != process_id()
    }

    /// Calls `function` with the device's context as the current one.
    pub(crate) fn current<T>(
        &self,
        function: impl FnOnce() -> Result<T, DeviceReason>,
    ) -> Result<T, DeviceReason> {
        let scope = self.context.enter()?;
        let result = function();
        drop(scope);
        result
    }

    /// Waits until the device's context has no work left, of any library.
    ///
    /// # Errors
    /// As [`free_memory`](Self::free_memory); a stream of the context is being captured.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceReason> {
        let scope = self.context.enter()?;
        // SAFETY: it takes no argument.
        let code = unsafe { (scope.functions.synchronize_context)() };
        scope.functions.check("cuCtxSynchronize", code)
    }

    /// Bytes of the device's memory that are free.
    ///
    /// # Errors
    /// A call of the driver that failed, or [`DeviceReason::Forked`].
    pub fn free_memory(&self) -> Result<u64, DeviceReason> {
        self.memory().map(|memory| memory.free)
    }

    /// The device's memory.
    ///
    /// # Errors
    /// As [`free_memory`](Self::free_memory).
    pub fn memory(&self) -> Result<MemoryInfo, DeviceReason> {
        let scope = self.context.enter()?;
        let mut free = 0;
        let mut total = 0;
        // SAFETY: the pointers are to local variables of the type that the function writes.
        let code = unsafe { (scope.functions.memory_info)(&raw mut free, &raw mut total) };
        scope.functions.check("cuMemGetInfo", code)?;
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    /// A stream of its own.
    ///
    /// # Errors
    /// As [`free_memory`](Self::free_memory).
    pub fn stream(&self) -> Result<Stream, DeviceReason> {
        let scope = self.context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable; `Stream` destroys what is made.
        let code = unsafe { (scope.functions.create_stream)(&raw mut raw, NON_BLOCKING) };
        scope.functions.check("cuStreamCreate", code)?;
        Ok(Stream { context: Arc::clone(&self.context), raw })
    }

    /// The stream of the thread that uses it, which is not to be dropped.
    #[cfg(test)]
    pub(crate) fn per_thread_stream(&self) -> Stream {
        let raw = std::ptr::without_provenance_mut(2);
        Stream { context: Arc::clone(&self.context), raw }
    }

    /// An event that nothing was recorded in, which counts as one that happened.
    ///
    /// # Errors
    /// As [`free_memory`](Self::free_memory).
    pub fn event(&self) -> Result<Event, DeviceReason> {
        let scope = self.context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: as in `stream`.
        let code = unsafe { (scope.functions.create_event)(&raw mut raw, BLOCKING_SYNC) };
        scope.functions.check("cuEventCreate", code)?;
        Ok(Event { context: Arc::clone(&self.context), raw })
    }

    /// Memory of the host that the device copies from without a detour; zeros.
    ///
    /// # Errors
    /// A call of the driver that failed, as when so much cannot be pinned; [`DeviceReason::Forked`].
    pub fn pinned(&self, bytes: usize) -> Result<PinnedMemory, DeviceReason> {
        let scope = self.context.enter()?;
        let mut start = std::ptr::null_mut();
        // SAFETY: the pointer is to a local variable; `PinnedMemory` frees what is made.
        let code =
            unsafe { (scope.functions.allocate_host)(&raw mut start, bytes.max(1), PORTABLE) };
        if code == OUT_OF_MEMORY {
            let error = format!("{bytes} bytes of the host cannot be pinned");
            return Err(DeviceReason::Library { function: "cuMemHostAlloc", error });
        }
        scope.functions.check("cuMemHostAlloc", code)?;
        let start = NonNull::new(start.cast::<u8>()).ok_or(DeviceReason::Library {
            function: "cuMemHostAlloc",
            error: "no memory and no error".to_owned(),
        })?;
        // SAFETY: the driver has just allocated so many bytes.
        unsafe { start.write_bytes(0, bytes) };
        Ok(PinnedMemory { context: Arc::clone(&self.context), start, bytes })
    }

    /// Memory of the device; nobody has cleared it.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<DeviceMemory, DeviceReason> {
        let scope = self.context.enter()?;
        let mut address = 0;
        // SAFETY: the pointer is to a local variable; `DeviceMemory` frees what is made.
        let code = unsafe { (scope.functions.allocate)(&raw mut address, bytes.max(1)) };
        if code == OUT_OF_MEMORY {
            let free = self.free_memory().unwrap_or(0);
            return Err(DeviceReason::OutOfMemory { need: bytes as u64, free });
        }
        scope.functions.check("cuMemAlloc", code)?;
        self.context.allocated.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(DeviceMemory { context: Arc::clone(&self.context), address, bytes })
    }

    /// The kernels of this crate, which the driver compiles once for all clones of the device.
    pub(crate) fn kernels(&self) -> Result<Arc<Module>, DeviceReason> {
        // Before the lock: a thread that a fork lacks may hold it.
        self.context.enter()?;
        let mut kernels = lock(&self.kernels);
        if let Some(kernels) = &*kernels {
            return Ok(Arc::clone(kernels));
        }
        let module = Arc::new(self.module(PTX)?);
        *kernels = Some(Arc::clone(&module));
        Ok(module)
    }

    /// Loads PTX.
    pub(crate) fn module(&self, ptx: &CStr) -> Result<Module, DeviceReason> {
        let scope = self.context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the text ends with a zero byte; `Module` unloads what is made.
        let code = unsafe { (scope.functions.load_module)(&raw mut raw, ptx.as_ptr().cast()) };
        scope.functions.check("cuModuleLoadData", code)?;
        Ok(Module { context: Arc::clone(&self.context), raw })
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.ordinal())
            .field("name", &self.name())
            .finish()
    }
}

/// Memory of a device.
pub(crate) struct DeviceMemory {
    context: Arc<Context>,
    pub(crate) address: u64,
    pub(crate) bytes: usize,
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.context.allocated.fetch_sub(self.bytes as u64, Ordering::Relaxed);
        // SAFETY: the address is that of an allocation which nobody else frees.
        self.context.release(|functions| unsafe { (functions.free)(self.address) });
    }
}

/// Pinned memory of the host.
pub struct PinnedMemory {
    context: Arc<Context>,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns its bytes as a `Box<[u8]>` does.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl Deref for PinnedMemory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes were allocated and initialised, and nobody writes while `self` is
        // borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl DerefMut for PinnedMemory {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let start = self.start.as_ptr().cast();
        // SAFETY: the address is that of an allocation which nobody else frees.
        self.context.release(|functions| unsafe { (functions.free_host)(start) });
    }
}

// SAFETY: the driver's allocation stays in its place while the value moves, and is initialised. A value
// that is a slab's memory is used by nobody else: the slab never dereferences it as a slice.
unsafe impl Backing for PinnedMemory {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for PinnedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedMemory").field("bytes", &self.bytes).finish()
    }
}
