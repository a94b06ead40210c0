//! Maps from output pixels to places in the source, in double precision.

use super::PIECE;

/// The place of an output pixel's centre in the source, whose pixels are one unit wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Map {
    /// `x' = a x + b y + c`, `y' = d x + e y + f`: Pillow's `Image.Transform.AFFINE`.
    Affine([f64; 6]),
    /// `x' = (a x + b y + c) / (g x + h y + 1)`, `y' = (d x + e y + f) / (g x + h y + 1)`: Pillow's
    /// `Image.Transform.PERSPECTIVE`.
    Perspective([f64; 8]),
}

/// Places of a piece of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) x: [f64; PIECE],
    pub(super) y: [f64; PIECE],
}

impl Map {
    /// The places of the centres of the piece that begins at `(x, y)`.
    #[inline(always)]
    pub(super) fn places(&self, x: u32, y: u32) -> Places {
        let mut places = Places { x: [0.0; PIECE], y: [0.0; PIECE] };
        let first = f64::from(x) + 0.5;
        let y = f64::from(y) + 0.5;
        let columns = (0_u32..).map(
            #[inline(always)]
            |lane| first + f64::from(lane),
        );
        let lanes = places.x.iter_mut().zip(&mut places.y).zip(columns);
        match *self {
            Self::Affine([a, b, c, d, e, f]) => {
                let across = b * y;
                let down = e * y;
                for ((to_x, to_y), x) in lanes {
                    *to_x = a * x + across + c;
                    *to_y = d * x + down + f;
                }
            }
            Self::Perspective([a, b, c, d, e, f, g, h]) => {
                let across = b * y;
                let down = e * y;
                let depth = h * y;
                for ((to_x, to_y), x) in lanes {
                    let divisor = g * x + depth + 1.0;
                    *to_x = (a * x + across + c) / divisor;
                    *to_y = (d * x + down + f) / divisor;
                }
            }
        }
        places
    }
}
