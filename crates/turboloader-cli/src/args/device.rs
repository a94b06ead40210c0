//! The name of a device.

use std::str::FromStr;

use tl_pipeline::{Delivery, DeviceOptions};

/// A CUDA device, as PyTorch names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceName {
    /// The number in the name, if it has one.
    ordinal: Option<u32>,
}

/// Text that is not a [`DeviceName`].
#[derive(Debug, thiserror::Error)]
#[error("expected cuda, or cuda:N with the number of a device")]
pub(crate) struct NotADevice;

impl DeviceName {
    /// The delivery of batches to the device.
    pub(crate) fn delivery(self) -> Delivery {
        // Figures of the host in place of the device's would mislead.
        let required = true;
        Delivery::Device(DeviceOptions {
            ordinal: self.ordinal,
            required,
            ..DeviceOptions::default()
        })
    }
}

impl FromStr for DeviceName {
    type Err = NotADevice;

    fn from_str(text: &str) -> Result<Self, NotADevice> {
        let number = text.strip_prefix("cuda").ok_or(NotADevice)?;
        if number.is_empty() {
            return Ok(Self { ordinal: None });
        }
        let number = number.strip_prefix(':').filter(|number| !number.starts_with('+'));
        let ordinal = number.and_then(|number| number.parse().ok()).ok_or(NotADevice)?;
        Ok(Self { ordinal: Some(ordinal) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_the_name_that_pytorch_gives_it() {
        assert_eq!("cuda".parse::<DeviceName>().unwrap(), DeviceName { ordinal: None });
        assert_eq!("cuda:3".parse::<DeviceName>().unwrap(), DeviceName { ordinal: Some(3) });
        for wrong in ["", "cpu", "cuda:", "cuda3", "cuda:x", "cuda:+1", "cuda:-1", "CUDA"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
