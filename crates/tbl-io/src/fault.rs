//! Kind and place of every error of this crate.

use crate::convert::ConvertError;
use crate::error::ReadError;
use crate::kind::{ErrorKind, ErrorPlace};
use crate::list_error::ListDefect;
use crate::write_error::{MetadataDefect, WriteError};

impl ReadError {
    /// The party at fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Format { .. }
            | Self::Tar { .. }
            | Self::Compressed { .. }
            | Self::Images { .. }
            | Self::Checksum { .. }
            | Self::Limit { .. }
            | Self::LabelWithoutClass { .. }
            | Self::Label { .. }
            | Self::UnsafeObject { .. }
            | Self::ChangedWhileOpen { .. } => ErrorKind::Data,
            Self::List { source, .. } => source.kind(),
            Self::Rows { source, .. } => source.kind(),
            Self::Tokens { source, .. } => source.kind(),
            Self::NotRaw { .. }
            | Self::OtherClasses { .. }
            | Self::UnnamedLabels { .. }
            | Self::ClassFolderDepths { .. }
            | Self::NoStore { .. }
            | Self::NotMapped { .. } => ErrorKind::Setting,
            Self::SampleOutOfRange { .. } => ErrorKind::NotFound,
            Self::Io { .. }
            | Self::NotAFile { .. }
            | Self::NotAFolder { .. }
            | Self::ObjectChanged { .. }
            | Self::Remote { .. }
            | Self::Store { .. } => ErrorKind::System,
            Self::Sample { source, .. } => source.kind(),
        }
    }

    /// The place that the error is about.
    pub fn place(&self) -> ErrorPlace {
        let place = ErrorPlace { sample: self.sample_index(), ..ErrorPlace::at(self.location()) };
        match self {
            Self::Sample { key, source, .. } => {
                ErrorPlace { key: key.clone(), offset: source.place().offset, ..place }
            }
            Self::Format { offset, .. }
            | Self::Tar { offset, .. }
            | Self::Compressed { offset, .. }
            | Self::Images { offset, .. }
            | Self::Tokens { offset, .. }
            | Self::Checksum { offset, .. }
            | Self::Remote { offset, .. }
            | Self::ChangedWhileOpen { offset, .. } => {
                ErrorPlace { offset: Some(*offset), ..place }
            }
            Self::Rows { offset, source, .. } => {
                ErrorPlace { offset: source.has_offset().then_some(*offset), ..place }
            }
            Self::List { place: in_list, .. } => ErrorPlace { offset: in_list.offset, ..place },
            Self::Io { .. }
            | Self::NotAFile { .. }
            | Self::NotAFolder { .. }
            | Self::NotRaw { .. }
            | Self::OtherClasses { .. }
            | Self::SampleOutOfRange { .. }
            | Self::Limit { .. }
            | Self::LabelWithoutClass { .. }
            | Self::Label { .. }
            | Self::UnnamedLabels { .. }
            | Self::ClassFolderDepths { .. }
            | Self::ObjectChanged { .. }
            | Self::Store { .. }
            | Self::NoStore { .. }
            | Self::UnsafeObject { .. }
            | Self::NotMapped { .. } => place,
        }
    }
}

impl ListDefect {
    /// The party at fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoColumn { .. }
            | Self::NoImageColumn { .. }
            | Self::ImageColumns { .. }
            | Self::LabelCount { .. }
            | Self::ItemCount { .. }
            | Self::UnknownClass { .. }
            | Self::NoClasses
            | Self::Unread { .. } => ErrorKind::Setting,
            Self::NoHeader
            | Self::OpenQuote
            | Self::AfterQuote
            | Self::Ragged { .. }
            | Self::Json { .. }
            | Self::Twice { .. }
            | Self::ColumnName { .. }
            | Self::NoName
            | Self::Path { .. }
            | Self::Url { .. }
            | Self::Missing { .. }
            | Self::MixedLabels { .. }
            | Self::ReservedLabel { .. }
            | Self::Ambiguous { .. }
            | Self::SameStars { .. }
            | Self::Unpaired { .. }
            | Self::Unlabelled { .. }
            | Self::UnnamedCategory { .. } => ErrorKind::Data,
        }
    }
}

impl WriteError {
    /// The party at fault. A format that cannot hold the data is a setting.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } | Self::AfterFailure { .. } => ErrorKind::System,
            Self::Metadata { source: MetadataDefect::NoSample { .. }, .. } => ErrorKind::NotFound,
            Self::MemberName { .. }
            | Self::OtherFormat { .. }
            | Self::Sample { .. }
            | Self::TooManySamples { .. }
            | Self::UnlistedCategory { .. }
            | Self::Format { .. }
            | Self::Metadata { .. } => ErrorKind::Setting,
        }
    }

    /// The place that the error is about.
    pub fn place(&self) -> ErrorPlace {
        let (path, sample) = match self {
            Self::Sample { path, index, .. } => (path, Some(*index)),
            Self::Metadata { path, sample, .. } => (path, *sample),
            Self::Io { path, .. }
            | Self::MemberName { path, .. }
            | Self::OtherFormat { path, .. }
            | Self::TooManySamples { path, .. }
            | Self::UnlistedCategory { path, .. }
            | Self::Format { path, .. }
            | Self::AfterFailure { path } => (path, None),
        };
        ErrorPlace { sample, ..ErrorPlace::at(path) }
    }
}

impl ConvertError {
    /// The party at fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Read(error) | Self::Structure(error) => error.kind(),
            Self::Write(error) => error.kind(),
            Self::Prepare { .. } => ErrorKind::Data,
            Self::WorkerPanicked { .. } => ErrorKind::Internal,
            Self::WorkerNotStarted { .. } => ErrorKind::System,
            Self::Stopped => ErrorKind::Setting,
            Self::TooManySamples { .. } => ErrorKind::Limit,
        }
    }

    /// The place that the error is about.
    pub fn place(&self) -> ErrorPlace {
        match self {
            Self::Read(error) | Self::Structure(error) => error.place(),
            Self::Write(error) => error.place(),
            Self::Prepare { location, index, key, .. } => {
                ErrorPlace { sample: Some(*index), key: key.clone(), ..ErrorPlace::at(location) }
            }
            Self::WorkerPanicked { .. }
            | Self::WorkerNotStarted { .. }
            | Self::Stopped
            | Self::TooManySamples { .. } => ErrorPlace::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_sample_has_the_kind_of_its_cause_and_both_places() {
        let cut = ReadError::ChangedWhileOpen { location: "a.tbl".into(), offset: 64, expected: 9 };
        let error = cut.for_sample(3, Some(b"b.jpg"));
        assert_eq!(error.kind(), ErrorKind::Data);
        let place = ErrorPlace {
            sample: Some(3),
            key: Some(b"b.jpg".to_vec()),
            offset: Some(64),
            ..ErrorPlace::at("a.tbl")
        };
        assert_eq!(error.place(), place);
        let source = std::io::ErrorKind::PermissionDenied.into();
        let refused = ConvertError::from(ReadError::Io { location: "a.tbl".into(), source });
        assert_eq!((refused.kind(), refused.place()), (ErrorKind::System, ErrorPlace::at("a.tbl")));
    }
}
