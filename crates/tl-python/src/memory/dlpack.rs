//! The structs of DLPack, versions 0 and 1, in capsules that count the memory which they point to. What
//! it rests on is said in the parent module.
#![expect(unsafe_code, reason = "DLPack is a C interface; docs/safety.md")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3::{PyErr, ffi};

use super::Memory;

/// The type of numbers, as DLPack has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct DataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
struct Device {
    kind: i32,
    id: i32,
}

/// `kDLCPU`.
pub(crate) const CPU: (i32, i32) = (1, 0);

/// `kDLCUDA`.
pub(super) const CUDA: i32 = 2;

/// `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, what capsules named `dltensor` hold.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

/// `DLManagedTensorVersioned`, what capsules named `dltensor_versioned` hold.
#[repr(C)]
struct ManagedVersioned {
    version: Version,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

const NAME: &CStr = c"dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";

/// The target of an exported capsule: the consumer's struct first, then the data it points to.
#[repr(C)]
struct Export<M> {
    managed: M,
    /// Shape, then strides.
    dimensions: Box<[i64]>,
    _memory: Memory,
}

/// The layout of exported numbers in a `Memory`.
pub(crate) struct Exported<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) shape: &'a [usize],
    /// Numbers from the start of one row to that of the next, where that is not a row's own.
    pub(crate) row_stride: Option<usize>,
    pub(crate) dtype: DataType,
    /// Whether it was copied for the consumer.
    pub(crate) is_copied: bool,
}

impl Exported<'_> {
    /// A capsule that holds a count of the memory until its consumer lets go of it.
    pub(crate) fn capsule<'py>(
        &self,
        py: Python<'py>,
        versioned: bool,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut dimensions = self.dimensions()?;
        let tensor = self.tensor(&mut dimensions)?;
        let memory = self.memory.clone();
        if versioned {
            let read_only = if self.memory.is_writable() { 0 } else { READ_ONLY };
            let managed = ManagedVersioned {
                version: Version { major: 1, minor: 0 },
                manager_ctx: std::ptr::null_mut(),
                deleter: Some(delete::<ManagedVersioned>),
                flags: read_only | if self.is_copied { IS_COPIED } else { 0 },
                tensor,
            };
            let export = Box::new(Export { managed, dimensions, _memory: memory });
            return capsule(py, export, VERSIONED_NAME, drop_versioned);
        }
        let manager_ctx = std::ptr::null_mut();
        let deleter = Some(delete::<Managed> as _);
        let managed = Managed { tensor, manager_ctx, deleter };
        let export = Box::new(Export { managed, dimensions, _memory: memory });
        capsule(py, export, NAME, drop_unversioned)
    }

    /// Shape, then strides in numbers.
    fn dimensions(&self) -> PyResult<Box<[i64]>> {
        let mut dimensions = Vec::with_capacity(2 * self.shape.len());
        for &side in self.shape {
            dimensions.push(i64::try_from(side)?);
        }
        let mut stride = 1i64;
        let mut strides = Vec::with_capacity(self.shape.len());
        for &side in dimensions.iter().rev() {
            strides.push(stride);
            stride = stride.saturating_mul(side.max(1));
        }
        if let (Some(first), Some(stride)) = (strides.last_mut(), self.row_stride) {
            *first = i64::try_from(stride)?;
        }
        dimensions.extend(strides.into_iter().rev());
        Ok(dimensions.into_boxed_slice())
    }

    fn tensor(&self, dimensions: &mut [i64]) -> PyResult<DlTensor> {
        let rank = self.shape.len();
        let (kind, id) = self.memory.device();
        let (shape, strides) = dimensions.split_at_mut(rank);
        Ok(DlTensor {
            data: self.memory.start.as_ptr().cast(),
            device: Device { kind, id },
            ndim: i32::try_from(rank)?,
            dtype: self.dtype,
            // They lie in the export's own allocation, which does not move with it.
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        })
    }
}

/// The consumer's way to say that it is through.
///
/// # Safety
/// `managed` is what `capsule` made of a box of `Export<M>`, and this is called once for it.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    // SAFETY: the caller vouches for the origin; `managed` is the first field of the `Export`, and
    // the pointer came from the whole of it.
    drop(unsafe { Box::from_raw(managed.cast::<Export<M>>()) });
}

/// Puts an export into a capsule, which from then on it belongs to.
fn capsule<'py, M>(
    py: Python<'py>,
    export: Box<Export<M>>,
    name: &'static CStr,
    destructor: ffi::PyCapsule_Destructor,
) -> PyResult<Bound<'py, PyCapsule>> {
    let export = NonNull::from(Box::leak(export));
    // SAFETY: the pointer stays valid until `delete` has it, which the consumer calls after
    // renaming the capsule, and the destructor of a capsule that nobody renamed; `name` is static.
    let capsule = unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, export.cast(), name, Some(destructor))
    };
    capsule.inspect_err(|_: &PyErr| {
        // SAFETY: there is no capsule, so nobody else has the box that was just leaked.
        drop(unsafe { Box::from_raw(export.as_ptr()) });
    })
}

/// # Safety
/// For the interpreter to call, with a capsule of [`NAME`] or a renamed one.
unsafe extern "C" fn drop_unversioned(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule that `capsule` made with this name.
    unsafe { drop_unconsumed::<Managed>(capsule, NAME) };
}

/// # Safety
/// For the interpreter to call, with a capsule of [`VERSIONED_NAME`] or a renamed one.
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter calls this with a capsule that `capsule` made with this name.
    unsafe { drop_unconsumed::<ManagedVersioned>(capsule, VERSIONED_NAME) };
}

/// Lets go of what is in a capsule that no consumer has taken: a consumer renames it.
///
/// # Safety
/// The capsule holds an `Export<M>` if it has `name`, and is about to be freed.
unsafe fn drop_unconsumed<M>(capsule: *mut ffi::PyObject, name: &CStr) {
    // SAFETY: `capsule` is a capsule, says the caller; a name is only compared.
    if unsafe { ffi::PyCapsule_IsValid(capsule, name.as_ptr()) } == 0 {
        return;
    }
    // SAFETY: it is valid under this name, checked above.
    let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, name.as_ptr()) };
    // SAFETY: nobody renamed the capsule, so nobody has called the deleter or will.
    unsafe { delete(managed.cast::<M>()) };
}
