//! Copies of what is erased in a batch, and the erasing.
#![expect(unsafe_code, reason = "copies and kernels that continue after the call; docs/safety.md")]

use super::pictures::with_room;
use super::{Images, Kept, Shared};
use crate::driver::{DeviceMemory, Stream};
use crate::erasures::{Gathering, RowErasures};
use crate::reason::DeviceReason;

impl Shared {
    /// Enqueues the erasing in the images that are converted to the buffer of `kept`, which gets the
    /// pinned memory of the copy before it is used; the bytes of the copy.
    ///
    /// # Safety
    /// The buffer has the images. Until the stream has come so far, `images` and `kept` live, and
    /// nobody looks at what it gets.
    ///
    /// # Panics
    /// If the images are not converted, or a rectangle leaves its image.
    pub(super) unsafe fn erase(
        &self,
        stream: &Stream,
        images: &Images,
        rows: &[RowErasures<'_>],
        copy: &mut Option<DeviceMemory>,
        kept: &mut Kept,
    ) -> Result<usize, DeviceReason> {
        let Images { conversion, count, pixels, width, .. } = images;
        let conversion = conversion.as_ref().expect("images are erased after a conversion");
        let side = |length: usize| u32::try_from(length).expect("a side of an image");
        let size = (side(*width), side(pixels / width));
        let gathering = Gathering::new(rows, size);
        let is_inside = rows.iter().all(|row| row.first_image + row.erasures.views() <= *count);
        assert!(is_inside, "an image beyond the {count} of the batch");
        let Kept { erasures, buffer, .. } = kept;
        let memory = erasures.insert(self.copies.take(&self.device, gathering.bytes)?);
        gathering.write(memory);
        let copy = self.reserve(stream, copy, gathering.bytes, with_room)?;
        // SAFETY: the caller keeps the memory; that of the device is freed only after a wait.
        unsafe { stream.copy_to_device(&memory[..gathering.bytes], copy, 0) }?;
        // SAFETY: as above, and the images are in the buffer, checked above.
        unsafe { conversion.erase(stream, copy, &gathering, buffer.memory(), size) }?;
        Ok(gathering.bytes)
    }
}
