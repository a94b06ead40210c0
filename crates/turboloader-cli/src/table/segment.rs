//! A TBF segment in a mapped file.

use std::path::{Path, PathBuf};

use tbf_format::{Dtype, FileHeader, FormatError, Key, Oddity, Region, Segment, UnpackOptions};
use tbl_io::{Mapped, Source};

use super::failure::TableFailure;
use crate::args::ItemName;
use crate::failure::Failure;

/// A file that holds a segment.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    path: PathBuf,
    mapped: Mapped,
}

impl SegmentFile {
    /// Maps the file.
    pub(crate) fn open(path: &Path, source: &Source) -> Result<Self, Failure> {
        let mapped = Mapped::new(source, 0, source.len())?;
        Ok(Self { path: path.to_owned(), mapped })
    }

    /// The path given to [`open`](Self::open).
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes of the file.
    pub(crate) fn bytes(&self) -> Result<&[u8], Failure> {
        Ok(self.mapped.slice(0, self.mapped.len())?)
    }

    /// The segment, of which nothing is unpacked.
    pub(crate) fn segment(&self) -> Result<Segment<'_>, Failure> {
        Segment::open(self.bytes()?).map_err(|error| self.failure(error))
    }

    /// The row that a name stands for. Ids take the filter and the index, where there are some.
    pub(crate) fn row(&self, segment: &Segment<'_>, name: ItemName) -> Result<u64, Failure> {
        let node_count = segment.node_count();
        match name {
            ItemName::Number(row) if row < node_count => Ok(row),
            ItemName::Number(row) => {
                Err(TableFailure::NoRow { path: self.path.clone(), row, count: node_count }.into())
            }
            ItemName::Id(id) => {
                let found = segment.find(id.as_bytes()).map_err(|error| self.failure(error))?;
                let path = self.path.clone();
                found.map(|row| row as u64).ok_or(TableFailure::NoNode { path, id }.into())
            }
        }
    }

    /// Makes regions readable, where the segment has them.
    pub(crate) fn unpack(
        &self,
        segment: &mut Segment<'_>,
        regions: &[Region],
        key: Option<&Key>,
    ) -> Result<(), Failure> {
        let options = UnpackOptions { key, ..UnpackOptions::default() };
        for &region in regions {
            if segment.has(region) {
                segment.unpack(region, &options).map_err(|error| self.failure(error))?;
            }
        }
        Ok(())
    }

    /// The error of reading the segment, and its offset.
    pub(crate) fn failure(&self, source: FormatError) -> Failure {
        let header = self.bytes().ok().and_then(|bytes| FileHeader::parse(bytes).ok().copied());
        let place = header.and_then(|header| place(&source, &header));
        TableFailure::Segment { path: self.path.clone(), place, source }.into()
    }

    /// Refuses what was read when the file turns out to have been cut short meanwhile.
    pub(crate) fn check_unchanged(&self) -> Result<(), Failure> {
        self.bytes().map(|_| ())
    }
}

/// The region at fault and where it starts, when an error counts from there.
pub(crate) fn place(error: &FormatError, header: &FileHeader) -> Option<(Region, u64)> {
    let is_absolute = matches!(
        error,
        FormatError::Misaligned { .. }
            | FormatError::BeyondEnd { .. }
            | FormatError::Overlap { .. }
    );
    let region = error.region().filter(|_| !is_absolute)?;
    let offset = header.offset(region);
    (offset > 0).then_some((region, offset))
}

/// The type of components by its name in the format's description.
pub(crate) fn dtype_name(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F32 => "f32",
        Dtype::F16 => "f16",
        Dtype::Bf16 => "bf16",
        Dtype::Int8 => "int8",
        _ => "other",
    }
}

/// An oddity of a segment, as a sentence.
pub(crate) fn oddity_text(oddity: &Oddity) -> String {
    match *oddity {
        Oddity::ReferenceDialect => {
            "the reference's dialect: it has no segment id, creation time or flags".to_owned()
        }
        Oddity::NoHeaderChecksum => {
            "the header has no checksum, so damage of it may go unnoticed".to_owned()
        }
        Oddity::EdgeCount { stated, stored } => {
            format!("the header counts {stated} edges, {stored} are stored")
        }
        Oddity::EdgeTargets { count, edge, target } => format!(
            "edges that lead to nodes that are not there: {count}, the first: edge {edge} to node {target}"
        ),
        Oddity::TrailingBytes { bytes } => format!("{bytes} bytes after the last region"),
        Oddity::NotUnpacked { region } => {
            format!("{region} is encrypted and was not checked: pass --key-file")
        }
        _ => format!("{oddity:?}"),
    }
}
