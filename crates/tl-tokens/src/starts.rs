//! The first tokens of documents, in little memory.

/// The first token of each document, and the number of all tokens: the documents follow each other.
///
/// A start is 64 bits long, of which 32 are kept for each document; the others change rarely.
#[derive(Debug)]
pub(crate) struct Starts {
    /// The lower half of each start, and of the number of tokens.
    low: Vec<u32>,
    /// For each multiple of 2^32 but 0, the first document that starts there or after it.
    carries: Vec<usize>,
    /// The number of tokens.
    end: u64,
}

impl Starts {
    /// No documents.
    pub(crate) fn new() -> Self {
        Self { low: vec![0], carries: Vec::new(), end: 0 }
    }

    /// Adds a document of `length` tokens; false beyond 2^63 tokens.
    pub(crate) fn push(&mut self, length: u32) -> bool {
        let Some(end) = self.end.checked_add(length.into()).filter(|&end| end < 1 << 63) else {
            return false;
        };
        // A length is less than 2^32, so at most one multiple lies within a document.
        if end >> 32 > self.end >> 32 {
            self.carries.push(self.low.len());
        }
        self.end = end;
        self.low.push(low_half(end));
        true
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> u64 {
        self.low.len() as u64 - 1
    }

    /// The number of tokens.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The first token of document `document`, and the number of its tokens; `None` past the last.
    pub(crate) fn place(&self, document: u64) -> Option<(u64, u64)> {
        let document = usize::try_from(document).ok()?;
        let first = self.start(document)?;
        let next = self.start(document.checked_add(1)?)?;
        Some((first, next - first))
    }

    /// The document that has token `token`; that of the last token for others.
    pub(crate) fn document_of(&self, token: u64) -> u64 {
        // The documents whose starts have the same upper half.
        let upper = usize::try_from(token >> 32).unwrap_or(usize::MAX);
        let from = upper
            .checked_sub(1)
            .map_or(0, |carry| self.carries.get(carry).copied().unwrap_or(self.low.len()));
        let to = self.carries.get(upper).copied().unwrap_or(self.low.len());
        let low = self.low.get(from..to).unwrap_or_default();
        let after = from + low.partition_point(|&start| start <= low_half(token));
        (after as u64).saturating_sub(1).min(self.len().saturating_sub(1))
    }

    fn start(&self, document: usize) -> Option<u64> {
        let low = *self.low.get(document)?;
        let upper = self.carries.partition_point(|&first| first <= document) as u64;
        Some(upper << 32 | u64::from(low))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
const fn low_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_sums_of_lengths(
            lengths in prop::collection::vec(prop_oneof![0u32..5, 0..=u32::MAX], 0..40),
            token: u64,
        ) {
            let mut starts = Starts::new();
            prop_assert!(lengths.iter().all(|&length| starts.push(length)));
            let mut first = 0;
            for (document, &length) in (0..).zip(&lengths) {
                prop_assert_eq!(starts.place(document), Some((first, length.into())));
                for inside in [0, length / 2, length.saturating_sub(1)] {
                    if length > 0 {
                        prop_assert_eq!(starts.document_of(first + u64::from(inside)), document);
                    }
                }
                first += u64::from(length);
            }
            prop_assert_eq!((starts.len(), starts.end()), (lengths.len() as u64, first));
            prop_assert_eq!(starts.place(lengths.len() as u64), None);
            prop_assert!(starts.document_of(token) <= starts.len());
        }
    }
}
