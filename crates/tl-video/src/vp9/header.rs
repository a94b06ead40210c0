//! The frames of a packet, and the parts of their headers that memory and colours depend on (VP9
//! bitstream specification, sections 6.1, 6.2 and annex B).

use crate::info::Color;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether the packet shows the picture.
    pub(super) is_shown: bool,
    pub(super) kind: Kind,
}

/// The pictures that a frame refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// None, and no later frame refers to a picture before it.
    Key(Format),
    /// None.
    Intra { format: Format, keeps_probabilities: bool },
    /// Some. The size is `None` for that of one of these pictures.
    Inter(Option<[u32; 2]>),
    /// The frame shows one again.
    Again,
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Width and height.
    pub(super) size: [u32; 2],
    pub(super) bit_depth: u8,
    /// Whether the planes of colour have half the width and half the height.
    pub(super) halvings: [bool; 2],
    pub(super) color: Color,
}

/// The frames of a packet: several if it ends with an index of a superframe. `None` if that does not
/// fit, or if a frame ends with another index.
pub(super) fn frames_of(packet: &[u8]) -> Option<Vec<&[u8]>> {
    let Some(index) = Index::of(packet) else { return Some(vec![packet]) };
    let mut rest = packet.get(..packet.len() - index.sizes.len() - 2)?;
    let mut frames = Vec::new();
    for size in index.sizes.chunks_exact(index.size_bytes) {
        let size = size.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        let (frame, after) = rest.split_at_checked(size)?;
        rest = after;
        if Index::of(frame).is_some() {
            return None;
        }
        if !frame.is_empty() {
            frames.push(frame);
        }
    }
    Some(frames)
}

/// The index at the end of a superframe.
struct Index<'a> {
    sizes: &'a [u8],
    size_bytes: usize,
}

impl<'a> Index<'a> {
    fn of(packet: &'a [u8]) -> Option<Self> {
        let (&marker, rest) = packet.split_last()?;
        if marker & 0xE0 != 0xC0 {
            return None;
        }
        let size_bytes = usize::from(marker >> 3 & 3) + 1;
        let bytes = (usize::from(marker & 7) + 1) * size_bytes;
        let start = rest.len().checked_sub(bytes + 1)?;
        let (&first, sizes) = rest.get(start..)?.split_first()?;
        (first == marker).then_some(Self { sizes, size_bytes })
    }
}

impl Header {
    /// `None` for bytes that are not a header.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        const MARKER: u32 = 2;
        let mut bits = Bits { bytes: frame, at: 0 };
        if bits.take(2)? != MARKER {
            return None;
        }
        let profile = bits.take(1)? | bits.take(1)? << 1;
        if profile == 3 {
            bits.take(1)?;
        }
        if bits.flag()? {
            return Some(Self { is_shown: true, kind: Kind::Again });
        }
        let is_inter = bits.flag()?;
        let is_shown = bits.flag()?;
        let resists_errors = bits.flag()?;
        let kind = if is_inter {
            bits.kind_of_others(profile, is_shown, resists_errors)?
        } else {
            bits.sync()?;
            Kind::Key(bits.colors(profile)?.with_size(bits.size()?))
        };
        Some(Self { is_shown, kind })
    }
}

impl Format {
    /// The format of profile 0, with a size to come.
    const USUAL: Self = Self {
        size: [0; 2],
        bit_depth: 8,
        halvings: [true; 2],
        color: Color { matrix: None, full_range: None },
    };

    fn with_size(self, size: [u32; 2]) -> Self {
        Self { size, ..self }
    }
}

/// Bits of a header, the most significant first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u32> {
        let mut number = 0;
        for _ in 0..count {
            let byte = self.bytes.get(self.at / 8)?;
            let bit = byte >> (7 - self.at % 8) & 1;
            number = number << 1 | u32::from(bit);
            self.at += 1;
        }
        Some(number)
    }

    fn flag(&mut self) -> Option<bool> {
        self.take(1).map(|bit| bit == 1)
    }

    fn sync(&mut self) -> Option<()> {
        const SYNC: u32 = 0x49_8342;
        (self.take(24)? == SYNC).then_some(())
    }

    fn size(&mut self) -> Option<[u32; 2]> {
        Some([self.take(16)? + 1, self.take(16)? + 1])
    }

    /// The rest of the header of a picture that is not a key picture, up to the size.
    fn kind_of_others(
        &mut self,
        profile: u32,
        is_shown: bool,
        resists_errors: bool,
    ) -> Option<Kind> {
        /// Sets all saved probabilities anew.
        const ALL: u32 = 3;
        let is_intra = !is_shown && self.flag()?;
        let keeps_probabilities = !resists_errors && self.take(2)? != ALL;
        if is_intra {
            self.sync()?;
            let format = if profile > 0 { self.colors(profile)? } else { Format::USUAL };
            let _refreshed = self.take(8)?;
            let format = format.with_size(self.size()?);
            return Some(Kind::Intra { format, keeps_probabilities });
        }
        let _refreshed = self.take(8)?;
        for _ in 0..3 {
            let _reference = self.take(4)?;
        }
        for _ in 0..3 {
            if self.flag()? {
                return Some(Kind::Inter(None));
            }
        }
        Some(Kind::Inter(Some(self.size()?)))
    }

    /// The format of a picture, with a size to come.
    fn colors(&mut self, profile: u32) -> Option<Format> {
        /// Code points of H.273 by VP9's numbers of colour spaces, as FFmpeg has them.
        const MATRICES: [u64; 8] = [2, 5, 1, 6, 7, 9, 3, 0];
        const RGB: u32 = 7;
        let bit_depth = match profile {
            2.. if self.flag()? => 12,
            2.. => 10,
            _ => 8,
        };
        let space = self.take(3)?;
        let full_range = space == RGB || self.flag()?;
        let mut halvings = [space != RGB; 2];
        if profile % 2 == 1 {
            if space != RGB {
                halvings = [self.flag()?, self.flag()?];
            }
            let _reserved = self.take(1)?;
        }
        let matrix = MATRICES.get(usize::try_from(space).ok()?)?;
        let color = Color { matrix: Color::specified(*matrix), full_range: Some(full_range) };
        Some(Format { bit_depth, halvings, color, ..Format::USUAL })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Bytes of bits that are written as `0` and `1`.
    pub(crate) fn bytes_of(bits: &str) -> Vec<u8> {
        let byte = |bits: &[u8]| {
            bits.iter().fold(0, |byte, bit| byte << 1 | (bit - b'0')) << (8 - bits.len())
        };
        bits.as_bytes().chunks(8).map(byte).collect()
    }

    #[test]
    fn a_superframe_has_frames_of_the_sizes_in_its_index() {
        let packet = [1, 2, 3, 4, 5, 0xC1, 2, 3, 0xC1];
        assert_eq!(frames_of(&packet), Some(vec![&[1, 2][..], &[3, 4, 5]]));
        let too_long = [1, 2, 3, 4, 5, 0xC1, 3, 3, 0xC1];
        assert_eq!(frames_of(&too_long), None);
        assert_eq!(frames_of(&[1, 2, 0x41]), Some(vec![&[1, 2, 0x41][..]]));
    }

    #[test]
    fn a_key_picture_has_size_and_colours() {
        // Marker 2, profile 0, not again, a key picture that is shown, resists no errors.
        let mut bits = "10000010".to_owned();
        bits += &format!("{:024b}", 0x49_8342);
        // BT.709, full range, 96 by 64.
        bits += &format!("010{}{:016b}{:016b}", 1, 95, 63);
        let bytes = bytes_of(&bits);
        let color = Color { matrix: Some(1), full_range: Some(true) };
        let format = Format { size: [96, 64], bit_depth: 8, halvings: [true; 2], color };
        let expected = Header { is_shown: true, kind: Kind::Key(format) };
        assert_eq!(Header::parse(&bytes), Some(expected));
        assert_eq!(Header::parse(&bytes[..7]), None);
        assert_eq!(Header::parse(&[0]), None);
    }

    #[test]
    fn profile_3_has_bits_and_layout() {
        let mut bits = "101100010".to_owned();
        bits += &format!("{:024b}", 0x49_8342);
        // 12 bits, BT.2020, limited range, half the width, a reserved bit.
        bits += &format!("1101{}100{:016b}{:016b}", 0, 95, 63);
        let color = Color { matrix: Some(9), full_range: Some(false) };
        let format = Format { size: [96, 64], bit_depth: 12, halvings: [true, false], color };
        let expected = Header { is_shown: true, kind: Kind::Key(format) };
        assert_eq!(Header::parse(&bytes_of(&bits)), Some(expected));
    }
}
