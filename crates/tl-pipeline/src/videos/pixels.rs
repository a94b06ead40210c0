//! From decoded pictures to the RGB pixels of a region as it is displayed.

use tl_simd::resample::Rect;
use tl_video::{Parity, Picture, Region, VideoError};

const CHANNELS: usize = 3;

/// Degrees by which pictures are turned clockwise for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    Quarter,
    Half,
    ThreeQuarters,
}

impl Turn {
    pub(super) fn of(degrees: u16) -> Self {
        match degrees {
            90 => Self::Quarter,
            180 => Self::Half,
            270 => Self::ThreeQuarters,
            _ => Self::None,
        }
    }

    /// Width and height as displayed of a picture with this size.
    pub(super) fn displayed(self, width: u32, height: u32) -> (u32, u32) {
        match self {
            Self::None | Self::Half => (width, height),
            Self::Quarter | Self::ThreeQuarters => (height, width),
        }
    }

    /// The part of a picture of `width` x `height` that is displayed as `region`.
    fn coded(self, region: Rect, width: u32, height: u32) -> Rect {
        let Rect { x, y, width: across, height: down } = region;
        match self {
            Self::None => region,
            Self::Quarter => Rect { x: y, y: height - x - across, width: down, height: across },
            Self::Half => Rect { x: width - x - across, y: height - y - down, ..region },
            Self::ThreeQuarters => Rect { x: width - y - down, y: x, width: down, height: across },
        }
    }

    /// Turns an image of `width` x `height` coded pixels.
    fn turn(self, coded: &[u8], width: u32, height: u32, displayed: &mut Vec<u8>) {
        let width = width as usize;
        let height = height as usize;
        displayed.clear();
        let across = if matches!(self, Self::Half) { width } else { height };
        let pixel = |x: usize, y: usize| match self {
            Self::None => y * width + x,
            Self::Quarter => (height - 1 - x) * width + y,
            Self::Half => (height - 1 - y) * width + width - 1 - x,
            Self::ThreeQuarters => x * width + width - 1 - y,
        };
        let down = (width * height).checked_div(across).unwrap_or(0);
        for y in 0..down {
            for x in 0..across {
                let start = pixel(x, y) * CHANNELS;
                displayed.extend_from_slice(&coded[start..start + CHANNELS]);
            }
        }
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
    pub(super) fn bytes(region: Rect, turn: Turn) -> u64 {
        let pixels = u64::from(region.width).saturating_mul(region.height.into());
        let images = if turn == Turn::None { 1 } else { 2 };
        pixels.saturating_mul(CHANNELS as u64).saturating_mul(images)
    }

    /// The pixels of `region`, in coordinates of the displayed picture, in rows without gaps.
    pub(super) fn of(
        &mut self,
        picture: &Picture,
        region: Rect,
        turn: Turn,
        parity: Parity,
    ) -> Result<&[u8], VideoError> {
        let Rect { x, y, width, height } = turn.coded(region, picture.width, picture.height);
        self.coded.resize(width as usize * height as usize * CHANNELS, 0);
        picture.rgb(Region { left: x, top: y, width, height }, parity, &mut self.coded)?;
        if turn == Turn::None {
            return Ok(&self.coded);
        }
        turn.turn(&self.coded, width, height, &mut self.turned);
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
        let coded: Vec<Vec<[u8; 3]>> =
            (0..4).map(|y| (0..6).map(|x| [x, y, 10 * y + x]).collect()).collect();
        let mut displayed = coded.clone();
        for degrees in [0, 90, 180, 270] {
            let turn = Turn::of(degrees);
            let (width, height) = turn.displayed(6, 4);
            assert_eq!((displayed[0].len(), displayed.len()), (width as usize, height as usize));
            for (x, y) in [(0, 0), (1, 2), (2, 1)] {
                let region = Rect { x, y, width: width - x - 1, height: height - y };
                let Rect { x: left, y: top, width: across, height: down } =
                    turn.coded(region, 6, 4);
                let rows = &coded[top as usize..][..down as usize];
                let part = rows.iter().flat_map(|row| &row[left as usize..][..across as usize]);
                let part: Vec<u8> = part.flatten().copied().collect();
                let mut found = Vec::new();
                turn.turn(&part, across, down, &mut found);
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
