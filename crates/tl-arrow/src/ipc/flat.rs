//! Flatbuffers, as far as Arrow's metadata needs them.
//!
//! Nothing is allocated: texts and vectors are slices of the input. Tables may share others, so a caller
//! that follows them recursively has to bound how many it visits.

use tbl_io::RowsDefect;

use crate::thrift::Flaw;

/// The bytes of a flatbuffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flat<'a> {
    bytes: &'a [u8],
    /// The offset of `bytes` in the file.
    start: u64,
    /// The name of the structure in errors.
    what: &'static str,
}

/// A table: fields by slot, each of which may be absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'a> {
    flat: Flat<'a>,
    at: usize,
    /// The offsets of the fields, two bytes each.
    slots: &'a [u8],
}

/// A vector of tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables<'a> {
    flat: Flat<'a>,
    at: usize,
    len: usize,
}

impl<'a> Flat<'a> {
    pub(crate) fn new(bytes: &'a [u8], start: u64, what: &'static str) -> Self {
        Self { bytes, start, what }
    }

    /// The table that the buffer is about.
    pub(crate) fn root(self) -> Result<Table<'a>, Flaw> {
        self.table(self.follow(0)?)
    }

    fn flaw(self, at: usize) -> Flaw {
        Flaw::new(self.start + at as u64, RowsDefect::Flatbuffer { what: self.what })
    }

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], Flaw> {
        let found = self.bytes.get(at..).and_then(<[u8]>::first_chunk);
        found.copied().ok_or_else(|| self.flaw(at))
    }

    /// The place that the offset at `at` leads to.
    fn follow(self, at: usize) -> Result<usize, Flaw> {
        let offset = u32::from_le_bytes(self.array(at)?);
        let to = usize::try_from(offset).ok().and_then(|offset| at.checked_add(offset));
        to.filter(|&to| to > at).ok_or_else(|| self.flaw(at))
    }

    fn table(self, at: usize) -> Result<Table<'a>, Flaw> {
        let back = i32::from_le_bytes(self.array(at)?);
        let slots_at = (at as i64).checked_sub(back.into()).and_then(|at| usize::try_from(at).ok());
        let slots_at = slots_at.ok_or_else(|| self.flaw(at))?;
        // The sizes of the list itself, with these four bytes, and of the table.
        let len = usize::from(u16::from_le_bytes(self.array(slots_at)?));
        let slots = self.bytes.get(slots_at..).and_then(|bytes| bytes.get(4..len));
        Ok(Table { flat: self, at, slots: slots.ok_or_else(|| self.flaw(slots_at))? })
    }

    /// The place and the number of elements of a vector, all of which are there.
    fn vector(self, at: usize, size: usize) -> Result<(usize, usize), Flaw> {
        let len = usize::try_from(u32::from_le_bytes(self.array(at)?)).ok();
        let start = at + size_of::<u32>();
        let bytes =
            len.and_then(|len| len.checked_mul(size)).and_then(|len| start.checked_add(len));
        let is_inside = bytes.is_some_and(|end| end <= self.bytes.len());
        len.filter(|_| is_inside).map(|len| (start, len)).ok_or_else(|| self.flaw(at))
    }
}

impl<'a> Table<'a> {
    /// The error of the table with this defect.
    pub(crate) fn error(&self, defect: RowsDefect) -> Flaw {
        Flaw::new(self.flat.start + self.at as u64, defect)
    }

    /// The number of bytes of the whole buffer.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.flat.bytes.len()
    }

    /// The place of a field; `None` if it is absent.
    fn place(&self, slot: usize) -> Option<usize> {
        let offset = self.slots.get(2 * slot..)?.first_chunk()?;
        let offset = usize::from(u16::from_le_bytes(*offset));
        (offset > 0).then(|| self.at.saturating_add(offset))
    }

    /// A number as bytes, zeros if it is absent.
    fn number<const N: usize>(&self, slot: usize) -> Result<Option<[u8; N]>, Flaw> {
        self.place(slot).map(|at| self.flat.array(at)).transpose()
    }

    pub(crate) fn byte(&self, slot: usize) -> Result<u8, Flaw> {
        Ok(self.number(slot)?.map_or(0, u8::from_le_bytes))
    }

    pub(crate) fn i16(&self, slot: usize, default: i16) -> Result<i16, Flaw> {
        Ok(self.number(slot)?.map_or(default, i16::from_le_bytes))
    }

    pub(crate) fn i32(&self, slot: usize, default: i32) -> Result<i32, Flaw> {
        Ok(self.number(slot)?.map_or(default, i32::from_le_bytes))
    }

    pub(crate) fn i64(&self, slot: usize) -> Result<i64, Flaw> {
        Ok(self.number(slot)?.map_or(0, i64::from_le_bytes))
    }

    /// A number that cannot be negative.
    pub(crate) fn count(&self, slot: usize, what: &'static str) -> Result<u64, Flaw> {
        let value = self.i64(slot)?;
        let expected = "at least 0";
        u64::try_from(value).map_err(|_| self.error(RowsDefect::Value { what, value, expected }))
    }

    pub(crate) fn table(&self, slot: usize) -> Result<Option<Self>, Flaw> {
        let Some(at) = self.place(slot) else { return Ok(None) };
        self.flat.table(self.flat.follow(at)?).map(Some)
    }

    /// As [`table`](Self::table), for a table that must be there.
    pub(crate) fn required(&self, slot: usize, field: &'static str) -> Result<Self, Flaw> {
        let what = self.flat.what;
        self.table(slot)?.ok_or_else(|| self.error(RowsDefect::Missing { what, field }))
    }

    pub(crate) fn tables(&self, slot: usize) -> Result<Tables<'a>, Flaw> {
        let flat = self.flat;
        let Some(at) = self.place(slot) else { return Ok(Tables { flat, at: 0, len: 0 }) };
        let (at, len) = flat.vector(flat.follow(at)?, size_of::<u32>())?;
        Ok(Tables { flat, at, len })
    }

    /// Structures of `N` bytes each, or numbers.
    pub(crate) fn structures<const N: usize>(&self, slot: usize) -> Result<&'a [[u8; N]], Flaw> {
        let Some(at) = self.place(slot) else { return Ok(&[]) };
        let (at, len) = self.flat.vector(self.flat.follow(at)?, N)?;
        let bytes = self.flat.bytes.get(at..at + N * len).unwrap_or_default();
        Ok(bytes.as_chunks().0)
    }

    pub(crate) fn text(&self, slot: usize) -> Result<Option<&'a [u8]>, Flaw> {
        let Some(at) = self.place(slot) else { return Ok(None) };
        let (at, len) = self.flat.vector(self.flat.follow(at)?, 1)?;
        Ok(self.flat.bytes.get(at..at + len))
    }
}

impl<'a> Tables<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = Result<Table<'a>, Flaw>> {
        let Self { flat, at, len } = self;
        (0..len).map(move |number| flat.table(flat.follow(at + size_of::<u32>() * number)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with a byte, a text, numbers of 8 bytes, and a table without fields.
    fn buffer() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(20_u32.to_le_bytes()); // the root
        // The list of slots: 14 bytes, of a table of 20 bytes; slot 1 is absent.
        for slot in [14_u16, 20, 16, 0, 4, 8, 12] {
            bytes.extend(slot.to_le_bytes());
        }
        bytes.extend([0; 2]);
        bytes.extend(16_i32.to_le_bytes()); // the root table, at 20
        bytes.extend(16_u32.to_le_bytes()); // slot 2: a text at 40
        bytes.extend(20_u32.to_le_bytes()); // slot 3: numbers at 48
        bytes.extend(36_u32.to_le_bytes()); // slot 4: a table at 68
        bytes.extend([7, 0, 0, 0]); // slot 0
        bytes.extend([2, 0, 0, 0, b'a', b'b', 0, 0]);
        bytes.extend([2, 0, 0, 0]);
        bytes.extend(5_i64.to_le_bytes());
        bytes.extend((-6_i64).to_le_bytes());
        bytes.extend(4_i32.to_le_bytes()); // its slots are at 64, where 5's bytes end
        bytes
    }

    #[test]
    fn fields_are_found_by_their_slots() {
        let mut bytes = buffer();
        // The slots of the last table take the place of the last bytes of a number.
        bytes[64..68].copy_from_slice(&[4, 0, 4, 0]);
        let table = Flat::new(&bytes, 100, "buffer").root().unwrap();
        assert_eq!(table.byte(0), Ok(7));
        assert_eq!((table.byte(1), table.i16(9, 3)), (Ok(0), Ok(3)));
        assert_eq!(table.text(2), Ok(Some(&b"ab"[..])));
        assert_eq!(table.structures::<8>(3).unwrap().len(), 2);
        assert_eq!(table.structures::<8>(3).unwrap()[0], 5_i64.to_le_bytes());
        let inner = table.required(4, "inner").unwrap();
        assert_eq!((inner.i64(0), inner.tables(3).unwrap().iter().count()), (Ok(0), 0));
        let flaw = table.required(1, "other").unwrap_err();
        assert_eq!(flaw.offset, 120);
        assert_eq!(flaw.defect, RowsDefect::Missing { what: "buffer", field: "other" });
    }

    #[test]
    fn places_outside_are_errors() {
        let bytes = buffer();
        for end in 0..bytes.len() {
            let root = Flat::new(&bytes[..end], 0, "buffer").root();
            let read = root.and_then(|root| {
                root.text(2)?;
                root.structures::<8>(3)?;
                root.required(4, "inner")
            });
            assert_eq!(read.unwrap_err().defect, RowsDefect::Flatbuffer { what: "buffer" });
        }
        let all = [0xff; 64];
        assert!(Flat::new(&all, 0, "buffer").root().is_err());
    }
}
