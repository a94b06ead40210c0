//! Padding around images, so that all images of a batch have one size.
//!
//! An image is rendered alone at the front of its row of the batch, and its lines are then moved in
//! place: its top left corner is the row's, and zeros follow on the right and below. All bits zero
//! are the number zero in every element type.

use tl_transform::{Channels, Layout, OutputSpec};

/// A plane of numbers, or of pixels of several, within a larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Padding {
    /// The number of planes.
    planes: usize,
    /// Bytes from one pixel to the next.
    pixel_bytes: usize,
    /// Width and height of what the planes lie in.
    outer: (u32, u32),
}

impl Padding {
    /// For images in the form of `output`.
    pub(crate) fn of_images(output: OutputSpec, channels: Channels, outer: (u32, u32)) -> Self {
        let number_bytes = output.dtype.bytes();
        let channels = channels.count() as usize;
        if output.layout == Layout::Hwc {
            Self { planes: 1, pixel_bytes: channels * number_bytes, outer }
        } else {
            Self { planes: channels, pixel_bytes: number_bytes, outer }
        }
    }

    /// Moves an image of `size`, which lies without gaps at the front of `row`, to its place there
    /// and fills the rest with zeros.
    ///
    /// # Panics
    /// When the image is larger than what it is to lie in, or `row` has another length than that.
    pub(crate) fn spread(&self, row: &mut [u8], size: (u32, u32)) {
        let [outer_width, outer_height] = [self.outer.0, self.outer.1].map(|side| side as usize);
        let [width, height] = [size.0, size.1].map(|side| side as usize);
        assert!(width <= outer_width && height <= outer_height, "{size:?} in {:?}", self.outer);
        let line = width * self.pixel_bytes;
        let outer_line = outer_width * self.pixel_bytes;
        let outer_plane = outer_line * outer_height;
        assert_eq!(row.len(), self.planes * outer_plane, "a row of {:?}", self.outer);
        if size == self.outer {
            return;
        }
        // From the last line to the first: each moves back, over lines that have moved already.
        for plane in (0..self.planes).rev() {
            row[plane * outer_plane + height * outer_line..(plane + 1) * outer_plane].fill(0);
            for y in (0..height).rev() {
                let from = (plane * height + y) * line;
                let to = plane * outer_plane + y * outer_line;
                row.copy_within(from..from + line, to);
                row[to + line..to + outer_line].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tl_transform::Dtype;

    /// The definition: every byte looked up where it comes from.
    fn expected(padding: Padding, image: &[u8], size: (u32, u32)) -> Vec<u8> {
        let Padding { planes, pixel_bytes, outer } = padding;
        let mut row = Vec::new();
        for plane in 0..planes {
            for y in 0..outer.1 as usize {
                for x in 0..outer.0 as usize {
                    for byte in 0..pixel_bytes {
                        let width = size.0 as usize;
                        let height = size.1 as usize;
                        let there = x < width && y < height;
                        let at = ((plane * height + y) * width + x) * pixel_bytes + byte;
                        row.push(if there { image[at] } else { 0 });
                    }
                }
            }
        }
        row
    }

    #[test]
    fn every_number_keeps_its_place_and_zeros_surround_it() {
        let forms = [
            (Layout::Chw, Channels::Rgb),
            (Layout::Hwc, Channels::Rgb),
            (Layout::Chw, Channels::Grey),
        ];
        for (layout, channels) in forms {
            let count = channels.count() as usize;
            for (dtype, outer) in [(Dtype::U8, (5, 4)), (Dtype::F32, (3, 3)), (Dtype::F16, (1, 6))]
            {
                let number_bytes = dtype.bytes();
                let padding = Padding::of_images(OutputSpec { dtype, layout }, channels, outer);
                for size in (0..=outer.0).flat_map(|w| (0..=outer.1).map(move |h| (w, h))) {
                    let bytes = (size.0 * size.1) as usize * count * number_bytes;
                    let image: Vec<u8> = (1..=u8::MAX).cycle().take(bytes).collect();
                    let mut row = vec![99; (outer.0 * outer.1) as usize * count * number_bytes];
                    row[..bytes].copy_from_slice(&image);
                    padding.spread(&mut row, size);
                    assert_eq!(row, expected(padding, &image, size), "{padding:?} {size:?}");
                }
            }
        }
    }

    #[test]
    fn an_image_that_is_too_large_is_refused() {
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        let padding = Padding::of_images(output, Channels::Rgb, (4, 2));
        let spread = || padding.spread(&mut [0; 24], (2, 3));
        assert!(std::panic::catch_unwind(spread).is_err());
    }
}
