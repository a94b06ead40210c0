//! Structures in Thrift's compact protocol, as [`crate::thrift`] reads them.

/// The codes of the types that Parquet's structures need.
const TRUE: u8 = 1;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The bytes of a structure.
#[derive(Debug, Default)]
pub(super) struct ThriftWriter {
    bytes: Vec<u8>,
    /// The number of the last field of each open structure.
    last: Vec<i16>,
}

impl ThriftWriter {
    /// Starts a structure that is in no other one.
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), last: vec![0] }
    }

    /// Ends the outer structure.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(super) fn i16(&mut self, id: i16, value: i16) {
        self.field(id, I16);
        self.varint(zigzag(value.into()));
    }

    pub(super) fn i32(&mut self, id: i16, value: i32) {
        self.field(id, I32);
        self.varint(zigzag(value.into()));
    }

    pub(super) fn i64(&mut self, id: i16, value: u64) {
        self.field(id, I64);
        self.varint(zigzag(value.cast_signed()));
    }

    pub(super) fn binary(&mut self, id: i16, value: &[u8]) {
        self.field(id, BINARY);
        self.element_binary(value);
    }

    /// A field that is a structure with a structure without fields as its only field: a logical type.
    pub(super) fn union_of(&mut self, id: i16, only: i16) {
        self.structure(id, |union| union.structure(only, |_| ()));
    }

    pub(super) fn structure(&mut self, id: i16, fill: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        self.element(fill);
    }

    /// A list of structures.
    pub(super) fn structures<T>(
        &mut self,
        id: i16,
        items: &[T],
        mut fill: impl FnMut(&mut Self, &T),
    ) {
        self.list(id, STRUCT, items.len());
        for item in items {
            self.element(|writer| fill(writer, item));
        }
    }

    pub(super) fn binaries<'a>(&mut self, id: i16, items: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.list(id, BINARY, items.len());
        items.for_each(|item| self.element_binary(item));
    }

    pub(super) fn i32s(&mut self, id: i16, items: &[i32]) {
        self.list(id, I32, items.len());
        items.iter().for_each(|&item| self.varint(zigzag(item.into())));
    }

    fn element(&mut self, fill: impl FnOnce(&mut Self)) {
        self.last.push(0);
        fill(self);
        self.last.pop();
        self.bytes.push(0);
    }

    fn element_binary(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    fn list(&mut self, id: i16, kind: u8, len: usize) {
        self.field(id, LIST);
        match u8::try_from(len).ok().filter(|&len| len < 15) {
            Some(len) => self.bytes.push(len << 4 | kind),
            None => {
                self.bytes.push(0xf0 | kind);
                self.varint(len as u64);
            }
        }
    }

    /// The header of a field. Numbers grow by 1 to 15 in all structures of Parquet.
    fn field(&mut self, id: i16, kind: u8) {
        debug_assert!((TRUE..=STRUCT).contains(&kind));
        let last = self.last.last_mut();
        let delta = last.map_or(id, |last| id - std::mem::replace(last, id));
        self.bytes.push(u8::try_from(delta).unwrap_or(0) << 4 | kind);
    }

    fn varint(&mut self, value: u64) {
        varint(&mut self.bytes, value);
    }
}

pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}
