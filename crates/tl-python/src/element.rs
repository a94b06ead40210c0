//! Element types, by the names that NumPy, PyTorch and DLPack have for them.

pub(crate) use tl_pipeline::ColumnType as Element;

use crate::memory::DataType;

/// The element types as Python's libraries know them.
pub(crate) trait PythonElement: Sized {
    /// The type of this name in NumPy and PyTorch.
    fn of_python(name: &str) -> Option<Self>;

    /// The name in NumPy and PyTorch, such as `float32`.
    fn python_name(self) -> String;

    /// The type in NumPy's array interface, which has no bfloat16.
    fn type_string(self) -> Option<String>;

    /// The type in DLPack.
    fn dlpack(self) -> DataType;
}

impl PythonElement for Element {
    fn of_python(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.python_name() == name)
    }

    fn python_name(self) -> String {
        let (_, kind) = kind(self);
        if self == Self::Bool { kind.to_owned() } else { format!("{kind}{}", 8 * self.bytes()) }
    }

    fn type_string(self) -> Option<String> {
        let order = if self.bytes() == 1 { '|' } else { '<' };
        let letter = kind(self).1.chars().next()?;
        (self != Self::Bf16).then(|| format!("{order}{letter}{}", self.bytes()))
    }

    fn dlpack(self) -> DataType {
        DataType { code: kind(self).0, bits: 8 * self.bytes().to_le_bytes()[0], lanes: 1 }
    }
}

/// The kind of a number: its code in DLPack, and the beginning of its name in NumPy.
const fn kind(element: Element) -> (u8, &'static str) {
    match element {
        Element::I8 | Element::I16 | Element::I32 | Element::I64 => (0, "int"),
        Element::U8 | Element::U16 | Element::U32 | Element::U64 => (1, "uint"),
        Element::F16 | Element::F32 | Element::F64 => (2, "float"),
        Element::Bf16 => (4, "bfloat"),
        Element::Bool => (6, "bool"),
    }
}
