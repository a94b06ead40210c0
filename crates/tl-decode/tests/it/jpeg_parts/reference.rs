//! The samples and pixels of an image from its parts, by the definitions: Huffman codes bit by bit,
//! upsampling one sample at a time.

use tl_decode::{
    EntropyComponent, EntropyRow, EntropyRowEnd, EntropyRows, HuffmanCodes, JpegComponent,
    JpegParts, Level, PartStage, PlaneColor, Rect, Upsampling,
};
use tl_simd::jpeg::{Block, idct, ycc_to_rgb};

/// The samples of the blocks of a component.
pub(crate) struct Samples {
    component: JpegComponent,
    data: Vec<u8>,
}

impl Samples {
    fn new(component: &JpegComponent, blocks: &mut [Block]) -> Self {
        let side = component.scale.block_side();
        let across = component.blocks.width as usize;
        let stride = across * side;
        let mut data = vec![0; stride * side * component.blocks.height as usize];
        for (row, out) in blocks.chunks_mut(across).zip(data.chunks_mut(stride * side)) {
            let JpegComponent { scale, quantizer, .. } = component;
            idct(Level::Scalar, *scale, quantizer, row, out, stride);
        }
        Self { component: component.clone(), data }
    }

    /// The sample in a column and row of the whole component, or the nearest one of it.
    pub(crate) fn at(&self, column: i64, row: i64) -> u8 {
        let JpegComponent { scale, size, blocks, .. } = &self.component;
        let side = scale.block_side();
        let inside = |at: i64, size: u32, first: u32| {
            let at = usize::try_from(at.clamp(0, i64::from(size) - 1)).expect("not negative");
            at.checked_sub(first as usize * side).expect("a sample that the region needs")
        };
        let x = inside(column, size.0, blocks.x);
        let y = inside(row, size.1, blocks.y);
        let stride = blocks.width as usize * side;
        assert!(x < stride, "column {column} is not there");
        self.data[y * stride + x]
    }

    /// The sample of a pixel.
    fn pixel(&self, x: i64, y: i64) -> u8 {
        let sample = |column: i64, row: i64| i64::from(self.at(column, row));
        let toward = |at: i64| if at % 2 == 0 { -1 } else { 1 };
        // Three quarters of the nearest row or column and a quarter of the next, times 4.
        let down = |column: i64| 3 * sample(column, y / 2) + sample(column, y / 2 + toward(y));
        let sample = match self.component.upsampling {
            Upsampling::None => sample(x, y),
            Upsampling::Replicate(across, down) => {
                sample(x / i64::from(across), y / i64::from(down))
            }
            Upsampling::H2V1 => {
                (3 * sample(x / 2, y) + sample(x / 2 + toward(x), y) + 1 + x % 2) >> 2
            }
            Upsampling::H1V2 => (down(x) + 1 + y % 2) >> 2,
            Upsampling::H2V2 => {
                // Above the first and below the last row and column the same is repeated.
                (3 * down(x / 2) + down(x / 2 + toward(x)) + 8 - x % 2) >> 4
            }
            Upsampling::Fractional => panic!("no pixels are made of these"),
        };
        u8::try_from(sample).expect("a mean of samples")
    }
}

/// The samples of all components.
pub(crate) fn samples(parts: &JpegParts, stage: PartStage) -> Vec<Samples> {
    let mut blocks = match stage {
        PartStage::Coefficients => unpack(parts),
        PartStage::EntropyRows => decode(parts),
    };
    let pairs = parts.components.iter().zip(&mut blocks);
    pairs.map(|(component, blocks)| Samples::new(component, blocks)).collect()
}

/// The pixels of a region as RGB.
pub(crate) fn pixels(color: PlaneColor, samples: &[Samples], region: Rect) -> Vec<u8> {
    let columns = i64::from(region.x)..i64::from(region.x + region.width);
    let mut out = Vec::new();
    for y in i64::from(region.y)..i64::from(region.y + region.height) {
        let row = |samples: &Samples| -> Vec<u8> {
            columns.clone().map(|x| samples.pixel(x, y)).collect()
        };
        let rows: Vec<Vec<u8>> = samples.iter().map(row).collect();
        match (color, &rows[..]) {
            (PlaneColor::Grey, [grey]) => out.extend(grey.iter().flat_map(|&grey| [grey; 3])),
            (PlaneColor::Rgb, [r, g, b]) => {
                out.extend(r.iter().zip(g).zip(b).flat_map(|((&r, &g), &b)| [r, g, b]));
            }
            (PlaneColor::YCbCr, [y, cb, cr]) => {
                let at = out.len();
                out.resize(at + 3 * y.len(), 0);
                ycc_to_rgb(Level::Scalar, [y, cb, cr], &mut out[at..]);
            }
            (color, rows) => panic!("{color:?} of {} components", rows.len()),
        }
    }
    out
}

fn area(rect: Rect) -> usize {
    rect.width as usize * rect.height as usize
}

/// The blocks of packed coefficients.
fn unpack(parts: &JpegParts) -> Vec<Vec<Block>> {
    let mut packed = parts.coefficients.blocks.iter();
    let blocks = parts.components.iter().map(|component| {
        let of_component = packed.by_ref().take(area(component.blocks));
        of_component.map(|&packed| unpack_block(packed, &parts.coefficients.rows)).collect()
    });
    let blocks = blocks.collect();
    assert_eq!(packed.next(), None, "as many blocks as the components have");
    blocks
}

fn unpack_block(packed: u32, rows: &[[i16; 8]]) -> Block {
    let mut block = Block::ZERO;
    let mut rows = rows[(packed >> 8) as usize..].iter();
    for (bit, target) in block.0.chunks_mut(8).enumerate() {
        if packed >> bit & 1 == 1 {
            let row = rows.next().expect("a row for every bit");
            assert_ne!(*row, [0; 8], "rows of zeros are left out");
            target.copy_from_slice(row);
        }
    }
    block
}

/// The blocks of entropy-coded rows.
fn decode(parts: &JpegParts) -> Vec<Vec<Block>> {
    let entropy = &parts.entropy;
    let mut blocks: Vec<Vec<Block>> =
        parts.components.iter().map(|part| vec![Block::ZERO; area(part.blocks)]).collect();
    for (number, row) in entropy.rows.iter().enumerate() {
        assert_eq!(row.at % 4, 0, "{row:?}");
        let bytes = &entropy.bytes[row.at as usize..];
        assert_eq!(bytes[row.len as usize..][..8], [0; 8], "{row:?}");
        decode_row(parts, number, row, &mut blocks);
    }
    blocks
}

fn decode_row(parts: &JpegParts, number: usize, row: &EntropyRow, blocks: &mut [Vec<Block>]) {
    let entropy = &parts.entropy;
    let bytes = &entropy.bytes[row.at as usize..][..row.len as usize];
    let mut bits = Bits { bytes, at: row.bit as usize };
    let mut predictors = row.predictors;
    for mcu in 0..entropy.skipped + entropy.wanted {
        for (part, predictor) in entropy.components.iter().zip(&mut predictors) {
            let rect = parts.components[part.component].blocks;
            assert_eq!(rect.width, entropy.wanted * part.across, "{rect:?}");
            assert_eq!(rect.height as usize, entropy.rows.len() * part.down as usize, "{rect:?}");
            for down in 0..part.down {
                for across in 0..part.across {
                    let block = bits.block(entropy, part, predictor);
                    if let Some(column) = mcu.checked_sub(entropy.skipped) {
                        let x = column * part.across + across;
                        let y = number * part.down as usize + down as usize;
                        blocks[part.component][y * rect.width as usize + x as usize] = block;
                    }
                }
            }
        }
    }
    if let (Some(end), true) = (row.end, entropy.skipped + entropy.wanted == entropy.mcus_per_row) {
        let position = u32::try_from(bits.at).expect("a short row");
        assert_eq!(end, EntropyRowEnd { position, predictors });
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next bits as a number, zeros after the data.
    fn take(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |number, _| {
            let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
            let bit = u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
            number << 1 | bit
        })
    }

    /// The next symbol: its code is the shortest below the limit of its length.
    fn symbol(&mut self, codes: &HuffmanCodes) -> u8 {
        let mut code = 0;
        for ((bits, &limit), &offset) in (1..).zip(&codes.limits).zip(&codes.offsets) {
            code = code << 1 | self.take(1);
            if code << (16 - bits) < limit {
                return codes.symbols[offset.wrapping_add(code) as usize];
            }
        }
        panic!("no such code");
    }

    fn number(&mut self, size: u32) -> i32 {
        let bits = self.take(size).cast_signed();
        if size > 0 && bits < 1 << (size - 1) { bits - (1 << size) + 1 } else { bits }
    }

    fn block(&mut self, rows: &EntropyRows, part: &EntropyComponent, predictor: &mut i16) -> Block {
        let mut block = Block::ZERO;
        let size = self.symbol(&rows.codes[part.dc]);
        *predictor = predictor.wrapping_add(low_half(self.number(size.into())));
        block.0[0] = *predictor;
        let mut k = 1;
        while k < 64 {
            let symbol = self.symbol(&rows.codes[part.ac]);
            match (symbol >> 4, symbol & 15) {
                (15, 0) => k += 16,
                (_, 0) => break,
                (run, size) => {
                    // A coefficient after the block goes to its last place, as in libjpeg.
                    k = (k + usize::from(run)).min(63);
                    block.0[natural(k)] = low_half(self.number(size.into()));
                    k += 1;
                }
            }
        }
        block
    }
}

#[expect(clippy::cast_possible_truncation, reason = "coefficients wrap")]
fn low_half(value: i32) -> i16 {
    value as i16
}

/// The natural place of coefficient `k`: the walk over the diagonals, there and back.
fn natural(k: usize) -> usize {
    let mut left = k;
    for diagonal in 0..15usize {
        let first = diagonal.saturating_sub(7);
        let len = diagonal.min(7) - first + 1;
        if left < len {
            let step = first + left;
            let y = if diagonal % 2 == 0 { diagonal - step } else { step };
            return y * 8 + diagonal - y;
        }
        left -= len;
    }
    panic!("coefficient {k}");
}
