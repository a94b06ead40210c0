//! Metadata of a TBL file, counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tbl_format::metadata::MetadataType;
use tbl_format::v1;
use tbl_io::MetadataTotals;

/// Metadata blocks by type.
#[derive(Debug, Default, Serialize)]
pub(super) struct MetadataFacts {
    /// Blocks of samples.
    samples: BTreeMap<String, u64>,
    /// Blocks of the whole file.
    file: BTreeMap<String, u64>,
    /// Blocks of samples that do not exist.
    without_sample: u64,
    /// Blocks of the whole file, in the form of a later version.
    later_version: u64,
}

impl MetadataFacts {
    /// Whether the file has no block.
    pub(super) fn is_empty(&self) -> bool {
        let Self { samples, file, without_sample, later_version } = self;
        samples.is_empty() && file.is_empty() && without_sample + later_version == 0
    }
}

impl From<MetadataTotals> for MetadataFacts {
    fn from(totals: MetadataTotals) -> Self {
        let MetadataTotals { samples, file, without_sample, later_version } = totals;
        let named = |counts: Vec<(MetadataType, u64)>| {
            counts.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect()
        };
        Self { samples: named(samples), file: named(file), without_sample, later_version }
    }
}

impl fmt::Display for MetadataFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |counts: &BTreeMap<String, u64>, of: &str| -> Vec<String> {
            counts.iter().map(|(kind, count)| format!("{count} {kind} of {of}")).collect()
        };
        let mut parts = counted(&self.samples, "samples");
        parts.extend(counted(&self.file, "the file"));
        if self.without_sample > 0 {
            parts.push(format!("{} of samples that do not exist", self.without_sample));
        }
        if self.later_version > 0 {
            parts.push(format!("{} of a later version", self.later_version));
        }
        f.write_str(&parts.join(", "))
    }
}

/// The application's fields in a TBL version 1 header.
#[derive(Debug, Serialize)]
pub(super) struct CustomMetadata {
    creation_timestamp: u64,
    dataset_version: u32,
    custom_flags: u32,
}

impl From<v1::CustomMetadata> for CustomMetadata {
    fn from(custom: v1::CustomMetadata) -> Self {
        let v1::CustomMetadata { creation_timestamp, dataset_version, custom_flags } = custom;
        Self { creation_timestamp, dataset_version, custom_flags }
    }
}

impl fmt::Display for CustomMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { creation_timestamp, dataset_version, custom_flags } = self;
        write!(
            f,
            "creation timestamp {creation_timestamp}, data set version {dataset_version}, custom \
             flags {custom_flags:#010x}"
        )
    }
}
