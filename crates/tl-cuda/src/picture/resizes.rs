//! The resizes of an image's planes: their shapes, and the tables of their axes.

use tl_decode::{JpegComponent, JpegParts};
use tl_simd::resample::{Rect, ResizeArea, WeightedSum, Weights};

use super::descriptor::{Axis, Component, Descriptor, PLANES, Pixels, Resize};
use super::{PictureResize, aligned, begin, source};

/// Samples that a thread reads or writes at once.
const GROUP: u32 = 4;

/// Prepares the weights, and fills in all but places; the window of the resized image.
///
/// Sources begin at a multiple of [`GROUP`], up to 3 samples before the first that counts.
pub(super) fn shape(
    made: &mut Descriptor,
    parts: &JpegParts,
    resize: &PictureResize,
    weights: &mut [Weights; PLANES],
) -> Rect {
    match resize {
        PictureResize::Pixels(area) => {
            weights[0].prepare(area);
            let source = weights[0].source();
            for (component, from) in made.components.iter().zip(&parts.components) {
                source::require(component, from.size, source);
            }
            if let [_grey] = &parts.components[..] {
                made.resizes[0] = of_component(&weights[0], &made.components[0]);
            } else {
                made.pixels = pixels(source);
                made.resizes = [of_pixels(&weights[0], &made.pixels); PLANES];
            }
            area.window
        }
        PictureResize::Planes(areas) => {
            let window = areas[0].window;
            let planes = made.resizes.iter_mut().zip(&made.components).zip(&parts.components);
            for (plane, ((resize, component), from)) in planes.enumerate() {
                let area = &areas[plane];
                let size = (area.window.width, area.window.height);
                assert_eq!(size, (window.width, window.height), "one window for all planes");
                let weights = &mut weights[first_alike(areas, plane)];
                weights.prepare(area);
                require(component, from, weights.source());
                *resize = of_component(weights, component);
            }
            window
        }
    }
}

/// The first plane with the area of `plane`, whose weights serve for both.
fn first_alike(areas: &[ResizeArea; PLANES], plane: usize) -> usize {
    areas.iter().position(|area| *area == areas[plane]).unwrap_or(plane)
}

/// Refuses a component that lacks some of these samples.
fn require(component: &Component, from: &JpegComponent, samples: Rect) {
    let as_stored = Component { filter: 0, across: 1, down: 1, ..*component };
    source::require(&as_stored, from.size, samples);
}

fn pixels(source: Rect) -> Pixels {
    let lead = source.x % GROUP;
    Pixels {
        left: source.x - lead,
        top: source.y,
        stride: (lead + source.width).next_multiple_of(GROUP),
        height: source.height,
        planes: [0; PLANES],
    }
}

fn of_pixels(weights: &Weights, pixels: &Pixels) -> Resize {
    let lead = weights.source().x - pixels.left;
    Resize { source_stride: pixels.stride, ..of(weights, lead) }
}

fn of_component(weights: &Weights, component: &Component) -> Resize {
    let source = weights.source();
    let column = source.x - component.left;
    let lead = column % GROUP;
    // Within the plane, whose bytes `lay_out` limits; otherwise it is not used.
    let row = (source.y - component.top).wrapping_mul(component.stride);
    let source = row.wrapping_add(column - lead);
    Resize { source, source_stride: component.stride, ..of(weights, lead) }
}

/// A resize of a whole image's plane with rows of `stride` bytes.
pub(super) fn of_image(weights: &Weights, stride: u32) -> Resize {
    let Rect { x, y, .. } = weights.source();
    let lead = x % GROUP;
    // Within the plane, whose bytes the caller has limited.
    let source = y * stride + x - lead;
    Resize { source, source_stride: stride, ..of(weights, lead) }
}

/// A resize of what begins `lead` samples before the source of `weights`.
fn of(weights: &Weights, lead: u32) -> Resize {
    let Rect { width, height, .. } = weights.source();
    let count = |results: usize| u32::try_from(results).expect("a window of 32 bits");
    let columns = Axis { count: count(weights.columns().len()), ..Axis::default() };
    let rows = Axis { count: count(weights.rows().len()), ..Axis::default() };
    let is_vertical_first = weights.is_vertical_first();
    let source_width = lead + width;
    let between = if is_vertical_first { source_width } else { columns.count };
    Resize {
        columns,
        rows,
        source_width,
        source_height: height,
        between_stride: between.next_multiple_of(GROUP),
        result_stride: columns.count.next_multiple_of(GROUP),
        is_vertical_first: is_vertical_first.into(),
        ..Resize::default()
    }
}

pub(super) fn between_bytes(resize: &Resize) -> u64 {
    let is_vertical_first = resize.is_vertical_first != 0;
    let rows = if is_vertical_first { resize.rows.count } else { resize.source_height };
    aligned(u64::from(resize.between_stride) * u64::from(rows))
}

pub(super) fn result_bytes(resize: &Resize) -> u64 {
    aligned(u64::from(resize.result_stride) * u64::from(resize.rows.count))
}

/// Writes the tables of the axes; planes of one area share them.
pub(super) fn write(
    made: &mut Descriptor,
    payload: &mut Vec<u8>,
    resize: &PictureResize,
    weights: &[Weights; PLANES],
) {
    let count = made.count as usize;
    let areas: [&ResizeArea; PLANES] = match resize {
        PictureResize::Pixels(area) => [area; PLANES],
        PictureResize::Planes(areas) => areas.each_ref(),
    };
    for plane in 0..count {
        let lead =
            |resize: &Resize, weights: &Weights| resize.source_width - weights.source().width;
        let weights = match resize {
            PictureResize::Pixels(_) => &weights[0],
            PictureResize::Planes(areas) => &weights[first_alike(areas, plane)],
        };
        let own = lead(&made.resizes[plane], weights);
        let alike = (0..plane).find(|&other| {
            areas[other] == areas[plane] && lead(&made.resizes[other], weights) == own
        });
        let [columns, rows] = if let Some(other) = alike {
            [made.resizes[other].columns, made.resizes[other].rows]
        } else {
            let Rect { width, height, .. } = weights.source();
            let columns = axis(payload, || weights.columns(), own, width);
            [columns, axis(payload, || weights.rows(), 0, height)]
        };
        made.resizes[plane].columns = columns;
        made.resizes[plane].rows = rows;
    }
}

/// Writes the table of an axis with `samples` after the `lead`. All results have as many taps, some
/// of which weigh nothing.
fn axis<'a, S: ExactSizeIterator<Item = WeightedSum<'a>>>(
    payload: &mut Vec<u8>,
    sums: impl Fn() -> S,
    lead: u32,
    samples: u32,
) -> Axis {
    let count = sums().len();
    let taps = sums().map(|sum| sum.weights.len()).max().unwrap_or(0);
    let last = (lead + samples) as usize - taps;
    let start = |sum: &WeightedSum<'_>| (sum.start + lead as usize).min(last);
    let number = |value: usize| u32::try_from(value).expect("a place in an image");
    let starts = begin(payload);
    for sum in sums() {
        payload.extend_from_slice(&number(start(&sum)).to_le_bytes());
    }
    let weights = begin(payload);
    payload.resize(payload.len() + 4 * count * taps, 0);
    let table = payload[weights as usize..].as_chunks_mut::<4>().0;
    for (result, sum) in sums().enumerate() {
        let before = sum.start + lead as usize - start(&sum);
        for (tap, weight) in (before..).zip(sum.weights) {
            table[tap * count + result] = weight.to_le_bytes();
        }
    }
    Axis { count: number(count), taps: number(taps), starts, weights }
}
