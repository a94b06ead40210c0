//! The conversion of pixels on a device: to floats, halves or planes, by tables.
#![expect(unsafe_code, reason = "launches of kernels; docs/safety.md")]

use std::fmt;

use tl_handoff::sync::Arc;
use tl_simd::Level;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};

use crate::driver::{BLOCK, Device, DeviceMemory, Kernel, Module, Stream};
use crate::erasures::Gathering;
use crate::reason::DeviceReason;

/// Samples of a pixel.
pub(crate) const CHANNELS: usize = 3;

/// Values of a sample.
const VALUES: usize = 256;

/// Bytes that a thread writes at once: those of a `GROUP` of `kernels.cu`.
const GROUP_BYTES: usize = 16;

/// Rows of a grid, at most.
const MAX_ROWS: u32 = 65_535;

/// Numbers that one launch converts where images do not matter: a multiple of all groups and of 3,
/// with which positions fit 32 bits.
const MAX_NUMBERS: usize = 24 << 26;

/// The argument of the kernels: `Convert` of `kernels.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Arguments {
    source: u64,
    target: u64,
    table: u64,
    count: u32,
}

/// The argument of the kernels that erase: `Erase` of `kernels.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct EraseArguments {
    rectangles: u64,
    numbers: u64,
    target: u64,
    width: u32,
    height: u32,
    is_planar: u32,
}

/// Converts batches of RGB pixels on a device. The results have the bits of
/// [`ImageWriter`], which has computed the number of every sample: the device computes none.
pub struct Conversion {
    dtype: Dtype,
    layout: Layout,
    table: DeviceMemory,
    kernel: Kernel,
    erase: Kernel,
    /// Has the kernels.
    _module: Arc<Module>,
}

impl Conversion {
    /// A conversion to numbers of this type and order, normalised by `table` if they are floats.
    ///
    /// # Errors
    /// [`DeviceReason::Recipe`] for numbers of 16 bits and for interleaved 8-bit ones, which are what
    /// pixels are; [`DeviceReason::OutOfMemory`] and failed calls of the driver.
    pub fn new(
        device: &Device,
        dtype: Dtype,
        layout: Layout,
        table: &Table,
    ) -> Result<Self, DeviceReason> {
        let name = match (dtype, layout) {
            (Dtype::U8, Layout::Chw) => c"planar_8",
            (Dtype::F16 | Dtype::Bf16, Layout::Chw) => c"planar_16",
            (Dtype::F32, Layout::Chw) => c"planar_32",
            (Dtype::F16 | Dtype::Bf16, Layout::Hwc) => c"packed_16",
            (Dtype::F32, Layout::Hwc) => c"packed_32",
            (Dtype::U8, Layout::Hwc) => {
                return Err(DeviceReason::Recipe { op: "interleaved 8-bit pixels" });
            }
            (Dtype::U16, _) => return Err(DeviceReason::Recipe { op: "pixels of 16 bits" }),
        };
        // The planes of an image that has every sample once are the table.
        let ramp: Vec<u8> = (0..=u8::MAX).flat_map(|sample| [sample; CHANNELS]).collect();
        let mut numbers = vec![0; VALUES * CHANNELS * dtype.bytes()];
        let format = PixelFormat { dtype, layout: Layout::Chw, flip: false };
        ImageWriter::new(&mut numbers, VALUES, 1, format, table).write_row(Level::Scalar, 0, &ramp);

        let module = device.kernels()?;
        let kernel = module.kernel(name)?;
        let erase = module.kernel(match dtype {
            Dtype::U8 => c"erase_8",
            Dtype::F16 | Dtype::Bf16 | Dtype::U16 => c"erase_16",
            Dtype::F32 => c"erase_32",
        })?;
        let table = device.allocate(numbers.len())?;
        let stream = device.stream()?;
        // SAFETY: the numbers and the table live until the stream has come so far, two lines below.
        let copied = unsafe { stream.copy_to_device(&numbers, &table, 0) };
        if let Err(reason) = copied.and_then(|()| stream.synchronize()) {
            std::mem::forget(numbers);
            return Err(reason);
        }
        Ok(Self { dtype, layout, table, kernel, erase, _module: module })
    }

    /// The type of the numbers.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Their order.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Enqueues the conversion of `images` images of `pixels` pixels each.
    ///
    /// # Safety
    /// Until the stream has come so far, source, target and the conversion live, and nobody else
    /// writes there.
    ///
    /// # Panics
    /// When one of them has no room for so many.
    pub(crate) unsafe fn enqueue(
        &self,
        stream: &Stream,
        source: &DeviceMemory,
        target: &DeviceMemory,
        images: usize,
        pixels: usize,
    ) -> Result<(), DeviceReason> {
        let image = pixels.checked_mul(CHANNELS).filter(|numbers| *numbers <= MAX_NUMBERS);
        let image = image.expect("an image has at most a billion numbers");
        let numbers = image.checked_mul(images);
        let bytes = numbers.and_then(|numbers| numbers.checked_mul(self.dtype.bytes()));
        assert!(numbers.is_some_and(|numbers| numbers <= source.bytes), "{images} images");
        assert!(bytes.is_some_and(|bytes| bytes <= target.bytes), "{images} images");
        let numbers = images * image;
        let part = |first: usize, count: usize| Arguments {
            source: source.address + first as u64,
            target: target.address + (first * self.dtype.bytes()) as u64,
            table: self.table.address,
            count: u32::try_from(count).expect("limited above"),
        };
        let group = GROUP_BYTES / self.dtype.bytes();
        let threads = |count: usize| u32::try_from(count.div_ceil(group)).expect("limited above");
        match self.layout {
            Layout::Chw => {
                for first in (0..images).step_by(MAX_ROWS as usize) {
                    let rows = (images - first).min(MAX_ROWS as usize);
                    let rows = u32::try_from(rows).expect("limited above");
                    let arguments = part(first * image, pixels);
                    // SAFETY: the kernel takes such an argument; `rows` images from `first` on lie in
                    // both memories, which were checked above, and the caller vouches for the rest.
                    unsafe { stream.launch(self.kernel, threads(pixels), rows, BLOCK, arguments) }?;
                }
            }
            Layout::Hwc => {
                for first in (0..numbers).step_by(MAX_NUMBERS) {
                    let count = (numbers - first).min(MAX_NUMBERS);
                    let arguments = part(first, count);
                    // SAFETY: as above, for `count` numbers from `first` on.
                    unsafe { stream.launch(self.kernel, threads(count), 1, BLOCK, arguments) }?;
                }
            }
        }
        Ok(())
    }
}

impl Conversion {
    /// Enqueues the erasing of rectangles in the images of `size` in `target`. `copy` has them as
    /// [`Gathering::write`](crate::erasures::Gathering::write) has written them.
    ///
    /// # Safety
    /// The images of the rectangles are in `target`. Until the stream has come so far, both memories
    /// and the conversion live, and nobody else writes there.
    pub(crate) unsafe fn erase(
        &self,
        stream: &Stream,
        copy: &DeviceMemory,
        gathering: &Gathering<'_>,
        target: &DeviceMemory,
        size: (u32, u32),
    ) -> Result<(), DeviceReason> {
        let (width, height) = size;
        for rank in &gathering.ranks {
            for first in (0..rank.count).step_by(MAX_ROWS as usize) {
                let count = (rank.count - first).min(MAX_ROWS);
                let argument = EraseArguments {
                    rectangles: copy.address + gathering.place(rank, first) as u64,
                    numbers: copy.address + gathering.numbers as u64,
                    target: target.address,
                    width,
                    height,
                    is_planar: (self.layout == Layout::Chw).into(),
                };
                // SAFETY: the kernel takes such an argument. The rectangles lie in images of this
                // size, checked by `Gathering::new`; the caller vouches for the rest.
                unsafe { stream.launch(self.erase, rank.threads, count, BLOCK, argument) }?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversion")
            .field("dtype", &self.dtype)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
