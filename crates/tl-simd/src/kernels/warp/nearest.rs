//! Nearest pixels: Pillow's fixed-point, scaling and floating-point transforms, and torch's.

use super::cells::Source;
use super::map::Places;
use super::{GridWarp, Map, PIECE, Warp, tensor as smooth};
use crate::vector::RGB;
use crate::vector::gather::GatherSimd;

/// A column that stands for the fill colour.
const OUTSIDE: u32 = u32::MAX;

/// Source pixels of a piece.
struct Picks {
    columns: [u32; PIECE],
    lines: [u32; PIECE],
}

/// Makes a warp as Pillow does, which has four ways for it, in the caller's vector frame.
#[inline(always)]
pub(super) fn pil<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    warp: &Warp,
    fill: [u8; C],
    columns: &mut Vec<u32>,
    out: &mut [u8],
) {
    let painter = Painter { source, fill, width: warp.size.0 };
    match warp.map {
        Map::Affine([a, b, c, d, e, f]) if b == 0.0 && d == 0.0 => {
            painter.scale([a, c], [e, f], columns, out);
        }
        Map::Affine(matrix) => match Fixed::new(matrix, warp.size) {
            Some(fixed) => painter.rows(
                gather,
                out,
                #[inline(always)]
                |x, y| fixed.picks(x, y, source),
            ),
            None => painter.accumulate(matrix, out),
        },
        Map::Perspective(_) => by_places(gather, source, warp, fill, out),
    }
}

/// Makes a warp of the pixels that places in floating point lie in, whatever the map is.
#[inline(always)]
pub(super) fn by_places<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    warp: &Warp,
    fill: [u8; C],
    out: &mut [u8],
) {
    let painter = Painter { source, fill, width: warp.size.0 };
    painter.rows(
        gather,
        out,
        #[inline(always)]
        |x, y| Picks::of(&warp.map.places(x, y), source),
    );
}

/// Makes a warp as torchvision does, in the caller's vector frame.
#[inline(always)]
pub(super) fn tensor<G: GatherSimd, const C: usize>(
    gather: G,
    source: Source<'_>,
    warp: &GridWarp<'_>,
    fill: [u8; C],
    out: &mut [u8],
) {
    let grid = warp.grid.prepare((source.width, source.height), warp.size);
    let painter = Painter { source, fill, width: warp.size.0 };
    let right = source.width - 1;
    let bottom = source.height - 1;
    let last_x = smooth::edge(right);
    let last_y = smooth::edge(bottom);
    painter.rows(
        gather,
        out,
        #[inline(always)]
        |x, y| {
            let places = smooth::places(&grid.coordinates(x, y), source);
            let mut picks = Picks { columns: [OUTSIDE; PIECE], lines: [0; PIECE] };
            for lane in 0..PIECE {
                let x = places.x[lane].round_ties_even();
                let y = places.y[lane].round_ties_even();
                let inside = (x >= 0.0) & (x <= last_x) & (y >= 0.0) & (y <= last_y);
                let column = smooth::index(x, last_x, right);
                picks.columns[lane] = if inside { column } else { OUTSIDE };
                picks.lines[lane] = smooth::index(y, last_y, bottom);
            }
            picks
        },
    );
}

impl Picks {
    /// The pixels that `places` lie in.
    #[inline(always)]
    fn of(places: &Places, source: Source<'_>) -> Self {
        let mut picks = Self { columns: [OUTSIDE; PIECE], lines: [0; PIECE] };
        let width = f64::from(source.width);
        let height = f64::from(source.height);
        for lane in 0..PIECE {
            let x = places.x[lane];
            let y = places.y[lane];
            if (x >= 0.0) & (x < width) & (y >= 0.0) & (y < height) {
                picks.columns[lane] = whole(x);
                picks.lines[lane] = whole(y);
            }
        }
        picks
    }
}

/// The whole part of a number from 0 on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a pixel's place")]
const fn whole(place: f64) -> u32 {
    place as u32
}

/// Rows of an output of `width` columns and `C` channels.
struct Painter<'a, const C: usize> {
    source: Source<'a>,
    fill: [u8; C],
    width: u32,
}

impl<const C: usize> Painter<'_, C> {
    fn row_bytes(&self) -> usize {
        self.width as usize * C
    }

    /// Makes every piece of every row of the pixels that `picks` names.
    #[inline(always)]
    fn rows<G: GatherSimd>(&self, gather: G, out: &mut [u8], picks: impl Fn(u32, u32) -> Picks) {
        for (row, y) in out.chunks_exact_mut(self.row_bytes()).zip(0..) {
            for (piece, x) in row.chunks_mut(PIECE * C).zip((0..).step_by(PIECE)) {
                self.piece(gather, &picks(x, y), piece);
            }
        }
    }

    #[inline(always)]
    fn piece<G: GatherSimd>(&self, gather: G, picks: &Picks, out: &mut [u8]) {
        let all = picks.columns.iter().fold(
            OUTSIDE,
            #[inline(always)]
            |all, &column| all & column,
        );
        if all == OUTSIDE {
            out.as_chunks_mut().0.fill(self.fill);
            return;
        }
        if C != RGB && C != 1 {
            let places = picks.columns.iter().zip(&picks.lines);
            for (pixel, (&column, &line)) in out.as_chunks_mut().0.iter_mut().zip(places) {
                let inside = column != OUTSIDE;
                *pixel = if inside { self.source.load::<C, C>(column, line) } else { self.fill };
            }
            return;
        }
        let mut words = [0; PIECE];
        self.source.words::<G, C>(gather, &picks.columns, &picks.lines, &mut words);
        let mut fill = [0; 4];
        fill[..C].copy_from_slice(&self.fill);
        let fill = u32::from_le_bytes(fill);
        for (word, &column) in words.iter_mut().zip(&picks.columns) {
            *word = if column == OUTSIDE { fill } else { *word };
        }
        let mut bytes = [0; PIECE * RGB];
        if C == RGB {
            for (words, bytes) in words.as_chunks().0.iter().zip(bytes.as_chunks_mut().0) {
                gather.pack(words, bytes);
            }
        } else {
            for (word, byte) in words.iter().zip(&mut bytes) {
                *byte = word.to_le_bytes()[0];
            }
        }
        match out.first_chunk_mut::<{ PIECE * RGB }>() {
            Some(out) if C == RGB => *out = bytes,
            _ => out.copy_from_slice(&bytes[..out.len()]),
        }
    }

    /// Pillow's `ImagingScaleAffine`: columns and lines are found once, by adding up the step.
    fn scale(&self, across: [f64; 2], down: [f64; 2], columns: &mut Vec<u32>, out: &mut [u8]) {
        columns.clear();
        columns.extend(steps(across).take(self.width as usize).map(|x| pick(x, self.source.width)));
        let first = columns.iter().take_while(|&&column| column == OUTSIDE).count();
        let held = &columns[first..];
        let held = &held[..held.iter().take_while(|&&column| column != OUTSIDE).count()];
        let moved = held.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        for (row, y) in out.chunks_exact_mut(self.row_bytes()).zip(steps(down)) {
            let line = pick(y, self.source.height);
            let (Some(&column), true) = (held.first(), line != OUTSIDE) else {
                row.as_chunks_mut().0.fill(self.fill);
                continue;
            };
            let (before, rest) = row.split_at_mut(first * C);
            let (inside, after) = rest.split_at_mut(held.len() * C);
            before.as_chunks_mut().0.fill(self.fill);
            after.as_chunks_mut().0.fill(self.fill);
            if moved {
                inside.copy_from_slice(self.source.pixels::<C>(column, line, inside.len()));
            } else {
                for (pixel, &column) in inside.chunks_exact_mut(C).zip(held) {
                    pixel.copy_from_slice(&self.source.load::<C, C>(column, line));
                }
            }
        }
    }

    /// Pillow's `ImagingTransformAffine` for places beyond 16 bits: adds up the steps of each row.
    fn accumulate(&self, [a, b, c, d, e, f]: [f64; 6], out: &mut [u8]) {
        let starts = steps_from([b, e], [c + b * 0.5 + a * 0.5, f + e * 0.5 + d * 0.5]);
        for (row, start) in out.chunks_exact_mut(self.row_bytes()).zip(starts) {
            for (pixel, [x, y]) in row.chunks_exact_mut(C).zip(steps_from([a, d], start)) {
                let column = pick(x, self.source.width);
                let line = pick(y, self.source.height);
                pixel.copy_from_slice(&if column == OUTSIDE || line == OUTSIDE {
                    self.fill
                } else {
                    self.source.load::<C, C>(column, line)
                });
            }
        }
    }
}

/// Half a step into `[step, start]`, and further ones added to it.
fn steps([step, start]: [f64; 2]) -> impl Iterator<Item = f64> {
    steps_from([step, 0.0], [start + step * 0.5, 0.0]).map(|[place, _]| place)
}

fn steps_from(step: [f64; 2], start: [f64; 2]) -> impl Iterator<Item = [f64; 2]> {
    std::iter::successors(Some(start), move |[x, y]| Some([x + step[0], y + step[1]]))
}

/// The pixel of `size` that `place` lies in.
fn pick(place: f64, size: u32) -> u32 {
    if place >= 0.0 && place < f64::from(size) { whole(place) } else { OUTSIDE }
}

/// An affine map with 16 fraction bits, as Pillow's `affine_fixed` has it.
#[derive(Clone, Copy)]
struct Fixed {
    step: [i32; 2],
    line: [i32; 2],
    start: [i32; 2],
}

impl Fixed {
    /// The map, within the reach of Pillow's arithmetic: none of the output's corners beyond 15
    /// bits.
    fn new([a, b, c, d, e, f]: [f64; 6], size: (u32, u32)) -> Option<Self> {
        const LIMIT: f64 = 32_768.0;
        let width = f64::from(size.0);
        let height = f64::from(size.1);
        let corners = [(0.0, 0.0), (width, height), (0.0, height), (width, 0.0)];
        let reaches = corners
            .iter()
            .all(|(x, y)| (x * a + y * b + c).abs() < LIMIT && (x * d + y * e + f).abs() < LIMIT);
        reaches.then(|| Self {
            step: [a, d].map(fixed),
            line: [b, e].map(fixed),
            start: [fixed(c + a * 0.5 + b * 0.5), fixed(f + d * 0.5 + e * 0.5)],
        })
    }

    #[inline(always)]
    fn picks(&self, x: u32, y: u32, source: Source<'_>) -> Picks {
        let first = |axis: usize| {
            let line = self.line[axis].wrapping_mul(y.cast_signed());
            let step = self.step[axis].wrapping_mul(x.cast_signed());
            self.start[axis].wrapping_add(line).wrapping_add(step)
        };
        let first_x = first(0);
        let first_y = first(1);
        let mut picks = Picks { columns: [0; PIECE], lines: [0; PIECE] };
        for (lane, (column, line)) in (0..).zip(picks.columns.iter_mut().zip(&mut picks.lines)) {
            let x = first_x.wrapping_add(self.step[0].wrapping_mul(lane)) >> FRACTION;
            let y = first_y.wrapping_add(self.step[1].wrapping_mul(lane)) >> FRACTION;
            let x = x.cast_unsigned();
            let y = y.cast_unsigned();
            *column = if (x < source.width) & (y < source.height) { x } else { OUTSIDE };
            *line = y;
        }
        picks
    }
}

const FRACTION: u32 = 16;

#[expect(clippy::cast_possible_truncation, reason = "saturates, where Pillow wraps a step unused")]
fn fixed(value: f64) -> i32 {
    (value * 65_536.0 + 0.5).floor() as i32
}
