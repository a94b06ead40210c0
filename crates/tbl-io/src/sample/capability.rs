//! Optional features of sources in addition to [`SampleSource`]: each a trait object that the
//! source
//! hands out, or does not.

use std::any::Any;
use std::fmt;
use std::ops::{ControlFlow, Range};

use tbl_format::v2::Codec;

use super::{Field, SampleName, SampleSource, StoredBytes};
use crate::error::ReadError;
use crate::source::Source;

/// Access to the bytes of samples as they are stored, for callers that read them by other means than
/// [`SampleSource::read_into`].
pub trait StoredSamples {
    /// The location of the stored bytes of sample `index`, for a caller that reads them by other
    /// means
    /// and makes the sample of them with [`unpack`](Self::unpack): together that is
    /// [`read_into`](SampleSource::read_into). `None` where `read_into` is the only way.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry), and a size beyond the reader's limits.
    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError>;

    /// The file or object that has the stored bytes of all samples, if they are in one.
    /// [`stored`](Self::stored) then opens nothing.
    fn source(&self) -> Option<&Source> {
        None
    }

    /// Whether the [background reads](Source::background) of the sources of stored bytes can bring all
    /// samples. [`stored`](Self::stored) then sends no request.
    fn in_background(&self) -> bool {
        self.source().is_some_and(|source| source.background().is_some())
    }

    /// Makes sample `index` of its [`stored`](Self::stored) bytes, in place: decompresses them where
    /// they are compressed, and checks the checksums that the container has. The default is for
    /// containers without either.
    ///
    /// # Errors
    /// As for [`read_into`](SampleSource::read_into).
    fn unpack(&self, _index: u64, _bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        Ok(())
    }

    /// The stored bytes of sample `index` where they lie in a mapping of the file, without copying
    /// them; `None`, the default, where [`read_into`](SampleSource::read_into) is the only way: a
    /// container that keeps them compressed or in separate files, or that cannot be mapped.
    ///
    /// No byte is looked at: no checksum is checked, and pages come in when they are touched. The
    /// file is known to reach to the sample's end. If it is cut short later, the bytes stay
    /// readable and a further call for this sample is an error. If another process writes to
    /// them, they change.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry), a size beyond the reader's limits, and
    /// [`ReadError::ChangedWhileOpen`].
    fn view(&self, _index: u64) -> Result<Option<&[u8]>, ReadError> {
        Ok(None)
    }

    /// Reads a sample that is stored compressed: replaces `bytes` with the sample and `block` with
    /// its compressed bytes and returns their compression, so that the sample can be copied without
    /// compressing it again. Returns `None`, the default, for a sample that is not, and leaves both
    /// alone.
    ///
    /// # Errors
    /// As for [`read_into`](SampleSource::read_into).
    fn read_block(
        &self,
        _index: u64,
        _bytes: &mut Vec<u8>,
        _block: &mut Vec<u8>,
    ) -> Result<Option<Codec>, ReadError> {
        Ok(None)
    }
}

/// An index that is read as a whole faster than entry by entry.
pub trait BulkIndex {
    /// The labels of all samples at once, [`i64::MIN`] for none, where the container keeps them in
    /// one place; an empty list when no sample has one. `None` when each has to be asked for, as
    /// where some cannot be read.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry).
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError>;

    /// Calls `take` with name and size of the samples `samples` in order, equal to those of
    /// [`entry`](SampleSource::entry), in a single pass over the index, until `take` breaks. Returns
    /// false without a call of `take` if asking for each entry is as fast, which is the default.
    ///
    /// # Errors
    /// If the file changed during the scan. Discard what `take` received.
    ///
    /// # Panics
    /// If `samples` ends after the last sample.
    fn scan(
        &self,
        _samples: Range<u64>,
        _take: &mut dyn FnMut(Result<SampleName<'_>, ReadError>) -> ControlFlow<()>,
    ) -> Result<bool, ReadError> {
        Ok(false)
    }
}

/// Checks of parts that reading a sample does not look at.
pub trait DamageChecks {
    /// Checks all parts of the container besides the samples that have a checksum: index and
    /// metadata section of a TBL file of version 2, as far as our writer made it. This reads all of
    /// both. [`Selection::all`](crate::Selection::all) calls it before samples are copied.
    ///
    /// # Errors
    /// [`ReadError::Format`] with the first part that is damaged.
    fn verify_structure(&self) -> Result<(), ReadError> {
        Ok(())
    }

    /// Checks that the label stored with sample `index` can be read, if there is one. Of a label that
    /// cannot, [`entry`](SampleSource::entry) says nothing.
    ///
    /// # Errors
    /// [`ReadError::Label`] with the member and the defect, and as for
    /// [`entry`](SampleSource::entry).
    fn check_label(&self, index: u64) -> Result<(), ReadError>;

    /// Checks all fields of sample `index`, wanted or not. A damaged extension makes a wanted field
    /// look like another one, so a caller that misses a field asks whether it was lost.
    ///
    /// # Errors
    /// [`ReadError::Format`] for a damaged field.
    fn check_fields(&self, _index: u64) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Row indexes of JPEG samples: where each MCU row starts, for `tl_decode`. Of samples that are videos
/// they are the indexes of their frames, for `tl_video::VideoIndex::from_bytes`.
pub trait RowIndexes {
    /// Replaces `row_index` with the row index stored for sample `index`, reusing its capacity, and
    /// returns true, if the sample has one; otherwise leaves `row_index` alone and returns false.
    ///
    /// It is checked to be the one that was written for the sample. That the sample's bytes are
    /// still those it was made of, and that it is right, the decoder finds out.
    ///
    /// # Errors
    /// As for [`entry`](SampleSource::entry), and [`ReadError::Format`] for one that is damaged or
    /// belongs to another sample.
    fn row_index_into(&self, index: u64, row_index: &mut Vec<u8>) -> Result<bool, ReadError>;
}

/// Blocks of successive samples that are stored together and cannot be unpacked one by one, such as
/// the pages of a Parquet file.
pub trait SampleBlocks {
    /// For each block in order, the number of the sample after its last one.
    ///
    /// # Errors
    /// The defect of the index that lists them.
    fn ends(&self) -> Result<Vec<u64>, ReadError>;

    /// The bytes of a typical block in memory, by some of them; 0 if samples are read without
    /// unpacking their block.
    ///
    /// # Errors
    /// As for [`ends`](Self::ends).
    fn unpacked_bytes(&self) -> Result<u64, ReadError>;

    /// How many blocks have been unpacked since the source was opened.
    fn unpack_count(&self) -> u64;

    /// The names of the compressions of blocks, each once.
    fn compressions(&self) -> Vec<&'static str>;
}

/// The memory for what sources unpack and several samples need, such as blocks. The sources of a process
/// share it.
pub trait BlockMemory: fmt::Debug + Sync {
    /// The most bytes of it while nothing is reserved.
    fn usual_bytes(&self) -> u64;

    /// The bytes that are in use.
    fn used_bytes(&self) -> u64;

    /// Reserves bytes until the value is dropped. The memory then has as many as are reserved together,
    /// instead of the usual ones.
    fn reserve(&self, bytes: u64) -> Box<dyn Any + Send + Sync>;
}

/// Calls of the capabilities of a source, with the answer of a source that lacks the capability.
/// Every [`SampleSource`] has it; it is not implemented for others.
pub trait SampleSourceExt: SampleSource {
    /// [`StoredSamples::stored`]; `None` without it.
    ///
    /// # Errors
    /// As for [`StoredSamples::stored`].
    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        self.stored_samples().map_or(Ok(None), |samples| samples.stored(index))
    }

    /// [`StoredSamples::unpack`]; stored bytes are the sample without it.
    ///
    /// # Errors
    /// As for [`StoredSamples::unpack`].
    fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.stored_samples().map_or(Ok(()), |samples| samples.unpack(index, bytes))
    }

    /// [`StoredSamples::view`]; `None` without it.
    ///
    /// # Errors
    /// As for [`StoredSamples::view`].
    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        self.stored_samples().map_or(Ok(None), |samples| samples.view(index))
    }

    /// As [`read_into`](SampleSource::read_into), and the compression of the bytes in `block`, if the
    /// sample is stored as these.
    ///
    /// # Errors
    /// As for [`read_into`](SampleSource::read_into).
    fn read_with_block(
        &self,
        index: u64,
        bytes: &mut Vec<u8>,
        block: &mut Vec<u8>,
    ) -> Result<Option<Codec>, ReadError> {
        if let Some(samples) = self.stored_samples()
            && let Some(codec) = samples.read_block(index, bytes, block)?
        {
            return Ok(Some(codec));
        }
        self.read_into(index, bytes).map(|()| None)
    }

    /// [`BulkIndex::stored_labels`]; `None` without it.
    ///
    /// # Errors
    /// As for [`BulkIndex::stored_labels`].
    fn stored_labels(&self) -> Result<Option<Vec<i64>>, ReadError> {
        self.bulk_index().map_or(Ok(None), BulkIndex::stored_labels)
    }

    /// [`BulkIndex::scan`]; false without it.
    ///
    /// # Errors
    /// As for [`BulkIndex::scan`].
    ///
    /// # Panics
    /// As for [`BulkIndex::scan`].
    fn scan(
        &self,
        samples: Range<u64>,
        take: &mut dyn FnMut(Result<SampleName<'_>, ReadError>) -> ControlFlow<()>,
    ) -> Result<bool, ReadError> {
        self.bulk_index().map_or(Ok(false), |index| index.scan(samples, take))
    }

    /// [`DamageChecks::verify_structure`]; nothing is wrong without it.
    ///
    /// # Errors
    /// As for [`DamageChecks::verify_structure`].
    fn verify_structure(&self) -> Result<(), ReadError> {
        self.damage_checks().map_or(Ok(()), DamageChecks::verify_structure)
    }

    /// [`DamageChecks::check_label`]; nothing is wrong without it.
    ///
    /// # Errors
    /// As for [`DamageChecks::check_label`].
    fn check_label(&self, index: u64) -> Result<(), ReadError> {
        self.damage_checks().map_or(Ok(()), |checks| checks.check_label(index))
    }

    /// [`DamageChecks::check_fields`]; nothing is wrong without it.
    ///
    /// # Errors
    /// As for [`DamageChecks::check_fields`].
    fn check_fields(&self, index: u64) -> Result<(), ReadError> {
        self.damage_checks().map_or(Ok(()), |checks| checks.check_fields(index))
    }

    /// [`RowIndexes::row_index_into`]; false without it.
    ///
    /// # Errors
    /// As for [`RowIndexes::row_index_into`].
    fn row_index_into(&self, index: u64, row_index: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.row_indexes().map_or(Ok(false), |indexes| indexes.row_index_into(index, row_index))
    }

    /// Appends all sidecar fields of sample `index` to `fields`, in stored order.
    ///
    /// # Errors
    /// As for [`read_into`](SampleSource::read_into).
    fn read_fields(&self, index: u64, fields: &mut Vec<Field>) -> Result<(), ReadError> {
        self.read_fields_where(index, &mut |_, _| true, fields)
    }
}

impl<T: SampleSource + ?Sized> SampleSourceExt for T {}
