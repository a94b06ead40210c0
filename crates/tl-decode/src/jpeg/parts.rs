//! The parts of an image that a device decodes: its coefficients, or its entropy-coded rows.

use tl_simd::jpeg::Scale;
use tl_simd::resample::Rect;

use super::frame::PlaneColor;
use super::request::Decoded;

/// The stage at which decoding on the host ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartStage {
    /// After entropy decoding.
    Coefficients,
    /// Before it: the data of each MCU row, from a row index.
    EntropyRows,
}

/// A region of a JPEG image in parts, from which its samples can be computed without the file. It is
/// memory for one image after the other.
#[derive(Clone, Debug, Default)]
pub struct JpegParts {
    /// The colour space: grey, `YCbCr` or RGB.
    pub color: PlaneColor,
    /// The components, in the order in which [`PlaneColor`] names them: 1 or 3.
    pub components: Vec<JpegComponent>,
    /// The coefficients; empty at the other stage.
    pub coefficients: JpegCoefficients,
    /// The entropy-coded rows; without rows at the other stage.
    pub entropy: EntropyRows,
    /// Orientation and damage of the image.
    pub decoded: Decoded,
}

/// A component of a scaled image.
#[derive(Clone, Debug)]
pub struct JpegComponent {
    /// The samples of a block: [`Scale::block_side`] across and down.
    pub scale: Scale,
    /// Width and height of the whole component in samples.
    pub size: (u32, u32),
    /// Pixels of the scaled image per sample, across and down: 1, 2, 4, 4/3 and so on.
    pub step: (f64, f64),
    /// The upsampling to pixels.
    pub upsampling: Upsampling,
    /// The blocks that are there, of those of the component.
    pub blocks: Rect,
    /// The factors of the coefficients of its blocks, row by row.
    pub quantizer: [u16; 64],
}

/// The upsampling of a component's samples to pixels, as libjpeg-turbo does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upsampling {
    /// A sample is a pixel.
    #[default]
    None,
    /// The triangle filter across ([`upsample_h2v1`](tl_simd::jpeg::upsample_h2v1)).
    H2V1,
    /// The triangle filter down ([`upsample_h1v2`](tl_simd::jpeg::upsample_h1v2)).
    H1V2,
    /// The triangle filter both ways ([`upsample_h2v2`](tl_simd::jpeg::upsample_h2v2)).
    H2V2,
    /// Each sample is repeated, so often across and down.
    Replicate(u32, u32),
    /// A ratio such as 3:2, which libjpeg does not upsample.
    Fractional,
}

/// Coefficients of blocks, without the rows of eight zeros.
#[derive(Clone, Debug, Default)]
pub struct JpegCoefficients {
    /// Of each block of the components, one component after the other and each row by row: the rows of
    /// the block that are there, in the lowest 8 bits (bit 0 is the first row), and above them the
    /// place of the first of these in `rows`.
    pub blocks: Vec<u32>,
    /// Rows of coefficients as they were coded: not dequantised, in natural order.
    pub rows: Vec<[i16; 8]>,
}

/// The entropy-coded data of MCU rows.
#[derive(Clone, Debug, Default)]
pub struct EntropyRows {
    /// The components in the order of the scan, with their numbers among all components.
    pub components: Vec<EntropyComponent>,
    /// The Huffman codes that these use.
    pub codes: Vec<HuffmanCodes>,
    /// MCUs of a row of the image.
    pub mcus_per_row: u32,
    /// MCUs at the start of each row that do not matter.
    pub skipped: u32,
    /// The MCUs after them, whose blocks are those of the components.
    pub wanted: u32,
    /// The rows.
    pub rows: Vec<EntropyRow>,
    /// The data of the rows without stuffed bytes. Each begins at a multiple of 4, and 8 zeros or more
    /// follow it.
    pub bytes: Vec<u8>,
}

/// A component of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntropyComponent {
    /// Its number among the components of the image.
    pub component: usize,
    /// Blocks of an MCU, across.
    pub across: u32,
    /// Blocks of an MCU, down.
    pub down: u32,
    /// The code of its DC coefficients, by its place in [`EntropyRows::codes`].
    pub dc: usize,
    /// The code of its AC coefficients.
    pub ac: usize,
}

/// The data of an MCU row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntropyRow {
    /// The first byte in [`EntropyRows::bytes`].
    pub at: u32,
    /// Bytes without the zeros after them.
    pub len: u32,
    /// Bits of the first byte that belong to the row before.
    pub bit: u32,
    /// The last DC coefficients before it, by component of the scan.
    pub predictors: [i16; 3],
    /// The state after its last MCU; `None` for the last row and those before a restart marker.
    pub end: Option<EntropyRowEnd>,
}

/// The end of an MCU row, which proves the index right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntropyRowEnd {
    /// Bits from the row's first byte.
    pub position: u32,
    /// The last DC coefficients, by component of the scan.
    pub predictors: [i16; 3],
}

/// A Huffman code in canonical form (ITU-T T.81 annex C).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HuffmanCodes {
    /// By length less 1: the first code of 16 bits that begins with no code of this length or shorter.
    pub limits: [u32; 16],
    /// By length less 1: what is added to a code, modulo 2^32, for the place of its symbol.
    pub offsets: [u32; 16],
    /// The symbols.
    pub symbols: [u8; 256],
}

impl JpegParts {
    /// Empties all parts and keeps their memory.
    pub(super) fn clear(&mut self) {
        let Self { components, coefficients, entropy, .. } = self;
        components.clear();
        coefficients.blocks.clear();
        coefficients.rows.clear();
        entropy.components.clear();
        entropy.codes.clear();
        entropy.rows.clear();
        entropy.bytes.clear();
    }
}
