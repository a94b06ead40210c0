//! Batches and samples as dicts.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::PyBatch;
use crate::tensor::Form;

impl PyBatch {
    /// One sample as a dict: numbers for what is one number, arrays for what has dimensions.
    pub(super) fn sample<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyDict>> {
        let form = self.contents.form;
        let is_host = self.on_host.is_none();
        let form = if form == Form::Tensor && is_host { Form::Numpy } else { form };
        let sample = PyDict::new(py);
        for name in self.contents.names() {
            let value = match (self.numbers(name), self.tensor(name)) {
                (Some(numbers), _) => {
                    Bound::new(py, numbers)?.call_method0("numpy")?.call_method1("item", (row,))?
                }
                (None, Some(tensor)) => tensor.row(row).into_form(py, form)?.into_bound(py),
                (None, None) => {
                    let value = self.values_of(py, name, form).map(|value| value(row));
                    value.transpose()?.flatten().into_bound_py_any(py)?
                }
            };
            sample.set_item(name, value)?;
        }
        Ok(sample)
    }

    /// The name of the form in which fields are returned.
    pub(super) fn form(&self) -> &'static str {
        self.contents.form.name()
    }

    /// The fields by name.
    pub(super) fn all<'py>(&self, py: Python<'py>, form: Form) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for name in self.contents.names() {
            fields.set_item(name, self.field(py, name, form)?)?;
        }
        Ok(fields)
    }
}
