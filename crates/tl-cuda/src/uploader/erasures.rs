//! Copies of what is erased in a batch, and the erasing.
#![expect(unsafe_code, reason = "copies and kernels that continue after the call; docs/safety.md")]

use super::pictures::with_room;
use super::{Images, Shared};
use crate::driver::{DeviceMemory, PinnedMemory};
use crate::erasures::{Gathering, RowErasures};
use crate::reason::DeviceReason;

impl Shared {
    /// Enqueues the erasing in the images that are converted to `to`; the pinned memory of the copy,
    /// and its bytes. `keep` gets the memory before it is used.
    ///
    /// # Safety
    /// `to` has the images. Until the stream has come so far, it, `images` and what `keep` gets live,
    /// and nobody looks at the latter.
    ///
    /// # Panics
    /// When the images are not converted, or a rectangle leaves its image.
    pub(super) unsafe fn erase(
        &self,
        images: &Images,
        rows: &[RowErasures<'_>],
        keep: &mut Option<PinnedMemory>,
        copy: &mut Option<DeviceMemory>,
        to: &DeviceMemory,
    ) -> Result<usize, DeviceReason> {
        let Self { stream, device, .. } = self;
        let Images { conversion, count, pixels, width, .. } = images;
        let conversion = conversion.as_ref().expect("images are erased after a conversion");
        let side = |length: usize| u32::try_from(length).expect("a side of an image");
        let size = (side(*width), side(pixels / width));
        let gathering = Gathering::new(rows, size);
        let is_inside = rows.iter().all(|row| row.first_image + row.erasures.views() <= *count);
        assert!(is_inside, "an image beyond the {count} of the batch");
        let memory = keep.insert(self.pinned.take(device, gathering.bytes)?);
        gathering.write(memory);
        let copy = self.reserve(copy, gathering.bytes, with_room)?;
        // SAFETY: the caller keeps the memory; that of the device is freed only after a wait.
        unsafe { stream.copy_to_device(&memory[..gathering.bytes], copy, 0) }?;
        // SAFETY: as above, and the images are in `to`, checked above.
        unsafe { conversion.erase(stream, copy, &gathering, to, size) }?;
        Ok(gathering.bytes)
    }
}
