//! Fields of listed samples: one column each, in little memory.

use super::annotations::Annotations;
use crate::names::NONE;

/// A field of all samples.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: Vec<u8>,
    pub(crate) values: Values,
}

#[derive(Debug)]
pub(crate) enum Values {
    /// Bytes that the list holds.
    Texts(Texts),
    /// Parts of a file of annotations.
    Annotations(Box<Annotations>),
    /// Further files of the list, by their number.
    Files(FileNumbers),
}

/// Texts by number, in one buffer: 4 bytes each in addition to their own, and one more if some are
/// missing.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// By number, whether the text exists. Empty if all do.
    exists: Vec<bool>,
}

/// The texts do not fit: there are 2^32 of them, or 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyTexts;

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, text: Option<&[u8]>) -> Result<(), TooManyTexts> {
        let len = self.bytes.len() + text.map_or(0, <[u8]>::len);
        let end = u32::try_from(len).map_err(|_| TooManyTexts)?;
        if self.ends.len() >= NONE as usize {
            return Err(TooManyTexts);
        }
        if text.is_none() && self.exists.is_empty() {
            self.exists = vec![true; self.ends.len()];
            self.exists.push(false);
        } else if !self.exists.is_empty() {
            self.exists.push(text.is_some());
        }
        self.bytes.extend_from_slice(text.unwrap_or_default());
        self.ends.push(end);
        Ok(())
    }

    /// Text `number`; `None` for one that is missing.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        if self.exists.get(number) == Some(&false) {
            return None;
        }
        let start = number.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        self.bytes.get(start as usize..end as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..).take(self.len()).map(|number| self.get(number))
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.exists.shrink_to_fit();
    }
}

/// The file of each sample.
#[derive(Debug, Default)]
pub(crate) struct FileNumbers(Vec<u32>);

impl FileNumbers {
    pub(crate) fn push(&mut self, file: Option<u32>) {
        self.0.push(file.unwrap_or(NONE));
    }

    pub(crate) fn get(&self, sample: u32) -> Option<u32> {
        self.0.get(sample as usize).copied().filter(|&file| file != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_missing_ones_are_not_empty() {
        for all in [
            &[Some(&b"a"[..]), Some(b""), Some(b"bc")][..],
            &[None, Some(b"a"), None, Some(b"")],
            &[Some(b"a"), None],
        ] {
            let mut texts = Texts::default();
            all.iter().for_each(|text| texts.push(*text).unwrap());
            texts.shrink_to_fit();
            assert_eq!(texts.iter().collect::<Vec<_>>(), all);
            assert_eq!(texts.get(9), None);
        }
    }
}
