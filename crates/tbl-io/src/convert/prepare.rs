//! The caller's work on each sample during a conversion: this crate does not decode pixels.

use std::error::Error;

use tbl_format::SampleFormat;

use crate::sample::Entry;

/// Looks at each sample between reading and writing, to measure it or to turn it into pixels.
///
/// Every thread has its own value, so scratch memory can be reused from sample to sample.
pub trait Prepare {
    /// Whether preparing a sample costs more than copying it, so that it pays to do it on several
    /// threads.
    const COSTLY: bool;

    /// Says what `bytes`, the sample's own bytes, are; may replace them. `entry` is what the
    /// source says of the sample.
    ///
    /// # Errors
    /// Ends the conversion with an error that names the sample.
    fn prepare(
        &mut self,
        entry: &Entry<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Prepared, Box<dyn Error + Send + Sync>>;

    /// Compares the row index stored for a sample with the sample's own bytes, in
    /// [`verify`](crate::verify), if the caller knows how. That it was stored for these bytes has
    /// been checked.
    ///
    /// # Errors
    /// What is wrong with the row index.
    fn check_row_index(
        &mut self,
        _bytes: &[u8],
        _row_index: &[u8],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// The properties of a sample, as far as its container stores them.
#[derive(Debug)]
pub struct Prepared {
    /// The format of the bytes.
    pub format: SampleFormat,
    /// Width in pixels, 0 when unknown.
    pub width: u32,
    /// Height in pixels, 0 when unknown.
    pub height: u32,
    /// The reason why the dimensions are unknown although the sample claims to be an image. It is
    /// kept all the same: converting loses nothing.
    pub unmeasured: Option<Box<dyn Error + Send + Sync>>,
    /// The sample's row index, where the target has a place for one.
    pub row_index: RowIndex,
}

/// The source of a prepared sample's row index.
#[derive(Debug)]
#[non_exhaustive]
pub enum RowIndex {
    /// The sample has no row index.
    None,
    /// The source's, if it has one: for bytes that stay as they are.
    AsStored,
    /// It has been made from the bytes.
    Made(Vec<u8>),
    /// It could not be made, although the sample claims to be an image of a kind that can have
    /// one. The sample is kept without.
    Failed(Box<dyn Error + Send + Sync>),
}

impl Prepared {
    /// An image of known size, of bytes that are not those of the source.
    pub fn new(format: SampleFormat, width: u32, height: u32) -> Self {
        Self { format, width, height, unmeasured: None, row_index: RowIndex::None }
    }

    /// The properties that the source itself stores.
    pub fn as_stored(entry: &Entry<'_>) -> Self {
        let Entry { format, width, height, .. } = *entry;
        Self { format, width, height, unmeasured: None, row_index: RowIndex::AsStored }
    }
}

/// Takes every sample as the source describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsStored;

impl Prepare for AsStored {
    const COSTLY: bool = false;

    fn prepare(
        &mut self,
        entry: &Entry<'_>,
        _bytes: &mut Vec<u8>,
    ) -> Result<Prepared, Box<dyn Error + Send + Sync>> {
        Ok(Prepared::as_stored(entry))
    }
}
