//! Masks: one number per pixel, which are moved and never mixed.

use tl_simd::Level;
use tl_simd::pad::{Border, Flips, Margins, frame, pad};
use tl_simd::resample::{Filter, ImageView, Rect, Resampler, Resize, TensorFilter};

use crate::error::{AnnotationError, PlanError};

/// A plane of 8-bit numbers, such as classes or the parts of one object: torchvision's `Mask`.
///
/// Several masks of one image are several of these.
///
/// ```
/// use tl_transform::Mask;
///
/// let mut mask = Mask::new(2, 1, vec![1, 7])?;
/// mask.resize((4, 1))?;
/// assert_eq!(mask.data(), [1, 1, 7, 7]);
/// # Ok::<(), tl_transform::AnnotationError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    width: u32,
    height: u32,
    data: Vec<u8>,
}

impl Mask {
    /// A mask of `width * height` numbers, row by row.
    ///
    /// # Errors
    /// [`AnnotationError::MaskLength`] when there are not exactly this many, or none, and
    /// [`AnnotationError::Size`] when a side is above 65,535.
    pub fn new(width: u32, height: u32, data: Vec<u8>) -> Result<Self, AnnotationError> {
        let need = u64::from(width) * u64::from(height);
        if need == 0 || usize::try_from(need) != Ok(data.len()) {
            return Err(AnnotationError::MaskLength { width, height, have: data.len() });
        }
        checked((width.into(), height.into()))?;
        Ok(Self { width, height, data })
    }

    /// Width and height.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The numbers, row by row.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The mask as an image of one channel.
    pub(crate) fn view(&self) -> ImageView<'_> {
        ImageView::packed(&self.data, self.width, self.height, 1)
    }

    /// Replaces the numbers by those of another size, which are 0 until `make` fills them. It is not
    /// called if there are none before or after.
    pub(crate) fn replace(&mut self, size: (u32, u32), make: impl FnOnce(&Self, &mut [u8])) {
        let mut data = vec![0; size.0 as usize * size.1 as usize];
        if !self.data.is_empty() && !data.is_empty() {
            make(self, &mut data);
        }
        *self = Self { width: size.0, height: size.1, data };
    }

    /// Cuts the mask to the part of the image that begins at (`x`, `y`) and is `size` large, 0
    /// where it reaches beyond the image: `crop_mask`, which gives another size where the part ends
    /// to the left of the image or above it.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side of the part is above 65,535.
    pub fn crop(&mut self, corner: (i64, i64), size: (u32, u32)) -> Result<(), AnnotationError> {
        checked((size.0.into(), size.1.into()))?;
        // The part of one axis that the mask has, and its position in the result.
        let shared = |start: i64, length: u32, side: u32| {
            let end = start.saturating_add(length.into()).min(side.into());
            let from = start.max(0);
            let count = usize::try_from(end - from).unwrap_or(0);
            (
                usize::try_from(from).unwrap_or(0),
                usize::try_from(from.saturating_sub(start)).unwrap_or(0),
                count,
            )
        };
        let (left, to_x, columns) = shared(corner.0, size.0, self.width);
        let (top, to_y, rows) = shared(corner.1, size.1, self.height);
        self.replace(size, |mask, out| {
            let rows = if columns == 0 { 0 } else { rows };
            for row in 0..rows {
                let from = (top + row) * mask.width as usize + left;
                let to = (to_y + row) * size.0 as usize + to_x;
                out[to..to + columns].copy_from_slice(&mask.data[from..from + columns]);
            }
        });
        Ok(())
    }

    /// Moves with an image that is resized, by torch's `nearest` whatever the image's filter is:
    /// `resize_mask`.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is above 65,535.
    pub fn resize(&mut self, size: (u32, u32)) -> Result<(), AnnotationError> {
        self.resize_whole(size, TensorFilter::Nearest)
    }

    /// [`Mask::resize`] by torch's `nearest-exact`, which torchvision takes where the image's
    /// filter is that.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is above 65,535.
    pub fn resize_exact(&mut self, size: (u32, u32)) -> Result<(), AnnotationError> {
        self.resize_whole(size, TensorFilter::NearestExact)
    }

    fn resize_whole(
        &mut self,
        size: (u32, u32),
        filter: TensorFilter,
    ) -> Result<(), AnnotationError> {
        checked((size.0.into(), size.1.into()))?;
        if size != self.size() {
            let region = Rect::of_size(self.width, self.height);
            let window = Rect::of_size(size.0, size.1);
            let filter = Filter::Tensor(filter);
            self.resample(&Resize { region, resized: size, window, filter });
        }
        Ok(())
    }

    /// Resizes the region of `resize`, which lies in the mask, and keeps the window of the result.
    pub(crate) fn resample(&mut self, resize: &Resize) {
        let size = (resize.window.width, resize.window.height);
        self.replace(size, |mask, out| {
            let mut rows = out.chunks_exact_mut(size.0 as usize);
            Resampler::new().run(Level::detect(), mask.view(), resize, |_, row| {
                if let Some(out) = rows.next() {
                    out.copy_from_slice(row);
                }
            });
        });
    }

    /// Moves with an image that gets a border: `pad_mask`.
    ///
    /// # Errors
    /// [`AnnotationError::Size`] when a side is above 65,535 with it.
    pub fn pad(&mut self, margins: Margins, border: Border) -> Result<(), AnnotationError> {
        let Margins { left, top, right, bottom } = margins;
        let sum = |numbers: [u32; 3]| numbers.into_iter().map(u64::from).sum();
        let size = checked((sum([left, self.width, right]), sum([top, self.height, bottom])))?;
        self.replace(size, |mask, out| pad(Level::detect(), mask.view(), margins, border, out));
        Ok(())
    }

    /// Moves with an image whose left and right change places.
    pub fn flip(&mut self) {
        let flips = Flips { horizontal: true, vertical: false };
        self.frame(self.size(), Margins::default(), 0, flips);
    }

    /// Moves with an image whose top and bottom change places.
    pub fn flip_vertical(&mut self) {
        let flips = Flips { horizontal: false, vertical: true };
        self.frame(self.size(), Margins::default(), 0, flips);
    }

    /// Moves with an image that gets a border, is `size` large then, and is flipped.
    pub(crate) fn frame(&mut self, size: (u32, u32), margins: Margins, number: u8, flips: Flips) {
        self.replace(size, |mask, out| {
            frame(Level::detect(), mask.view(), margins, &[number], flips, out);
        });
    }
}

/// The size of a mask, which has no more rows and columns than an image.
fn checked(size: (u64, u64)) -> Result<(u32, u32), AnnotationError> {
    let side = |side: u64| u32::try_from(side).unwrap_or(u32::MAX);
    let width = side(size.0);
    let height = side(size.1);
    if width.max(height) > PlanError::MAX_SIDE {
        return Err(AnnotationError::Size { width, height });
    }
    Ok((width, height))
}
