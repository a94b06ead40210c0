//! Files that nvJPEG decodes to planes in memory of the caller, for kernels that read them there.
#![expect(unsafe_code, reason = "calls of a C library; docs/safety.md")]

use std::ffi::c_int;

use super::{CHANNELS, COMPONENTS, NvJpegDecoder, Target};
use crate::driver::Stream;
use crate::reason::DeviceReason;

/// `NVJPEG_OUTPUT_RGB`: planes of red, green and blue.
const PLANAR_RGB: c_int = 3;

/// A JPEG file, and memory of the device for its planes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanarFile<'a> {
    /// The number of the sample, by which errors name it.
    pub(crate) sample: u64,
    pub(crate) bytes: &'a [u8],
    /// Width and height of the image.
    pub(crate) size: (u32, u32),
    /// The address of the plane of red; those of green and blue follow.
    pub(crate) planes: u64,
    /// Bytes from row to row, and from plane to plane.
    pub(crate) stride: usize,
    pub(crate) plane_bytes: usize,
}

impl PlanarFile<'_> {
    fn target(&self) -> Target {
        let plane = |number: usize| self.planes + (number * self.plane_bytes) as u64;
        let mut target = Target { channel: [0; COMPONENTS], pitch: [0; COMPONENTS] };
        for number in 0..CHANNELS {
            target.channel[number] = plane(number);
            target.pitch[number] = self.stride;
        }
        target
    }

    /// The error of a call for this file.
    fn failed(&self, reason: DeviceReason) -> DeviceReason {
        let DeviceReason::NvJpeg { function, error } = reason else { return reason };
        DeviceReason::NvJpegFile { sample: self.sample, function, error }
    }
}

impl NvJpegDecoder {
    /// Enqueues the decoding of `files`, once the work of `stream` is done: the decoder has memory of
    /// its own, which a batch before may still use.
    ///
    /// # Errors
    /// [`DeviceReason::NvJpegFile`] for the first file that the library does not decode by itself
    /// either; a call of the driver that failed; [`DeviceReason::Forked`].
    ///
    /// # Safety
    /// The planes have room for images of the sizes given, and nobody else uses them. They, the files
    /// and this decoder live until the stream has come so far. The decoder is used on this stream alone.
    pub(crate) unsafe fn decode_planes(
        &mut self,
        files: &[PlanarFile<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceReason> {
        for file in files {
            self.check_size(file).map_err(|reason| file.failed(reason))?;
        }
        stream.synchronize()?;
        // SAFETY: the sizes are those that the library finds; the caller vouches for the rest.
        let decoded = unsafe { self.enqueue_planes(files, stream) };
        let Err(DeviceReason::NvJpeg { .. }) = decoded else { return decoded };
        // The library does not say of which file.
        for file in files {
            stream.synchronize()?;
            // SAFETY: as above.
            let decoded = unsafe { self.enqueue_planes(std::slice::from_ref(file), stream) };
            decoded.map_err(|reason| file.failed(reason))?;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`decode_planes`](Self::decode_planes), with the sizes that the library finds.
    unsafe fn enqueue_planes(
        &mut self,
        files: &[PlanarFile<'_>],
        stream: &Stream,
    ) -> Result<(), DeviceReason> {
        let bytes: Vec<&[u8]> = files.iter().map(|file| file.bytes).collect();
        let mut targets: Vec<Target> = files.iter().map(PlanarFile::target).collect();
        // SAFETY: the caller vouches for it.
        unsafe { self.enqueue(&bytes, &mut targets, PLANAR_RGB, stream) }
    }

    /// Refuses a file in which the library finds an image of another size.
    fn check_size(&self, file: &PlanarFile<'_>) -> Result<(), DeviceReason> {
        let found = self.nvjpeg.size_of(file.bytes)?;
        let (width, height) = file.size;
        if (found.width, found.height) == (width as usize, height as usize) {
            return Ok(());
        }
        let error = format!(
            "an image of {}x{} pixels, expected {width}x{height}",
            found.width, found.height
        );
        Err(DeviceReason::NvJpeg { function: "nvjpegGetImageInfo", error })
    }
}
