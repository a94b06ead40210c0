//! The parts of a file that make its image: items of AV1, or the first pictures of its tracks.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::boxes::{Bytes, FourCc, missing, value_at};
use super::extents::Data;
use super::meta::{Items, Reference};
use super::properties::{Configuration, Nclx, Size};
use super::track::Tracks;
use crate::error::{DecodeError, Feature};
use crate::format::Format;
use crate::image::{ImageInfo, SampleFormat};
use crate::limits::Limits;
use crate::orientation::Orientation;

/// An image in a file.
#[derive(Debug)]
pub(super) struct Contents<'a> {
    pub(super) color: Layer<'a>,
    pub(super) alpha: Option<Layer<'a>>,
    /// Whether colours are multiplied by alpha.
    pub(super) is_premultiplied: bool,
    /// Colours as the file states them, which overrides the statement of the AV1 data.
    pub(super) nclx: Option<Nclx>,
    pub(super) configuration: Configuration,
    pub(super) orientation: Orientation,
}

/// The colours or the alpha of an image.
#[derive(Debug)]
pub(super) struct Layer<'a> {
    pub(super) size: Size,
    pub(super) grid: Grid,
    /// The AV1 data of each tile, from left to right and from top to bottom.
    pub(super) tiles: Vec<Data<'a>>,
    /// The size of a tile that the file states.
    pub(super) tile: Size,
}

/// The arrangement of tiles; 1 by 1 for images that are not grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) rows: u16,
    pub(super) columns: u16,
}

impl<'a> Contents<'a> {
    /// Finds the image as Pillow does: the first pictures of the tracks in files whose major brand is
    /// `avis`, otherwise the primary item.
    pub(super) fn find(bytes: &'a [u8], limits: &Limits) -> Result<Self, DecodeError> {
        let file = Bytes::of_file(bytes);
        let found = TopLevel::find(file)?;
        if found.prefers_tracks || found.meta.is_none() {
            let tracks = found.movie.map(Tracks::find).transpose()?.flatten();
            if let Some(tracks) = tracks {
                return tracks.contents(file, limits);
            }
        }
        let meta = found.meta.ok_or_else(|| missing("an image item (meta)"))?;
        Self::of_items(&Items::parse(file, meta, limits)?, primary(meta)?, limits)
    }

    fn of_items(items: &Items<'a>, id: u32, limits: &Limits) -> Result<Self, DecodeError> {
        let properties = items.properties(id)?;
        let color = Layer::of_item(items, id, limits)?;
        let configuration = match items.kind(id)? {
            kind if kind == GRID => {
                let tile = first_tile(items, id)?;
                items.properties(tile)?.configuration()?
            }
            _ => properties.configuration()?,
        };
        let alpha_ids = alpha_of(items, id)?;
        let alpha_set: BTreeSet<u32> = alpha_ids.iter().copied().collect();
        let is_alpha = |reference: &Reference| {
            reference.kind == *b"prem" && reference.from == id && alpha_set.contains(&reference.to)
        };
        let is_premultiplied = items.references.iter().any(is_alpha);
        let alpha = match alpha_ids.as_slice() {
            [] => None,
            [alpha] => Some(Layer::of_item(items, *alpha, limits)?),
            tiles => Some(color.with_tiles(items, tiles, limits)?),
        };
        let mut orientation = properties.orientation();
        if orientation == Orientation::Upright {
            orientation = orientation_of_metadata(items, id, limits);
        }
        let nclx = properties.color;
        Ok(Self { color, alpha, is_premultiplied, nclx, configuration, orientation })
    }

    pub(super) fn info(&self) -> ImageInfo {
        let has_alpha = self.alpha.is_some();
        let colors = if self.configuration.is_monochrome { 1 } else { 3 };
        ImageInfo {
            format: Format::Avif,
            width: self.color.size.width,
            height: self.color.size.height,
            channels: colors + u8::from(has_alpha),
            bit_depth: self.configuration.bit_depth,
            sample_format: SampleFormat::Unsigned,
            has_alpha,
            orientation: self.orientation,
        }
    }
}

const GRID: FourCc = *b"grid";

/// The boxes of a file that are read here.
#[derive(Clone, Copy, Debug, Default)]
struct TopLevel<'a> {
    prefers_tracks: bool,
    meta: Option<Bytes<'a>>,
    movie: Option<Bytes<'a>>,
}

impl<'a> TopLevel<'a> {
    /// Walks over all boxes, so that a file that is cut is an error. Other bytes may follow the last.
    fn find(file: Bytes<'a>) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        let mut rest = file;
        loop {
            let kind = rest.data.get(4..8).unwrap_or_default();
            let is_known = matches!(kind, b"ftyp" | b"meta" | b"moov" | b"mdat" | b"free");
            let next = match rest.next_box() {
                Ok(Some(next)) => next,
                Err(error) if is_known => return Err(error),
                Ok(None) | Err(_) => return Ok(found),
            };
            match &next.kind {
                b"ftyp" => found.prefers_tracks = next.contents.data.starts_with(b"avis"),
                b"meta" => found.meta = found.meta.or(Some(next.contents)),
                b"moov" => found.movie = found.movie.or(Some(next.contents)),
                _ => {}
            }
        }
    }
}

/// The number of the primary item.
fn primary(mut meta: Bytes<'_>) -> Result<u32, DecodeError> {
    meta.version()?;
    let mut primary = meta.require(*b"pitm", "a primary item (pitm)")?;
    let wide = primary.version()?.version > 0;
    primary.id(wide)
}

/// The items that a grid is made of, in order.
fn tiles_of<'i>(items: &'i Items<'_>, grid: u32) -> impl Iterator<Item = u32> + 'i {
    let parts = items
        .references
        .iter()
        .filter(move |reference| reference.kind == *b"dimg" && reference.from == grid);
    parts.map(|reference| reference.to)
}

fn first_tile(items: &Items<'_>, grid: u32) -> Result<u32, DecodeError> {
    tiles_of(items, grid).next().ok_or_else(|| missing("tiles of a grid"))
}

/// The items with the alpha of an item: one, or one for each tile of a grid, or none.
fn alpha_of(items: &Items<'_>, id: u32) -> Result<Vec<u32>, DecodeError> {
    let mut by_color = BTreeMap::new();
    // An item may refer to many others, so that each is looked at once.
    let mut are_alpha = BTreeMap::new();
    for reference in items.references.iter().filter(|reference| reference.kind == *b"auxl") {
        let is_alpha = match are_alpha.entry(reference.from) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(items.properties(reference.from)?.is_alpha()),
        };
        if is_alpha {
            by_color.entry(reference.to).or_insert(reference.from);
        }
    }
    if let Some(alpha) = by_color.get(&id) {
        return Ok(vec![*alpha]);
    }
    if items.kind(id)? != GRID {
        return Ok(Vec::new());
    }
    // Without the alpha of a tile the image has none.
    let of_tiles: Option<Vec<u32>> =
        tiles_of(items, id).map(|tile| by_color.get(&tile).copied()).collect();
    Ok(of_tiles.unwrap_or_default())
}

/// The orientation that the EXIF block or the XMP packet of an item states where no property does.
/// Pillow ignores that of the EXIF block. Metadata that cannot be read is not there.
fn orientation_of_metadata(items: &Items<'_>, id: u32, limits: &Limits) -> Orientation {
    let read = |item| items.bytes(item, limits.max_metadata_bytes).ok();
    let small = |bytes: &Cow<'_, [u8]>| bytes.len() as u64 <= limits.max_metadata_bytes;
    let exif = items.described(id, *b"Exif", b"").next().and_then(read).filter(small);
    // A place in the block comes first, of its TIFF header.
    let block = exif.as_ref().and_then(|exif| exif.get(4..));
    if block.is_some_and(|block| crate::orientation::exif::orientation(block).is_some()) {
        return Orientation::Upright;
    }
    let xmp = items.described(id, *b"mime", b"application/rdf+xml").next();
    let xmp = xmp.and_then(read).filter(small);
    Orientation::of_metadata(None, xmp.as_deref())
}

impl<'a> Layer<'a> {
    /// The layer of a picture that is not a grid.
    pub(super) fn of_picture(size: Size, data: Data<'a>) -> Self {
        Self { size, grid: Grid { rows: 1, columns: 1 }, tiles: vec![data], tile: size }
    }

    fn of_item(items: &Items<'a>, id: u32, limits: &Limits) -> Result<Self, DecodeError> {
        let size = items.properties(id)?.size()?;
        match &items.kind(id)? {
            b"av01" => Ok(Self::of_picture(size, items.data(id)?)),
            &GRID => Self::of_grid(items, id, size, limits),
            kind => Err(Feature::AvifItem(*kind).into()),
        }
    }

    fn of_grid(
        items: &Items<'a>,
        id: u32,
        size: Size,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let description = items.bytes(id, limits.max_metadata_bytes)?;
        let mut description = Bytes::of_file(&description);
        let [version, flags, rows, columns] = description.take()?;
        if version != 0 {
            return Err(value_at("version of a grid", version.into(), 0));
        }
        let wide = flags & 1 != 0;
        let stated = Size { width: description.id(wide)?, height: description.id(wide)? };
        if stated != size {
            return Err(value_at("width of a grid", stated.width.into(), 0));
        }
        let grid = Grid { rows: u16::from(rows) + 1, columns: u16::from(columns) + 1 };
        let tiles: Vec<u32> = tiles_of(items, id).collect();
        let tile = items.properties(first_tile(items, id)?)?.size()?;
        let mut layer = Self { size, grid, tiles: Vec::new(), tile };
        layer.check_grid(tiles.len())?;
        layer.tiles = read_tiles(items, &tiles, tile, limits)?;
        Ok(layer)
    }

    /// A layer of the same arrangement with other tiles.
    fn with_tiles(
        &self,
        items: &Items<'a>,
        tiles: &[u32],
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let Self { size, grid, tile, .. } = *self;
        self.check_grid(tiles.len())?;
        Ok(Self { size, grid, tile, tiles: read_tiles(items, tiles, tile, limits)? })
    }

    /// Checks that the tiles cover the image, and that each of them has a part of it.
    fn check_grid(&self, tiles: usize) -> Result<(), DecodeError> {
        let need = usize::from(self.grid.rows) * usize::from(self.grid.columns);
        if tiles != need {
            return Err(value_at("number of tiles of a grid", tiles as u64, 0));
        }
        let covers = |tile: u32, count: u16, side: u32| {
            let tile = u64::from(tile);
            tile * u64::from(count) >= side.into() && tile * u64::from(count - 1) < side.into()
        };
        let fits = covers(self.tile.width, self.grid.columns, self.size.width)
            && covers(self.tile.height, self.grid.rows, self.size.height);
        if fits { Ok(()) } else { Err(value_at("width of a tile", self.tile.width.into(), 0)) }
    }
}

/// The AV1 data of tiles, which have the same size. An item may be several tiles.
fn read_tiles<'a>(
    items: &Items<'a>,
    ids: &[u32],
    size: Size,
    limits: &Limits,
) -> Result<Vec<Data<'a>>, DecodeError> {
    let mut known: BTreeMap<u32, Data<'a>> = BTreeMap::new();
    let mut tiles = Vec::with_capacity(ids.len());
    let mut total = 0u64;
    for &id in ids {
        let data = match known.entry(id) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(tile_data(items, id, size)?),
        };
        total = total.saturating_add(data.length());
        tiles.push(data);
    }
    // Tiles that share bytes take as much time as others of their length.
    if total > items.file_bytes() {
        limits.charge_working(total)?;
    }
    Ok(tiles)
}

fn tile_data<'a>(items: &Items<'a>, id: u32, size: Size) -> Result<Data<'a>, DecodeError> {
    let kind = items.kind(id)?;
    if kind != *b"av01" {
        return Err(Feature::AvifItem(kind).into());
    }
    let found = items.properties(id)?.size()?;
    if found != size {
        return Err(value_at("width of a tile that differs", found.width.into(), 0));
    }
    items.data(id)
}
