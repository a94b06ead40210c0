//! Tables of names: names of classes, and the names of a run of samples.
//!
//! All store the end of every name, counted from the first name byte, then the names without
//! separators, so that name `i` is found without reading the ones before it.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem::size_of;

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::RunHead;
use crate::error::FormatError;

#[derive(Clone, Copy, Debug, Default)]
struct NameTable<'a> {
    ends: &'a [U32],
    names: &'a [u8],
}

impl<'a> NameTable<'a> {
    fn parse(body: &'a [u8], count: u32, what: &'static str) -> Result<Self, FormatError> {
        let need = u64::from(count) * size_of::<U32>() as u64;
        let (ends, names) = usize::try_from(need)
            .ok()
            .and_then(|bytes| body.split_at_checked(bytes))
            .and_then(|(ends, names)| Some((<[U32]>::ref_from_bytes(ends).ok()?, names)))
            .ok_or(FormatError::Truncated { what, need, have: body.len() as u64 })?;
        Ok(Self { ends, names })
    }

    /// Parses the number of names and their table; the bytes after the last name follow.
    fn parse_classes(body: &'a [u8]) -> Result<(Self, &'a [u8]), FormatError> {
        let (count, rest) = U32::ref_from_prefix(body).map_err(|_| FormatError::Truncated {
            what: "class name block",
            need: size_of::<U32>() as u64,
            have: body.len() as u64,
        })?;
        let mut table = Self::parse(rest, count.get(), "class name table")?;
        for index in 0..table.ends.len() {
            let name = table.name(index)?.unwrap_or_default();
            if str::from_utf8(name).is_err() {
                return Err(FormatError::ClassNameUtf8 { index: index as u64 });
            }
        }
        // The last name was found, so that the table has its end.
        let end = table.ends.last().map_or(0, |end| end.get());
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(table.names.len());
        let (names, rest) = table.names.split_at(end);
        table.names = names;
        Ok((table, rest))
    }

    /// Name `index`; `None` past the end of the table.
    fn name(&self, index: usize) -> Result<Option<&'a [u8]>, FormatError> {
        let Some(end) = self.ends.get(index) else { return Ok(None) };
        let start = index.checked_sub(1).and_then(|i| self.ends.get(i)).map_or(0, |end| end.get());
        let end = end.get();
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        match range.and_then(|(start, end)| self.names.get(start..end)) {
            Some(name) => Ok(Some(name)),
            None => Err(FormatError::NameExtent {
                index: index as u64,
                start,
                end,
                limit: self.names.len() as u64,
            }),
        }
    }
}

/// Names of classes by number, checked to be UTF-8, and those of the classes of boxes.
#[derive(Clone, Copy, Debug)]
pub struct ClassNames<'a> {
    classes: NameTable<'a>,
    boxes: NameTable<'a>,
}

impl<'a> ClassNames<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, FormatError> {
        let (classes, rest) = NameTable::parse_classes(body)?;
        // Earlier writers store no second table.
        let (boxes, _) = if rest.is_empty() {
            (NameTable::default(), rest)
        } else {
            NameTable::parse_classes(rest)?
        };
        Ok(Self { classes, boxes })
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.classes.ends.len()
    }

    /// Whether the table has no names.
    pub fn is_empty(&self) -> bool {
        self.classes.ends.is_empty()
    }

    /// The names in the order of their numbers.
    pub fn to_vec(&self) -> Vec<String> {
        let name = |i| self.classes.name(i).ok().flatten().unwrap_or_default();
        (0..self.len()).map(|i| String::from_utf8_lossy(name(i)).into_owned()).collect()
    }

    /// The names of the classes of boxes, by the numbers in annotations; a number without a class has
    /// an empty name.
    #[must_use]
    pub fn of_boxes(&self) -> Self {
        Self { classes: self.boxes, boxes: NameTable::default() }
    }
}

/// The names of samples `first_sample()..first_sample() + len()`, which need not be UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct SampleNames<'a> {
    first_sample: u64,
    table: NameTable<'a>,
}

impl<'a> SampleNames<'a> {
    /// Parses the body of a payload of this kind.
    ///
    /// # Errors
    /// [`FormatError::Truncated`].
    pub fn parse(body: &'a [u8]) -> Result<Self, FormatError> {
        let (head, rest) = RunHead::parse(body, "sample name block")?;
        let table = NameTable::parse(rest, head.count.get(), "sample name table")?;
        Ok(Self { first_sample: head.first_sample.get(), table })
    }

    /// The first sample named here.
    pub fn first_sample(&self) -> u64 {
        self.first_sample
    }

    /// How many samples are named here.
    pub fn len(&self) -> usize {
        self.table.ends.len()
    }

    /// Whether no sample is.
    pub fn is_empty(&self) -> bool {
        self.table.ends.is_empty()
    }

    /// Whether the last name ends with the payload, as in every payload that a writer makes.
    pub fn is_exact(&self) -> bool {
        let end = self.table.ends.last().map_or(0, |end| u64::from(end.get()));
        end == self.table.names.len() as u64
    }

    /// The name of sample `index` of the file; `None` when another block has it.
    ///
    /// # Errors
    /// [`FormatError::NameExtent`], [`FormatError::UnsafeName`].
    pub fn name(&self, index: u64) -> Result<Option<&'a [u8]>, FormatError> {
        let position = index.checked_sub(self.first_sample).map(usize::try_from);
        let Some(Ok(position)) = position else { return Ok(None) };
        let name = self.table.name(position)?;
        name.map_or(Ok(()), FormatError::check_sample_name)?;
        Ok(name)
    }
}

/// Collects names and writes the bodies of both kinds of table.
#[derive(Clone, Debug, Default)]
pub struct NameTableBuilder {
    ends: Vec<u8>,
    names: Vec<u8>,
}

impl NameTableBuilder {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next name.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] when the names together pass 32 bits; nothing is added then.
    pub fn push(&mut self, name: &[u8]) -> Result<(), FormatError> {
        let bytes = self.names.len() as u64 + name.len() as u64;
        let end = u32::try_from(bytes).map_err(|_| FormatError::TooLarge {
            what: "name table",
            bytes,
            limit: u64::from(u32::MAX),
        })?;
        self.ends.extend_from_slice(&end.to_le_bytes());
        self.names.extend_from_slice(name);
        Ok(())
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.ends.len() / size_of::<U32>()
    }

    /// Whether the table has no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes the names have together.
    pub fn name_bytes(&self) -> usize {
        self.names.len()
    }

    /// The table as a class name payload has it, one or two.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] past 2^32 - 1 names.
    pub fn class_names_body(&self) -> Result<Vec<u8>, FormatError> {
        let mut body = Vec::new();
        let count = u32::try_from(self.len()).map_err(|_| FormatError::TooLarge {
            what: "name table",
            bytes: self.len() as u64,
            limit: u64::from(u32::MAX),
        })?;
        body.extend_from_slice(&count.to_le_bytes());
        body.extend_from_slice(&self.ends);
        body.extend_from_slice(&self.names);
        Ok(body)
    }

    /// The body of a sample name payload for samples from `first_sample` on.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] past 2^32 - 1 names.
    pub fn sample_names_body(&self, first_sample: u64) -> Result<Vec<u8>, FormatError> {
        let head = RunHead::new(first_sample, self.len(), "name table")?;
        let mut body = Vec::from(head.as_bytes());
        body.extend_from_slice(&self.ends);
        body.extend_from_slice(&self.names);
        Ok(body)
    }

    /// Empties the table and keeps its memory.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.names.clear();
    }
}
