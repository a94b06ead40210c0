//! The GPUs of the machine, or the reason why there are none to use.

use std::fmt;

use serde::Serialize;
use tl_pipeline::{DeviceFigures, DeviceReason, DeviceSurvey};

use crate::figures::rounded;

const GIB: f64 = 1_073_741_824.0;

/// The driver and its devices.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Devices {
    /// The newest CUDA that the driver supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<String>,
    devices: Vec<DeviceEntry>,
    /// The reason why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// A device, or the reason why it cannot be used.
#[derive(Clone, Debug, Serialize)]
struct DeviceEntry {
    ordinal: usize,
    #[serde(flatten)]
    state: DeviceState,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum DeviceState {
    Usable { name: String, free_gib: f64, total_gib: f64, copy_gb_per_s: f64 },
    Unusable { error: String },
}

impl Devices {
    /// Opens the devices and times copies to them.
    pub(super) fn look() -> Self {
        Self::of(DeviceSurvey::new())
    }

    fn of(survey: Result<DeviceSurvey, DeviceReason>) -> Self {
        let survey = match survey {
            Ok(survey) => survey,
            Err(reason) => {
                return Self { cuda: None, devices: Vec::new(), error: Some(reason.to_string()) };
            }
        };
        let devices = survey.devices.into_iter().enumerate().map(|(ordinal, found)| {
            let state = match found {
                Ok(figures) => DeviceState::of(figures),
                Err(reason) => DeviceState::Unusable { error: reason.to_string() },
            };
            DeviceEntry { ordinal, state }
        });
        Self { cuda: Some(survey.version.to_string()), devices: devices.collect(), error: None }
    }
}

impl DeviceState {
    fn of(figures: DeviceFigures) -> Self {
        let DeviceFigures { name, memory, bytes_per_second } = figures;
        #[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
        let gib = |bytes: u64| rounded(bytes as f64 / GIB, 1);
        let copy_gb_per_s = rounded(bytes_per_second / 1e9, 1);
        Self::Usable {
            name,
            free_gib: gib(memory.free),
            total_gib: gib(memory.total),
            copy_gb_per_s,
        }
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuda, devices, error } = self;
        if let Some(error) = error {
            return write!(f, "none: {error}");
        }
        if let Some(cuda) = cuda {
            write!(f, "CUDA {cuda}")?;
        }
        for DeviceEntry { ordinal, state } in devices {
            match state {
                DeviceState::Usable { name, free_gib, total_gib, copy_gb_per_s } => write!(
                    f,
                    "\n          cuda:{ordinal} {name}, {free_gib:.1} of {total_gib:.1} GiB free, \
                     copies of pinned memory {copy_gb_per_s:.1} GB/s"
                )?,
                DeviceState::Unusable { error } => {
                    write!(f, "\n          cuda:{ordinal} cannot be used: {error}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tl_pipeline::{CudaVersion, MemoryInfo};

    use super::*;

    #[test]
    fn each_device_has_a_line() {
        let memory = MemoryInfo { free: 3 << 30, total: 8 << 30 };
        let usable = DeviceFigures { name: "GPU".to_owned(), memory, bytes_per_second: 25.04e9 };
        let full = DeviceReason::OutOfMemory { need: 5, free: 4 };
        let devices = Devices::of(Ok(DeviceSurvey {
            version: CudaVersion { major: 12, minor: 4 },
            devices: vec![Ok(usable), Err(full)],
        }));
        assert_eq!(
            devices.to_string(),
            "CUDA 12.4\n          cuda:0 GPU, 3.0 of 8.0 GiB free, copies of pinned memory 25.0 GB/s\n\
             \x20         cuda:1 cannot be used: out of device memory: 5 bytes are needed, and 4 are free"
        );
        let json = serde_json::to_value(&devices).unwrap();
        assert_eq!(json["cuda"], "12.4");
        assert_eq!(
            (&json["devices"][0]["name"], &json["devices"][1]["ordinal"]),
            (&"GPU".into(), &1.into())
        );
        let none = Devices::of(Err(DeviceReason::NoDriver { error: "not found".to_owned() }));
        assert_eq!(none.to_string(), "none: no NVIDIA driver: not found");
    }
}
