//! The memory that batches arrive in, of the host or of a device: the settings.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use tl_cuda::{Device, DeviceReason};
use tl_decode::PartStage;

/// The memory that batches arrive in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// Memory of the host. No driver is opened.
    #[default]
    Host,
    /// Memory of the host that devices copy from without a detour. It is filled again only after the
    /// work that the legacy stream has when the last clone of the batch is dropped, and that of streams
    /// that [`Batch::pinned`](crate::Batch::pinned) was told.
    Pinned(DeviceOptions),
    /// A device, and memory of the host. The copy begins when a batch is complete, nobody waits for
    /// it, and [`Batch::device`](crate::Batch::device) orders readers after it.
    Device(DeviceOptions),
}

/// The part of JPEG decoding that a device does. Pixels do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceDecode {
    /// None.
    Never,
    /// All of it where there is a row index of the file, stored with it or made in an epoch before
    /// ([`DeviceOptions::row_indexes`]); otherwise as [`Coefficients`](Self::Coefficients). With a
    /// [`memory_budget`](crate::LoaderConfig::memory_budget) it is [`Never`](Self::Never).
    #[default]
    Auto,
    /// All but entropy decoding.
    Coefficients,
    /// All of it, for files with a row index; the host decodes the others.
    RowIndex,
}

impl DeviceDecode {
    /// The stage at which the host ends with a file; none if it decodes it.
    pub(crate) fn stage(self, has_index: bool) -> Option<PartStage> {
        match (self, has_index) {
            (Self::Never, _) | (Self::RowIndex, false) => None,
            (Self::Auto | Self::RowIndex, true) => Some(PartStage::EntropyRows),
            (Self::Auto, false) | (Self::Coefficients, _) => Some(PartStage::Coefficients),
        }
    }
}

/// The device of a loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// The number of the device among those that the process sees. Default that of the first set one
    /// of the variables `LOCAL_RANK` (torchrun), `HOROVOD_LOCAL_RANK`,
    /// `OMPI_COMM_WORLD_LOCAL_RANK` (Open MPI), `MPI_LOCALRANKID` (MPICH, Intel MPI) and
    /// `SLURM_LOCALID`, or 0 if the process sees one device, or none of them is set.
    pub ordinal: Option<u32>,
    /// Whether a device that cannot be used is an error. Default false: batches arrive in memory of
    /// the host, and a note has the reason.
    pub required: bool,
    /// The part of JPEG decoding that the device does.
    pub decode: DeviceDecode,
    /// The bytes of the host's memory for row indexes of JPEG files that are stored without one, about
    /// 500 a photograph. They are made when [`DeviceDecode::Auto`] decodes a file first. Default 1 GiB,
    /// and none with a [`memory_budget`](crate::LoaderConfig::memory_budget).
    pub row_indexes: Option<u64>,
    /// The bytes of the device's memory that batches may take. Default all that is free.
    pub memory: Option<u64>,
    /// The driver's library. Default `libcuda.so.1`, where the system's loader finds it.
    pub library: Option<PathBuf>,
    /// The library of nvJPEG, for recipes that decode with it. Default that of NVIDIA's wheel in
    /// `packages`, or where the system's loader finds it.
    pub nvjpeg: Option<PathBuf>,
    /// The folder of Python's packages, in which wheels of NVIDIA's have their libraries.
    pub packages: Option<PathBuf>,
}

/// The variables in which launchers tell a process its number on its machine. Those of a launcher
/// that another one starts come first.
const LOCAL_RANKS: [&str; 5] = [
    "LOCAL_RANK",
    "HOROVOD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
];

/// The number that the first variable that is set has; `None` without any.
fn local_rank(value: impl Fn(&str) -> Option<OsString>) -> Result<Option<u32>, DeviceReason> {
    let set = LOCAL_RANKS.into_iter().find_map(|variable| Some((variable, value(variable)?)));
    let Some((variable, rank)) = set else { return Ok(None) };
    let number = rank.to_str().and_then(|rank| rank.parse().ok());
    let value = || rank.to_string_lossy().into_owned();
    number.map(Some).ok_or_else(|| DeviceReason::LocalRank { variable, value: value() })
}

impl DeviceOptions {
    /// Opens the device.
    pub(crate) fn open(&self) -> Result<Device, DeviceReason> {
        let open = |ordinal| match &self.library {
            Some(library) => Device::open_with(library, ordinal),
            None => Device::open(ordinal),
        };
        let ordinal = match self.ordinal {
            Some(ordinal) => ordinal,
            None => local_rank(|name| env::var_os(name))?.unwrap_or(0),
        };
        match (self.ordinal, open(ordinal)) {
            // Launchers that show each process its own device number it 0.
            (None, Err(DeviceReason::NoDevice { devices: 1, .. })) => open(0),
            (_, opened) => opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_that_of_the_innermost_launcher() {
        let value = |set: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = set.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| OsString::from(value))
            }
        };
        assert_eq!(local_rank(value(&[])).unwrap(), None);
        for variable in LOCAL_RANKS {
            let rank = local_rank(|name| (name == variable).then(|| "3".into())).unwrap();
            assert_eq!(rank, Some(3), "{variable}");
        }
        let nested = value(&[("SLURM_LOCALID", "0"), ("LOCAL_RANK", "5")]);
        assert_eq!(local_rank(nested).unwrap(), Some(5));
        let error = local_rank(value(&[("SLURM_LOCALID", "first")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "SLURM_LOCALID is \"first\", expected the number of a device"
        );
    }
}
