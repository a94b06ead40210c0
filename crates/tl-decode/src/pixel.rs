//! Rows of stored samples to rows of RGB, grey or RGBA, by the rules of Pillow's `convert`.
//!
//! Alpha is dropped or kept and never blended; samples of 9 to 16 bits have already lost their low
//! bits.

use crate::options::Color;

/// 256 colours; entries that the file does not have are black, as in Pillow.
pub(crate) type Palette = [[u8; 3]; 256];

/// The meaning of a row of 8-bit samples.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout<'a> {
    /// Grey.
    Grey,
    /// Grey and alpha.
    GreyAlpha,
    /// Red, green, blue.
    Rgb,
    /// Red, green, blue and one byte that is dropped.
    Rgbx,
    /// Red, green, blue and alpha.
    Rgba,
    /// Ink amounts, 255 is full ink.
    Cmyk,
    /// Palette indexes.
    Index(&'a Palette),
}

impl Layout<'_> {
    /// Converts `from`, as many pixels as `to` has room for.
    pub(crate) fn convert(self, from: &[u8], to: &mut [u8], color: Color) {
        match color {
            Color::Rgb => self.to_rgb(from, to),
            Color::Grey => self.to_grey(from, to),
            Color::Rgba => self.to_rgba(from, to),
        }
    }

    fn to_rgb(self, from: &[u8], to: &mut [u8]) {
        let (to, _) = to.as_chunks_mut::<3>();
        match self {
            Self::Grey => map(from.as_chunks().0, to, |[l]: [u8; 1]| [l; 3]),
            Self::GreyAlpha => map(from.as_chunks().0, to, |[l, _]: [u8; 2]| [l; 3]),
            Self::Rgb => map(from.as_chunks().0, to, |rgb: [u8; 3]| rgb),
            Self::Rgbx | Self::Rgba => {
                map(from.as_chunks().0, to, |[r, g, b, _]: [u8; 4]| [r, g, b]);
            }
            Self::Cmyk => map(from.as_chunks().0, to, cmyk_to_rgb),
            Self::Index(palette) => {
                map(from.as_chunks().0, to, |[i]: [u8; 1]| palette[usize::from(i)]);
            }
        }
    }

    fn to_grey(self, from: &[u8], to: &mut [u8]) {
        let (to, _) = to.as_chunks_mut::<1>();
        match self {
            Self::Grey => map(from.as_chunks().0, to, |l: [u8; 1]| l),
            Self::GreyAlpha => map(from.as_chunks().0, to, |[l, _]: [u8; 2]| [l]),
            Self::Rgb => map(from.as_chunks().0, to, |rgb: [u8; 3]| [luma(rgb)]),
            Self::Rgbx | Self::Rgba => {
                map(from.as_chunks().0, to, |[r, g, b, _]: [u8; 4]| [luma([r, g, b])]);
            }
            Self::Cmyk => map(from.as_chunks().0, to, |ink| [luma(cmyk_to_rgb(ink))]),
            Self::Index(palette) => {
                map(from.as_chunks().0, to, |[i]: [u8; 1]| [luma(palette[usize::from(i)])]);
            }
        }
    }

    /// Pixels of layouts without alpha are opaque.
    fn to_rgba(self, from: &[u8], to: &mut [u8]) {
        let (to, _) = to.as_chunks_mut::<4>();
        let opaque = |[r, g, b]: [u8; 3]| [r, g, b, u8::MAX];
        match self {
            Self::Grey => map(from.as_chunks().0, to, |[l]: [u8; 1]| opaque([l; 3])),
            Self::GreyAlpha => map(from.as_chunks().0, to, |[l, a]: [u8; 2]| [l, l, l, a]),
            Self::Rgb => map(from.as_chunks().0, to, opaque),
            Self::Rgbx => map(from.as_chunks().0, to, |[r, g, b, _]: [u8; 4]| opaque([r, g, b])),
            Self::Rgba => map(from.as_chunks().0, to, |rgba: [u8; 4]| rgba),
            Self::Cmyk => map(from.as_chunks().0, to, |ink| opaque(cmyk_to_rgb(ink))),
            Self::Index(palette) => {
                map(from.as_chunks().0, to, |[i]: [u8; 1]| opaque(palette[usize::from(i)]));
            }
        }
    }
}

fn map<const N: usize, const M: usize>(
    from: &[[u8; N]],
    to: &mut [[u8; M]],
    f: impl Fn([u8; N]) -> [u8; M],
) {
    for (from, to) in from.iter().zip(to) {
        *to = f(*from);
    }
}

/// ITU-R 601 luma in 16-bit fixed point, rounded: Pillow's `L24`.
pub(crate) fn luma([r, g, b]: [u8; 3]) -> u8 {
    let sum = u32::from(r) * 19595 + u32::from(g) * 38470 + u32::from(b) * 7471 + 0x8000;
    // The weights add up to 65 536, so the top byte of the sum is the luma.
    sum.to_be_bytes()[1]
}

/// Pillow's `cmyk2rgb`.
fn cmyk_to_rgb([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    let white = 255 - k;
    [c, m, y].map(|ink| white - mul_div_255(ink, white))
}

/// `a * b / 255`, rounded, without a division.
fn mul_div_255(a: u8, b: u8) -> u8 {
    let product = u16::from(a) * u16::from(b) + 128;
    (product + (product >> 8)).to_be_bytes()[0]
}

/// Spreads packed samples of `bits` (1, 2 or 4, most significant first) to a byte each, multiplied
/// by `scale`. As many samples as `to` has room for; missing input leaves `to` as it is.
pub(crate) fn unpack(from: &[u8], bits: u8, scale: u8, to: &mut [u8]) {
    let per_byte = usize::from(8 / bits);
    let mask = (1u8 << bits) - 1;
    for (byte, to) in from.iter().zip(to.chunks_mut(per_byte)) {
        let mut shift = 8;
        for sample in to {
            shift -= bits;
            *sample = ((byte >> shift) & mask) * scale;
        }
    }
}

/// The factor that scales a grey sample of `bits` to 0..=255.
pub(crate) fn grey_scale(bits: u8) -> u8 {
    match bits {
        1 => 255,
        2 => 85,
        4 => 17,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luma_and_cmyk_match_pillow() {
        // Image.new("RGB", (1, 1), c).convert("L") and Image.new("CMYK", ..).convert("RGB").
        for (rgb, grey) in [([255, 0, 0], 76), ([0, 255, 0], 150), ([0, 0, 255], 29)] {
            assert_eq!(luma(rgb), grey);
        }
        assert_eq!(luma([255; 3]), 255);
        assert_eq!(cmyk_to_rgb([10, 128, 255, 40]), [207, 107, 0]);
    }

    #[test]
    fn unpack_is_most_significant_first() {
        let mut out = [9; 5];
        unpack(&[0b1010_0000, 0b1000_0000], 1, 255, &mut out[..3]);
        assert_eq!(out, [255, 0, 255, 9, 9]);
        unpack(&[0x1B, 0xFF], 2, 85, &mut out);
        assert_eq!(out, [0, 85, 170, 255, 255]);
    }
}
