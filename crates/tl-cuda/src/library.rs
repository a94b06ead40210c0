//! Libraries in C: their functions, found at run time; and those of the driver.
#![expect(unsafe_code, reason = "loading a C library; docs/safety.md")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::reason::{CudaVersion, DeviceReason};

/// The driver's library, as the system's loader finds it.
const LIBRARY: &str = "libcuda.so.1";

/// A pointer that only the driver looks behind.
pub(crate) type Opaque = *mut c_void;

/// `CUresult`.
pub(crate) type Code = c_int;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const OUT_OF_MEMORY: Code = 2;
/// The result in a fork of a process that uses CUDA.
const NOT_INITIALIZED: Code = 3;
const NO_DEVICE: Code = 100;

/// Declares the functions of a library with their types, in the form of its header: the name of the
/// struct, and the error for a function that the library lacks.
macro_rules! functions {
    ($functions:ident, $lacks:path; $($name:ident = $symbol:ident($($argument:ty),*);)*) => {
        /// The functions of a library that the crate calls.
        #[derive(Debug)]
        pub(crate) struct $functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $crate::library::Code,)*
        }

        impl $functions {
            fn of(library: &$crate::library::Library) -> Result<Self, $crate::reason::DeviceReason> {
                Ok(Self {
                    $($name: {
                        const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                            concat!(stringify!($symbol), "\0").as_bytes(),
                        ) {
                            Ok(name) => name,
                            Err(_) => c"",
                        };
                        let lacks = || $lacks(stringify!($symbol));
                        let address = library.symbol(NAME).ok_or_else(lacks)?;
                        // SAFETY: the address is that of the function with this name, whose type in
                        // the header of the library is the one declared for it.
                        unsafe {
                            std::mem::transmute::<
                                std::ptr::NonNull<std::ffi::c_void>,
                                unsafe extern "C" fn($($argument),*) -> $crate::library::Code,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

pub(crate) use functions;

functions! { Functions, lacks;
    init = cuInit(c_uint);
    driver_version = cuDriverGetVersion(*mut c_int);
    device_count = cuDeviceGetCount(*mut c_int);
    device = cuDeviceGet(*mut c_int, c_int);
    device_name = cuDeviceGetName(*mut c_char, c_int, c_int);
    retain_context = cuDevicePrimaryCtxRetain(*mut Opaque, c_int);
    release_context = cuDevicePrimaryCtxRelease_v2(c_int);
    push_context = cuCtxPushCurrent_v2(Opaque);
    pop_context = cuCtxPopCurrent_v2(*mut Opaque);
    synchronize_context = cuCtxSynchronize();
    exchange_capture_mode = cuThreadExchangeStreamCaptureMode(*mut c_int);
    capture_status = cuStreamIsCapturing(Opaque, *mut c_int);
    memory_info = cuMemGetInfo_v2(*mut usize, *mut usize);
    allocate = cuMemAlloc_v2(*mut u64, usize);
    free = cuMemFree_v2(u64);
    allocate_host = cuMemHostAlloc(*mut Opaque, usize, c_uint);
    free_host = cuMemFreeHost(Opaque);
    copy_to_device = cuMemcpyHtoDAsync_v2(u64, *const c_void, usize, Opaque);
    copy_to_host = cuMemcpyDtoHAsync_v2(Opaque, u64, usize, Opaque);
    create_stream = cuStreamCreate(*mut Opaque, c_uint);
    destroy_stream = cuStreamDestroy_v2(Opaque);
    synchronize_stream = cuStreamSynchronize(Opaque);
    wait_event = cuStreamWaitEvent(Opaque, Opaque, c_uint);
    create_event = cuEventCreate(*mut Opaque, c_uint);
    destroy_event = cuEventDestroy_v2(Opaque);
    record_event = cuEventRecord(Opaque, Opaque);
    synchronize_event = cuEventSynchronize(Opaque);
    elapsed_time = cuEventElapsedTime(*mut f32, Opaque, Opaque);
    load_module = cuModuleLoadData(*mut Opaque, *const c_void);
    unload_module = cuModuleUnload(Opaque);
    function = cuModuleGetFunction(*mut Opaque, Opaque, *const c_char);
    launch = cuLaunchKernel(Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque,
        *mut *mut c_void, *mut *mut c_void);
    error_name = cuGetErrorName(Code, *mut *const c_char);
}

/// The error for a driver without a function.
fn lacks(function: &'static str) -> DeviceReason {
    DeviceReason::Library { function, error: "not in the library".to_owned() }
}

/// A loaded library, which stays loaded.
pub(crate) struct Library {
    handle: NonNull<c_void>,
}

impl Library {
    /// Loads the library at `path`, or by its name where the system's loader finds it; otherwise the
    /// message of that.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the path ends with a zero byte. The constructors that run are those of a library
        // that the system's loader or the caller names.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(|handle| Self { handle }).ok_or_else(message)
    }

    /// The address of a function; none if the library lacks it.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is that of a library which nobody closes; the name ends with a zero byte.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// The loader's message on its last failure in this thread.
fn message() -> String {
    // SAFETY: it takes no argument, and what it returns is valid until the thread's next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not null, so a C string, copied before any other call of the loader.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

impl Functions {
    /// The functions of the system's driver, loaded once. A library that could not be loaded is looked
    /// for again by the next call.
    pub(crate) fn of_system() -> Result<&'static Self, DeviceReason> {
        static LOADED: OnceLock<Functions> = OnceLock::new();
        if let Some(functions) = LOADED.get() {
            return Ok(functions);
        }
        let functions = Self::load(Path::new(LIBRARY))?;
        Ok(LOADED.get_or_init(|| functions))
    }

    /// The functions of the library at `path`, which has checked its version and started.
    pub(crate) fn load(path: &Path) -> Result<Self, DeviceReason> {
        let library = Library::open(path).map_err(|error| DeviceReason::NoDriver { error })?;
        let functions = Self::of(&library)?;
        let found = functions.version()?;
        if found < CudaVersion::OLDEST {
            return Err(DeviceReason::DriverTooOld { found, need: CudaVersion::OLDEST });
        }
        // SAFETY: it takes a number, 0.
        let code = unsafe { (functions.init)(0) };
        match code {
            NO_DEVICE => return Err(DeviceReason::NoDevice { ordinal: 0, devices: 0 }),
            NOT_INITIALIZED => return Err(DeviceReason::Forked),
            code => functions.check("cuInit", code)?,
        }
        Ok(functions)
    }

    /// The newest CUDA that the driver supports.
    pub(crate) fn version(&self) -> Result<CudaVersion, DeviceReason> {
        let mut number = 0;
        // SAFETY: the pointer is to a local variable of the type that the function writes.
        let code = unsafe { (self.driver_version)(&raw mut number) };
        self.check("cuDriverGetVersion", code)?;
        Ok(CudaVersion::of_number(u32::try_from(number).unwrap_or(0)))
    }

    /// The number of devices that the process sees.
    pub(crate) fn devices(&self) -> Result<u32, DeviceReason> {
        let mut devices = 0;
        // SAFETY: the pointer is to a local variable of the type that the function writes.
        let code = unsafe { (self.device_count)(&raw mut devices) };
        match code {
            NOT_INITIALIZED => return Err(DeviceReason::Forked),
            code => self.check("cuDeviceGetCount", code)?,
        }
        Ok(u32::try_from(devices).unwrap_or(0))
    }

    /// An error for a code other than success.
    pub(crate) fn check(&self, function: &'static str, code: Code) -> Result<(), DeviceReason> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: the pointer is to a local variable of the type that the function writes.
        let known = unsafe { (self.error_name)(code, &raw mut name) };
        let error = if known != SUCCESS || name.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: the driver has set it to a C string that it never frees.
            let name = unsafe { CStr::from_ptr(name) };
            name.to_string_lossy().into_owned()
        };
        Err(DeviceReason::Library { function, error })
    }
}
