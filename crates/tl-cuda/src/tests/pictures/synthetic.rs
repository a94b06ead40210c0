//! Images of random coefficients.

use tl_decode::{
    EntropyComponent, EntropyRow, EntropyRowEnd, EntropyRows, JpegCoefficients, JpegComponent,
    JpegParts, PlaneColor, Scale, Upsampling,
};
use tl_simd::resample::{Area, Rect, ResizeArea};

use super::Random;
use super::coder::{BitWriter, Coder};

/// The sizes of coefficients.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amplitude {
    Photograph,
    /// Sums are saturated.
    Large,
    /// Sums wrap.
    Extreme,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    Coefficients,
    Rows,
}

/// A component, and its blocks row by row.
pub(super) struct Plane {
    pub(super) component: JpegComponent,
    pub(super) blocks: Vec<[i16; 64]>,
}

pub(super) struct Image {
    pub(super) color: PlaneColor,
    pub(super) size: (u32, u32),
    pub(super) planes: Vec<Plane>,
}

/// Pixels of a sample.
pub(super) fn factors(upsampling: Upsampling) -> (u32, u32) {
    match upsampling {
        Upsampling::H2V1 => (2, 1),
        Upsampling::H1V2 => (1, 2),
        Upsampling::H2V2 => (2, 2),
        Upsampling::Replicate(across, down) => (across, down),
        // 3:2 in the steps.
        Upsampling::None | Upsampling::Fractional => (1, 1),
    }
}

fn coefficient(random: &mut Random, amplitude: Amplitude, place: u32) -> i16 {
    let limit = match amplitude {
        Amplitude::Photograph => 1 + 60 / (1 + place),
        Amplitude::Large => 2000,
        Amplitude::Extreme => 16_000,
    };
    let value = i32::try_from(random.below(2 * limit + 1)).unwrap() - i32::try_from(limit).unwrap();
    i16::try_from(value).unwrap()
}

fn plane(
    random: &mut Random,
    scale: Scale,
    size: (u32, u32),
    upsampling: Upsampling,
    amplitude: Amplitude,
) -> Plane {
    let side = u32::from(scale.eighths());
    let blocks = Rect::of_size(size.0.div_ceil(side), size.1.div_ceil(side));
    let most = match amplitude {
        Amplitude::Extreme => 65_535,
        Amplitude::Photograph | Amplitude::Large => 30,
    };
    let quantizer = std::array::from_fn(|_| u16::try_from(random.range(1, most)).unwrap());
    let (across, down) = factors(upsampling);
    let step = if upsampling == Upsampling::Fractional {
        (1.5, 1.5)
    } else {
        (f64::from(across), f64::from(down))
    };
    let component = JpegComponent { scale, size, step, upsampling, blocks, quantizer };
    let mut block = || {
        let density = random.below(4);
        let mut block = [0; 64];
        for (value, place) in block.iter_mut().zip(0..) {
            if place == 0 || random.below(8) < 2 * density {
                *value = coefficient(random, amplitude, place);
            }
        }
        // Rows of zeros at the end.
        let kept = 8 * random.range(1, 8) as usize;
        block[kept..].fill(0);
        block
    };
    let blocks = (0..blocks.width * blocks.height).map(|_| block()).collect();
    Plane { component, blocks }
}

impl Image {
    pub(super) fn grey(
        random: &mut Random,
        scale: Scale,
        size: (u32, u32),
        amplitude: Amplitude,
    ) -> Self {
        let planes = vec![plane(random, scale, size, Upsampling::None, amplitude)];
        Self { color: PlaneColor::Grey, size, planes }
    }

    pub(super) fn color(
        random: &mut Random,
        color: PlaneColor,
        scale: Scale,
        size: (u32, u32),
        kinds: [Upsampling; 3],
    ) -> Self {
        let component = |kind: Upsampling| {
            let (across, down) = factors(kind);
            let size = if kind == Upsampling::Fractional {
                ((2 * size.0).div_ceil(3), (2 * size.1).div_ceil(3))
            } else {
                (size.0.div_ceil(across), size.1.div_ceil(down))
            };
            plane(random, scale, size, kind, Amplitude::Photograph)
        };
        let planes = kinds.map(component).into();
        Self { color, size, planes }
    }

    /// Leaves nothing but the first row, or what transforms of four points treat like that.
    pub(super) fn flatten(&mut self) {
        for block in &mut self.planes[0].blocks {
            block[8..32].fill(0);
            block[40..].fill(0);
        }
        for block in self.planes[0].blocks.iter_mut().step_by(2) {
            block[32..40].fill(0);
        }
    }

    /// The area of `resize` in the planes, as the fast mode has it.
    pub(super) fn areas(&self, resize: &ResizeArea) -> [ResizeArea; 3] {
        std::array::from_fn(|plane| {
            let JpegComponent { step, size, .. } = self.planes[plane].component;
            let Area { left, top, right, bottom } = resize.area;
            let area = Area {
                left: left / step.0,
                top: top / step.1,
                right: (right / step.0).min(f64::from(size.0)),
                bottom: (bottom / step.1).min(f64::from(size.1)),
            };
            ResizeArea { area, ..*resize }
        })
    }

    pub(super) fn parts(&self, stage: Stage) -> JpegParts {
        let components = self.planes.iter().map(|plane| plane.component.clone()).collect();
        let mut parts = JpegParts { color: self.color, components, ..JpegParts::default() };
        match stage {
            Stage::Coefficients => parts.coefficients = self.coefficients(),
            Stage::Rows => parts.entropy = self.rows(&mut parts.components),
        }
        parts
    }

    fn coefficients(&self) -> JpegCoefficients {
        let mut made = JpegCoefficients::default();
        for block in self.planes.iter().flat_map(|plane| &plane.blocks) {
            let place = u32::try_from(made.rows.len()).unwrap();
            let mut mask = 0;
            for (number, row) in block.as_chunks::<8>().0.iter().enumerate() {
                if *row != [0; 8] {
                    mask |= 1 << number;
                    made.rows.push(*row);
                }
            }
            made.blocks.push(place << 8 | mask);
        }
        made
    }

    /// The blocks in MCUs of as many as the components' steps say, with MCUs before and after them.
    fn rows(&self, components: &mut [JpegComponent]) -> EntropyRows {
        let most = self.planes.iter().map(|plane| factors(plane.component.upsampling));
        let most = most.fold((1, 1), |most, own| (most.0.max(own.0), most.1.max(own.1)));
        let shapes: Vec<(u32, u32)> = self
            .planes
            .iter()
            .map(|plane| {
                let own = factors(plane.component.upsampling);
                (most.0 / own.0, most.1 / own.1)
            })
            .collect();
        let mcus = |blocks: fn(&Rect) -> u32, of: fn(&(u32, u32)) -> u32| {
            let each = components.iter().zip(&shapes);
            each.map(|(component, shape)| blocks(&component.blocks).div_ceil(of(shape))).max()
        };
        let wanted = mcus(|blocks| blocks.width, |shape| shape.0).unwrap();
        let rows = mcus(|blocks| blocks.height, |shape| shape.1).unwrap();
        for (component, shape) in components.iter_mut().zip(&shapes) {
            component.blocks = Rect::of_size(wanted * shape.0, rows * shape.1);
        }
        let skipped = self.size.0 % 3;
        let after = self.size.1 % 2;
        let coder = Coder::new();
        let mut made = EntropyRows {
            codes: vec![coder.dc.codes(), coder.ac.codes()],
            mcus_per_row: skipped + wanted + after,
            skipped,
            wanted,
            ..EntropyRows::default()
        };
        let scan = shapes.iter().enumerate().map(|(component, &(across, down))| EntropyComponent {
            component,
            across,
            down,
            dc: 0,
            ac: 1,
        });
        made.components = scan.collect();
        for row in 0..rows {
            self.row(&coder, &shapes, row, &mut made);
        }
        made
    }

    fn row(&self, coder: &Coder, shapes: &[(u32, u32)], row: u32, made: &mut EntropyRows) {
        let bit = row % 8;
        let mut bits = BitWriter::default();
        bits.put(0x5A & ((1 << bit) - 1), bit);
        let predictors = [7, -300, i16::try_from(row).unwrap()];
        let mut last = predictors;
        for mcu in 0..made.mcus_per_row {
            let wanted = mcu.wrapping_sub(made.skipped);
            for (number, (plane, &(across, down))) in self.planes.iter().zip(shapes).enumerate() {
                for v in 0..down {
                    for h in 0..across {
                        let column = wanted.wrapping_mul(across).wrapping_add(h);
                        let block = plane.block(column, row * down + v, wanted < made.wanted);
                        coder.block(&mut bits, &block, &mut last[number]);
                    }
                }
            }
        }
        let position = bits.len();
        let data = bits.finish();
        let at = u32::try_from(made.bytes.len()).unwrap();
        made.bytes.extend_from_slice(&data);
        made.bytes.resize(made.bytes.len().next_multiple_of(4) + 8, 0);
        let end = (row % 5 < 4).then_some(EntropyRowEnd {
            position,
            predictors: ended(last, self.planes.len(), predictors),
        });
        let len = u32::try_from(data.len()).unwrap();
        made.rows.push(EntropyRow { at, len, bit, predictors, end });
    }
}

/// The predictors of components that are not there stay as they are.
fn ended(last: [i16; 3], planes: usize, before: [i16; 3]) -> [i16; 3] {
    std::array::from_fn(|i| if i < planes { last[i] } else { before[i] })
}

impl Plane {
    /// A block; one that does not count where there is none.
    fn block(&self, column: u32, row: u32, is_wanted: bool) -> [i16; 64] {
        let Rect { width, height, .. } = self.component.blocks;
        let mut none = [0; 64];
        none[0] = 1234;
        none[63] = -5;
        if is_wanted && column < width && row < height {
            self.blocks[(row * width + column) as usize]
        } else {
            none
        }
    }
}
