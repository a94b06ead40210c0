//! The final pass of the fast mode: the planes of a JPEG are resampled as they are stored, and
//! colours are converted once for every pixel of the result.

use tl_decode::{Plane, PlaneColor, Planes};
use tl_simd::jpeg::{Scale, ycc_to_rgb_planar};
use tl_simd::resample::{Area, ImageView, Rect, Resampler, ResizeArea};
use tl_transform::{Pass, Renderer};

use super::CHANNELS;

/// Pixels around what the first plane needs that others may need: three samples of the widest
/// filter, four pixels each, and what rounding takes.
const MARGIN: u32 = 16;

/// The part of the scaled image that `pass` is carried out on, in its pixels.
fn scaled_area(pass: &Pass, scale: Scale) -> Area {
    // 1, 1/2, 1/4 or 1/8, so that the products are exact.
    let fraction = f64::from(scale.apply(8)) / 8.0;
    let Area { left, top, right, bottom } = pass.region.into();
    let [left, top, right, bottom] = [left, top, right, bottom].map(|edge| edge * fraction);
    Area { left, top, right, bottom }
}

/// The part of the scaled image, in its pixels, from which every plane's part of the result can be made.
pub(crate) fn samples_read(pass: &Pass, scale: Scale) -> Rect {
    let area = scaled_area(pass, scale);
    let resize = resize(pass, area);
    let touched = ResizeArea { window: Rect::of_size(pass.resized.0, pass.resized.1), ..resize };
    let inner = resize.source();
    let outer = touched.source();
    let (x, width) = widened((inner.x, inner.width), (outer.x, outer.width));
    let (y, height) = widened((inner.y, inner.height), (outer.y, outer.height));
    Rect { x, y, width, height }
}

/// `inner` and the margin around it, within `outer`.
fn widened(inner: (u32, u32), outer: (u32, u32)) -> (u32, u32) {
    let start = inner.0.saturating_sub(MARGIN).max(outer.0);
    let end = (inner.0 + inner.1 + MARGIN).min(outer.0 + outer.1);
    (start, end - start)
}

fn resize(pass: &Pass, area: Area) -> ResizeArea {
    ResizeArea { area, resized: pass.resized, window: pass.window, filter: pass.filter() }
}

/// The part of a plane that becomes the result. The plane has this size in samples, and so many pixels
/// of the image scaled by `scale` per sample.
pub(crate) fn plane_resize(
    pass: &Pass,
    scale: Scale,
    step: (f64, f64),
    size: (u32, u32),
) -> ResizeArea {
    let Area { left, top, right, bottom } = scaled_area(pass, scale);
    let (across, down) = step;
    // A step like 4/3 is rounded, and must not carry the edge out of the plane.
    let area = Area {
        left: left / across,
        top: top / down,
        right: (right / across).min(f64::from(size.0)),
        bottom: (bottom / down).min(f64::from(size.1)),
    };
    resize(pass, area)
}

/// A plane, and what part of it becomes the result.
struct Part<'a> {
    view: ImageView<'a>,
    resize: ResizeArea,
}

impl<'a> Part<'a> {
    fn new(pass: &Pass, scale: Scale, plane: &Plane<'a>) -> Self {
        let view = ImageView::new(plane.data, plane.width, plane.height, plane.stride, 1)
            .at(plane.first.0, plane.first.1);
        Self { view, resize: plane_resize(pass, scale, plane.step, plane.size) }
    }
}

/// The memory of the pass, reused from image to image.
#[derive(Debug, Default)]
pub(super) struct PlanePass {
    /// For planes of another form than the first.
    others: Resampler,
    /// The second and third plane in the size of the result.
    resized: [Vec<u8>; 2],
    /// One row of red, green and blue.
    rgb: [Vec<u8>; CHANNELS],
}

impl PlanePass {
    /// Gives back planes larger than `bytes`; the rest is rows.
    pub(super) fn trim(&mut self, bytes: usize) {
        for plane in &mut self.resized {
            if plane.capacity() > bytes {
                *plane = Vec::new();
            }
        }
    }

    /// Runs `pass` on the planes of an image decoded at `scale`; `renderer` writes the result to
    /// `out`.
    ///
    /// # Panics
    /// For planes of four inks.
    pub(super) fn run(
        &mut self,
        renderer: &mut Renderer,
        pass: &Pass,
        scale: Scale,
        planes: &Planes<'_>,
        out: &mut [u8],
    ) {
        let level = renderer.level();
        renderer.with_rows(pass, out, |mut rows, first| {
            let mut sink = |y, planes: [&[u8]; CHANNELS]| rows.write_planes(y, planes);
            let part = |plane| Part::new(pass, scale, plane);
            let (main, others) = match planes.planes() {
                [grey] => {
                    let Part { view, resize } = part(grey);
                    return first.run_area(level, view, &resize, |y, row| sink(y, [row; CHANNELS]));
                }
                [main, second, third] => (part(main), [part(second), part(third)]),
                planes => unreachable!("{} planes of an image of 1 or 3 channels", planes.len()),
            };
            let width = pass.window.width as usize;
            for (other, out) in others.iter().zip(&mut self.resized) {
                out.resize(width * pass.window.height as usize, 0);
                // Planes of one form share the coefficients.
                let alike = other.resize == main.resize;
                let resampler = if alike { &mut *first } else { &mut self.others };
                resampler.run_area(level, other.view, &other.resize, |y, row| {
                    out[y as usize * width..][..width].copy_from_slice(row);
                });
            }
            let [second, third] = &self.resized;
            let [red, green, blue] = &mut self.rgb;
            for channel in [&mut *red, &mut *green, &mut *blue] {
                channel.resize(width, 0);
            }
            let converted = planes.color() == PlaneColor::YCbCr;
            first.run_area(level, main.view, &main.resize, |y, row| {
                let [second, third] =
                    [second, third].map(|plane| &plane[y as usize * width..][..width]);
                if converted {
                    ycc_to_rgb_planar(level, [row, second, third], [red, green, blue]);
                    sink(y, [red, green, blue]);
                } else {
                    sink(y, [row, second, third]);
                }
            });
        });
    }
}
