//! The classes of boxes over all the sources of a data set.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::Labels;
use crate::error::ReadError;
use crate::json_object::Members;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::renumber;
use crate::sample::{Field, SampleSource};

/// The names of the classes of boxes, and the numbers that those of each source get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoxClasses {
    names: Vec<String>,
    /// By source, the new number of each class. Empty where all sources keep their numbers.
    renumbered: Vec<HashMap<i64, i64>>,
}

impl BoxClasses {
    /// Joins the classes of all sources by name. Sources whose lists do not contradict each other keep
    /// their numbers; otherwise the sorted names are numbered from 0 on.
    pub(super) fn of(sources: &[&dyn SampleSource]) -> Self {
        let lists = || sources.iter().map(|source| source.box_class_names());
        if let Some(names) = in_common(lists()) {
            return Self { names, renumbered: Vec::new() };
        }
        let union: BTreeSet<&str> = lists().flat_map(named).map(|(_, name)| name).collect();
        let places: HashMap<&str, i64> = union.iter().copied().zip(0..).collect();
        let numbers = |list| {
            let numbers = named(list).filter_map(|(old, name)| Some((old, *places.get(name)?)));
            numbers.collect()
        };
        let renumbered = lists().map(numbers).collect();
        Self { names: union.into_iter().map(str::to_owned).collect(), renumbered }
    }
}

/// The list that has the numbers of all lists, if no number has two names and no name has different
/// numbers in two lists.
fn in_common<'a>(lists: impl Iterator<Item = &'a [String]> + Clone) -> Option<Vec<String>> {
    let mut numbers: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    let mut names = Vec::new();
    let mut distinct: Vec<&[String]> = Vec::new();
    for list in lists.filter(|list| !list.is_empty()) {
        if distinct.contains(&list) {
            continue;
        }
        distinct.push(list);
        if names.len() < list.len() {
            names.resize(list.len(), String::new());
        }
        let mut of_list: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for ((number, name), (_, place)) in named(list).zip(places(list, &mut names)) {
            if !place.is_empty() && place != name {
                return None;
            }
            name.clone_into(place);
            of_list.entry(name).or_default().insert(number);
        }
        for (name, found) in of_list {
            let known = numbers.entry(name).or_insert_with(|| found.clone());
            if *known != found {
                return None;
            }
        }
    }
    Some(names)
}

/// The places in `names` of the numbers that have a name in `list`.
fn places<'n>(
    list: &[String],
    names: &'n mut [String],
) -> impl Iterator<Item = (i64, &'n mut String)> {
    let is_named = list.iter().map(|name| !name.is_empty());
    (0..).zip(names).zip(is_named).filter_map(|(place, is_named)| is_named.then_some(place))
}

/// The numbers that have a name.
fn named(list: &[String]) -> impl Iterator<Item = (i64, &str)> {
    (0..)
        .zip(list)
        .map(|(number, name)| (number, name.as_str()))
        .filter(|(_, name)| !name.is_empty())
}

impl Labels {
    /// The names of the classes of boxes over all sources, by the numbers that
    /// [`read_fields_where`](Self::read_fields_where) gives them; an empty name for a number without a
    /// class.
    pub fn box_class_names(&self) -> &[String] {
        &self.boxes.names
    }

    /// As [`SampleSource::read_fields_where`] of source number `source` of `sources`, which the labels
    /// were resolved for. Where sources number the classes of their boxes differently, the field `json`
    /// has the numbers of [`box_class_names`](Self::box_class_names) as
    /// `/annotations/*/category_id`. Nothing is appended for a source that does not exist.
    ///
    /// # Errors
    /// Those of [`SampleSource::read_fields_where`]; [`ReadError::List`] with
    /// [`ListDefect::UnnamedCategory`] for a number without a name where numbers change.
    pub fn read_fields_where<S: AsRef<dyn SampleSource>>(
        &self,
        sources: &[S],
        source: usize,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let Some(found) = sources.get(source) else { return Ok(()) };
        self.read_fields_of(found.as_ref(), source, index, is_wanted, fields)
    }

    /// As [`read_fields_where`](Self::read_fields_where), for source number `number`.
    pub(crate) fn read_fields_of(
        &self,
        source: &dyn SampleSource,
        number: usize,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let first = fields.len();
        source.read_fields_where(index, is_wanted, fields)?;
        let Some(categories) = self.boxes.renumbered.get(number) else { return Ok(()) };
        let is_json =
            |field: &&mut Field| field.extension == b"json" || field.extension.ends_with(b".json");
        for field in fields.iter_mut().skip(first).filter(is_json) {
            let renumbered = renumbered(&field.bytes, categories).map_err(|category| {
                let key = source.entry(index).ok().and_then(|entry| entry.key);
                let defect = ListDefect::UnnamedCategory { category };
                let error = defect.at(source.location(), ListPlace::default());
                error.for_sample(index, key.as_deref())
            })?;
            if let Some(bytes) = renumbered {
                field.bytes = bytes;
            }
        }
        Ok(())
    }
}

/// The document with the new numbers of its categories; `None` for one without annotations. The error
/// is the number of a category that has no new one.
fn renumbered(json: &[u8], categories: &HashMap<i64, i64>) -> Result<Option<Vec<u8>>, i64> {
    // A document that is not JSON is reported where its boxes are read.
    let Ok(Members(members)) = serde_json::from_slice(json) else { return Ok(None) };
    if !members.iter().any(|(name, _)| name == "annotations") {
        return Ok(None);
    }
    let mut new = b"{".to_vec();
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            new.push(b',');
        }
        let Ok(()) = serde_json::to_writer(&mut new, name) else { return Ok(None) };
        new.push(b':');
        let is_list = name == "annotations";
        let objects: Option<Vec<&RawValue>> =
            if is_list { serde_json::from_str(value.get()).ok() } else { None };
        match objects {
            Some(objects) => renumber_all(&objects, categories, &mut new)?,
            None => new.extend_from_slice(value.get().as_bytes()),
        }
    }
    new.push(b'}');
    Ok(Some(new))
}

/// Appends the list of these annotations to `json`.
fn renumber_all(
    objects: &[&RawValue],
    categories: &HashMap<i64, i64>,
    json: &mut Vec<u8>,
) -> Result<(), i64> {
    json.push(b'[');
    for (number, object) in objects.iter().enumerate() {
        if number > 0 {
            json.push(b',');
        }
        let start = json.len();
        let mut unnamed = None;
        let new_number = |old| {
            let new = categories.get(&old).copied();
            unnamed = unnamed.or(new.is_none().then_some(old));
            new
        };
        let text = object.get().as_bytes();
        if renumber(text, new_number, json).is_err() {
            // Not an object: it has no category.
            json.truncate(start);
            json.extend_from_slice(text);
        }
        if let Some(category) = unnamed {
            return Err(category);
        }
    }
    json.push(b']');
    Ok(())
}
