//! Objects that Python's type stubs know more of than their types in Rust say.
//!
//! Annotations belong to signatures, which properties and the methods behind operators have
//! none of; these are what such methods return.

use std::convert::Infallible;

#[cfg(feature = "stubs")]
use pyo3::inspect::{PyStaticConstant, PyStaticExpr};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

macro_rules! hinted {
    ($(#[$doc:meta])* $name:ident($object:ty): $hint:literal) => {
        $(#[$doc])*
        pub(crate) struct $name<'py>(pub(crate) Bound<'py, $object>);

        impl<'py> IntoPyObject<'py> for $name<'py> {
            type Target = $object;
            type Output = Bound<'py, $object>;
            type Error = Infallible;

            #[cfg(feature = "stubs")]
            const OUTPUT_TYPE: PyStaticExpr =
                PyStaticExpr::Constant { value: PyStaticConstant::Str($hint) };

            fn into_pyobject(self, _py: Python<'py>) -> Result<Self::Output, Infallible> {
                Ok(self.0)
            }
        }
    };
}

hinted! {
    /// The dimensions of a tensor.
    Shape(PyTuple): "tuple[int, ...]"
}

hinted! {
    /// Values by name.
    Fields(PyDict): "dict[str, Any]"
}

hinted! {
    /// Gives one sample after the other, its fields by name.
    SampleIterator(PyAny): "Iterator[dict[str, Any]]"
}
