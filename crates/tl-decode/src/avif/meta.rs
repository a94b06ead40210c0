//! The `meta` box of a file: its items, their places, properties and references.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::boxes::{Boxed, Bytes, FourCc, missing, value_at};
use super::extents::{Data, ExtentForm};
use super::properties::Properties;
use crate::error::{DecodeError, Feature, Limit};
use crate::limits::{Limits, check};

/// The items of a file.
#[derive(Debug)]
pub(super) struct Items<'a> {
    file: Bytes<'a>,
    /// The contents of `idat`.
    data: Option<Bytes<'a>>,
    kinds: BTreeMap<u32, Kind<'a>>,
    /// The entry of each item in `iloc`, after its number.
    locations: BTreeMap<u32, Bytes<'a>>,
    location_form: LocationForm,
    properties: Vec<Boxed<'a>>,
    associations: BTreeMap<u32, Vec<Association>>,
    pub(super) references: Vec<Reference>,
}

#[derive(Clone, Copy, Debug)]
struct Kind<'a> {
    kind: FourCc,
    /// The media type of items of kind `mime`.
    media: &'a [u8],
}

/// A property of an item.
#[derive(Clone, Copy, Debug)]
struct Association {
    /// The place in the list of properties, counted from 1.
    index: u16,
    is_essential: bool,
}

/// A reference from an item to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) kind: FourCc,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The sizes of numbers in `iloc`, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct LocationForm {
    version: u8,
    offset: u8,
    length: u8,
    base: u8,
    index: u8,
}

impl<'a> Items<'a> {
    /// Reads the tables of `meta`, of which all but the data of items count as metadata.
    pub(super) fn parse(
        file: Bytes<'a>,
        mut meta: Bytes<'a>,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        meta.version()?;
        let mut items = Self {
            file,
            data: None,
            kinds: BTreeMap::new(),
            locations: BTreeMap::new(),
            location_form: LocationForm::default(),
            properties: Vec::new(),
            associations: BTreeMap::new(),
            references: Vec::new(),
        };
        let mut charged = 0u64;
        while let Some(found) = meta.next_box()? {
            if found.kind == *b"idat" {
                items.data = Some(found.contents);
                continue;
            }
            charged = charged.saturating_add(found.contents.data.len() as u64);
            check(Limit::MetadataBytes, limits.max_metadata_bytes, charged)?;
            match &found.kind {
                b"iinf" => items.parse_kinds(found.contents)?,
                b"iloc" => items.parse_locations(found.contents)?,
                b"iprp" => items.parse_properties(found.contents)?,
                b"iref" => items.parse_references(found.contents)?,
                _ => {}
            }
        }
        Ok(items)
    }

    fn parse_kinds(&mut self, mut entries: Bytes<'a>) -> Result<(), DecodeError> {
        let form = entries.version()?;
        let _count = entries.id(form.version > 0)?;
        while let Some(found) = entries.next_box()? {
            if found.kind != *b"infe" {
                continue;
            }
            let mut entry = found.contents;
            let form = entry.version()?;
            if form.version < 2 {
                // Older forms have no kind, so that they are not of images.
                continue;
            }
            let id = entry.id(form.version > 2)?;
            let _protection = entry.u16()?;
            let kind = entry.take()?;
            let _name = entry.text();
            let media = if kind == *b"mime" { entry.text() } else { &[] };
            self.kinds.insert(id, Kind { kind, media });
        }
        Ok(())
    }

    fn parse_locations(&mut self, mut entries: Bytes<'a>) -> Result<(), DecodeError> {
        let version = entries.version()?.version;
        let at = entries.at;
        if version > 2 {
            return Err(value_at("version of the places of items (iloc)", version.into(), at));
        }
        let [sizes, more] = entries.take()?;
        let index = if version > 0 { more & 15 } else { 0 };
        let form = LocationForm {
            version,
            offset: sizes >> 4,
            length: sizes & 15,
            base: more >> 4,
            index,
        };
        self.location_form = form;
        let count = entries.id(version == 2)?;
        for _ in 0..count {
            let id = entries.id(version == 2)?;
            let entry = entries;
            let extents = Location::parse(&mut entries, form)?.extents;
            let extent_bytes = u64::from(form.extent_bytes());
            if extent_bytes == 0 && extents > 1 {
                return Err(value_at("number of extents without places", extents.into(), entry.at));
            }
            entries.part(u64::from(extents) * extent_bytes)?;
            self.locations.insert(id, entry);
        }
        Ok(())
    }

    fn parse_properties(&mut self, mut contents: Bytes<'a>) -> Result<(), DecodeError> {
        let mut list = contents.require(*b"ipco", "properties of items (ipco)")?;
        while let Some(property) = list.next_box()? {
            self.properties.push(property);
        }
        while let Some(found) = contents.next_box()? {
            if found.kind == *b"ipma" {
                self.parse_associations(found.contents)?;
            }
        }
        Ok(())
    }

    fn parse_associations(&mut self, mut contents: Bytes<'a>) -> Result<(), DecodeError> {
        const WIDE: u32 = 1;
        let form = contents.version()?;
        let count = contents.u32()?;
        for _ in 0..count {
            let at = contents.at;
            let id = contents.id(form.version > 0)?;
            // An item has at most one entry (ISO/IEC 23008-12, section 9.3.1), so that reading its
            // properties has a bound.
            let Entry::Vacant(of_item) = self.associations.entry(id) else {
                return Err(value_at("item with properties in two places (ipma)", id.into(), at));
            };
            let of_item = of_item.insert(Vec::new());
            for _ in 0..contents.u8()? {
                let number = match form.flags & WIDE {
                    0 => {
                        let number = u16::from(contents.u8()?);
                        (number & 0x80) << 8 | number & 0x7F
                    }
                    _ => contents.u16()?,
                };
                let is_essential = number & 0x8000 != 0;
                of_item.push(Association { index: number & 0x7FFF, is_essential });
            }
        }
        Ok(())
    }

    fn parse_references(&mut self, mut contents: Bytes<'a>) -> Result<(), DecodeError> {
        let wide = contents.version()?.version > 0;
        while let Some(found) = contents.next_box()? {
            let mut entry = found.contents;
            let from = entry.id(wide)?;
            for _ in 0..entry.u16()? {
                let to = entry.id(wide)?;
                self.references.push(Reference { kind: found.kind, from, to });
            }
        }
        Ok(())
    }

    /// The kind of an item.
    pub(super) fn kind(&self, id: u32) -> Result<FourCc, DecodeError> {
        self.kinds.get(&id).map(|kind| kind.kind).ok_or_else(|| missing("the kind of an item"))
    }

    /// The items of a kind that describe another item, such as its metadata.
    pub(super) fn described(
        &self,
        id: u32,
        kind: FourCc,
        media: &'a [u8],
    ) -> impl Iterator<Item = u32> {
        let describes = self
            .references
            .iter()
            .filter(move |reference| reference.kind == *b"cdsc" && reference.to == id);
        describes.map(|reference| reference.from).filter(move |from| {
            self.kinds.get(from).is_some_and(|item| item.kind == kind && item.media == media)
        })
    }

    /// The properties of an item.
    pub(super) fn properties(&self, id: u32) -> Result<Properties<'a>, DecodeError> {
        let mut properties = Properties::default();
        for association in self.associations.get(&id).into_iter().flatten() {
            // 0 is the absence of a property.
            let Some(place) = usize::from(association.index).checked_sub(1) else { continue };
            let property = self.properties.get(place).ok_or_else(|| {
                let found = association.index.into();
                value_at("number of a property", found, self.file.at)
            })?;
            properties.add(property, association.is_essential)?;
        }
        Ok(properties)
    }

    /// The bytes of an item, which are copied if they are in pieces, at most `max` of them.
    pub(super) fn bytes(&self, id: u32, max: u64) -> Result<Cow<'a, [u8]>, DecodeError> {
        let data = self.data(id)?;
        check(Limit::WorkingBytes, max, data.copied())?;
        data.join()
    }

    /// The places of an item's bytes.
    pub(super) fn data(&self, id: u32) -> Result<Data<'a>, DecodeError> {
        let form = self.location_form;
        let mut entry =
            *self.locations.get(&id).ok_or_else(|| missing("the place of an item (iloc)"))?;
        let location = Location::parse(&mut entry, form)?;
        let source = match location.method {
            0 => self.file,
            1 => self.data.ok_or_else(|| missing("the data of items (idat)"))?,
            method => return Err(Feature::AvifConstruction(method).into()),
        };
        let LocationForm { index, offset, length, .. } = form;
        let form = ExtentForm { index, offset, length, base: location.base };
        Data::find(source, entry, form, location.extents)
    }

    /// The bytes of the file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file.data.len() as u64
    }
}

/// The entry of an item in `iloc` up to its extents.
struct Location {
    method: u8,
    base: u64,
    extents: u16,
}

impl Location {
    fn parse(entry: &mut Bytes<'_>, form: LocationForm) -> Result<Self, DecodeError> {
        let method = if form.version > 0 { entry.take().map(|[_, low]| low & 15)? } else { 0 };
        let [_, _] = entry.take()?;
        let base = entry.sized(form.base)?;
        Ok(Self { method, base, extents: entry.u16()? })
    }
}

impl LocationForm {
    fn extent_bytes(self) -> u8 {
        // Each is at most 15.
        self.index + self.offset + self.length
    }
}
