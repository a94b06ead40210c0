//! Grids of `f32` coordinates as torchvision makes them for `grid_sample`.

use super::PIECE;

/// The place that each output pixel is taken from, in coordinates that are -1 and 1 at the source's
/// edges.
///
/// Every step is rounded to `f32`, in torchvision's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grid<'a> {
    /// torchvision's `_affine_grid`: `theta` maps output coordinates, in pixels from the output's
    /// centre, to such of the source.
    Affine([f32; 6]),
    /// torchvision's `_perspective_grid`, with its eight coefficients.
    Perspective([f32; 8]),
    /// torchvision's `elastic`: displacements added to a grid that moves nothing. One plane holds
    /// the x, one the y of each output pixel.
    Displaced([&'a [f32]; 2]),
}

/// Coordinates of a piece of a row.
pub(super) struct Coordinates {
    pub(super) x: [f32; PIECE],
    pub(super) y: [f32; PIECE],
}

impl Grid<'_> {
    /// That there is a displacement for each pixel of an output of `size`.
    pub(super) fn check(&self, size: (u32, u32)) {
        let (width, height) = size;
        if let Self::Displaced(planes) = self {
            let need = (width as usize).checked_mul(height as usize);
            let fit = planes.iter().all(|plane| Some(plane.len()) == need);
            assert!(fit, "a displacement for each of {width}x{height} pixels");
        }
    }

    /// The rows of this grid for a source and an output of these sizes.
    #[inline(always)]
    pub(super) fn prepare(self, source: (u32, u32), size: (u32, u32)) -> Prepared<Self> {
        Prepared { grid: self, source, size }
    }
}

/// A grid with the sizes that its coordinates depend on.
pub(super) struct Prepared<G> {
    grid: G,
    source: (u32, u32),
    size: (u32, u32),
}

#[expect(clippy::cast_precision_loss, reason = "torch counts pixels in f32")]
#[inline(always)]
const fn real(count: u32) -> f32 {
    count as f32
}

impl Prepared<Grid<'_>> {
    /// The coordinates of the piece that begins at `(x, y)`.
    #[inline(always)]
    pub(super) fn coordinates(&self, x: u32, y: u32) -> Coordinates {
        let mut piece = Coordinates { x: [0.0; PIECE], y: [0.0; PIECE] };
        let width = real(self.size.0);
        let height = real(self.size.1);
        let columns = (x..).map(real);
        let lanes = piece.x.iter_mut().zip(&mut piece.y);
        match self.grid {
            Grid::Affine(theta) => {
                let halves = [real(self.source.0) * 0.5, real(self.source.1) * 0.5];
                let [a, b, c, d, e, f] = halved(theta, halves);
                let first_x = (1.0 - width) * 0.5;
                let first_y = (1.0 - height) * 0.5;
                let y = first_y + real(y);
                let across = y * b;
                let down = y * e;
                for ((to_x, to_y), column) in lanes.zip(columns) {
                    let x = first_x + column;
                    *to_x = x * a + across + c;
                    *to_y = x * d + down + f;
                }
            }
            Grid::Perspective([a, b, c, d, e, f, g, h]) => {
                let halves = [width * 0.5, height * 0.5];
                let [a, b, c, d, e, f] = halved([a, b, c, d, e, f], halves);
                let y = real(y) + 0.5;
                let across = y * b;
                let down = y * e;
                let depth = y * h;
                for ((to_x, to_y), column) in lanes.zip(columns) {
                    let x = column + 0.5;
                    let divisor = x * g + depth + 1.0;
                    *to_x = (x * a + across + c) / divisor - 1.0;
                    *to_y = (x * d + down + f) / divisor - 1.0;
                }
            }
            Grid::Displaced([right, down]) => {
                let across = Steps::of(self.size.0);
                let rows = Steps::of(self.size.1);
                let first = y as usize * self.size.0 as usize + x as usize;
                let right = &right[first..];
                let down = &down[first..];
                let height = rows.at(y);
                let moved = right.iter().zip(down);
                for (((to_x, to_y), column), (right, down)) in lanes.zip(x..).zip(moved) {
                    *to_x = across.at(column) + right;
                    *to_y = height + down;
                }
            }
        }
        piece
    }
}

/// Both rows of a matrix over half the sizes.
#[inline(always)]
fn halved([a, b, c, d, e, f]: [f32; 6], [width, height]: [f32; 2]) -> [f32; 6] {
    [a / width, b / width, c / width, d / height, e / height, f / height]
}

/// The centres of `count` pixels between -1 and 1, as `torch.linspace` makes them: each half from
/// its own end, with a fused step.
struct Steps {
    start: f32,
    end: f32,
    step: f32,
    count: u32,
}

impl Steps {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "torch rounds the ends to f32")]
    fn of(count: u32) -> Self {
        let end = ((f64::from(count) - 1.0) / f64::from(count)) as f32;
        let step = if count > 1 { (end + end) / real(count - 1) } else { 0.0 };
        Self { start: -end, end, step, count }
    }

    #[inline(always)]
    fn at(&self, place: u32) -> f32 {
        let from_end = self.count.wrapping_sub(place + 1);
        let first = self.step.mul_add(real(place), self.start);
        let second = (-self.step).mul_add(real(from_end), self.end);
        if place < self.count / 2 { first } else { second }
    }
}
