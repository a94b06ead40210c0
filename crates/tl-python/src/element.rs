//! Element types, by the names that NumPy, PyTorch and DLPack have for them.

pub(crate) use tl_pipeline::ColumnType as Element;

use crate::memory::DataType;

/// The element types as Python's libraries know them.
pub(crate) trait PythonElement: Sized {
    /// The type of this name in NumPy and PyTorch.
    fn of_python(name: &str) -> Option<Self>;

    /// The name in NumPy and PyTorch, such as `float32`.
    fn python_name(self) -> &'static str;

    /// The type in NumPy's array interface, which has no bfloat16.
    fn type_string(self) -> Option<&'static str>;

    /// The type in DLPack.
    fn dlpack(self) -> DataType;
}

impl PythonElement for Element {
    fn of_python(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.python_name() == name)
    }

    fn python_name(self) -> &'static str {
        names(self).0
    }

    fn type_string(self) -> Option<&'static str> {
        names(self).1
    }

    fn dlpack(self) -> DataType {
        DataType { code: names(self).2, bits: 8 * self.bytes().to_le_bytes()[0], lanes: 1 }
    }
}

/// The names in NumPy and PyTorch of all types.
pub(crate) const DTYPES: [&str; Element::ALL.len()] = {
    let mut dtypes = [""; Element::ALL.len()];
    let mut place = 0;
    while place < dtypes.len() {
        dtypes[place] = names(Element::ALL[place]).0;
        place += 1;
    }
    dtypes
};

/// The name in NumPy and PyTorch, the type in NumPy's array interface, and the code in DLPack.
/// Constants, because every tensor of every sample has them.
const fn names(element: Element) -> (&'static str, Option<&'static str>, u8) {
    match element {
        Element::Bool => ("bool", Some("|b1"), 6),
        Element::I8 => ("int8", Some("|i1"), 0),
        Element::I16 => ("int16", Some("<i2"), 0),
        Element::I32 => ("int32", Some("<i4"), 0),
        Element::I64 => ("int64", Some("<i8"), 0),
        Element::U8 => ("uint8", Some("|u1"), 1),
        Element::U16 => ("uint16", Some("<u2"), 1),
        Element::U32 => ("uint32", Some("<u4"), 1),
        Element::U64 => ("uint64", Some("<u8"), 1),
        Element::F16 => ("float16", Some("<f2"), 2),
        Element::F32 => ("float32", Some("<f4"), 2),
        Element::F64 => ("float64", Some("<f8"), 2),
        Element::Bf16 => ("bfloat16", None, 4),
    }
}
