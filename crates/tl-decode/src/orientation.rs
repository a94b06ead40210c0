//! The EXIF orientation: reading it from a TIFF structure and turning pixels by it.

/// How a stored image has to be turned to be shown upright (EXIF and TIFF tag 274).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// Stored upright (1).
    #[default]
    Upright,
    /// Mirrored left to right (2).
    MirrorHorizontal,
    /// Turned by 180 degrees (3).
    Rotate180,
    /// Mirrored top to bottom (4).
    MirrorVertical,
    /// Mirrored along the diagonal from top left to bottom right (5).
    Transpose,
    /// To be turned clockwise by 90 degrees (6).
    Rotate90,
    /// Mirrored along the other diagonal (7).
    Transverse,
    /// To be turned clockwise by 270 degrees (8).
    Rotate270,
}

impl Orientation {
    /// The orientation with this tag value; `None` for values other than 1 to 8.
    pub fn from_tag(value: u64) -> Option<Self> {
        Some(match value {
            1 => Self::Upright,
            2 => Self::MirrorHorizontal,
            3 => Self::Rotate180,
            4 => Self::MirrorVertical,
            5 => Self::Transpose,
            6 => Self::Rotate90,
            7 => Self::Transverse,
            8 => Self::Rotate270,
            _ => return None,
        })
    }

    /// Whether width and height change places.
    pub fn swaps_axes(self) -> bool {
        matches!(self, Self::Transpose | Self::Rotate90 | Self::Transverse | Self::Rotate270)
    }

    /// Reads tag 274 from an EXIF block, with or without the `Exif\0\0` in front of its TIFF
    /// header. Anything that is not a whole tag with a value from 1 to 8 counts as upright, as in
    /// Pillow's `exif_transpose`: a damaged EXIF block does not make the pixels unusable.
    pub(crate) fn from_exif(exif: &[u8]) -> Self {
        let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
        find_in_tiff(tiff).and_then(Self::from_tag).unwrap_or_default()
    }

    /// Where the pixel shown at `(x, y)` is stored, in an image stored as `width` x `height`.
    fn stored_at(self, x: usize, y: usize, width: usize, height: usize) -> (usize, usize) {
        match self {
            Self::Upright => (x, y),
            Self::MirrorHorizontal => (width - 1 - x, y),
            Self::Rotate180 => (width - 1 - x, height - 1 - y),
            Self::MirrorVertical => (x, height - 1 - y),
            Self::Transpose => (y, x),
            Self::Rotate90 => (y, height - 1 - x),
            Self::Transverse => (width - 1 - y, height - 1 - x),
            Self::Rotate270 => (width - 1 - y, x),
        }
    }

    /// Turns the `width` x `height` pixels of `stored` into `shown`, `channels` bytes each.
    pub(crate) fn turn(
        self,
        stored: &[u8],
        (width, height): (usize, usize),
        channels: usize,
        shown: &mut Vec<u8>,
    ) {
        shown.clear();
        shown.reserve_exact(stored.len());
        let (shown_width, shown_height) =
            if self.swaps_axes() { (height, width) } else { (width, height) };
        for y in 0..shown_height {
            for x in 0..shown_width {
                let (from_x, from_y) = self.stored_at(x, y, width, height);
                let at = (from_y * width + from_x) * channels;
                shown.extend_from_slice(&stored[at..at + channels]);
            }
        }
    }
}

/// The value of tag 274 in the first directory of the TIFF structure `tiff`.
fn find_in_tiff(tiff: &[u8]) -> Option<u64> {
    const ORIENTATION: u16 = 274;
    const SHORT: u16 = 3;
    const ENTRY: usize = 12;
    let big_endian = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => false,
        [b'M', b'M', 0, 42] => true,
        _ => return None,
    };
    let u16_at = |at: usize| -> Option<u16> {
        let pair: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) })
    };
    let four: [u8; 4] = tiff.get(4..8)?.try_into().ok()?;
    let offset = if big_endian { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) };
    let directory = usize::try_from(offset).ok()?;
    let count = usize::from(u16_at(directory)?);
    (0..count).find_map(|i| {
        let entry = directory.checked_add(2 + i * ENTRY)?;
        if u16_at(entry)? != ORIENTATION || u16_at(entry + 2)? != SHORT {
            return None;
        }
        u16_at(entry + 8).map(u64::from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shown forms of the stored 2 x 3 image `ab/cd/ef`, by tag value.
    const SHOWN: [(u64, &[u8]); 8] = [
        (1, b"abcdef"),
        (2, b"badcfe"),
        (3, b"fedcba"),
        (4, b"efcdab"),
        (5, b"acebdf"),
        (6, b"ecafdb"),
        (7, b"fdbeca"),
        (8, b"bdface"),
    ];

    #[test]
    fn the_eight_orientations_turn_as_pillow_does() {
        for (tag, expected) in SHOWN {
            let orientation = Orientation::from_tag(tag).unwrap();
            let mut shown = Vec::new();
            orientation.turn(b"abcdef", (2, 3), 1, &mut shown);
            assert_eq!(shown, expected, "tag {tag}");
        }
    }

    #[test]
    fn orientation_is_found_in_both_byte_orders() {
        let little = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0";
        assert_eq!(Orientation::from_exif(little), Orientation::Rotate90);
        assert_eq!(Orientation::from_exif(big), Orientation::Rotate270);
        for end in 0..little.len() - 6 {
            let cut = Orientation::from_exif(&little[..end]);
            assert!(matches!(cut, Orientation::Upright | Orientation::Rotate90), "{end}");
        }
    }
}
