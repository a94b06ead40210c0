//! The values of one sample: from the bytes of its file to the numbers of its row.

use serde_json::Value as Json;
use tbl_io::{NpyArray, npz_member};

use super::number::{Value, each_number, lies_as_wanted, of_array, put};
use super::{ValueField, ValueFormat, ValueKind};
use crate::error::AnnotationFault;
use crate::fields::files::Files;
use crate::table::{ColumnSpec, ColumnType};

/// Characters of a text that an error shows.
const SHOWN: usize = 60;

/// Dimensions that lists of JSON may have.
const MOST_DIMENSIONS: usize = 32;

/// Reads the values of one field.
#[derive(Clone, Debug)]
pub(crate) struct ValueReader {
    field: ValueField,
    spec: ColumnSpec,
    /// The place of the column in batches.
    column: usize,
    /// True if a plain list of numbers fills any shape.
    takes_flat: bool,
    member: Vec<u8>,
}

/// The values of one sample before they are converted.
enum Found<'a> {
    Numbers(Vec<Value>, Vec<usize>),
    Names(Vec<&'a str>),
    Array(NpyArray<'a>),
    Missing,
}

impl ValueField {
    /// The description of the column, if the settings have all of it.
    pub(in crate::fields) fn configured_spec(&self) -> Option<ColumnSpec> {
        let spec = |number, shape| Some(ColumnSpec { name: self.name.clone(), number, shape });
        let is_array = self.format.is_array();
        match &self.kind {
            ValueKind::Class(_) => spec(ColumnType::I64, Vec::new()),
            ValueKind::MultiHot { count, number, .. } => spec(*number, vec![*count as usize]),
            ValueKind::Numbers { number, shape: Some(shape) } => {
                let number = number.or((!is_array).then_some(ColumnType::F32));
                number.and_then(|number| spec(number, shape.clone()))
            }
            ValueKind::Numbers { shape: None, .. } => None,
        }
    }

    /// The description of the column, which follows from the files of one sample; `None` if that
    /// sample lacks the value.
    pub(in crate::fields) fn spec_of(
        &self,
        files: &mut Files,
        limit: u64,
    ) -> Result<Option<ColumnSpec>, AnnotationFault> {
        let ValueKind::Numbers { number, shape } = &self.kind else {
            return Ok(self.configured_spec());
        };
        let mut member = Vec::new();
        let (stored, found) = match self.find(files, &mut member, limit)? {
            Found::Missing | Found::Names(_) => return Ok(None),
            Found::Numbers(_, shape) => (ColumnType::F32, shape),
            Found::Array(array) => (of_array(&array), array.shape),
        };
        let number = number.unwrap_or(stored);
        let shape = shape.clone().unwrap_or(found);
        Ok(Some(ColumnSpec { name: self.name.clone(), number, shape }))
    }

    /// The values of the sample whose files are in `files`, in `member` if they have to be unpacked.
    fn find<'a>(
        &'a self,
        files: &'a mut Files,
        member: &'a mut Vec<u8>,
        limit: u64,
    ) -> Result<Found<'a>, AnnotationFault> {
        if !files.has(&self.file) {
            return Ok(Found::Missing);
        }
        let file = || self.file.clone();
        let npy = |source| AnnotationFault::Npy { file: file(), source };
        match &self.format {
            ValueFormat::Npy => {
                Ok(Found::Array(NpyArray::parse(files.bytes(&self.file)?).map_err(npy)?))
            }
            ValueFormat::Npz(name) => {
                let bytes = files.bytes(&self.file)?;
                npz_member(bytes, name, limit, member).map_err(npy)?;
                Ok(Found::Array(NpyArray::parse(member).map_err(npy)?))
            }
            ValueFormat::Text => {
                // Columns of lists have names, and no extensions that would tell.
                let begins_list = files.bytes(&self.file)?.trim_ascii_start().starts_with(b"[");
                if begins_list && files.document(&self.file).is_ok() {
                    return self.of_json("", files.document(&self.file)?);
                }
                let bytes = files.bytes(&self.file)?;
                if bytes.starts_with(&NpyArray::MAGIC) {
                    return Ok(Found::Array(NpyArray::parse(bytes).map_err(npy)?));
                }
                let text = std::str::from_utf8(bytes)
                    .map_err(|error| AnnotationFault::Text { file: file(), source: error })?;
                self.of_text(text.trim())
            }
            ValueFormat::Json(pointer) => match files.document(&self.file)?.pointer(pointer) {
                None | Some(Json::Null) => Ok(Found::Missing),
                Some(value) => self.of_json(pointer, value),
            },
        }
    }

    /// True if the file lists names.
    fn is_named(&self) -> bool {
        match &self.kind {
            ValueKind::Numbers { .. } => false,
            ValueKind::Class(_) => true,
            ValueKind::MultiHot { names, .. } => !names.is_empty(),
        }
    }

    fn of_text<'a>(&self, text: &'a str) -> Result<Found<'a>, AnnotationFault> {
        let several = matches!(self.kind, ValueKind::MultiHot { .. });
        if text.is_empty() {
            // An image may be of none of several classes.
            return Ok(if several { Found::Names(Vec::new()) } else { Found::Missing });
        }
        if self.is_named() {
            let names = text.split([',', ';', '|']).map(str::trim);
            return Ok(Found::Names(if several { names.collect() } else { vec![text] }));
        }
        let is_separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';');
        let tokens = text.split(is_separator).filter(|token| !token.is_empty());
        let numbers = tokens.map(|token| {
            let found = || token.chars().take(SHOWN).collect();
            Value::parse(token).ok_or_else(|| self.no_number(found()))
        });
        let numbers = numbers.collect::<Result<Vec<Value>, _>>()?;
        let shape = if numbers.len() == 1 { Vec::new() } else { vec![numbers.len()] };
        Ok(Found::Numbers(numbers, shape))
    }

    fn of_json<'a>(&self, pointer: &str, value: &'a Json) -> Result<Found<'a>, AnnotationFault> {
        if self.is_named() {
            let one = std::slice::from_ref(value);
            let names = value.as_array().map_or(one, Vec::as_slice).iter().map(Json::as_str);
            let expected = "a text or a list of texts";
            return match names.collect() {
                Some(names) => Ok(Found::Names(names)),
                None => Err(self.unexpected(pointer, expected)),
            };
        }
        let mut numbers = Vec::new();
        let mut shape = Vec::new();
        let is_box = flatten(value, 0, &mut numbers, &mut shape);
        if !is_box {
            return Err(self.unexpected(pointer, "a number, or lists of equally many numbers"));
        }
        Ok(Found::Numbers(numbers, shape))
    }

    fn unexpected(&self, pointer: &str, expected: &'static str) -> AnnotationFault {
        let file = self.file.clone();
        AnnotationFault::Value { file, pointer: pointer.to_owned(), expected }
    }

    fn no_number(&self, found: String) -> AnnotationFault {
        AnnotationFault::NoNumber { file: self.file.clone(), found }
    }
}

/// Appends the numbers of nested lists; false if they do not form a box of numbers. `shape` has the
/// sides of the dimensions seen so far.
fn flatten(value: &Json, depth: usize, numbers: &mut Vec<Value>, shape: &mut Vec<usize>) -> bool {
    if let Json::Array(list) = value {
        if depth == MOST_DIMENSIONS {
            return false;
        }
        // The first lists tell the sides.
        if shape.len() == depth && numbers.is_empty() {
            shape.push(list.len());
        }
        return shape.get(depth) == Some(&list.len())
            && list.iter().all(|value| flatten(value, depth + 1, numbers, shape));
    }
    if shape.len() != depth {
        return false;
    }
    let number = whole_or_real(value);
    numbers.extend(number);
    number.is_some()
}

/// A number or a truth value in JSON.
pub(in crate::fields) fn whole_or_real(value: &Json) -> Option<Value> {
    match value {
        Json::Bool(truth) => Some(Value::Whole((*truth).into())),
        Json::Number(number) => {
            let whole = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            whole.map(Value::Whole).or(number.as_f64().map(Value::Real))
        }
        Json::Null | Json::String(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

impl ValueReader {
    pub(crate) fn new(field: &ValueField, spec: ColumnSpec, column: usize) -> Self {
        Self { field: field.clone(), spec, column, takes_flat: false, member: Vec::new() }
    }

    /// The reader that lets a plain list of numbers fill any shape.
    pub(crate) fn taking_flat(self) -> Self {
        Self { takes_flat: true, ..self }
    }

    /// The place of the column in batches.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// Writes the values of the sample whose files are in `files` to its row.
    pub(crate) fn write(
        &mut self,
        files: &mut Files,
        limit: u64,
        out: &mut [u8],
    ) -> Result<(), AnnotationFault> {
        let Self { field, spec, member, takes_flat, .. } = self;
        let found = field.find(files, member, limit)?;
        if let Found::Missing = found {
            let file = field.file.clone();
            let value = field.missing.ok_or(AnnotationFault::NoValue { file })?;
            let mut places = out.chunks_exact_mut(spec.number.bytes());
            let fits = places.all(|place| put(spec.number, Value::Real(value), place));
            return if fits { Ok(()) } else { Err(field.misfit(Value::Real(value), spec.number)) };
        }
        match &field.kind {
            ValueKind::Numbers { .. } => field.write_numbers(spec, *takes_flat, found, out),
            ValueKind::Class(names) => {
                let Found::Names(found) = found else { unreachable!("classes go by names") };
                let [found] = found[..] else {
                    return Err(field.unexpected("", "one class"));
                };
                let class = field.class(names, found)?;
                out.copy_from_slice(&class.to_ne_bytes());
                Ok(())
            }
            ValueKind::MultiHot { count, names, .. } => {
                field.write_classes(spec, *count, names, found, out)
            }
        }
    }

    /// Releases memory above `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        if self.member.capacity() > bytes {
            self.member = Vec::new();
        }
    }
}

impl ValueField {
    fn write_numbers(
        &self,
        spec: &ColumnSpec,
        takes_flat: bool,
        found: Found<'_>,
        out: &mut [u8],
    ) -> Result<(), AnnotationFault> {
        let count: usize = spec.shape.iter().product();
        let check = |found: &[usize], is_fitting: bool| {
            if is_fitting || found == spec.shape || (takes_flat && found == [count]) {
                return Ok(());
            }
            let file = self.file.clone();
            let expected = spec.shape.clone();
            Err(AnnotationFault::Shape { file, shape: found.to_vec(), expected })
        };
        let number = spec.number;
        let mut places = out.chunks_exact_mut(number.bytes());
        let mut misfit = None;
        let mut write = |value| {
            let fits = places.next().is_some_and(|place| put(number, value, place));
            if !fits {
                misfit = Some(value);
            }
            fits
        };
        match found {
            Found::Array(array) => {
                check(&array.shape, false)?;
                if lies_as_wanted(&array, number) {
                    out.copy_from_slice(array.data);
                    return Ok(());
                }
                each_number(&array, write);
            }
            Found::Numbers(numbers, shape) => {
                // A text has no dimensions, so it fills those that are asked for.
                let is_text = self.format == ValueFormat::Text;
                check(&shape, is_text && numbers.len() == count)?;
                numbers.into_iter().all(&mut write);
            }
            Found::Names(_) | Found::Missing => unreachable!("numbers have no names"),
        }
        misfit.map_or(Ok(()), |value| Err(self.misfit(value, number)))
    }

    fn write_classes(
        &self,
        spec: &ColumnSpec,
        count: u32,
        names: &[String],
        found: Found<'_>,
        out: &mut [u8],
    ) -> Result<(), AnnotationFault> {
        let mut classes = Vec::new();
        let mut misfit = None;
        let mut take = |value: Value| {
            let class = value.whole().and_then(|class| usize::try_from(class).ok());
            let class = class.filter(|&class| class < count as usize);
            classes.extend(class);
            if class.is_none() {
                misfit = Some(value);
            }
            class.is_some()
        };
        match found {
            Found::Array(array) => each_number(&array, take),
            Found::Numbers(numbers, _) => {
                numbers.into_iter().all(&mut take);
            }
            Found::Names(found) => {
                for name in found {
                    let class = self.class(names, name)?;
                    classes.extend(usize::try_from(class));
                }
            }
            Found::Missing => {}
        }
        if let Some(value) = misfit {
            let file = self.file.clone();
            let found = value.shown();
            return Err(AnnotationFault::NoClass { file, found, count });
        }
        let bytes = spec.number.bytes();
        out.fill(0);
        for class in classes {
            put(spec.number, Value::Whole(1), &mut out[class * bytes..][..bytes]);
        }
        Ok(())
    }

    /// The place of a name.
    fn class(&self, names: &[String], found: &str) -> Result<i64, AnnotationFault> {
        let place = names.iter().position(|name| name == found);
        place.and_then(|place| i64::try_from(place).ok()).ok_or_else(|| {
            let file = self.file.clone();
            let found = found.chars().take(SHOWN).collect();
            let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
            AnnotationFault::NoClass { file, found, count }
        })
    }

    fn misfit(&self, value: Value, number: ColumnType) -> AnnotationFault {
        AnnotationFault::Misfit { file: self.file.clone(), value: value.shown(), number }
    }
}

impl Value {
    fn shown(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
        }
    }
}
