//! The classes of boxes over all the sources of a data set.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::Labels;
use crate::error::ReadError;
use crate::json_object::Members;
use crate::label::{LabelField, without_mark};
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::renumber;
use crate::sample::{Field, SampleSource};

/// The names of the classes of boxes, and the numbers that those of each source get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BoxClasses {
    names: Vec<String>,
    by_source: Vec<Numbers>,
}

/// The new numbers of the classes of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    /// All stay.
    Kept,
    /// All stay, and these are errors: only other sources have names for them.
    KeptExcept(BTreeSet<i64>),
    /// Those here; all others are errors.
    New(HashMap<i64, i64>),
}

/// Classes with larger numbers are not listed by their number.
const MAX_LISTED: i64 = 1 << 16;

/// The names of a source by their numbers.
type Named<'a> = BTreeMap<i64, &'a str>;

impl BoxClasses {
    /// Joins the classes of all sources by name. Sources that do not contradict each other keep
    /// their numbers; otherwise, and if numbers are too large for a list, the sorted names are
    /// numbered from 0 on.
    pub(super) fn of(sources: &[&dyn SampleSource]) -> Self {
        let lists: Vec<Named<'_>> = sources.iter().map(|&source| named(source)).collect();
        let are_equal = lists.windows(2).all(|pair| pair[0] == pair[1]);
        let common = in_common(&lists).filter(|common| are_equal || is_listable(common));
        if let Some(common) = common {
            let numbers = |list: &Named<'_>| {
                let others = common.keys().filter(|&number| !list.contains_key(number));
                let others: BTreeSet<i64> = others.copied().collect();
                if others.is_empty() { Numbers::Kept } else { Numbers::KeptExcept(others) }
            };
            let by_source = lists.iter().map(numbers).collect();
            let names = if is_listable(&common) { by_place(&common) } else { Vec::new() };
            return Self { names, by_source };
        }
        let union: BTreeSet<&str> = lists.iter().flat_map(BTreeMap::values).copied().collect();
        let places: HashMap<&str, i64> = union.iter().copied().zip(0..).collect();
        let numbers = |list: &Named<'_>| {
            let new = list.iter().filter_map(|(&old, name)| Some((old, *places.get(name)?)));
            Numbers::New(new.collect())
        };
        let by_source = lists.iter().map(numbers).collect();
        Self { names: union.into_iter().map(str::to_owned).collect(), by_source }
    }
}

impl Numbers {
    /// The new number of a class; `None` for one that must have a name and has none.
    fn of(&self, old: i64) -> Option<i64> {
        match self {
            Self::Kept => Some(old),
            Self::KeptExcept(others) => (!others.contains(&old)).then_some(old),
            Self::New(numbers) => numbers.get(&old).copied(),
        }
    }
}

/// The numbers that have a name.
fn named(source: &dyn SampleSource) -> Named<'_> {
    let names = source.box_class_names().iter().map(String::as_str);
    let numbers = source.box_class_numbers();
    let named: Named<'_> = if numbers.is_empty() {
        (0..).zip(names).collect()
    } else {
        numbers.iter().copied().zip(names).collect()
    };
    named.into_iter().filter(|(_, name)| !name.is_empty()).collect()
}

/// The names by the numbers of all sources, if no number has two names and no name has different
/// numbers in two sources.
fn in_common<'a>(lists: &[Named<'a>]) -> Option<Named<'a>> {
    let mut common = Named::new();
    let mut numbers: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    for list in lists {
        let mut of_list: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for (&number, &name) in list {
            if *common.entry(number).or_insert(name) != name {
                return None;
            }
            of_list.entry(name).or_default().insert(number);
        }
        for (name, found) in of_list {
            let known = numbers.entry(name).or_insert_with(|| found.clone());
            if *known != found {
                return None;
            }
        }
    }
    Some(common)
}

fn is_listable(names: &Named<'_>) -> bool {
    names.keys().all(|number| (0..MAX_LISTED).contains(number))
}

/// A list that has each name at the place of its number, and empty names between them.
fn by_place(names: &Named<'_>) -> Vec<String> {
    let mut list = Vec::new();
    for (&number, &name) in names {
        list.resize(usize::try_from(number).unwrap_or_default(), String::new());
        list.push(name.to_owned());
    }
    list
}

impl Labels {
    /// The names of the classes of boxes over all sources, by the numbers that
    /// [`read_fields_where`](Self::read_fields_where) gives them; an empty name for a number without a
    /// class. Empty also for one source, or several with the same classes, whose numbers are below 0 or
    /// above 65,535.
    pub fn box_class_names(&self) -> &[String] {
        &self.boxes.names
    }

    /// As [`SampleSource::read_fields_where`] of source number `source` of `sources`, which the labels
    /// were resolved for. Where sources number the classes of their boxes differently, the field `json`
    /// has the numbers of [`box_class_names`](Self::box_class_names) as
    /// `/annotations/*/category_id`. Upper and lower case of its name are equal, and `0.json` of a
    /// sample `a.0.jpg` is that field too. Nothing is appended for a source that does not exist.
    ///
    /// # Errors
    /// Those of [`SampleSource::read_fields_where`]; [`ReadError::List`] with
    /// [`ListDefect::UnnamedCategory`] for a number to which the source gives no name, where numbers
    /// change or another source gives it one.
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
        let numbers = self.boxes.by_source.get(number).unwrap_or(&Numbers::Kept);
        if *numbers == Numbers::Kept || fields.len() == first {
            return Ok(());
        }
        let entry = source.entry(index)?;
        let is_json = |field: &&mut Field| {
            let own = entry.own_field_name(&field.extension).unwrap_or(&field.extension);
            LabelField::of(own) == Some(LabelField::Json)
        };
        for field in fields.iter_mut().skip(first).filter(is_json) {
            let renumbered = renumbered(&field.bytes, numbers).map_err(|category| {
                let has_names = !source.box_class_names().is_empty();
                let defect = ListDefect::UnnamedCategory { category, has_names };
                let error = defect.at(source.location(), ListPlace::default());
                error.for_sample(index, entry.key.as_deref())
            })?;
            if let Some(bytes) = renumbered {
                field.bytes = bytes;
            }
        }
        Ok(())
    }
}

/// The document with the new numbers of its categories; `None` for one that stays as it is. The error
/// is the number of a category that has no new one.
fn renumbered(json: &[u8], numbers: &Numbers) -> Result<Option<Vec<u8>>, i64> {
    // A document that is not JSON is reported where its boxes are read.
    let Ok(Members(members)) = serde_json::from_slice(without_mark(json)) else { return Ok(None) };
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
            Some(objects) => renumber_all(&objects, numbers, &mut new)?,
            None => new.extend_from_slice(value.get().as_bytes()),
        }
    }
    new.push(b'}');
    Ok(matches!(numbers, Numbers::New(_)).then_some(new))
}

/// Appends the list of these annotations to `json`.
fn renumber_all(objects: &[&RawValue], numbers: &Numbers, json: &mut Vec<u8>) -> Result<(), i64> {
    json.push(b'[');
    for (number, object) in objects.iter().enumerate() {
        if number > 0 {
            json.push(b',');
        }
        let start = json.len();
        let mut unnamed = None;
        let new_number = |old| {
            let new = numbers.of(old);
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
