//! The bytes of a slab: of the system, or of something else.

use std::cell::UnsafeCell;
use std::ptr::NonNull;

/// Memory for a slab that something else has allocated, such as memory that a device copies from.
///
/// # Safety
/// `start` is the same each time, and followed by `bytes` initialised bytes, the same number each
/// time. While the value exists, nobody reads or writes them but through `start`. They lie in an
/// allocation that `UnsafeCell`s may be in: writes through copies of the pointer are allowed.
pub unsafe trait Backing: Send + Sync {
    /// The address of the first byte.
    fn start(&self) -> NonNull<u8>;

    /// The number of bytes.
    fn bytes(&self) -> usize;
}

/// Bytes of a slab and a line more, so that aligned ones are among them.
pub(super) enum Memory {
    /// Of the system.
    Own(Box<[UnsafeCell<u8>]>),
    Backed(Box<dyn Backing>),
}

impl Memory {
    pub(super) fn start(&self) -> *mut u8 {
        match self {
            Self::Own(memory) => memory.as_ptr().cast::<u8>().cast_mut(),
            Self::Backed(memory) => memory.start().as_ptr(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Own(memory) => memory.len(),
            Self::Backed(memory) => memory.bytes(),
        }
    }
}
