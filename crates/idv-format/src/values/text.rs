//! Many texts as one string and offsets into it.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::values::ValuesError;

/// Texts, some of them possibly missing.
///
/// ```
/// use idv_format::Text;
///
/// let text: Text = [Some("a"), None, Some("bc")].into_iter().collect();
/// assert_eq!((text.len(), text.get(1), text.get(2)), (3, None, Some("bc")));
/// assert_eq!(text.offsets(), [0, 1, 1, 3]);
/// ```
#[derive(Clone)]
pub struct Text<'a> {
    /// One more than there are texts, not decreasing, each at a character of `string`.
    offsets: Cow<'a, [u32]>,
    string: Cow<'a, str>,
    /// Whether each text is missing, or empty when none is.
    missing: Cow<'a, [bool]>,
}

impl<'a> Text<'a> {
    /// From parts that fit together.
    pub(crate) fn new(offsets: Vec<u32>, string: Cow<'a, str>, missing: Vec<bool>) -> Self {
        Self { offsets: offsets.into(), string, missing: missing.into() }
    }

    pub(crate) fn empty() -> Self {
        Self::new([0].into(), Cow::default(), Vec::new())
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether the column has no texts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of number `index`, `None` when it is missing or out of range.
    pub fn get(&self, index: usize) -> Option<&str> {
        if self.missing.get(index).copied().unwrap_or(false) {
            return None;
        }
        let start = *self.offsets.get(index)?;
        let end = *self.offsets.get(index + 1)?;
        self.string.get(start as usize..end as usize)
    }

    /// All texts in order, `None` for those that are missing.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The start of each text in [`string`](Self::string), and the end of the last one.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The texts one after the other, possibly with others around them.
    pub fn string(&self) -> &str {
        &self.string
    }

    /// Whether each text is missing, or nothing when none is.
    pub fn missing(&self) -> &[bool] {
        &self.missing
    }

    pub(super) fn slice(&self, range: Range<usize>) -> Text<'_> {
        let offsets = &self.offsets[range.start..=range.end];
        let missing = if self.missing.is_empty() { &[] } else { &self.missing[range] };
        Text {
            offsets: Cow::Borrowed(offsets),
            string: Cow::Borrowed(&self.string),
            missing: Cow::Borrowed(missing),
        }
    }

    pub(super) fn into_owned(self) -> Text<'static> {
        Text {
            offsets: Cow::Owned(self.offsets.into_owned()),
            string: Cow::Owned(self.string.into_owned()),
            missing: Cow::Owned(self.missing.into_owned()),
        }
    }

    pub(super) fn append(&mut self, more: &Text<'_>) -> Result<(), ValuesError> {
        let bounds = (more.offsets.first(), more.offsets.last());
        let (Some(&start), Some(&end)) = bounds else { return Ok(()) };
        let added = more.string.get(start as usize..end as usize).unwrap_or_default();
        // The string may continue after the last text of a slice.
        let base = self.offsets.last().copied().unwrap_or(0);
        let found = u64::from(base) + added.len() as u64;
        let limit = u32::MAX.into();
        if found > limit {
            return Err(ValuesError::TooMany { what: "bytes of text", found, limit });
        }
        if !self.missing.is_empty() || !more.missing.is_empty() {
            let before = self.len();
            let after = self.len() + more.len();
            let missing = self.missing.to_mut();
            missing.resize(before, false);
            missing.extend_from_slice(&more.missing);
            missing.resize(after, false);
        }
        let string = self.string.to_mut();
        string.truncate(base as usize);
        string.push_str(added);
        let moved = more.offsets.iter().skip(1).map(|offset| offset - start + base);
        self.offsets.to_mut().extend(moved);
        Ok(())
    }

    /// Adds one text.
    pub(crate) fn push(&mut self, text: Option<&str>) -> Result<(), ValuesError> {
        let len = u32::try_from(text.map_or(0, str::len)).unwrap_or(u32::MAX);
        let missing = if text.is_none() { &[true][..] } else { &[] };
        let one = Text {
            offsets: Cow::Owned([0, len].into()),
            string: Cow::Borrowed(text.unwrap_or_default()),
            missing: Cow::Borrowed(missing),
        };
        self.append(&one)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Collects texts.
///
/// # Panics
/// When they are longer together than 32 bits count.
impl<'t> FromIterator<Option<&'t str>> for Text<'static> {
    fn from_iter<I: IntoIterator<Item = Option<&'t str>>>(texts: I) -> Self {
        let mut all = Self::empty();
        for text in texts {
            let pushed = all.push(text);
            assert!(pushed.is_ok(), "texts are longer than 4 GiB together");
        }
        all
    }
}
