//! From decoded pictures to the RGB pixels of a region as it is displayed.

use tl_decode::Orientation;
use tl_simd::resample::Rect;
use tl_video::{Parity, Picture, Region, VideoError};

const CHANNELS: usize = 3;

/// The part of a picture of `width` x `height` that is displayed as `region`, of those that
/// [`Orientation::of_rotation`] gives.
fn coded(orientation: Orientation, region: Rect, width: u32, height: u32) -> Rect {
    let Rect { x, y, width: across, height: down } = region;
    if orientation == Orientation::Rotate90 {
        Rect { x: y, y: height - x - across, width: down, height: across }
    } else if orientation == Orientation::Rotate180 {
        Rect { x: width - x - across, y: height - y - down, ..region }
    } else if orientation == Orientation::Rotate270 {
        Rect { x: width - y - down, y: x, width: down, height: across }
    } else {
        region
    }
}

/// The pixels of a region of a picture.
#[derive(Debug, Default)]
pub(super) struct Pixels {
    coded: Vec<u8>,
    turned: Vec<u8>,
}

impl Pixels {
    /// Bytes that a region takes on the way.
    pub(super) fn bytes(region: Rect, orientation: Orientation) -> u64 {
        let pixels = u64::from(region.width).saturating_mul(region.height.into());
        let images = if orientation == Orientation::Upright { 1 } else { 2 };
        pixels.saturating_mul(CHANNELS as u64).saturating_mul(images)
    }

    /// The pixels of `region`, in coordinates of the displayed picture, in rows without gaps.
    pub(super) fn of(
        &mut self,
        picture: &Picture,
        region: Rect,
        orientation: Orientation,
        parity: Parity,
    ) -> Result<&[u8], VideoError> {
        let Rect { x, y, width, height } =
            coded(orientation, region, picture.width, picture.height);
        self.coded.resize(width as usize * height as usize * CHANNELS, 0);
        picture.rgb(Region { left: x, top: y, width, height }, parity, &mut self.coded)?;
        if orientation == Orientation::Upright {
            return Ok(&self.coded);
        }
        let size = (width as usize, height as usize);
        orientation.turn(&self.coded, size, CHANNELS, &mut self.turned);
        Ok(&self.turned)
    }

    /// Gives back buffers larger than `bytes`.
    pub(super) fn trim(&mut self, bytes: usize) {
        crate::scratch::trim(&mut self.coded, bytes);
        crate::scratch::trim(&mut self.turned, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image turned clockwise by a quarter: its left column, from the bottom up, is the first row.
    fn quarter(image: &[Vec<[u8; 3]>]) -> Vec<Vec<[u8; 3]>> {
        let columns = 0..image[0].len();
        columns.map(|x| image.iter().rev().map(|row| row[x]).collect()).collect()
    }

    #[test]
    fn a_turned_region_is_the_region_of_the_turned_picture() {
        let picture: Vec<Vec<[u8; 3]>> =
            (0..4).map(|y| (0..6).map(|x| [x, y, 10 * y + x]).collect()).collect();
        let mut displayed = picture.clone();
        for degrees in [0, 90, 180, 270] {
            let orientation = Orientation::of_rotation(degrees);
            let (width, height) = orientation.shown_size((6, 4));
            assert_eq!((displayed[0].len(), displayed.len()), (width as usize, height as usize));
            for (x, y) in [(0, 0), (1, 2), (2, 1)] {
                let region = Rect { x, y, width: width - x - 1, height: height - y };
                let Rect { x: left, y: top, width: across, height: down } =
                    coded(orientation, region, 6, 4);
                let rows = &picture[top as usize..][..down as usize];
                let part = rows.iter().flat_map(|row| &row[left as usize..][..across as usize]);
                let part: Vec<u8> = part.flatten().copied().collect();
                let mut found = Vec::new();
                orientation.turn(&part, (across as usize, down as usize), 3, &mut found);
                let rows = &displayed[y as usize..][..region.height as usize];
                let expected =
                    rows.iter().flat_map(|row| &row[x as usize..][..region.width as usize]);
                let expected: Vec<u8> = expected.flatten().copied().collect();
                assert_eq!(found, expected, "{degrees} degrees, {region:?}");
            }
            displayed = quarter(&displayed);
        }
    }
}
