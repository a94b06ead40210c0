//! Types of numbers, by the names that NumPy, DLPack and the crates have for them.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tl_pipeline::ColumnType;
use tl_transform::Dtype;

use crate::memory::DataType;

/// The type of a tensor's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    const ALL: [Self; 13] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::F16,
        Self::Bf16,
        Self::F32,
        Self::F64,
    ];

    /// The type of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.name() == name)
    }

    /// The name, as NumPy and PyTorch have it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I8 => "int8",
            Self::U16 => "uint16",
            Self::I16 => "int16",
            Self::U32 => "uint32",
            Self::I32 => "int32",
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::F16 => "float16",
            Self::Bf16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    /// The type in NumPy's array interface, which has no bfloat16.
    pub(crate) const fn type_string(self) -> Option<&'static str> {
        Some(match self {
            Self::Bool => "|b1",
            Self::U8 => "|u1",
            Self::I8 => "|i1",
            Self::U16 => "<u2",
            Self::I16 => "<i2",
            Self::U32 => "<u4",
            Self::I32 => "<i4",
            Self::U64 => "<u8",
            Self::I64 => "<i8",
            Self::F16 => "<f2",
            Self::Bf16 => return None,
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        })
    }

    /// Bytes of one number.
    pub(crate) const fn bytes(self) -> usize {
        self.dlpack().bits as usize / 8
    }

    pub(crate) const fn dlpack(self) -> DataType {
        let (code, bits) = match self {
            Self::Bool => (6, 8),
            Self::U8 => (1, 8),
            Self::I8 => (0, 8),
            Self::U16 => (1, 16),
            Self::I16 => (0, 16),
            Self::U32 => (1, 32),
            Self::I32 => (0, 32),
            Self::U64 => (1, 64),
            Self::I64 => (0, 64),
            Self::F16 => (2, 16),
            Self::Bf16 => (4, 16),
            Self::F32 => (2, 32),
            Self::F64 => (2, 64),
        };
        DataType { code, bits, lanes: 1 }
    }

    /// The same as a column's type.
    pub(crate) const fn column_type(self) -> ColumnType {
        match self {
            Self::Bool => ColumnType::Bool,
            Self::U8 => ColumnType::U8,
            Self::I8 => ColumnType::I8,
            Self::U16 => ColumnType::U16,
            Self::I16 => ColumnType::I16,
            Self::U32 => ColumnType::U32,
            Self::I32 => ColumnType::I32,
            Self::U64 => ColumnType::U64,
            Self::I64 => ColumnType::I64,
            Self::F16 => ColumnType::F16,
            Self::Bf16 => ColumnType::Bf16,
            Self::F32 => ColumnType::F32,
            Self::F64 => ColumnType::F64,
        }
    }
}

impl TryFrom<Dtype> for Element {
    type Error = PyErr;

    fn try_from(dtype: Dtype) -> PyResult<Self> {
        Ok(match dtype {
            Dtype::F32 => Self::F32,
            Dtype::F16 => Self::F16,
            Dtype::Bf16 => Self::Bf16,
            Dtype::U8 => Self::U8,
            other => return Err(PyTypeError::new_err(format!("no tensors of {other}"))),
        })
    }
}

impl TryFrom<ColumnType> for Element {
    type Error = PyErr;

    fn try_from(number: ColumnType) -> PyResult<Self> {
        let found = Self::ALL.into_iter().find(|element| element.column_type() == number);
        found.ok_or_else(|| PyTypeError::new_err(format!("no tensors of {}", number.name())))
    }
}
