//! From decoded pictures to the RGB pixels of a region as it is displayed.

use tl_simd::resample::Rect;
use tl_video::{Chroma, Picture};

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
    pub(super) fn of(&mut self, picture: &Picture, region: Rect, turn: Turn) -> &[u8] {
        let Rect { x, y, width, height } = turn.coded(region, picture.width, picture.height);
        self.coded.resize(width as usize * height as usize * CHANNELS, 0);
        rgb(picture, Rect { x, y, width, height }, &mut self.coded);
        if turn == Turn::None {
            return &self.coded;
        }
        turn.turn(&self.coded, width, height, &mut self.turned);
        &self.turned
    }

    /// Gives back buffers larger than `bytes`.
    pub(super) fn trim(&mut self, bytes: usize) {
        crate::scratch::trim(&mut self.coded, bytes);
        crate::scratch::trim(&mut self.turned, bytes);
    }
}

/// FFmpeg's conversion on x86.
fn rgb(picture: &Picture, region: Rect, out: &mut [u8]) {
    let is_full = picture.color.full_range == Some(true);
    let [cy, vr, ub, ug, vg] = match (picture.color.matrix == Some(1), is_full) {
        (false, false) => [9539, 13075, 16525, -3209, -6660],
        (true, false) => [9539, 14686, 17305, -1747, -4366],
        (false, true) => [8192, 11485, 14516, -2819, -5850],
        (true, true) => [8192, 12901, 15201, -1535, -3835],
    };
    let offset = if is_full { 0 } else { 128 };
    let [luma, blue, red] = picture.views();
    let half_rows = u32::from(picture.chroma == Chroma::Yuv420);
    let sample = |plane: &tl_video::Plane<'_>, x: u32, y: u32| -> i32 {
        let at = y as usize * plane.width as usize + x as usize;
        match picture.bit_depth {
            8 => plane.samples.get(at).copied().unwrap_or(0).into(),
            depth => {
                let bytes = plane.samples.get(2 * at..2 * at + 2).unwrap_or(&[0, 0]);
                i32::from(u16::from_le_bytes([bytes[0], bytes[1]])) >> (depth - 8)
            }
        }
    };
    let clip = |value: i32| u8::try_from(value.clamp(0, 255)).unwrap_or(0);
    for (row, out) in out.chunks_exact_mut(region.width as usize * CHANNELS).enumerate() {
        let y = region.y + u32::try_from(row).unwrap_or(0);
        for (column, pixel) in out.chunks_exact_mut(CHANNELS).enumerate() {
            let x = region.x + u32::try_from(column).unwrap_or(0);
            let luma = (((sample(&luma, x, y) << 3) - offset) * cy) >> 16;
            let u = (sample(&blue, x / 2, y >> half_rows) << 3) - 1024;
            let v = (sample(&red, x / 2, y >> half_rows) << 3) - 1024;
            pixel[0] = clip(luma + ((v * vr) >> 16));
            pixel[1] = clip(luma + ((u * ug) >> 16) + ((v * vg) >> 16));
            pixel[2] = clip(luma + ((u * ub) >> 16));
        }
    }
}
