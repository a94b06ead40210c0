//! Names of cached entries: a hash of everything that determines a sample's bytes.
//!
//! Equal names must mean equal bytes, and nothing is read to find a name, so a name stands for the
//! file as the system describes it (`SampleSource::content_id`: name, inode, length, times of
//! change), the sample's place in its index, and the operations on it. The path is not hashed: the
//! same file below another mount point is the same file.

use std::fmt;

use sha2::{Digest, Sha256};
use tbl_io::{Facts, ReadError};
use tl_decode::{Color, DecodeOptions, Decoders, Exif, Limits, PixelType};

use crate::dataset::Dataset;

/// The start of the hashed bytes.
const DOMAIN: &[u8] = b"turboloader cache entry 1";

/// To be raised whenever the pixels of any image that decodes without an error change.
const PIXELS_VERSION: u32 = 3;

/// The content that a cache keeps of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheKind {
    /// The stored bytes: saves reading them from where they are.
    #[default]
    Encoded,
    /// The decoded image, 8-bit RGB or wider pixels: saves decoding as well, and takes several times the
    /// room.
    Decoded,
    /// The stored bytes of samples that lie side by side in an object of a store, in one entry: as
    /// [`Encoded`](Self::Encoded), with far fewer files and requests. On disk only. Samples of local
    /// files are not kept.
    Blocks,
}

/// The name of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Names entries of one kind, made with one set of options.
#[derive(Clone, Debug)]
pub(crate) struct Namer {
    /// The hash after all that samples have in common.
    common: Sha256,
}

impl Namer {
    /// Names of entries that these options and the user's `decoders` decide.
    pub(crate) fn new(kind: CacheKind, decode: &DecodeOptions, decoders: &Decoders) -> Self {
        let mut common = Sha256::new_with_prefix(DOMAIN);
        match kind {
            CacheKind::Encoded => common.update([0]),
            CacheKind::Blocks => common.update([2]),
            CacheKind::Decoded => {
                common.update([1]);
                common.update(PIXELS_VERSION.to_le_bytes());
                common.update([u8::from(decode.exif == Exif::Apply)]);
                // An image beyond a limit is an error, also if another run could decode it.
                // `on_damaged` is left out: damaged samples are not cached.
                limits(&mut common, decode.limits);
                match decode.color {
                    Color::Rgb => {}
                    Color::Grey => common.update(b"grey"),
                    Color::Rgba => common.update(b"rgba"),
                }
                if decode.pixels != PixelType::U8 {
                    common.update(decode.pixels.name());
                }
                if !decoders.is_empty() {
                    common.update(b"decoders");
                    common.update(decoders.identity());
                }
            }
        }
        Self { common }
    }

    /// The name of sample `index`, with its `facts`; `None` where its source cannot tell whether
    /// its bytes have changed. `scratch` is memory for a while.
    ///
    /// # Errors
    /// As for [`Dataset::facts`].
    pub(crate) fn name(
        &self,
        dataset: &Dataset,
        index: u64,
        facts: &Facts,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Key>, ReadError> {
        scratch.clear();
        if !dataset.content_id(index, scratch)? {
            return Ok(None);
        }
        let mut hash = self.common.clone();
        let Facts { format, width, height, offset, stored_bytes, bytes } = *facts;
        hash.update([format.code()]);
        for number in [u64::from(width), u64::from(height), offset, stored_bytes, bytes] {
            hash.update(number.to_le_bytes());
        }
        // Last, so that its length needs no separator.
        hash.update(&*scratch);
        Ok(Some(Key(hash.finalize().into())))
    }
}

/// The name of the block of samples with these names.
pub(crate) fn of_block(samples: impl Iterator<Item = Key>) -> Key {
    let mut hash = Sha256::new_with_prefix(b"turboloader block 1");
    samples.for_each(|sample| hash.update(sample.0));
    Key(hash.finalize().into())
}

fn limits(hash: &mut Sha256, limits: Limits) {
    let Limits {
        max_pixels,
        max_dimension,
        max_decoded_bytes,
        max_working_bytes,
        jpeg_scans,
        max_metadata_bytes,
        tiff_entries,
    } = limits;
    for number in [
        max_pixels,
        max_dimension.into(),
        max_decoded_bytes,
        max_working_bytes,
        jpeg_scans.into(),
        max_metadata_bytes,
        tiff_entries.into(),
    ] {
        hash.update(number.to_le_bytes());
    }
}
