//! The places of values in a shard index, from which they are known without reading a page.

use std::ops::Range;

use tbl_format::FormatError;
use tbl_format::shard_index::{PartReader, push_number, push_signed};
use tbl_io::ReadError;

use super::{DECODED, GroupPlaces, IN_FILE, NULL, Places, SEGMENTED};
use crate::file::ParquetFile;
use crate::pages::Slot;

const WHAT: &str = "places in a Parquet file";

impl Places {
    /// Appends the pages and the places of all values, which this finds, to a part.
    pub(crate) fn push_to(&self, file: &ParquetFile, part: &mut Vec<u8>) -> Result<(), ReadError> {
        let groups = &file.footer().groups;
        push_number(part, groups.len() as u64);
        for (group, rows) in groups.iter().enumerate() {
            let slots = file.pages(group, self.leaf)?;
            let places = self.group(file, group)?;
            for number in 0..slots.len() {
                self.locate(file, group, places, number)?;
            }
            push_number(part, slots.len() as u64);
            let mut end = file.chunk(group, self.leaf).start;
            for slot in slots {
                push_signed(part, slot.offset.wrapping_sub(end).cast_signed());
                push_number(part, slot.bytes.into());
                end = slot.offset.wrapping_add(slot.bytes.into());
            }
            let first_rows = slots.iter().map(|slot| u64::from(slot.first_row));
            let mut before = 0;
            for row in first_rows.skip(1).chain([rows.rows]) {
                push_number(part, row.saturating_sub(before));
                before = row;
            }
            places.push_to(slots, part);
        }
        Ok(())
    }

    /// Takes the pages of the column and the places of its values from a part.
    ///
    /// # Errors
    /// [`FormatError::Unreadable`], also where they are not in their column.
    pub(crate) fn read_part(
        &self,
        file: &ParquetFile,
        part: &mut PartReader<'_>,
    ) -> Result<(), FormatError> {
        let groups = &file.footer().groups;
        if part.number()? != groups.len() as u64 {
            return Err(part.unreadable());
        }
        for (group, rows) in groups.iter().enumerate() {
            let count = part.count()?;
            let chunk = file.chunk(group, self.leaf);
            let column = chunk.start..chunk.start.saturating_add(chunk.bytes);
            let mut slots = Vec::with_capacity(count);
            let mut end = column.start;
            for _ in 0..count {
                let offset = end.wrapping_add(part.signed()?.cast_unsigned());
                let bytes = u32::try_from(part.number()?).map_err(|_| part.unreadable())?;
                end = offset.checked_add(bytes.into()).ok_or_else(|| part.unreadable())?;
                if offset < column.start || end > column.end {
                    return Err(part.unreadable());
                }
                slots.push(Slot { offset, first_row: 0, bytes });
            }
            let mut row = 0_u64;
            for slot in &mut slots {
                slot.first_row = u32::try_from(row).map_err(|_| part.unreadable())?;
                row = row.saturating_add(part.number()?);
            }
            if row != rows.rows || (count == 0 && rows.rows > 0) {
                return Err(part.unreadable());
            }
            let rows = usize::try_from(rows.rows).map_err(|_| part.unreadable())?;
            let places = GroupPlaces::of_part(&slots, rows, part)?;
            file.pages_of(group, self.leaf).get_or_init(|| slots.into_boxed_slice());
            self.groups[group].get_or_init(|| places);
        }
        Ok(())
    }

    /// The reader of a part that [`push_to`](Self::push_to) is the end of.
    pub(crate) fn reader(part: &[u8]) -> PartReader<'_> {
        PartReader::new(part, WHAT)
    }
}

impl GroupPlaces {
    /// Appends the states of pages, the formats of values in runs, and for each page the place of its
    /// first value and the lengths of all, 0 for null.
    fn push_to(&self, slots: &[Slot], part: &mut Vec<u8>) {
        part.extend(self.states.iter().map(super::state_of));
        let formats: Vec<u8> = self.formats.iter().map(super::state_of).collect();
        let runs: Vec<&[u8]> = formats.chunk_by(|a, b| a == b).collect();
        push_number(part, runs.len() as u64);
        for run in runs {
            push_number(part, run.len() as u64);
            part.extend(run.first());
        }
        for (page, rows) in (0..).zip(rows_of(slots, self.numbers.len())) {
            let is_decoded = super::state_of(&self.states[page]) == DECODED;
            let first = rows.start;
            if !is_decoded {
                push_number(part, self.number(first).into());
            }
            for row in rows.clone() {
                if formats[row] == NULL {
                    continue;
                }
                let bytes =
                    if is_decoded { self.number(row) } else { self.length(page, row, &rows) };
                push_number(part, bytes.into());
            }
        }
    }

    fn of_part(
        slots: &[Slot],
        rows: usize,
        part: &mut PartReader<'_>,
    ) -> Result<Self, FormatError> {
        let places = Self::new(slots.len(), rows);
        let states = part.bytes(slots.len())?;
        if states.iter().any(|state| ![IN_FILE, SEGMENTED, DECODED].contains(state)) {
            return Err(part.unreadable());
        }
        let mut formats: Vec<u8> = Vec::new();
        for _ in 0..part.count()? {
            let run = usize::try_from(part.number()?).map_err(|_| part.unreadable())?;
            let format = part.bytes(1)?;
            let left = rows - formats.len();
            if run > left {
                return Err(part.unreadable());
            }
            formats.extend(format.iter().cycle().take(run));
        }
        if formats.len() != rows {
            return Err(part.unreadable());
        }
        let all = states.iter().zip(slots).zip(rows_of(slots, rows));
        for (page, ((&state, slot), rows)) in all.enumerate() {
            let mut at = if state == DECODED { 0 } else { part.number()? };
            for row in rows {
                let length = if formats[row] == NULL { None } else { Some(part.number()?) };
                let number = if state == DECODED { length.unwrap_or(0) } else { at };
                let number = u32::try_from(number).map_err(|_| part.unreadable())?;
                places.set(row, number, formats[row]);
                if let Some(length) = length {
                    at = at.saturating_add(length).saturating_add(super::LENGTH_BYTES);
                }
            }
            // The place after the last value, without the length of another one.
            let end = at.saturating_sub(super::LENGTH_BYTES);
            if state == IN_FILE && end > slot.bytes.into() {
                return Err(part.unreadable());
            }
            if state != DECODED {
                places.set_end(page, u32::try_from(end).map_err(|_| part.unreadable())?);
            }
            places.set_state(page, state);
        }
        Ok(places)
    }

    /// Bytes of the value of a row, which is not null, in a page with these rows.
    fn length(&self, page: usize, row: usize, rows: &Range<usize>) -> u32 {
        let next = match rows.contains(&(row + 1)) {
            true => u64::from(self.number(row + 1)),
            false => u64::from(self.end(page)) + super::LENGTH_BYTES,
        };
        let bytes = next.saturating_sub(super::LENGTH_BYTES + u64::from(self.number(row)));
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

/// The rows of each page.
fn rows_of(slots: &[Slot], rows: usize) -> impl Iterator<Item = Range<usize>> {
    slots.iter().enumerate().map(move |(number, slot)| {
        let end = slots.get(number + 1).map_or(rows, |next| next.first_row as usize);
        slot.first_row as usize..end
    })
}

#[cfg(test)]
mod tests {

    use tbl_io::{SampleSource, Source, Stores};

    use crate::RowSource;

    fn file(name: &str) -> Source {
        let folder = tl_testdata::shipped!("parquet");
        Source::open(folder.join(name)).unwrap()
    }

    /// Reads all samples of a file by a part; what is wrong with it may be an error.
    fn read(source: &Source, part: &[u8]) {
        let Ok(samples) = RowSource::open_part(&Stores::new(), source.clone(), part) else {
            return;
        };
        let mut bytes = Vec::new();
        for index in 0..samples.sample_count() {
            drop(samples.read_into(index, &mut bytes));
            drop(samples.facts(index));
        }
    }

    #[test]
    fn damaged_parts_are_no_reason_to_panic() {
        for name in ["datasets_5_2.parquet", "pyarrow_lz4.parquet", "pyarrow_nulls.parquet"] {
            let source = file(name);
            let part = RowSource::open(&Stores::new(), source.clone()).unwrap().to_part();
            let part = part.unwrap();
            for len in 0..part.len() {
                read(&source, &part[..len]);
            }
            for at in 0..part.len() {
                for bit in 0..8 {
                    let mut part = part.clone();
                    part[at] ^= 1 << bit;
                    read(&source, &part);
                }
            }
        }
    }

    #[test]
    fn a_part_of_another_file_is_unreadable() {
        let part = RowSource::open(&Stores::new(), file("polars.parquet")).unwrap().to_part();
        let other = file("pyarrow_gzip.parquet");
        let opened = RowSource::open_part(&Stores::new(), other, &part.unwrap());
        let error = opened.unwrap_err().to_string();
        assert!(error.contains("CRC-32C of footer of the Parquet file"), "{error}");
    }
}
