//! The driver of a machine and its devices, for diagnoses.

use tl_handoff::sync::Arc;

use crate::buffers::BufferLimits;
use crate::driver::{Device, MemoryInfo};
use crate::library::Functions;
use crate::reason::{CudaVersion, DeviceReason};
use crate::uploader::{HostBytes, Uploader};

/// Bytes of a copy that is timed, and how many there are: some milliseconds.
const COPIED_BYTES: usize = 32 << 20;
const COPIES: usize = 8;

/// The driver of a machine, and the devices that the process sees.
#[derive(Clone, Debug)]
pub struct DeviceSurvey {
    /// The newest CUDA that the driver supports.
    pub version: CudaVersion,
    /// Each device, or the reason why it cannot be used, by number.
    pub devices: Vec<Result<DeviceFigures, DeviceReason>>,
}

/// A device and its rates.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFigures {
    /// Its name.
    pub name: String,
    /// Its memory.
    pub memory: MemoryInfo,
    /// Bytes of pinned memory that are copied to it in a second.
    pub bytes_per_second: f64,
}

impl DeviceSurvey {
    /// Opens the devices of the system's driver, and times copies to each.
    ///
    /// # Errors
    /// The reason why the process cannot use the driver; it sees no device then.
    pub fn new() -> Result<Self, DeviceReason> {
        let functions = Functions::of_system()?;
        let version = functions.version()?;
        let devices = (0..functions.devices()?).map(|ordinal| {
            let device = Device::open(ordinal)?;
            let name = device.name().to_owned();
            let memory = device.memory()?;
            Ok(DeviceFigures { name, memory, bytes_per_second: copy_rate(&device)? })
        });
        Ok(Self { version, devices: devices.collect() })
    }
}

/// Bytes a second, from the end of the first copy to that of the last.
fn copy_rate(device: &Device) -> Result<f64, DeviceReason> {
    let uploader = Uploader::new(device, BufferLimits::default())?;
    let source: Arc<dyn HostBytes> = Arc::new(device.pinned(COPIED_BYTES)?);
    let copy = || uploader.upload(Arc::clone(&source), None, &[], &[]);
    let first = copy()?;
    let mut last = copy()?;
    for _ in 1..COPIES {
        last = copy()?;
    }
    last.ready().synchronize()?;
    let seconds = first.ready().time_until(last.ready())?.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let bytes = (COPIED_BYTES * COPIES) as f64;
    Ok(if seconds > 0.0 { bytes / seconds } else { 0.0 })
}
