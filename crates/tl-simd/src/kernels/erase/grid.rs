//! The grid of `GridMask` (Chen, Liu, Zhao and Jia, 2020), as the authors' code makes it: stripes
//! across a square that is as wide as the image's diagonal, rotated as Pillow rotates, and cut to
//! the image.

use core::ops::Range;

/// Bits after the point of Pillow's fixed-point coordinates.
const FRACTION: u32 = 16;

/// The part of an image that a grid covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    size: (u32, u32),
    distance: u32,
    length: u32,
    offset: (u32, u32),
    rotation: (f64, f64),
    squares: bool,
}

impl Grid {
    /// Stripes of `length` pixels every `distance` pixels, right of and below `offset`.
    ///
    /// # Panics
    ///
    /// When a side of the image is 0 or above 65 535, or `distance` is 0.
    #[must_use]
    pub fn new(size: (u32, u32), distance: u32, length: u32, offset: (u32, u32)) -> Self {
        let sides = 1..=0xFFFF;
        assert!(sides.contains(&size.0) && sides.contains(&size.1), "sides {size:?}");
        assert!(distance > 0, "stripes have a distance");
        Self { size, distance, length, offset, rotation: (1.0, 0.0), squares: false }
    }

    /// The same rotated counter-clockwise about the middle, by the angle of this cosine and sine.
    #[must_use]
    pub fn rotated(self, cosine: f64, sine: f64) -> Self {
        Self { rotation: (cosine, sine), ..self }
    }

    /// Selects the squares between the stripes instead of the stripes.
    #[must_use]
    pub fn squares(self) -> Self {
        Self { squares: true, ..self }
    }

    /// Width and height of the image.
    #[must_use]
    pub const fn size(&self) -> (u32, u32) {
        self.size
    }

    /// The side of the square that the stripes are drawn on: the diagonal of the image, rounded up.
    fn side(&self) -> u32 {
        let square = |side: u32| u64::from(side) * u64::from(side);
        let (width, height) = self.size;
        let diagonal = square(width) + square(height);
        let root = diagonal.isqrt();
        u32::try_from(root + u64::from(root * root < diagonal)).unwrap_or(u32::MAX)
    }

    pub(super) fn cells(&self) -> Cells {
        let side = self.side();
        let stripes = |offset| Stripes::new(side, self.distance, self.length, offset);
        // Pillow's `rotate` about the middle, as the affine map of output to input, in the order of
        // its operations; its coordinates are those of the pixels' middles, in fixed point.
        let (cosine, sine) = self.rotation;
        let middle = f64::from(side) / 2.0;
        let shift_x = cosine * -middle + -sine * -middle + middle;
        let shift_y = sine * -middle + cosine * -middle + middle;
        let start = [
            fixed(shift_x + cosine * 0.5 - sine * 0.5),
            fixed(shift_y + sine * 0.5 + cosine * 0.5),
        ];
        let margin = [(side - self.size.0) / 2, (side - self.size.1) / 2].map(i64::from);
        let across = [fixed(cosine), fixed(sine)];
        let down = [fixed(-sine), fixed(cosine)];
        let start =
            [0, 1].map(|axis| start[axis] + margin[0] * across[axis] + margin[1] * down[axis]);
        Cells {
            columns: stripes(self.offset.0),
            rows: stripes(self.offset.1),
            width: self.size.0 as usize,
            start,
            across,
            down,
            squares: self.squares,
        }
    }
}

/// A grid laid out for one image.
pub(super) struct Cells {
    /// Whether a column and a row of the square belong to a stripe.
    columns: Stripes,
    rows: Stripes,
    width: usize,
    /// The place of the image's first pixel in the square, and the steps to the next column and
    /// row.
    start: [i64; 2],
    across: [i64; 2],
    down: [i64; 2],
    squares: bool,
}

impl Cells {
    /// Calls `cover` with every run of pixels of row `y` that is covered.
    pub(super) fn runs(&self, y: usize, mut cover: impl FnMut(Range<usize>)) {
        let row = i64::try_from(y).unwrap_or(i64::MAX);
        let mut place = [0, 1].map(|axis| self.start[axis] + row * self.down[axis]);
        let mut from = None;
        for x in 0..self.width {
            let covered = self.covers(place);
            match from {
                None if covered => from = Some(x),
                Some(start) if !covered => {
                    cover(start..x);
                    from = None;
                }
                _ => {}
            }
            place = [place[0] + self.across[0], place[1] + self.across[1]];
        }
        if let Some(start) = from {
            cover(start..self.width);
        }
    }

    fn covers(&self, [x, y]: [i64; 2]) -> bool {
        let striped = self.columns.has(x >> FRACTION) || self.rows.has(y >> FRACTION);
        striped != self.squares
    }
}

/// The columns, or rows, of the square that belong to a stripe: a bit each.
struct Stripes([u64; Self::WORDS]);

impl Stripes {
    /// Enough for the diagonal of an image of 65 535 x 65 535 pixels.
    const WORDS: usize = 92_681_usize.div_ceil(64);

    /// Pixels that the rotation brings in from outside of the square are 0 in Pillow, as stripes
    /// are.
    fn new(side: u32, distance: u32, length: u32, offset: u32) -> Self {
        let mut words = [!0; Self::WORDS];
        // Twice a distance of 32 bits is beyond them.
        let distance = u64::from(distance);
        let phase = distance - u64::from(offset) % distance;
        for place in 0..side {
            if (u64::from(place) + phase) % distance >= length.into() {
                words[place as usize / 64] &= !(1 << (place % 64));
            }
        }
        Self(words)
    }

    fn has(&self, place: i64) -> bool {
        let Ok(place) = usize::try_from(place) else { return true };
        self.0.get(place / 64).is_none_or(|word| word >> (place % 64) & 1 == 1)
    }
}

/// A number in fixed point, rounded half up.
#[expect(clippy::cast_possible_truncation, reason = "at most 2^18 before the point")]
fn fixed(number: f64) -> i64 {
    (number * f64::from(1 << FRACTION) + 0.5).floor() as i64
}
