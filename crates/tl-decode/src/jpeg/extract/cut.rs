//! The parts of a region, cut out of those of a larger one.

use tl_simd::resample::Rect;

use crate::jpeg::parts::{JpegComponent, JpegParts};

impl JpegParts {
    /// Takes what `region` of the scaled image needs out of `whole`, the parts of a region around it, as
    /// [`JpegDecoder::parts`](crate::JpegDecoder::parts) makes them: the image is decoded once for
    /// several regions. Blocks around the region may be there too.
    ///
    /// # Panics
    /// If the region is not inside of that of `whole`, or those are not the parts of an image.
    pub fn cut(&mut self, whole: &Self, region: Rect) {
        self.clear();
        self.color = whole.color;
        self.decoded = whole.decoded;
        let components = whole.components.iter();
        self.components.extend(components.map(|component| JpegComponent {
            blocks: needed(component, &region),
            ..component.clone()
        }));
        if whole.entropy.rows.is_empty() {
            self.cut_coefficients(whole);
        } else {
            self.cut_rows(whole);
        }
    }

    fn cut_coefficients(&mut self, whole: &Self) {
        let from = &whole.coefficients;
        let to = &mut self.coefficients;
        let mut first = 0;
        for (wanted, component) in self.components.iter().zip(&whole.components) {
            let there = component.blocks;
            let Rect { x, y, width, height } = wanted.blocks;
            for row in y..y + height {
                let at = (row - there.y) as usize * there.width as usize + (x - there.x) as usize;
                for block in &from.blocks[first + at..][..width as usize] {
                    let mask = block & 0xFF;
                    let place = u32::try_from(to.rows.len()).expect("no more than there were");
                    let rows = &from.rows[(block >> 8) as usize..];
                    to.rows.extend_from_slice(&rows[..mask.count_ones() as usize]);
                    to.blocks.push(place << 8 | mask);
                }
            }
            first += there.width as usize * there.height as usize;
        }
    }

    fn cut_rows(&mut self, whole: &Self) {
        let from = &whole.entropy;
        let to = &mut self.entropy;
        to.components.extend_from_slice(&from.components);
        to.codes.extend_from_slice(&from.codes);
        let [mut left, mut top, mut right, mut bottom, mut first] = [u32::MAX, u32::MAX, 0, 0, 0];
        for part in &from.components {
            let Rect { x, y, width, height } = self.components[part.component].blocks;
            left = left.min(x / part.across);
            top = top.min(y / part.down);
            right = right.max((x + width).div_ceil(part.across));
            bottom = bottom.max((y + height).div_ceil(part.down));
            first = whole.components[part.component].blocks.y / part.down;
        }
        to.mcus_per_row = from.mcus_per_row;
        to.skipped = left;
        to.wanted = right - left;
        for part in &from.components {
            self.components[part.component].blocks = Rect {
                x: left * part.across,
                y: top * part.down,
                width: to.wanted * part.across,
                height: (bottom - top) * part.down,
            };
        }
        let end = (bottom - first) as usize;
        let rows = &from.rows[(top - first) as usize..end];
        let start = rows[0].at;
        let bytes_end = from.rows.get(end).map_or(from.bytes.len(), |next| next.at as usize);
        to.bytes.extend_from_slice(&from.bytes[start as usize..bytes_end]);
        to.rows.extend_from_slice(rows);
        to.rows.iter_mut().for_each(|row| row.at -= start);
    }
}

/// The blocks of a component that the region needs, of those that are there.
fn needed(component: &JpegComponent, region: &Rect) -> Rect {
    let there = component.blocks;
    let side = u32::from(component.scale.eighths());
    // Division rounds by less than a sample's part of a pixel, and only so that there are more blocks.
    let span = |from: u32, length: u32, step: f64, margin: u32, there: u32, count: u32| {
        let first = samples((f64::from(from) / step).floor()).saturating_sub(margin) / side;
        let end = samples((f64::from(from + length) / step).ceil()) + margin;
        let first = first.clamp(there, there + count);
        [first, end.div_ceil(side).clamp(first, there + count) - first]
    };
    let [across, down] = component.upsampling.margin();
    let Rect { x, y, width, height } = *region;
    let [x, width] = span(x, width, component.step.0, across, there.x, there.width);
    let [y, height] = span(y, height, component.step.1, down, there.y, there.height);
    assert!(width > 0 && height > 0, "{region:?} is not in the blocks {there:?}");
    Rect { x, y, width, height }
}

/// A number of samples.
fn samples(count: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sides of images are below 2^20, and what is larger is clamped"
    )]
    let count = count as u32;
    count
}
