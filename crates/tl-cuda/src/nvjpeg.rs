//! nvJPEG: decoding by NVIDIA's library, whose pixels differ a little from the exact ones.
//!
//! Its pixels depend on the library's version, so nothing falls back to it, or from it: who wants it
//! names it. The library is loaded at run time, and needs nothing but the driver.
#![expect(unsafe_code, reason = "calls of a C library; docs/safety.md")]

mod planar;

use std::ffi::{c_int, c_uint, c_void};
use std::fmt;
use std::path::{Path, PathBuf};

use tl_handoff::sync::Arc;

use crate::driver::{Device, DeviceMemory, Stream};
use crate::library::{Library, Opaque, functions};
use crate::reason::DeviceReason;
pub(crate) use planar::PlanarFile;

/// The library by its name, newest first.
const NAMES: [&str; 3] = ["libnvjpeg.so.13", "libnvjpeg.so.12", "libnvjpeg.so.11"];

/// The library in NVIDIA's wheels, from the folder of packages on.
const IN_WHEELS: [&str; 2] =
    ["nvidia/cu13/lib/libnvjpeg.so.13", "nvidia/nvjpeg/lib/libnvjpeg.so.12"];

/// The oldest major version that is used: that of the oldest driver.
const OLDEST: u32 = 11;

/// `NVJPEG_MAX_COMPONENT`.
const COMPONENTS: usize = 4;
/// `NVJPEG_OUTPUT_RGBI`: interleaved RGB.
const INTERLEAVED_RGB: c_int = 5;
/// `NVJPEG_BACKEND_DEFAULT`.
const DEFAULT_BACKEND: c_int = 0;
/// The channels of a decoded pixel.
const CHANNELS: usize = 3;
/// The alignment of images in the memory of a batch.
const ALIGNMENT: usize = 256;

/// `nvjpegImage_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Target {
    channel: [u64; COMPONENTS],
    pitch: [usize; COMPONENTS],
}

functions! { Functions, lacks;
    property = nvjpegGetProperty(c_int, *mut c_int);
    create = nvjpegCreateEx(c_int, *mut c_void, *mut c_void, c_uint, *mut Opaque);
    destroy = nvjpegDestroy(Opaque);
    create_state = nvjpegJpegStateCreate(Opaque, *mut Opaque);
    destroy_state = nvjpegJpegStateDestroy(Opaque);
    image_info = nvjpegGetImageInfo(Opaque, *const u8, usize, *mut c_int, *mut c_int, *mut c_int,
        *mut c_int);
    begin_batch = nvjpegDecodeBatchedInitialize(Opaque, Opaque, c_int, c_int, c_int);
    decode_batch = nvjpegDecodeBatched(Opaque, Opaque, *const *const u8, *const usize, *mut Target,
        Opaque);
}

/// The error for a library without a function.
fn lacks(function: &'static str) -> DeviceReason {
    DeviceReason::NvJpeg { function, error: "not in the library".to_owned() }
}

/// An error for a status other than success.
fn check(function: &'static str, status: c_int) -> Result<(), DeviceReason> {
    let error = match status {
        0 => return Ok(()),
        1 => "NVJPEG_STATUS_NOT_INITIALIZED".to_owned(),
        2 => "NVJPEG_STATUS_INVALID_PARAMETER".to_owned(),
        3 => "NVJPEG_STATUS_BAD_JPEG".to_owned(),
        4 => "NVJPEG_STATUS_JPEG_NOT_SUPPORTED".to_owned(),
        5 => "NVJPEG_STATUS_ALLOCATOR_FAILURE".to_owned(),
        6 => "NVJPEG_STATUS_EXECUTION_FAILED".to_owned(),
        7 => "NVJPEG_STATUS_ARCH_MISMATCH".to_owned(),
        8 => "NVJPEG_STATUS_INTERNAL_ERROR".to_owned(),
        9 => "NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED".to_owned(),
        10 => "NVJPEG_STATUS_INCOMPLETE_BITSTREAM".to_owned(),
        other => format!("status {other}"),
    };
    Err(DeviceReason::NvJpeg { function, error })
}

/// A version of nvJPEG, such as 12.4.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvJpegVersion {
    /// The number before the first point.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
    /// The last number.
    pub patch: u32,
}

impl fmt::Display for NvJpegVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The loaded library. Loading needs no driver.
#[derive(Clone, Copy, Debug)]
pub struct NvJpegLibrary {
    functions: &'static Functions,
    version: NvJpegVersion,
}

impl NvJpegLibrary {
    /// Loads the library at `path`. Without one, that of a wheel in `packages`, the folder of Python's
    /// packages, or the one that the system's loader finds.
    ///
    /// # Errors
    /// [`DeviceReason::NoNvJpeg`], with the message on the last one that was tried;
    /// [`DeviceReason::NvJpeg`] for another library.
    pub fn load(path: Option<&Path>, packages: Option<&Path>) -> Result<Self, DeviceReason> {
        let mut last = Err("no path".to_owned());
        for path in Self::candidates(path, packages) {
            last = Library::open(&path);
            if last.is_ok() {
                break;
            }
        }
        let library = last.map_err(|error| DeviceReason::NoNvJpeg { error })?;
        // It stays loaded, as the driver does.
        let functions = &*Box::leak(Box::new(Functions::of(&library)?));
        let number = |property: c_int| {
            let mut value = 0;
            // SAFETY: the pointer is to a local variable of the type that the function writes.
            let status = unsafe { (functions.property)(property, &raw mut value) };
            check("nvjpegGetProperty", status)?;
            Ok::<_, DeviceReason>(u32::try_from(value).unwrap_or(0))
        };
        let version = NvJpegVersion { major: number(0)?, minor: number(1)?, patch: number(2)? };
        if version.major < OLDEST {
            let error = format!("version {version}, expected {OLDEST}.0 or newer");
            return Err(DeviceReason::NvJpeg { function: "nvjpegGetProperty", error });
        }
        Ok(Self { functions, version })
    }

    fn candidates(path: Option<&Path>, packages: Option<&Path>) -> Vec<PathBuf> {
        if let Some(path) = path {
            return vec![path.to_owned()];
        }
        let in_wheels = packages.into_iter().flat_map(|packages| {
            let paths = IN_WHEELS.iter().map(move |place| packages.join(place));
            paths.filter(|path| path.exists())
        });
        in_wheels.chain(NAMES.iter().map(PathBuf::from)).collect()
    }

    /// The version, on which pixels depend.
    #[must_use]
    pub fn version(&self) -> NvJpegVersion {
        self.version
    }
}

/// The library in use on a device.
pub struct NvJpeg {
    library: NvJpegLibrary,
    device: Device,
    handle: Opaque,
}

// SAFETY: the library lets every thread use the handle; what is not shared is in decoders.
unsafe impl Send for NvJpeg {}
// SAFETY: as above.
unsafe impl Sync for NvJpeg {}

impl NvJpeg {
    /// Starts the library on a device.
    ///
    /// # Errors
    /// A call of the library that failed; [`DeviceReason::Forked`].
    pub fn new(device: &Device, library: NvJpegLibrary) -> Result<Self, DeviceReason> {
        let null = std::ptr::null_mut();
        let mut handle = null;
        device.current(|| {
            // SAFETY: the device's context is current; without allocators the library has its own; the
            // last pointer is to a local variable.
            let status = unsafe {
                (library.functions.create)(DEFAULT_BACKEND, null, null, 0, &raw mut handle)
            };
            check("nvjpegCreateEx", status)
        })?;
        Ok(Self { library, device: device.clone(), handle })
    }

    /// The library.
    #[must_use]
    pub fn library(&self) -> NvJpegLibrary {
        self.library
    }

    /// A decoder, which one thread uses at a time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn decoder(self: &Arc<Self>) -> Result<NvJpegDecoder, DeviceReason> {
        let mut state = std::ptr::null_mut();
        self.device.current(|| {
            // SAFETY: the handle exists as long as `self`; the pointer is to a local variable.
            let status =
                unsafe { (self.library.functions.create_state)(self.handle, &raw mut state) };
            check("nvjpegJpegStateCreate", status)
        })?;
        Ok(NvJpegDecoder { nvjpeg: Arc::clone(self), state })
    }

    /// Width and height of the image in a JPEG file.
    fn size_of(&self, file: &[u8]) -> Result<Pixels, DeviceReason> {
        let mut components = 0;
        let mut subsampling = 0;
        let mut widths = [0; COMPONENTS];
        let mut heights = [0; COMPONENTS];
        // SAFETY: the handle exists as long as `self`, the bytes while they are borrowed; the other
        // pointers are to local variables, arrays of as many numbers as the library writes.
        let status = unsafe {
            (self.library.functions.image_info)(
                self.handle,
                file.as_ptr(),
                file.len(),
                &raw mut components,
                &raw mut subsampling,
                widths.as_mut_ptr(),
                heights.as_mut_ptr(),
            )
        };
        check("nvjpegGetImageInfo", status)?;
        let side = |side: c_int| usize::try_from(side).ok().filter(|side| *side > 0);
        let [width, ..] = widths;
        let [height, ..] = heights;
        let size = side(width).zip(side(height));
        let (width, height) = size.ok_or_else(|| DeviceReason::NvJpeg {
            function: "nvjpegGetImageInfo",
            error: format!("an image of {width} x {height} pixels"),
        })?;
        Ok(Pixels { offset: 0, width, height })
    }
}

impl fmt::Debug for NvJpeg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.library.version;
        f.debug_struct("NvJpeg").field("version", &version).finish_non_exhaustive()
    }
}

impl Drop for NvJpeg {
    fn drop(&mut self) {
        let Self { library, device, handle } = self;
        // A failure is that of a lost device, or of a fork, where there is nothing to destroy.
        let destroyed = device.current(|| {
            // SAFETY: nobody else destroys it, and decoders count this value.
            check("nvjpegDestroy", unsafe { (library.functions.destroy)(*handle) })
        });
        drop(destroyed);
    }
}

/// The state of a decoder, with the memory that it uses again.
pub struct NvJpegDecoder {
    nvjpeg: Arc<NvJpeg>,
    state: Opaque,
}

// SAFETY: the state may be used by any thread, one at a time, which `&mut self` ensures.
unsafe impl Send for NvJpegDecoder {}

/// The place and size of an image in a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// Bytes before the first pixel.
    pub offset: usize,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
}

impl Pixels {
    /// Bytes of the image, interleaved RGB; none if there are too many.
    fn bytes(&self) -> Option<usize> {
        self.width.checked_mul(CHANNELS)?.checked_mul(self.height)
    }
}

/// Images of interleaved 8-bit RGB on a device.
pub struct DecodedImages {
    memory: DeviceMemory,
    images: Vec<Pixels>,
}

impl DecodedImages {
    /// The address of the memory.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// The images in it, in the order of the files.
    #[must_use]
    pub fn images(&self) -> &[Pixels] {
        &self.images
    }

    /// All bytes, copied to the host on `stream`.
    ///
    /// # Errors
    /// A call of the driver that failed; [`DeviceReason::Forked`].
    pub fn read(&self, stream: &Stream) -> Result<Vec<u8>, DeviceReason> {
        stream.read(&self.memory, self.memory.bytes)
    }
}

impl fmt::Debug for DecodedImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodedImages").field("images", &self.images).finish_non_exhaustive()
    }
}

impl NvJpegDecoder {
    /// Decodes JPEG files on `stream`, and waits for it. No file takes more of the device's memory than
    /// `most` bytes.
    ///
    /// # Errors
    /// [`DeviceReason::NvJpeg`] if the library does not take one of the files, damaged ones included;
    /// [`DeviceReason::OutOfMemory`]; a call of the driver that failed; [`DeviceReason::Forked`].
    pub fn decode(
        &mut self,
        files: &[&[u8]],
        most: usize,
        stream: &Stream,
    ) -> Result<DecodedImages, DeviceReason> {
        let nvjpeg = &*self.nvjpeg;
        let Places { images, bytes } = Places::of(nvjpeg, files, most)?;
        let memory = nvjpeg.device.allocate(bytes.max(1))?;
        let target = |image: &Pixels| {
            let address = memory.address + image.offset as u64;
            let pitch = image.width * CHANNELS;
            Target { channel: [address, 0, 0, 0], pitch: [pitch, 0, 0, 0] }
        };
        let mut targets: Vec<Target> = images.iter().map(target).collect();
        // SAFETY: the memory has room for the rows of the sizes that the library has found, and lives,
        // as the files do, until the stream was waited for below.
        let decoded = unsafe { self.enqueue(files, &mut targets, INTERLEAVED_RGB, stream) };
        // The library may have begun with what it does not take in the end.
        if let Err(reason) = stream.synchronize() {
            // A lost device, whose memory nobody gets.
            std::mem::forget(memory);
            return Err(reason);
        }
        decoded.map(|()| DecodedImages { memory, images })
    }

    /// Enqueues the decoding of files to pixels of `format`.
    ///
    /// # Safety
    /// `targets` are as many as the files, and have room for images of the sizes that the library finds
    /// in them. Files and memory live, and nobody else uses the memory, until the stream was waited for;
    /// so does what this decoder has enqueued before.
    unsafe fn enqueue(
        &mut self,
        files: &[&[u8]],
        targets: &mut [Target],
        format: c_int,
        stream: &Stream,
    ) -> Result<(), DeviceReason> {
        assert_eq!(files.len(), targets.len(), "a target for each file");
        if files.is_empty() {
            return Ok(());
        }
        let Self { nvjpeg, state } = self;
        let starts: Vec<*const u8> = files.iter().map(|file| file.as_ptr()).collect();
        let lengths: Vec<usize> = files.iter().map(|file| file.len()).collect();
        let count = c_int::try_from(files.len()).unwrap_or(c_int::MAX);
        nvjpeg.device.current(|| {
            let Functions { begin_batch, decode_batch, .. } = nvjpeg.library.functions;
            // SAFETY: handle and state exist as long as `self`, which is borrowed mutably.
            let status = unsafe { begin_batch(nvjpeg.handle, *state, count, 1, format) };
            check("nvjpegDecodeBatchedInitialize", status)?;
            // SAFETY: as above; the arrays have a file and a target for each of the batch, of which the
            // caller vouches for the rest.
            let status = unsafe {
                decode_batch(
                    nvjpeg.handle,
                    *state,
                    starts.as_ptr(),
                    lengths.as_ptr(),
                    targets.as_mut_ptr(),
                    stream.raw(),
                )
            };
            check("nvjpegDecodeBatched", status)
        })
    }
}

impl fmt::Debug for NvJpegDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NvJpegDecoder").field("nvjpeg", &self.nvjpeg).finish_non_exhaustive()
    }
}

impl Drop for NvJpegDecoder {
    fn drop(&mut self) {
        let Self { nvjpeg, state } = self;
        let destroyed = nvjpeg.device.current(|| {
            // SAFETY: nobody else destroys it, and no work of it is under way.
            let status = unsafe { (nvjpeg.library.functions.destroy_state)(*state) };
            check("nvjpegJpegStateDestroy", status)
        });
        drop(destroyed);
    }
}

/// The images of files, one after the other.
struct Places {
    images: Vec<Pixels>,
    bytes: usize,
}

impl Places {
    fn of(nvjpeg: &NvJpeg, files: &[&[u8]], most: usize) -> Result<Self, DeviceReason> {
        let mut images = Vec::with_capacity(files.len());
        let mut bytes = 0usize;
        for file in files {
            let size = nvjpeg.size_of(file)?;
            let too_large = DeviceReason::OutOfMemory { need: u64::MAX, free: most as u64 };
            let need = size.bytes().ok_or_else(|| too_large.clone())?;
            if need > most {
                return Err(DeviceReason::OutOfMemory { need: need as u64, free: most as u64 });
            }
            images.push(Pixels { offset: bytes, ..size });
            let end =
                bytes.checked_add(need).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
            bytes = end.ok_or(too_large)?;
        }
        Ok(Self { images, bytes })
    }
}

#[cfg(test)]
mod tests;
