//! The first image whose stored form has more than decoded pixels keep.

use tbl_format::SampleFormat;
use tl_decode::{DecodeOptions, Format, Reductions};

use super::Stored;

/// The first JPEG images whose headers are read for what decoding reduces. Only lossless ones, which
/// data sets hardly have, can have more than 8 bits, and reading each header twice would cost time.
const LOOKED_AT: u8 = 64;

/// The search for the first image that decoding reduces.
#[derive(Debug)]
pub(super) struct FirstReduced {
    /// The JPEG samples that may still be looked at.
    unseen: u8,
    /// True if a reduced image was found.
    is_found: bool,
    /// The properties that it loses, until they are taken.
    reductions: Option<Reductions>,
}

impl Default for FirstReduced {
    fn default() -> Self {
        Self { unseen: LOOKED_AT, is_found: false, reductions: None }
    }
}

impl FirstReduced {
    /// Looks at a sample, unless the image was found.
    pub(super) fn look_at(&mut self, stored: &Stored<'_>, options: &DecodeOptions) {
        if self.is_found || stored.format == SampleFormat::RawU8 {
            return;
        }
        if Format::sniff(stored.bytes) == Some(Format::Jpeg) {
            let Some(unseen) = self.unseen.checked_sub(1) else { return };
            self.unseen = unseen;
        }
        // An error here is reported when the sample is decoded.
        let Ok(info) = tl_decode::probe(stored.bytes) else { return };
        let found = info.reductions(options.color, options.pixels);
        // Three equal channels have all that one has, and most data sets have such images.
        if found.bit_depth || found.sample_format || found.alpha {
            (self.reductions, self.is_found) = (Some(found), true);
        }
    }

    /// The properties that the image loses, on the first call after it was found.
    pub(super) fn take(&mut self) -> Option<Reductions> {
        self.reductions.take()
    }
}
