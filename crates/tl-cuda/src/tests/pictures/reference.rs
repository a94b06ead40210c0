//! The pixels of an image by the kernels of `tl-simd`, on the host.

use tl_decode::{JpegComponent, Level, PlaneColor, Upsampling};
use tl_simd::jpeg::{
    Block, idct, replicate, upsample_h1v2, upsample_h2v1, upsample_h2v2, ycc_to_rgb,
};
use tl_simd::resample::{ImageView, Resampler, ResizeArea};

use super::synthetic::{Image, Plane, factors};
use super::{PictureResize, Placement};

/// Samples row by row.
struct Samples {
    width: usize,
    height: usize,
    data: Vec<u8>,
}

impl Samples {
    fn row(&self, row: usize) -> &[u8] {
        &self.data[row * self.width..][..self.width]
    }
}

/// The samples of a component, without those outside of the image.
fn samples(plane: &Plane) -> Samples {
    let JpegComponent { scale, size, blocks, quantizer, .. } = &plane.component;
    let side = scale.block_side();
    let stride = blocks.width as usize * side;
    let mut data = vec![0; stride * blocks.height as usize * side];
    let rows = plane.blocks.chunks_exact(blocks.width as usize);
    for (row, out) in rows.zip(data.chunks_exact_mut(stride * side)) {
        let mut row: Vec<Block> = row.iter().copied().map(Block).collect();
        idct(Level::Scalar, *scale, quantizer, &mut row, out, stride);
    }
    let width = size.0 as usize;
    let height = size.1 as usize;
    let rows = data.chunks_exact(stride).take(height);
    Samples { width, height, data: rows.flat_map(|row| &row[..width]).copied().collect() }
}

/// A component with a sample for each pixel.
fn upsampled(plane: &Plane, image: (u32, u32)) -> Samples {
    let level = Level::Scalar;
    let samples = samples(plane);
    let kind = plane.component.upsampling;
    let (across, down) = factors(kind);
    let wide = samples.width * across as usize;
    let width = image.0 as usize;
    let mut data = Vec::new();
    for y in 0..image.1 as usize {
        let mut out = vec![0; wide];
        let near = samples.row(y / down as usize);
        let lower = y % 2 == 1;
        let other =
            if lower { (y / 2 + 1).min(samples.height - 1) } else { (y / 2).saturating_sub(1) };
        let far = samples.row(other.min(samples.height - 1));
        match kind {
            Upsampling::None | Upsampling::Fractional => out.copy_from_slice(near),
            Upsampling::H2V1 => upsample_h2v1(level, near, &mut out),
            Upsampling::H1V2 => upsample_h1v2(level, near, far, lower, &mut out),
            Upsampling::H2V2 => upsample_h2v2(level, near, far, &mut out),
            Upsampling::Replicate(..) => replicate(level, near, across as usize, &mut out),
        }
        data.extend_from_slice(&out[..width]);
    }
    Samples { width, height: image.1 as usize, data }
}

fn resized(view: ImageView<'_>, resize: &ResizeArea) -> Vec<u8> {
    let mut out = Vec::new();
    let mut resampler = Resampler::new();
    resampler.run_area(Level::Scalar, view, resize, |_, row| out.extend_from_slice(row));
    out
}

fn interleaved(color: PlaneColor, planes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = vec![0; planes[0].len() * 3];
    if let (PlaneColor::YCbCr, [y, cb, cr]) = (color, planes) {
        ycc_to_rgb(Level::Scalar, [y, cb, cr], &mut out);
        return out;
    }
    for (place, pixel) in out.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        *pixel = std::array::from_fn(|channel| planes[channel % planes.len()][place]);
    }
    out
}

pub(super) fn expected(image: &Image, resize: &PictureResize, placement: &Placement) -> Vec<u8> {
    let (window, pixels) = match resize {
        PictureResize::Pixels(area) => {
            let planes = image.planes.iter().map(|plane| upsampled(plane, image.size).data);
            let planes: Vec<_> = planes.collect();
            let rgb = interleaved(image.color, &planes);
            let view = ImageView::packed(&rgb, image.size.0, image.size.1, 3);
            (area.window, resized(view, area))
        }
        PictureResize::Planes(areas) => {
            let planes = image.planes.iter().zip(areas).map(|(plane, area)| {
                let Samples { data, .. } = samples(plane);
                let (width, height) = plane.component.size;
                resized(ImageView::packed(&data, width, height, 1), area)
            });
            let planes: Vec<_> = planes.collect();
            (areas[0].window, interleaved(image.color, &planes))
        }
    };
    place(placement, (window.width, window.height), &pixels)
}

/// The result with a window of these pixels.
pub(super) fn place(placement: &Placement, window: (u32, u32), pixels: &[u8]) -> Vec<u8> {
    let Placement { size: (width, height), left, top, fill, flip, flip_vertical } = *placement;
    let pixel = |x: u32, y: u32| {
        let x = if flip { width - 1 - x } else { x }.wrapping_sub(left);
        let y = if flip_vertical { height - 1 - y } else { y }.wrapping_sub(top);
        if x >= window.0 || y >= window.1 {
            return fill;
        }
        pixels.as_chunks::<3>().0[(y * window.0 + x) as usize]
    };
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}
