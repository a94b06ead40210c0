//! The orientation of an image: reading it from metadata and turning pixels by it.

pub(crate) mod exif;
pub(crate) mod xmp;

/// The turn that shows a stored image upright (EXIF and TIFF tag 274).
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

    /// The orientation of pictures that are to be turned clockwise by `degrees`, as containers of
    /// videos say it: upright for other than multiples of 90.
    pub fn of_rotation(degrees: u16) -> Self {
        match degrees % 360 {
            90 => Self::Rotate90,
            180 => Self::Rotate180,
            270 => Self::Rotate270,
            _ => Self::Upright,
        }
    }

    /// Whether width and height change places.
    pub fn swaps_axes(self) -> bool {
        matches!(self, Self::Transpose | Self::Rotate90 | Self::Transverse | Self::Rotate270)
    }

    /// The size of an image of stored `size` once it is turned.
    pub fn shown_size(self, size: (u32, u32)) -> (u32, u32) {
        let (width, height) = size;
        if self.swaps_axes() { (height, width) } else { (width, height) }
    }

    /// The orientation that Pillow's `exif_transpose` applies: that of the EXIF block, or that of
    /// the XMP packet where the EXIF block has none.
    pub(crate) fn of_metadata(exif: Option<&[u8]>, xmp: Option<&[u8]>) -> Self {
        let from_exif = exif.and_then(exif::orientation);
        from_exif.or_else(|| xmp.and_then(xmp::orientation)).unwrap_or_default()
    }

    /// The index of the stored pixel that is shown at `(x, y)`, in an image stored as `width` x
    /// `height`.
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

    /// Turns `stored`, pixels of `channels` bytes in an image of `size`, into `shown`.
    ///
    /// # Panics
    /// If `stored` has fewer pixels.
    pub fn turn(self, stored: &[u8], size: (usize, usize), channels: usize, shown: &mut Vec<u8>) {
        let (width, height) = size;
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
}
