//! Copies of what is erased in a batch, and the erasing.
#![expect(unsafe_code, reason = "copies and kernels that continue after the call; docs/safety.md")]

use super::{Images, Kept, Shared};
use crate::driver::{DeviceMemory, Stream};
use crate::erasures::{Gathering, MOST_NUMBERS, RowErasures};
use crate::reason::DeviceReason;

impl Images {
    /// The plan for what is erased in these images.
    ///
    /// # Panics
    /// If something is erased in images that are not there, or a rectangle leaves its image.
    pub(super) fn erased<'a>(
        &self,
        rows: &'a [RowErasures<'a>],
    ) -> Result<Gathering<'a>, DeviceReason> {
        let is_inside = rows.iter().all(|row| row.first_image + row.erasures.views() <= self.count);
        assert!(is_inside, "an image beyond the {} of the batch", self.count);
        Gathering::new(rows, self.size(), MOST_NUMBERS)
    }

    /// Width and height.
    fn size(&self) -> (u32, u32) {
        let side = |length: usize| u32::try_from(length).expect("a side of an image");
        (side(self.width), side(self.pixels / self.width.max(1)))
    }
}

impl Shared {
    /// Enqueues the erasing in the images that are converted to the buffer of `kept`; the bytes of the
    /// copy.
    ///
    /// # Safety
    /// The buffer has the images, and the copy of `kept` was made with `gathering`. Until the stream
    /// has come so far, `images` and `kept` live.
    ///
    /// # Panics
    /// If the images are not converted.
    pub(super) unsafe fn erase(
        &self,
        stream: &Stream,
        images: &Images,
        gathering: &Gathering<'_>,
        to: &mut Option<DeviceMemory>,
        kept: &Kept,
    ) -> Result<usize, DeviceReason> {
        let Kept { copy: Some(copy), buffer, .. } = kept else { return Ok(0) };
        if gathering.bytes == 0 {
            return Ok(0);
        }
        let conversion = images.conversion.as_ref().expect("images are erased after a conversion");
        let to = self.reserve(stream, to, gathering.bytes, usize::MAX)?;
        // SAFETY: the caller keeps the memory; that of the device is freed only after a wait.
        unsafe { stream.copy_to_device(copy.erasures(gathering.bytes), to, 0) }?;
        // SAFETY: as above, and the images are in the buffer, which `Images::erased` has checked.
        unsafe { conversion.erase(stream, to, gathering, buffer.memory(), images.size()) }?;
        Ok(gathering.bytes)
    }
}
