//! The annotations of each image, as parts of one JSON file.

use std::collections::HashMap;

use crate::error::ReadError;
use crate::json_object::Members;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::source::Source;

/// The place of an element in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) offset: u64,
    pub(crate) len: u32,
}

/// Objects of a JSON file by image: 12 bytes for each.
#[derive(Debug)]
pub(crate) struct Annotations {
    source: Source,
    images: Vec<Span>,
    /// By image, the end of its objects.
    ends: Vec<u32>,
    objects: Vec<Span>,
    /// The number of each category that is stored instead of that in the file.
    categories: Option<HashMap<i64, i64>>,
}

const FRONT: &[u8] = b"{\"image\":";
const BETWEEN: &[u8] = b",\"annotations\":[";
const BACK: &[u8] = b"]}";

impl Annotations {
    /// `objects` are ordered by image. A source in a store is brought into memory.
    pub(crate) fn new(
        mut source: Source,
        images: Vec<Span>,
        objects: &[(u32, Span)],
        categories: Option<HashMap<i64, i64>>,
    ) -> Result<Self, ReadError> {
        if source.location().url().is_some() {
            let mut bytes = Vec::new();
            ReadLimits::default().read_whole(&source, &mut bytes)?;
            source = Source::from_bytes(source.location(), bytes);
        }
        let mut ends = vec![0_u32; images.len()];
        for (image, _) in objects {
            if let Some(count) = ends.get_mut(*image as usize) {
                *count += 1;
            }
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            *count = end;
        }
        let objects = objects.iter().map(|(_, span)| *span).collect();
        Ok(Self { source, images, ends, objects, categories })
    }

    /// The objects of an image; `None` past the end.
    fn spans(&self, image: u32) -> Option<(Span, &[Span])> {
        let image = image as usize;
        let end = *self.ends.get(image)? as usize;
        let start = image.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some((*self.images.get(image)?, self.objects.get(start..end)?))
    }

    /// The bytes of the field of an image, or a few more if categories are renumbered.
    pub(crate) fn len(&self, image: u32) -> u64 {
        let Some((image, objects)) = self.spans(image) else { return 0 };
        let fixed = (FRONT.len() + BETWEEN.len() + BACK.len()) as u64;
        let objects = objects.iter().map(|object| u64::from(object.len) + 1);
        fixed + u64::from(image.len) + objects.sum::<u64>()
    }

    /// The field of an image: `{"image":{..},"annotations":[..]}`.
    pub(crate) fn read(&self, image: u32) -> Result<Vec<u8>, ReadError> {
        let mut json = Vec::new();
        let Some((image, objects)) = self.spans(image) else { return Ok(json) };
        let mut part = Vec::new();
        json.extend_from_slice(FRONT);
        self.source.read_range_into(image.offset, image.len.into(), &mut part)?;
        json.extend_from_slice(&part);
        json.extend_from_slice(BETWEEN);
        for (number, object) in objects.iter().enumerate() {
            if number > 0 {
                json.push(b',');
            }
            self.source.read_range_into(object.offset, object.len.into(), &mut part)?;
            match &self.categories {
                None => json.extend_from_slice(&part),
                Some(categories) => {
                    let renumbered =
                        renumber(&part, |old| categories.get(&old).copied(), &mut json);
                    renumbered.map_err(|error| {
                        let reason = error.to_string();
                        let defect = ListDefect::Json { reason, expected: "the object as it was" };
                        defect.at(self.source.location(), ListPlace::offset(object.offset))
                    })?;
                }
            }
        }
        json.extend_from_slice(BACK);
        Ok(json)
    }
}

/// Appends an object with the new number of its category to `json`.
pub(crate) fn renumber(
    object: &[u8],
    mut new_number: impl FnMut(i64) -> Option<i64>,
    json: &mut Vec<u8>,
) -> Result<(), serde_json::Error> {
    let Members(members) = serde_json::from_slice(object)?;
    json.push(b'{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            json.push(b',');
        }
        serde_json::to_writer(&mut *json, name)?;
        json.push(b':');
        let is_category = name == "category_id";
        let old: Option<i64> =
            if is_category { serde_json::from_str(value.get()).ok() } else { None };
        match old.and_then(&mut new_number) {
            Some(new) => json.extend_from_slice(new.to_string().as_bytes()),
            None => json.extend_from_slice(value.get().as_bytes()),
        }
    }
    json.push(b'}');
    Ok(())
}
