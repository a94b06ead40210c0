//! The native half of the Python package `turboloader`: the loader's types as Python classes.
//!
//! It holds no logic itself. What a setting is called in Python, which defaults it has and what
//! is imported when is up to the modules in `python/turboloader`.

#![deny(unsafe_code)]

mod batch;
mod by_value;
mod command;
mod convert;
mod dataset;
mod detached;
mod element;
mod error;
mod files;
mod hint;
mod image;
mod job;
#[cfg(feature = "arrow")]
mod lerobot;
mod lists;
mod loader;
mod memory;
mod names;
#[cfg(not(feature = "tables"))]
mod no_tables;
#[cfg(not(feature = "text"))]
mod no_text;
mod recipe;
mod remote;
mod report;
#[cfg(feature = "arrow")]
mod rows;
mod samples;
mod settings;
#[cfg(feature = "tables")]
mod table;
mod tensor;
#[cfg(feature = "text")]
mod tokenize;
mod tokens;
mod user;
mod warning;

use pyo3::prelude::*;

/// The native classes and functions of the package.
// The default says that no part relies on the interpreter's lock, which nobody has tested: a Python
// without the lock takes it while this module is loaded.
#[pymodule(name = "_native", gil_used = true)]
mod native {
    #[pymodule_export]
    use crate::batch::PyBatch;
    #[pymodule_export]
    use crate::by_value::tensor_of;
    #[pymodule_export]
    use crate::command::{tar_to_tbl, tl};
    #[pymodule_export]
    use crate::convert::{convert, verify};
    #[pymodule_export]
    use crate::dataset::PyDataset;
    #[pymodule_export]
    use crate::files::{PyTblReader, PyTblWriter, expand_braces, has_io_uring, open_raw_view};
    #[pymodule_export]
    use crate::image::{PyImageInfo, decode, decode_jpeg, probe};
    #[pymodule_export]
    use crate::job::{PyJob, end_uploads, run_shard};
    #[cfg(feature = "arrow")]
    #[pymodule_export]
    use crate::lerobot::lerobot;
    #[pymodule_export]
    use crate::lists::{
        box_class_names, coco, coco_mask, flip_pairs, in_memory, manifest, pairs, with_classes,
        with_imagenet_labels, with_labels,
    };
    #[pymodule_export]
    use crate::loader::{PyEpoch, PyLoader};
    #[cfg(not(feature = "tables"))]
    #[pymodule_export]
    use crate::no_tables::{convert_table, find_tbf, idv_file, tbf_segment, tbf_writer};
    #[cfg(not(feature = "text"))]
    #[pymodule_export]
    use crate::no_text::tokenize;
    #[pymodule_export]
    use crate::recipe::{PyRecipe, signatures};
    #[pymodule_export]
    use crate::remote::expand;
    #[pymodule_export]
    use crate::report::PyReport;
    #[cfg(feature = "arrow")]
    #[pymodule_export]
    use crate::rows::rows;
    #[pymodule_export]
    use crate::samples::PySamples;
    #[cfg(feature = "tables")]
    #[pymodule_export]
    use crate::table::{PyIdvFile, PyTbfSegment, PyTbfWriter, convert_table, find_tbf};
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[cfg(feature = "text")]
    #[pymodule_export]
    use crate::tokenize::tokenize;
    #[pymodule_export]
    use crate::tokens::tokens;

    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use tl_simd::Level;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that versions have in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The types of numbers in batches.
    #[pymodule_export]
    const DTYPES: [&str; 13] = crate::element::DTYPES;

    /// Whether this build reads Parquet and Arrow files.
    #[pymodule_export]
    const HAS_ARROW: bool = cfg!(feature = "arrow");

    /// Whether this build reads stores and web servers.
    #[pymodule_export]
    const HAS_REMOTE: bool = cfg!(feature = "remote");

    /// Refuses an instruction set level that this CPU lacks.
    ///
    /// Assigns `__buffer__` once more: Python from 3.12 on asks what is assigned for a memoryview,
    /// and not a method that the class was made with.
    #[pymodule_init]
    fn init(py: Python<'_>) -> PyResult<()> {
        Level::requested().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let tensor = py.get_type::<Tensor>();
        tensor.setattr("__buffer__", tensor.getattr("__buffer__")?)
    }
}
