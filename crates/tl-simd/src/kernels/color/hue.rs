//! Turning hues, in Pillow's eight bits and in PyTorch's floats.

use super::blend::to_f32;
use super::blocks::{self, BLOCK, Change, Plane, Planes};
use crate::Level;
use crate::vector::RGB;

/// Adds `shift` to the hue of every pixel, where a turn has 256 steps: `convert("HSV")` of Pillow,
/// the sum modulo 256, and `convert("RGB")`.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn shift_hue_bytes(level: Level, shift: u8, pixels: &mut [u8]) {
    blocks::change(level, pixels, &Bytes { shift });
}

/// Turns the hue of every pixel by `factor` turns, as `adjust_hue` of torchvision does on tensors.
///
/// # Panics
///
/// When `pixels` is not a whole number of RGB pixels.
pub fn shift_hue(level: Level, factor: f64, pixels: &mut [u8]) {
    blocks::change(level, pixels, &Floats { factor: to_f32(factor) });
}

struct Bytes {
    shift: u8,
}

/// Hue, saturation and value of a block, in bytes.
struct Hsv {
    hue: Plane,
    saturation: Plane,
    value: Plane,
}

impl Change for Bytes {
    #[inline(always)]
    fn change(&self, planes: &mut Planes) {
        let mut hsv = to_hsv(planes);
        for hue in &mut hsv.hue {
            *hue = hue.wrapping_add(self.shift);
        }
        *planes = to_rgb(&hsv);
    }
}

/// Pillow's `rgb2hsv`. Its floats give the whole numbers below the exact hue and saturation, except
/// for hues that are whole and [`is_rounded_down`].
///
/// The hue of greys is not Pillow's zero, but nothing depends on it, as their saturation is zero.
#[inline(always)]
fn to_hsv([red, green, blue]: &Planes) -> Hsv {
    let mut value = [0; BLOCK];
    let mut range = [0; BLOCK];
    for index in 0..BLOCK {
        let red = red[index];
        let green = green[index];
        let blue = blue[index];
        value[index] = red.max(green).max(blue);
        range[index] = value[index] - red.min(green).min(blue);
    }
    // The hue in sextants from red, times the range.
    let mut distance = [0; BLOCK];
    for index in 0..BLOCK {
        let [red, green, blue] =
            [i16::from(red[index]), i16::from(green[index]), i16::from(blue[index])];
        let value = i16::from(value[index]);
        let range = i16::from(range[index]);
        let before_red = if green < blue { 6 * range } else { 0 };
        let others = if green == value { 2 * range + blue - red } else { 4 * range + red - green };
        distance[index] = if red == value { before_red + green - blue } else { others };
    }
    let mut hue = [0; BLOCK];
    let mut saturation = [0; BLOCK];
    let mut is_whole = [0_u8; BLOCK];
    for index in 0..BLOCK {
        let value = f32::from(value[index]);
        let range = f32::from(range[index]);
        // One reciprocal serves both quotients. A half more in a numerator keeps the quotients of
        // whole numbers away from whole numbers, by more than the floats' errors.
        let reciprocal = 1.0 / (value * range).max(1.0);
        saturation[index] = below((255.0 * range + 0.5) * (range * reciprocal)).1;
        let numerator = 85.0 * f32::from(distance[index]);
        let (steps, byte) = below((numerator + 0.5) * (0.5 * value * reciprocal));
        hue[index] = byte;
        is_whole[index] = u8::from(steps * (2.0 * range) == numerator);
    }
    for (hue, is_whole) in hue.iter_mut().zip(is_whole) {
        *hue = hue.wrapping_sub(is_whole & u8::from(is_rounded_down(*hue)));
    }
    Hsv { hue, saturation, value }
}

/// The whole number below a value between 0 and 256 that is not near one, in two forms.
#[expect(clippy::cast_possible_truncation, reason = "the low byte of the fraction")]
#[inline(always)]
fn below(value: f32) -> (f32, u8) {
    /// From here on, neighbouring floats are whole numbers, and end in their bits.
    const WHOLE: f32 = 12_582_912.0;
    let shifted = (value - 0.5) + WHOLE;
    (shifted - WHOLE, shifted.to_bits() as u8)
}

/// Truncated and clipped to a byte. A vector of floats has no conversion that saturates, but in a sum
/// with 2^23 the last bits of the significand count ones.
#[expect(clippy::cast_possible_truncation, reason = "the low byte of the fraction")]
#[inline(always)]
fn clip(value: f32) -> u8 {
    const ONES: f32 = 8_388_608.0;
    (value.clamp(0.0, 255.0).floor() + ONES).to_bits() as u8
}

/// Whether Pillow's floats make the exact hue `steps` too small, so that it becomes the one below.
/// Found by converting all colours; the tests do that again.
#[inline(always)]
fn is_rounded_down(steps: u8) -> bool {
    let in_first = steps.wrapping_sub(1) < 31;
    let in_second = steps & 3 == 0 && steps.wrapping_sub(88) <= 16;
    let in_third = steps & 1 == 1 && steps.wrapping_sub(129) <= 20;
    let in_fourth = steps & 3 == 1 && steps.wrapping_sub(149) <= 60;
    in_first | in_second | in_third | in_fourth | (steps == 176) | (steps == 184)
}

/// Pillow's `hsv2rgb`, which rounds to nearest. Ties cannot occur, because 255 is odd.
#[inline(always)]
fn to_rgb(hsv: &Hsv) -> Planes {
    let Hsv { hue, saturation, value } = hsv;
    let mut sextant = [0_u8; BLOCK];
    let mut least = [0_u8; BLOCK];
    // 255 squared less what the middle channel has lost of the largest one.
    let mut kept = [0_u16; BLOCK];
    for index in 0..BLOCK {
        let sextants = 6 * u16::from(hue[index]);
        let before = divide_by_255(sextants);
        let within = sextants - 255 * before;
        let lost = if before & 1 == 0 { 255 - within } else { within };
        let saturation = u16::from(saturation[index]);
        kept[index] = 255 * 255 - saturation * lost;
        least[index] = low_byte(divide_by_255(u16::from(value[index]) * (255 - saturation) + 127));
        sextant[index] = low_byte(before);
    }
    let mut middle = [0_u8; BLOCK];
    for ((middle, &kept), &value) in middle.iter_mut().zip(&kept).zip(value) {
        // Whole numbers below 2^24 until the last product.
        *middle = clip((f32::from(kept) * f32::from(value) + 32_512.0) * (1.0 / 65_025.0));
    }
    let mut planes = [[0; BLOCK]; RGB];
    let [red, green, blue] = &mut planes;
    for index in 0..BLOCK {
        let most = value[index];
        let middle = middle[index];
        let least = least[index];
        let parts = [most, least, middle, middle];
        [red[index], green[index], blue[index]] = arrange(sextant[index], parts);
    }
    planes
}

/// The channels of a colour by its sextant; 6 is 0 again. The parts are the largest and the smallest
/// sample, and the third one where it falls and where it rises with the hue.
#[inline(always)]
fn arrange<T: Copy>(sextant: u8, [most, least, falling, rising]: [T; 4]) -> [T; RGB] {
    let near_red = (sextant == 0) | (sextant >= 5);
    let near_green = (sextant == 1) | (sextant == 2);
    [
        if near_red {
            most
        } else if sextant == 1 {
            falling
        } else if sextant == 4 {
            rising
        } else {
            least
        },
        if near_green {
            most
        } else if sextant == 3 {
            falling
        } else if (sextant == 4) | (sextant == 5) {
            least
        } else {
            rising
        },
        if (sextant == 3) | (sextant == 4) {
            most
        } else if sextant == 5 {
            falling
        } else if sextant == 2 {
            rising
        } else {
            least
        },
    ]
}

/// The quotient, rounded down; `value` is below 65,535.
#[inline(always)]
fn divide_by_255(value: u16) -> u16 {
    ((u32::from(value + 1) * 257) >> 16) as u16
}

#[expect(clippy::cast_possible_truncation, reason = "the value is below 256")]
#[inline(always)]
fn low_byte(value: u16) -> u8 {
    value as u8
}

struct Floats {
    factor: f32,
}

impl Change for Floats {
    #[inline(always)]
    fn change(&self, planes: &mut Planes) {
        let [red, green, blue] = planes;
        for index in 0..BLOCK {
            let pixel = [red[index], green[index], blue[index]];
            [red[index], green[index], blue[index]] = turn(self.factor, pixel);
        }
    }
}

/// `_rgb_to_hsv`, the sum modulo 1 and `_hsv_to_rgb` of torchvision, every step rounded to `f32`.
#[inline(always)]
fn turn(factor: f32, pixel: [u8; RGB]) -> [u8; RGB] {
    /// The factor of a whole sample with which truncation reaches 255.
    const TO_BYTE: f32 = 255.999;
    let [red, green, blue] = pixel.map(
        #[inline(always)]
        |sample| f32::from(sample) * (1.0 / 255.0),
    );
    let value = red.max(green).max(blue);
    let range = value - red.min(green).min(blue);
    let is_grey = range == 0.0;
    let saturation = range / if is_grey { 1.0 } else { value };
    let divisor = if is_grey { 1.0 } else { range };
    let [red_gap, green_gap, blue_gap] = [red, green, blue].map(
        #[inline(always)]
        |channel| (value - channel) / divisor,
    );
    let others = if value == green { red_gap + 2.0 - blue_gap } else { green_gap + 4.0 - red_gap };
    let sextants = if value == red { blue_gap - green_gap } else { others };
    let hue = fraction(sextants * (1.0 / 6.0) + 1.0);
    let sextants = fraction(hue + factor) * 6.0;
    let before = sextants.floor();
    let within = sextants - before;
    let pale = 1.0 - saturation;
    let strong = saturation * within;
    let parts = [value, pale * value, (1.0 - strong) * value, (strong + pale) * value];
    let channels = arrange(clip(before), parts);
    channels.map(
        #[inline(always)]
        |channel| clip(channel.clamp(0.0, 1.0) * TO_BYTE),
    )
}

/// `value` modulo 1, of a value from -1 to 2; just below zero it can round to 1.
#[inline(always)]
fn fraction(value: f32) -> f32 {
    if value >= 1.0 {
        value - 1.0
    } else if value < 0.0 {
        value + 1.0
    } else {
        value
    }
}
