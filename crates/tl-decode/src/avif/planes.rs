//! The decoded planes of an image, of which tiles have made parts.

use tl_av1::{Decoder, Layout, Picture};

use super::boxes::value_at;
use super::contents::Layer;
use super::extents::Data;
use super::properties::Configuration;
use crate::error::{CodecError, DecodeError, Defect, Limit};
use crate::limits::{Limits, check};

/// Samples of an image.
#[derive(Debug)]
pub(super) struct Planes {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bit_depth: u8,
    pub(super) layout: Layout,
    /// Matrix coefficients and range as the AV1 data states them.
    pub(super) matrix: u8,
    pub(super) full_range: bool,
    /// Y, U and V without bytes between rows; samples of more than 8 bits take two, the low one first.
    planes: [Vec<u8>; 3],
}

/// The alpha of an image, whose samples are Y of its planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alpha<'a>(&'a Planes);

/// A decoder, and the memory that the planes of an image have taken.
pub(super) struct Loader<'a> {
    limits: &'a Limits,
    charged: u64,
}

impl<'a> Loader<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self { limits, charged: 0 }
    }

    /// Decodes all tiles of a layer.
    pub(super) fn load(
        &mut self,
        layer: &Layer<'_>,
        configuration: &Configuration,
    ) -> Result<Planes, DecodeError> {
        let allowed = self.charge(layer, configuration)?;
        let mut decoder = Decoder::new(self.limits.max_working_bytes - self.charged);
        let mut whole: Option<Planes> = None;
        let columns = usize::from(layer.grid.columns);
        for (place, data) in layer.tiles.iter().enumerate() {
            let picture = decode_one(&mut decoder, &data.join()?, self.limits, self.charged)?;
            let tile = Planes::of_picture(picture);
            let stated = (layer.tile.width as usize, layer.tile.height as usize);
            if (tile.width, tile.height) != stated {
                return Err(value_at("width of a picture (unlike ispe)", tile.width as u64, 0));
            }
            // The AV1 data may have more bits or planes than `av1C` states.
            if place == 0 && self.charge_more(layer, &tile, allowed)? {
                decoder = Decoder::new(self.limits.max_working_bytes - self.charged);
            }
            if layer.tiles.len() == 1 && layer.tile == layer.size {
                return Ok(tile);
            }
            tile.require_whole_colors(layer)?;
            let size = (layer.size.width as usize, layer.size.height as usize);
            let whole = whole.get_or_insert_with(|| tile.of_same_kind(size));
            whole.require_same_kind(&tile)?;
            whole.put(&tile, (place % columns, place / columns));
            decoder.restart();
        }
        whole.ok_or_else(|| super::boxes::missing("tiles of a grid"))
    }

    /// Charges the planes of a layer, with the most samples of colour that `av1C` allows, and returns
    /// their bytes.
    fn charge(
        &mut self,
        layer: &Layer<'_>,
        configuration: &Configuration,
    ) -> Result<u64, DecodeError> {
        let pixels = self.limits.charge_pixels(layer.size.width, layer.size.height)?;
        let planes = if configuration.is_monochrome { 1 } else { 3 };
        let bytes = if configuration.bit_depth > 8 { 2 } else { 1 };
        let stated = pixels.saturating_mul(planes * bytes);
        // All of them, although one is joined at a time: an item may be many tiles.
        let copied = layer.tiles.iter().map(Data::copied).fold(0, u64::saturating_add);
        self.charged = self.charged.saturating_add(stated).saturating_add(copied);
        self.limits.charge_working(self.charged)?;
        Ok(stated)
    }

    /// Charges what the planes of a layer take beyond `allowed` bytes, as the decoded `tile` has them,
    /// while the tile is in memory as well. Returns whether there is more.
    fn charge_more(
        &mut self,
        layer: &Layer<'_>,
        tile: &Planes,
        allowed: u64,
    ) -> Result<bool, DecodeError> {
        let size = (layer.size.width as usize, layer.size.height as usize);
        let more = tile.bytes_of_size(size).saturating_sub(allowed);
        self.charged = self.charged.saturating_add(more);
        let is_whole = layer.tile == layer.size;
        let held = if is_whole { 0 } else { tile.bytes_of_size((tile.width, tile.height)) };
        if more > 0 {
            self.limits.charge_working(self.charged.saturating_add(held))?;
        }
        Ok(more > 0)
    }
}

/// The picture of an item.
fn decode_one(
    decoder: &mut Decoder,
    data: &[u8],
    limits: &Limits,
    charged: u64,
) -> Result<Picture, DecodeError> {
    match decoder.decode(data) {
        Ok(Some(picture)) => Ok(picture),
        Ok(None) => Err(super::boxes::missing("a picture in an image item")),
        Err(tl_av1::Error::TooLarge { need, .. }) => {
            let need = need.saturating_add(charged);
            check(Limit::WorkingBytes, limits.max_working_bytes, need)?;
            Err(Defect::from(CodecError::from(tl_av1::Error::PictureTooLarge)).into())
        }
        Err(error) => Err(Defect::from(CodecError::from(error)).into()),
    }
}

impl Planes {
    fn of_picture(picture: Picture) -> Self {
        Self {
            width: picture.width as usize,
            height: picture.height as usize,
            bit_depth: picture.bit_depth,
            layout: picture.layout,
            matrix: picture.matrix,
            full_range: picture.full_range,
            planes: picture.planes,
        }
    }

    /// Planes of another size, of zeros.
    fn of_same_kind(&self, size: (usize, usize)) -> Self {
        let (width, height) = size;
        let mut whole = Self { width, height, planes: Default::default(), ..*self };
        for plane in 0..whole.planes.len() {
            let bytes = whole.row_bytes(plane) * whole.rows(plane);
            whole.planes[plane] = vec![0; bytes];
        }
        whole
    }

    /// The bytes of planes of another size.
    fn bytes_of_size(&self, size: (usize, usize)) -> u64 {
        let (width, height) = size;
        let other = Self { width, height, planes: Default::default(), ..*self };
        let bytes = (0..3).map(|plane| other.row_bytes(plane) as u64 * other.rows(plane) as u64);
        bytes.sum()
    }

    fn require_same_kind(&self, tile: &Self) -> Result<(), DecodeError> {
        let kind =
            |planes: &Self| (planes.bit_depth, planes.layout, planes.matrix, planes.full_range);
        if kind(self) == kind(tile) {
            return Ok(());
        }
        Err(value_at("bits of a tile that differs from the first", tile.bit_depth.into(), 0))
    }

    /// Checks that samples of colour do not lie in two tiles.
    fn require_whole_colors(&self, layer: &Layer<'_>) -> Result<(), DecodeError> {
        let Some([right, down]) = self.layout.shift() else { return Ok(()) };
        let is_cut =
            |side: usize, shift: u32, tiles: u16| tiles > 1 && !side.is_multiple_of(1 << shift);
        if is_cut(self.width, right, layer.grid.columns) {
            return Err(value_at("width of a tile of a grid", self.width as u64, 0));
        }
        if is_cut(self.height, down, layer.grid.rows) {
            return Err(value_at("height of a tile of a grid", self.height as u64, 0));
        }
        Ok(())
    }

    /// Checks that alpha has the size and the bits of the colours.
    pub(super) fn require_same_size(&self, color: &Self) -> Result<(), DecodeError> {
        if (self.width, self.height) != (color.width, color.height) {
            return Err(value_at("width of the alpha item", self.width as u64, 0));
        }
        if self.bit_depth != color.bit_depth {
            return Err(value_at("bits of the alpha item", self.bit_depth.into(), 0));
        }
        Ok(())
    }

    /// Copies a tile to its place, as far as it is in the image.
    fn put(&mut self, tile: &Self, place: (usize, usize)) {
        let (column, row) = place;
        for plane in 0..self.planes.len() {
            let to_bytes = self.row_bytes(plane);
            let from_bytes = tile.row_bytes(plane);
            if to_bytes == 0 || from_bytes == 0 {
                continue;
            }
            let left = column * from_bytes;
            let top = row * tile.rows(plane);
            let width = from_bytes.min(to_bytes.saturating_sub(left));
            let rows = self.planes[plane].chunks_exact_mut(to_bytes).skip(top);
            for (to, from) in rows.zip(tile.planes[plane].chunks_exact(from_bytes)) {
                to[left..left + width].copy_from_slice(&from[..width]);
            }
        }
    }

    pub(super) fn is_monochrome(&self) -> bool {
        self.layout == Layout::Monochrome
    }

    fn rows(&self, plane: usize) -> usize {
        match self.layout.shift() {
            Some([_, down]) if plane > 0 => self.height.div_ceil(1 << down),
            None if plane > 0 => 0,
            _ => self.height,
        }
    }

    fn columns(&self, plane: usize) -> usize {
        match self.layout.shift() {
            Some([right, _]) if plane > 0 => self.width.div_ceil(1 << right),
            None if plane > 0 => 0,
            _ => self.width,
        }
    }

    fn row_bytes(&self, plane: usize) -> usize {
        self.columns(plane) * if self.bit_depth > 8 { 2 } else { 1 }
    }

    /// Reads the samples of a row of a plane, without their lowest bits.
    pub(super) fn read_row(&self, plane: usize, y: usize, drop: u32, to: &mut Vec<u16>) {
        let bytes = self.row_bytes(plane);
        let row = &self.planes[plane][y * bytes..(y + 1) * bytes];
        to.clear();
        if self.bit_depth > 8 {
            let samples = row.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
            to.extend(samples.map(|sample| sample >> drop));
        } else {
            to.extend(row.iter().map(|byte| u16::from(*byte)));
        }
    }

    pub(super) fn alpha(&self) -> Alpha<'_> {
        Alpha(self)
    }
}

impl Alpha<'_> {
    /// Writes a row in 8 bits. The samples of more bits are rounded, or their low bits dropped.
    pub(super) fn write_row(self, y: usize, is_rounded: bool, row: &mut Vec<u16>, to: &mut [u8]) {
        let Self(planes) = self;
        let drop = u32::from(planes.bit_depth.saturating_sub(8));
        let max = planes.max();
        planes.read_row(0, y, 0, row);
        for (to, &sample) in to.iter_mut().zip(row.iter()) {
            let sample = if planes.full_range { sample } else { planes.full(sample) };
            *to = if is_rounded && drop > 0 {
                super::color::byte_of(f32::from(sample) / f32::from(max))
            } else {
                u8::try_from(sample >> drop).unwrap_or(u8::MAX)
            };
        }
    }
}

impl Planes {
    /// The largest sample.
    pub(super) fn max(&self) -> u16 {
        u16::MAX >> 16u32.saturating_sub(self.bit_depth.into()).min(15)
    }

    /// A sample of limited range in full range, as libavif converts alpha.
    fn full(&self, sample: u16) -> u16 {
        let shift = u32::from(self.bit_depth.saturating_sub(8));
        let black = 16u32 << shift;
        let range = 219u32 << shift;
        let max = u32::from(self.max());
        let above = u32::from(sample).saturating_sub(black);
        let full = ((above * max + range / 2) / range).min(max);
        u16::try_from(full).unwrap_or(u16::MAX)
    }
}
