//! The markers of a codestream (ISO/IEC 15444-1, Annex A): what a header states, and what a decoder
//! takes for it.

use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;

const SOC: [u8; 2] = [0xFF, 0x4F];
const SIZ: [u8; 2] = [0xFF, 0x51];
const COD: [u8; 2] = [0xFF, 0x52];
const COC: [u8; 2] = [0xFF, 0x53];
const SOT: [u8; 2] = [0xFF, 0x90];
const SOD: [u8; 2] = [0xFF, 0x93];
const EOC: [u8; 2] = [0xFF, 0xD9];
/// Images of more channels have no colours that Pillow knows.
const MAX_COMPONENTS: u16 = 4;

/// The statements of the main header, and of those of all parts of tiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) width: u32,
    pub(super) height: u32,
    tile_width: u32,
    tile_height: u32,
    tiles: u64,
    pub(super) components: u8,
    /// The largest number of bits of a sample.
    pub(super) bit_depth: u8,
    pub(super) is_signed: bool,
    /// The most memory of the blocks of a component in a tile.
    block_bytes: u64,
}

impl Header {
    /// Reads the size, which is at the front.
    pub(super) fn parse(stream: Bytes<'_>) -> Result<Self, DecodeError> {
        let mut reader = stream;
        reader.expect(SOC)?;
        reader.expect(SIZ)?;
        let mut siz = reader.segment()?;
        let _capabilities: [u8; 2] = siz.take()?;
        let mut fields = [0; 8];
        for field in &mut fields {
            *field = siz.u32()?;
        }
        let [x1, y1, x0, y0, tile_width, tile_height, tile_x, tile_y] = fields;
        let width = x1.saturating_sub(x0);
        let height = y1.saturating_sub(y0);
        if width == 0 || height == 0 || tile_width == 0 || tile_height == 0 {
            return Err(value("width or height of the image or a tile", 0));
        }
        let across = u64::from(x1.saturating_sub(tile_x).div_ceil(tile_width));
        let down = u64::from(y1.saturating_sub(tile_y).div_ceil(tile_height));
        let components = siz.u16()?;
        if components == 0 {
            return Err(value("number of components", 0));
        }
        if components > MAX_COMPONENTS {
            return Err(Feature::Jpeg2000Components(components).into());
        }
        let mut bit_depth = 0;
        let mut is_signed = false;
        for _ in 0..components {
            let [precision, _, _] = siz.take()?;
            bit_depth = bit_depth.max((precision & 0x7F) + 1);
            is_signed |= precision & 0x80 != 0;
        }
        Ok(Self {
            width,
            height,
            tile_width,
            tile_height,
            tiles: across * down,
            components: components.to_le_bytes()[0],
            bit_depth,
            is_signed,
            block_bytes: 0,
        })
    }

    /// Reads all headers, and checks that the parts of all tiles are there up to the end marker.
    pub(super) fn parse_all(stream: Bytes<'_>) -> Result<Self, DecodeError> {
        let mut header = Self::parse(stream)?;
        let mut reader = stream;
        reader.expect(SOC)?;
        let mut layers = 1;
        loop {
            let start = reader;
            match reader.take()? {
                SOT => {
                    let mut sot = reader.segment()?;
                    let _tile = sot.u16()?;
                    let bytes = sot.u32()?;
                    header.parse_part(&mut reader, &mut layers)?;
                    reader = start.after_part(bytes)?;
                }
                EOC => return Ok(header),
                marker => header.parse_segment(marker, &mut reader, &mut layers)?,
            }
        }
    }

    /// Reads the segments of a part of a tile, in front of its data.
    fn parse_part(&mut self, reader: &mut Bytes<'_>, layers: &mut u64) -> Result<(), DecodeError> {
        loop {
            match reader.take()? {
                SOD => return Ok(()),
                marker => self.parse_segment(marker, reader, layers)?,
            }
        }
    }

    fn parse_segment(
        &mut self,
        marker: [u8; 2],
        reader: &mut Bytes<'_>,
        layers: &mut u64,
    ) -> Result<(), DecodeError> {
        match marker {
            // Markers without a segment.
            [0xFF, 0x30..=0x3F] => return Ok(()),
            [0xFF, 0x40..=0xFF] => {}
            _ => return Err(reader.stray("expected a marker")),
        }
        let mut segment = reader.segment()?;
        match marker {
            COD => {
                let style: [u8; 1] = segment.take()?;
                let _progression: [u8; 1] = segment.take()?;
                *layers = (*layers).max(segment.u16()?.into());
                let _transform: [u8; 1] = segment.take()?;
                self.charge_blocks(style[0], &mut segment, *layers)
            }
            COC => {
                let [_component, style] = segment.take()?;
                self.charge_blocks(style, &mut segment, *layers)
            }
            _ => Ok(()),
        }
    }

    /// Counts the blocks of a component in a tile that is coded like this.
    fn charge_blocks(
        &mut self,
        style: u8,
        segment: &mut Bytes<'_>,
        layers: u64,
    ) -> Result<(), DecodeError> {
        /// Memory of a precinct with its trees, of a code-block and of a layer of one, as the codec
        /// has them, rounded up.
        const PRECINCT: u64 = 256;
        const BLOCK: u64 = 128;
        const LAYER: u64 = 24;
        let [levels, block_width, block_height, _, _] = segment.take()?;
        if levels > 32 {
            return Err(value("number of decompositions", levels.into()));
        }
        let mut bytes = 0u64;
        for resolution in 0..=levels {
            let precinct = if style & 1 == 0 { 0xFF } else { segment.take::<1>()?[0] };
            let shift = u32::from(levels - resolution);
            // Parts of this size in a side of the tile, with those that are cut.
            let parts = |side: u32, exponent: u8| {
                let side = side.checked_shr(shift).unwrap_or(0);
                u64::from(side.checked_shr(exponent.into()).unwrap_or(0)) + 2
            };
            let precincts_across = parts(self.width.min(self.tile_width), precinct & 15);
            let precincts = precincts_across
                .saturating_mul(parts(self.height.min(self.tile_height), precinct >> 4));
            // Blocks are in subbands, which have half the side of a resolution.
            let half = u8::from(resolution > 0);
            let width =
                (block_width & 15).saturating_add(2).min((precinct & 15) - half.min(precinct & 15));
            let height = (block_height & 15)
                .saturating_add(2)
                .min((precinct >> 4) - half.min(precinct >> 4));
            let blocks = parts(self.width.min(self.tile_width), width + half)
                .saturating_mul(parts(self.height.min(self.tile_height), height + half));
            let per_band = precincts
                .saturating_mul(PRECINCT)
                .saturating_add(blocks.saturating_mul(BLOCK + LAYER * layers.min(32)));
            bytes = bytes.saturating_add(per_band.saturating_mul(3));
        }
        self.block_bytes = self.block_bytes.max(bytes);
        Ok(())
    }

    /// The most memory that the codec takes: samples of the image, twice where channels are put in
    /// order, `columns` of a palette, coefficients of a tile, and its blocks.
    pub(super) fn working_bytes(&self, columns: u8) -> u64 {
        const SAMPLE: u64 = size_of::<f32>() as u64;
        /// A tile without its blocks.
        const TILE: u64 = 512;
        let components = u64::from(self.components);
        let pixels = u64::from(self.width).saturating_mul(self.height.into());
        let in_tile = u64::from(self.width.min(self.tile_width))
            .saturating_mul(self.height.min(self.tile_height).into());
        let samples = pixels.saturating_mul(2 * components.max(columns.into()));
        let coefficients = in_tile.saturating_mul(3);
        let tiles = self.tiles.saturating_mul(TILE * (1 + components));
        let blocks = self.block_bytes.saturating_mul(components);
        let all = samples.saturating_add(coefficients).saturating_mul(SAMPLE);
        all.saturating_add(tiles).saturating_add(blocks)
    }
}

/// Bytes of a file from a place on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a> {
    pub(super) data: &'a [u8],
    /// The offset of the first in the file.
    pub(super) at: usize,
}

impl<'a> Bytes<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) =
            self.data.split_first_chunk().ok_or_else(|| self.truncated(N as u64))?;
        self.data = rest;
        self.at += N;
        Ok(*bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.take().map(u16::from_be_bytes)
    }

    fn expect(&mut self, marker: [u8; 2]) -> Result<(), DecodeError> {
        if self.take()? == marker { Ok(()) } else { Err(self.stray("expected SOC and SIZ")) }
    }

    /// The next `size` bytes.
    pub(super) fn part(&mut self, size: u64) -> Result<Self, DecodeError> {
        let parts = usize::try_from(size).ok().and_then(|size| self.data.split_at_checked(size));
        let (data, rest) = parts.ok_or_else(|| self.truncated(size))?;
        let part = Self { data, at: self.at };
        self.at += data.len();
        self.data = rest;
        Ok(part)
    }

    /// The contents of a segment, after its length.
    fn segment(&mut self) -> Result<Self, DecodeError> {
        let length = self.u16()?;
        let size = length.checked_sub(2).ok_or_else(|| value("segment length", length.into()))?;
        self.part(size.into())
    }

    /// The bytes after the part of a tile that starts here. A part without a size has all but the end
    /// marker.
    fn after_part(mut self, bytes: u32) -> Result<Self, DecodeError> {
        let bytes = match bytes {
            0 => self.data.len().saturating_sub(EOC.len()) as u64,
            bytes => bytes.into(),
        };
        self.part(bytes)?;
        Ok(self)
    }

    fn truncated(&self, need: u64) -> DecodeError {
        let format = Format::Jpeg2000;
        let offset = self.at as u64;
        let have = self.data.len() as u64;
        Defect::Truncated { format, what: "marker segment or box", offset, need, have }.into()
    }

    fn stray(&self, what: &'static str) -> DecodeError {
        let offset = self.at.saturating_sub(2) as u64;
        Defect::Stray { format: Format::Jpeg2000, what, offset }.into()
    }
}

pub(super) fn value(what: &'static str, found: u64) -> DecodeError {
    Defect::Value { format: Format::Jpeg2000, what, found }.into()
}
