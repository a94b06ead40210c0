//! Sparse vectors with the items that they leave out.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::values::ValuesError;
use crate::values::{Text, Values, Vectors, map_arrays};

impl Vectors<'_> {
    /// How many slots the vectors have together.
    pub fn slots(&self) -> u64 {
        self.rows().map(|row| u64::from(row.length())).sum()
    }

    /// One item for each slot, those that sparse vectors leave out being zero, false or empty.
    ///
    /// # Errors
    /// [`ValuesError::TooMany`] when there are more than `limit` slots: a small file can have very
    /// long vectors without items.
    pub fn dense_items(&self, limit: u64) -> Result<Values<'_>, ValuesError> {
        let items = self.items();
        let slots = self.slots();
        if slots == items.len() as u64 {
            return Ok(items);
        }
        let too_many = ValuesError::TooMany { what: "slots of vectors", found: slots, limit };
        if slots > limit {
            return Err(too_many);
        }
        let slots = usize::try_from(slots).map_err(|_| too_many)?;
        Ok(map_arrays!(items, array => Cow::Owned(self.spread(&array, slots)),
            Values::OffsetTime { offset_minutes, ticks } => Values::OffsetTime {
                offset_minutes: Cow::Owned(self.spread(&offset_minutes, slots)),
                ticks: Cow::Owned(self.spread(&ticks, slots)),
            },
            Values::Text(text) => Values::Text(self.spread_text(&text)?),
            Values::Vector(_) => return Err(ValuesError::NestedVectors),
        ))
    }

    fn spread<T: Copy + Default>(&self, items: &[T], slots: usize) -> Vec<T> {
        let mut dense = Vec::with_capacity(slots);
        for row in self.rows() {
            let start = dense.len();
            let items = items.get(row.items()).unwrap_or_default();
            let Some(indices) = row.indices() else {
                dense.extend_from_slice(items);
                continue;
            };
            dense.resize(start + row.length() as usize, T::default());
            for (&index, &item) in indices.iter().zip(items) {
                if let Some(slot) = dense.get_mut(start + index as usize) {
                    *slot = item;
                }
            }
        }
        dense
    }

    fn spread_text(&self, items: &Text<'_>) -> Result<Text<'static>, ValuesError> {
        let mut dense = Text::empty();
        for row in self.rows() {
            let Some(indices) = row.indices() else {
                row.items().try_for_each(|item| dense.push(items.get(item)))?;
                continue;
            };
            let mut stored = indices.iter().zip(row.items()).peekable();
            for slot in 0..row.length() {
                match stored.next_if(|&(&index, _)| index == slot) {
                    Some((_, item)) => dense.push(items.get(item))?,
                    None => dense.push(Some(""))?,
                }
            }
        }
        Ok(dense)
    }
}
