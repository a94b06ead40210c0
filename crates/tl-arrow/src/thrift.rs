//! Thrift's compact protocol, as far as Parquet's structures need it.
//!
//! Nothing is allocated: texts and binaries are slices of the input, and the length that a list states
//! is at most the number of bytes that follow it.

use tbl_io::RowsDefect;

/// A defect of a Parquet file and the offset of the byte that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) offset: u64,
    pub(crate) defect: RowsDefect,
}

impl Flaw {
    pub(crate) fn new(offset: u64, defect: RowsDefect) -> Self {
        Self { offset, defect }
    }
}

/// The types of values, by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            // A set is stored as a list.
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return None,
        })
    }
}

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) id: i16,
    pub(crate) kind: Kind,
}

/// Structures within structures that are skipped; those of Parquet are 6 deep.
const MAX_DEPTH: u32 = 32;

/// A reader of one structure.
#[derive(Clone, Debug)]
pub(crate) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset of `bytes` in the file.
    start: u64,
    /// The name of the structure in errors.
    what: &'static str,
}

impl<'a> Thrift<'a> {
    pub(crate) fn new(bytes: &'a [u8], start: u64, what: &'static str) -> Self {
        Self { bytes, at: 0, start, what }
    }

    /// The bytes read so far.
    pub(crate) fn consumed(&self) -> usize {
        self.at
    }

    /// The offset of the next byte in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    pub(crate) fn flaw(&self, defect: RowsDefect) -> Flaw {
        Flaw::new(self.offset(), defect)
    }

    fn truncated(&self) -> Flaw {
        self.flaw(RowsDefect::Truncated { what: self.what })
    }

    fn malformed(&self) -> Flaw {
        self.flaw(RowsDefect::Malformed { what: self.what })
    }

    /// The error of a required field that the structure lacks.
    pub(crate) fn missing(&self, field: &'static str) -> Flaw {
        self.flaw(RowsDefect::Missing { what: self.what, field })
    }

    /// The next field, whose number follows from that of the field before; `None` at the end of the
    /// structure.
    pub(crate) fn field(&mut self, last: &mut i16) -> Result<Option<Field>, Flaw> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let kind = Kind::of(header & 0x0f).ok_or_else(|| self.malformed())?;
        let id = match header >> 4 {
            0 => i16::try_from(self.varint().map(unzigzag)?).map_err(|_| self.malformed())?,
            delta => last.checked_add(delta.into()).ok_or_else(|| self.malformed())?,
        };
        *last = id;
        Ok(Some(Field { id, kind }))
    }

    /// A number of any width.
    pub(crate) fn integer(&mut self, field: Field) -> Result<i64, Flaw> {
        if field.kind == Kind::Byte {
            return Ok(i64::from(i8::from_le_bytes([self.byte()?])));
        }
        if matches!(field.kind, Kind::I16 | Kind::I32 | Kind::I64) {
            return self.varint().map(unzigzag);
        }
        Err(self.malformed())
    }

    /// A number that is not negative and has at most 31 bits.
    pub(crate) fn size(&mut self, field: Field, name: &'static str) -> Result<u32, Flaw> {
        let value = self.integer(field)?;
        let size = i32::try_from(value).ok().and_then(|value| u32::try_from(value).ok());
        size.ok_or_else(|| {
            self.flaw(RowsDefect::Value { what: name, value, expected: "0 to 2147483647" })
        })
    }

    /// A number that is not negative.
    pub(crate) fn count(&mut self, field: Field, name: &'static str) -> Result<u64, Flaw> {
        let value = self.integer(field)?;
        u64::try_from(value)
            .map_err(|_| self.flaw(RowsDefect::Value { what: name, value, expected: "0 or more" }))
    }

    pub(crate) fn boolean(&self, field: Field) -> Result<bool, Flaw> {
        if matches!(field.kind, Kind::True | Kind::False) {
            return Ok(field.kind == Kind::True);
        }
        Err(self.malformed())
    }

    pub(crate) fn binary(&mut self, field: Field) -> Result<&'a [u8], Flaw> {
        if field.kind != Kind::Binary {
            return Err(self.malformed());
        }
        self.bytes_of_length()
    }

    pub(crate) fn structure(&self, field: Field) -> Result<(), Flaw> {
        if field.kind == Kind::Struct { Ok(()) } else { Err(self.malformed()) }
    }

    /// The number of elements of a list of values of this kind.
    pub(crate) fn list(&mut self, field: Field, kind: Kind) -> Result<usize, Flaw> {
        if field.kind != Kind::List {
            return Err(self.malformed());
        }
        let found = self.list_header()?;
        if found.kind != kind && found.len > 0 {
            return Err(self.malformed());
        }
        Ok(found.len)
    }

    fn bytes_of_length(&mut self) -> Result<&'a [u8], Flaw> {
        let len = self.varint()?;
        self.take(len)
    }

    /// Passes over the value of a field that is not needed.
    pub(crate) fn skip(&mut self, field: Field) -> Result<(), Flaw> {
        self.skip_field(field, 0)
    }

    fn skip_field(&mut self, field: Field, depth: u32) -> Result<(), Flaw> {
        // The header of a field has its boolean, which in lists is a byte.
        if matches!(field.kind, Kind::True | Kind::False) {
            return Ok(());
        }
        self.skip_value(field.kind, depth)
    }

    fn skip_value(&mut self, kind: Kind, depth: u32) -> Result<(), Flaw> {
        if depth >= MAX_DEPTH {
            return Err(self.malformed());
        }
        match kind {
            Kind::True | Kind::False | Kind::Byte => self.byte().map(drop),
            Kind::I16 | Kind::I32 | Kind::I64 => self.varint().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Binary => self.bytes_of_length().map(drop),
            Kind::List => {
                let List { kind, len } = self.list_header()?;
                (0..len).try_for_each(|_| self.skip_value(kind, depth + 1))
            }
            Kind::Map => self.skip_map(depth),
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    self.skip_field(field, depth + 1)?;
                }
                Ok(())
            }
        }
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), Flaw> {
        let len = self.varint()?;
        if len == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        let key = Kind::of(kinds >> 4).ok_or_else(|| self.malformed())?;
        let value = Kind::of(kinds & 0x0f).ok_or_else(|| self.malformed())?;
        for _ in 0..len {
            self.skip_value(key, depth + 1)?;
            self.skip_value(value, depth + 1)?;
        }
        Ok(())
    }

    fn list_header(&mut self) -> Result<List, Flaw> {
        let header = self.byte()?;
        // An empty list may have no type.
        if header >> 4 == 0 {
            return Ok(List { kind: Kind::Byte, len: 0 });
        }
        let kind = Kind::of(header & 0x0f).ok_or_else(|| self.malformed())?;
        let len = match header >> 4 {
            15 => self.varint()?,
            len => len.into(),
        };
        // An element takes at least a byte.
        let left = self.bytes.len() - self.at;
        let len = usize::try_from(len).ok().filter(|&len| len <= left);
        Ok(List { kind, len: len.ok_or_else(|| self.truncated())? })
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Flaw> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or_else(|| self.truncated())?;
        self.at += taken.len();
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Flaw> {
        let byte = self.bytes.get(self.at).copied().ok_or_else(|| self.truncated())?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Flaw> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.malformed())
    }
}

struct List {
    kind: Kind,
    len: usize,
}

pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 1: 300, field 2: true, field 20: "ab", field 21: a list of two structures.
    const STRUCTURE: [u8; 16] = [
        0x15, 0xd8, 0x04, 0x11, 0x08, 0x28, 0x02, b'a', b'b', 0x19, 0x2c, 0x15, 0x02, 0x00, 0x00,
        0x00,
    ];

    #[derive(Debug, Default, PartialEq, Eq)]
    struct Found {
        number: i64,
        flag: bool,
        text: Vec<u8>,
        structures: usize,
    }

    fn read(bytes: &[u8]) -> Result<Found, Flaw> {
        let mut thrift = Thrift::new(bytes, 100, "test");
        let mut found = Found::default();
        let mut last = 0;
        while let Some(field) = thrift.field(&mut last)? {
            match field.id {
                1 => found.number = thrift.integer(field)?,
                2 => found.flag = thrift.boolean(field)?,
                20 => found.text = thrift.binary(field)?.to_vec(),
                21 => {
                    found.structures = thrift.list(field, Kind::Struct)?;
                    for _ in 0..found.structures {
                        while let Some(field) = thrift.field(&mut 0)? {
                            thrift.skip(field)?;
                        }
                    }
                }
                _ => thrift.skip(field)?,
            }
        }
        Ok(found)
    }

    #[test]
    fn fields_have_their_values() {
        let found = Found { number: 300, flag: true, text: b"ab".to_vec(), structures: 2 };
        assert_eq!(read(&STRUCTURE), Ok(found));
    }

    #[test]
    fn every_prefix_is_truncated_at_its_end() {
        for end in 0..STRUCTURE.len() {
            let flaw = read(&STRUCTURE[..end]).unwrap_err();
            assert_eq!(flaw.defect, RowsDefect::Truncated { what: "test" }, "{end}");
            assert!((100..=100 + end as u64).contains(&flaw.offset), "{flaw:?}");
        }
    }

    #[test]
    fn skipping_passes_over_the_same_bytes() {
        let mut bytes = vec![0x1c];
        bytes.extend(STRUCTURE);
        bytes.extend([0x15, 0x02, 0x00]);
        let mut thrift = Thrift::new(&bytes, 0, "test");
        let mut last = 0;
        let field = thrift.field(&mut last).unwrap().unwrap();
        assert_eq!(field, Field { id: 1, kind: Kind::Struct });
        thrift.skip(field).unwrap();
        let field = thrift.field(&mut last).unwrap().unwrap();
        assert_eq!((field.id, thrift.integer(field)), (2, Ok(1)));
    }

    #[test]
    fn a_list_is_no_longer_than_the_bytes_after_it() {
        let bytes = [0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
        let mut thrift = Thrift::new(&bytes, 0, "test");
        let field = thrift.field(&mut 0).unwrap().unwrap();
        let flaw = thrift.list(field, Kind::I32).unwrap_err();
        assert_eq!(flaw.defect, RowsDefect::Truncated { what: "test" });
    }

    #[test]
    fn structures_nest_only_so_deep() {
        let bytes = vec![0x1c; 64];
        let mut thrift = Thrift::new(&bytes, 0, "test");
        let field = thrift.field(&mut 0).unwrap().unwrap();
        let flaw = thrift.skip(field).unwrap_err();
        assert_eq!(flaw.defect, RowsDefect::Malformed { what: "test" });
    }
}
