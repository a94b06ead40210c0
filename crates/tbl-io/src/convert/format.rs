//! Files of formats that other crates write, such as Parquet.

use std::fmt;

use tbl_format::SampleFormat;

use super::error::{ConvertError, PackError};
use super::pack::{Pack, Sample, Sink, Written};
use super::{ConvertOptions, Destination, Selection, metadata};
use crate::draft::Draft;
use crate::metadata_json::count_own;
use crate::sample::Field;
use crate::writer::{NewSample, Unstored, WriteSummary};

/// A format of files of samples that another crate writes: the counterpart of
/// [`ContainerFormat`](crate::ContainerFormat).
///
/// [`Target::Other`](super::Target::Other) names it. Two formats are equal if their names are.
pub trait TargetFormat: Sync + fmt::Debug {
    /// The name of a file of this format, with its article: `a Parquet file`.
    fn name(&self) -> &'static str;

    /// Writes to a new file, which will have the samples of `selection`.
    ///
    /// # Errors
    /// [`ConvertError::Write`] if the file cannot be written, and what is wrong with a source.
    fn create(
        &self,
        selection: &Selection<'_>,
        draft: Draft,
        options: &ConvertOptions,
    ) -> Result<Box<dyn SampleWriter>, ConvertError>;
}

impl PartialEq for dyn TargetFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn TargetFormat {}

/// A file under construction. Dropping it before [`finish`](Self::finish) leaves no file.
pub trait SampleWriter {
    /// Appends a sample: the next one of the selection, with its label in the selection's class names.
    ///
    /// # Errors
    /// [`ConvertError::Write`] if the disk is full or the format cannot hold the sample.
    fn write(&mut self, sample: &NewSample<'_>) -> Result<(), ConvertError>;

    /// Completes the file and gives it its name. [`Unstored::metadata_blocks`] of the result is not
    /// looked at: no other format has a place for them.
    ///
    /// # Errors
    /// [`ConvertError::Write`].
    fn finish(self: Box<Self>) -> Result<WriteSummary, ConvertError>;
}

/// A file of another format under construction.
pub(super) struct FormatSink {
    format: &'static dyn TargetFormat,
    writer: Box<dyn SampleWriter>,
    metadata_blocks: u64,
}

/// A sample that waits for its turn, all but its bytes.
pub(super) struct Packed {
    format: SampleFormat,
    width: u32,
    height: u32,
    key: Option<Vec<u8>>,
    label: Option<i64>,
    fields: Vec<Field>,
    metadata_count: u64,
}

impl FormatSink {
    pub(super) fn create(
        format: &'static dyn TargetFormat,
        selection: &Selection<'_>,
        destination: Destination<'_>,
        options: &ConvertOptions,
    ) -> Result<Self, ConvertError> {
        let mut metadata_blocks = 0;
        metadata::of_files(selection, |_, _| {
            metadata_blocks += 1;
            Ok(())
        })?;
        let mut draft = destination.stores.create(destination.location, options.placement())?;
        draft.expect(destination.expected_bytes(selection));
        let writer = format.create(selection, draft, options)?;
        Ok(Self { format, writer, metadata_blocks })
    }
}

impl Sink for FormatSink {
    type Packer = FormatPacker;

    fn packer(&self) -> FormatPacker {
        FormatPacker { target: self.format.name() }
    }

    fn write(&mut self, _: u64, packed: &Packed, bytes: &[u8]) -> Result<(), ConvertError> {
        let Packed { format, width, height, ref key, label, ref fields, metadata_count } = *packed;
        self.metadata_blocks += metadata_count;
        let key = key.as_deref();
        let row_index = None;
        let metadata = &[];
        let sample =
            NewSample { bytes, format, width, height, key, label, fields, row_index, metadata };
        self.writer.write(&sample)
    }

    fn finish(self) -> Result<Written, ConvertError> {
        let summary = self.writer.finish()?;
        let unstored = Unstored { metadata_blocks: self.metadata_blocks, ..summary.unstored };
        Ok(Written {
            file_bytes: summary.bytes,
            compressed_samples: summary.compressed_samples,
            row_indexes: summary.row_indexes,
            unstored,
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct FormatPacker {
    /// The name of the format.
    target: &'static str,
}

impl Pack for FormatPacker {
    type Packed = Packed;

    fn keeps_compressed(&self) -> bool {
        false
    }

    fn keeps_row_indexes(&self) -> bool {
        false
    }

    fn pack(&self, sample: Sample<'_>) -> Result<Packed, PackError> {
        let Sample { prepared, key, label, fields, metadata, .. } = sample;
        if prepared.format == SampleFormat::RawU8 {
            return Err(PackError::RawPixels { target: self.target });
        }
        let metadata_count = count_own(&metadata, key, label);
        Ok(Packed {
            format: prepared.format,
            width: prepared.width,
            height: prepared.height,
            key: key.map(<[u8]>::to_vec),
            label,
            fields,
            metadata_count,
        })
    }

    fn held_bytes(packed: &Packed) -> u64 {
        packed.fields.iter().map(|field| field.bytes.len() as u64).sum()
    }
}
