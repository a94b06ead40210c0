//! What the caller does to each sample on its way: this crate knows no pixels.

use std::error::Error;

use tbl_format::SampleFormat;

use crate::sample::Entry;

/// Looks at each sample between reading and writing, to measure it or to turn it into pixels.
///
/// Every thread has a value of its own, so scratch memory can be reused from sample to sample.
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
}

/// What a sample is, as far as its container stores that.
#[derive(Debug)]
pub struct Prepared {
    /// What the bytes are.
    pub format: SampleFormat,
    /// Width in pixels, 0 when unknown.
    pub width: u32,
    /// Height in pixels, 0 when unknown.
    pub height: u32,
    /// Why the dimensions are unknown although the sample claims to be an image. The sample is
    /// kept all the same: converting loses nothing.
    pub unmeasured: Option<Box<dyn Error + Send + Sync>>,
}

impl Prepared {
    /// An image of known size.
    pub fn new(format: SampleFormat, width: u32, height: u32) -> Self {
        Self { format, width, height, unmeasured: None }
    }

    /// What the source itself says.
    pub fn as_stored(entry: &Entry<'_>) -> Self {
        let Entry { format, width, height, .. } = *entry;
        Self { format, width, height, unmeasured: None }
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
