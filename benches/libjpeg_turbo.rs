//! libjpeg-turbo, compiled with its assembly from the sources in `turbojpeg-sys`.

#![expect(unsafe_code, reason = "a C library")]

use std::ffi::{c_uchar, c_uint};
use std::ptr::NonNull;

use tl_simd::resample::Rect;
// Only for its library, which `libjpeg_turbo.c` calls.
use turbojpeg_sys as _;

/// The decoder of `libjpeg_turbo.c`.
#[repr(C)]
struct Handle {
    opaque: [u8; 0],
}

unsafe extern "C" {
    fn libjpeg_turbo_new() -> *mut Handle;
    fn libjpeg_turbo_free(decoder: *mut Handle);
    fn libjpeg_turbo_decode(
        decoder: *mut Handle,
        bytes: *const c_uchar,
        length: usize,
        eighths: c_uint,
        region: *const [c_uint; 4],
        out: *mut c_uchar,
        capacity: usize,
    ) -> usize;
}

/// A libjpeg-turbo decoder, used again from file to file.
#[derive(Debug)]
pub struct LibjpegTurbo(NonNull<Handle>);

impl LibjpegTurbo {
    /// A decoder.
    ///
    /// # Panics
    /// When there is no memory for one.
    #[expect(clippy::new_without_default, reason = "as C code makes one")]
    pub fn new() -> Self {
        // SAFETY: the function takes nothing, and returns an own object or null.
        let handle = unsafe { libjpeg_turbo_new() };
        Self(NonNull::new(handle).expect("memory for a decoder"))
    }

    /// Decodes a good file to RGB at `eighths`/8, cut to `region` when there is one, and says how
    /// many bytes of `out` that takes.
    ///
    /// # Panics
    /// When `out` is too small.
    pub fn decode(
        &mut self,
        bytes: &[u8],
        eighths: u32,
        region: Option<Rect>,
        out: &mut [u8],
    ) -> usize {
        let region = region.map_or([0; 4], |rect| [rect.x, rect.y, rect.width, rect.height]);
        // SAFETY: the handle is ours and used by one call at a time (`&mut self`); both slices are
        // given with their lengths, and the function writes no more than `capacity` bytes.
        let written = unsafe {
            libjpeg_turbo_decode(
                self.0.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                eighths,
                &raw const region,
                out.as_mut_ptr(),
                out.len(),
            )
        };
        assert_ne!(written, 0, "a buffer for the largest image");
        written
    }
}

impl Drop for LibjpegTurbo {
    fn drop(&mut self) {
        // SAFETY: the handle came from `libjpeg_turbo_new` and is not used after this.
        unsafe { libjpeg_turbo_free(self.0.as_ptr()) }
    }
}
