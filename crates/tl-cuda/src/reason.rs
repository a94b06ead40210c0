//! Reasons for which a device is not used.

use std::fmt;

/// A version of CUDA, such as 12.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CudaVersion {
    /// The number before the point.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl CudaVersion {
    /// The oldest that loads the kernels: PTX 7.0.
    pub const OLDEST: Self = Self { major: 11, minor: 0 };

    /// The version in the form that the driver reports: 12040 for 12.4.
    pub(crate) fn of_number(number: u32) -> Self {
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The reason why a device cannot be used, or not for everything that was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceReason {
    /// The driver's library is not installed.
    #[error("no NVIDIA driver: {error}")]
    NoDriver {
        /// The message of the system.
        error: String,
    },
    /// The driver is older than the kernels.
    #[error(
        "the NVIDIA driver supports CUDA {found}, and {need} is the oldest that works: update it"
    )]
    DriverTooOld {
        /// The newest CUDA that the driver supports.
        found: CudaVersion,
        /// The oldest that is needed.
        need: CudaVersion,
    },
    /// The process sees no device with this number.
    #[error(
        "no CUDA device {ordinal}: this process sees {devices} (see CUDA_VISIBLE_DEVICES and \
         LOCAL_RANK)"
    )]
    NoDevice {
        /// The device that was asked for.
        ordinal: u32,
        /// How many the process sees.
        devices: u32,
    },
    /// The variable of a launcher, such as `LOCAL_RANK`, has no number of a device.
    #[error("{variable} is {value:?}, expected the number of a device")]
    LocalRank {
        /// Its name.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The memory of the device is exhausted, or the part of it that may be used.
    #[error("out of device memory: {need} bytes are needed, and {free} are free")]
    OutOfMemory {
        /// Bytes of the allocation.
        need: u64,
        /// Bytes that are free, or that the limit leaves.
        free: u64,
    },
    /// The library lacks a function, or a call of it failed.
    #[error("libcuda.so.1: {function}: {error}")]
    Library {
        /// The function.
        function: &'static str,
        /// The name of the error, or the message of the system.
        error: String,
    },
    /// The library of nvJPEG is not installed.
    #[error("no nvJPEG: {error} (pip install 'turboloader-rs[nvjpeg]')")]
    NoNvJpeg {
        /// The message of the system.
        error: String,
    },
    /// The library of nvJPEG lacks a function, or a call of it failed.
    #[error("nvJPEG: {function}: {error}")]
    NvJpeg {
        /// The function.
        function: &'static str,
        /// The name of the error.
        error: String,
    },
    /// nvJPEG does not decode a file that its decode mode gives to it.
    #[error("sample {sample}: nvJPEG: {function}: {error}")]
    NvJpegFile {
        /// The number of the sample.
        sample: u64,
        /// The function.
        function: &'static str,
        /// The name of the error.
        error: String,
    },
    /// The process is a fork of the one that uses the device, and CUDA does not work in it.
    #[error("this process was forked from one that uses CUDA: start it with `spawn` instead")]
    Forked,
    /// The numbers that random erasing puts into a batch are too many.
    #[error(
        "the numbers that are erased in a batch have {need} bytes, and {limit} are the most: make \
         batches smaller"
    )]
    Erasures {
        /// Bytes of the numbers.
        need: u64,
        /// The most that a batch may have.
        limit: u64,
    },
    /// The row index of a sample is not that of its file.
    #[error("the row index of sample {sample} is not that of its file: make it again")]
    RowIndex {
        /// The number of the sample.
        sample: u64,
    },
    /// The recipe has an operation that runs on the CPU.
    #[error("`{op}` runs on the CPU")]
    Recipe {
        /// The first such operation, or property of the batch.
        op: &'static str,
    },
}
