//! The compression of samples in TBL files: LZ4 blocks and Zstandard frames, in memory that the
//! caller provides.

use std::cell::RefCell;
use std::fmt;

use lz4::block::{CompressionMode, compress_to_buffer, decompress_to_buffer};
use tbl_format::FormatError;
use tbl_format::v2::Codec;
use zstd::zstd_safe::{CCtx, CDict, DCtx, DDict, get_dict_id, get_dict_id_from_frame};
use zstd::zstd_safe::{ContentSizeError, SafeResult, get_frame_content_size};

use crate::writer::ZstdLevel;

/// The largest input of LZ4 (`LZ4_MAX_INPUT_SIZE`); larger samples are stored as they are.
const MAX_LZ4_INPUT: usize = 0x7E00_0000;

thread_local! {
    /// The library's working memory, 160 KB for reading. It depends on no file, so each thread has one.
    static DECOMPRESSOR: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static COMPRESSOR: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// The dictionary of the Zstandard frames in a file, ready for reading.
pub(crate) struct Dictionary {
    bytes: Vec<u8>,
    /// `None` if the library cannot use it.
    prepared: Option<DDict<'static>>,
}

impl Dictionary {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let prepared = DDict::try_create(&bytes);
        Self { bytes, prepared }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// A level of Zstandard with the dictionary of a file, ready for writing.
pub(crate) struct ZstdEncoding {
    level: ZstdLevel,
    dictionary: Option<CDict<'static>>,
}

impl ZstdEncoding {
    /// `None` if memory for the dictionary is not available.
    pub(crate) fn new(level: ZstdLevel, dictionary: Option<&[u8]>) -> Option<Self> {
        let prepare = |bytes| CDict::try_create(bytes, level.get());
        let dictionary = match dictionary {
            Some(bytes) => Some(prepare(bytes)?),
            None => None,
        };
        Some(Self { level, dictionary })
    }

    /// The frame of `bytes`, if it is smaller than they are.
    pub(crate) fn compress(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut frame = vec![0; bytes.len().checked_sub(1)?];
        let size = COMPRESSOR.with_borrow_mut(|compressor| {
            if compressor.is_none() {
                *compressor = CCtx::try_create();
            }
            let compressor = compressor.as_mut()?;
            let frame = frame.as_mut_slice();
            // A frame that does not fit is not smaller: the refusal is the answer, not a failure.
            match &self.dictionary {
                Some(dictionary) => compressor.compress_using_cdict(frame, bytes, dictionary),
                None => compressor.compress(frame, bytes, self.level.get()),
            }
            .ok()
        })?;
        frame.truncate(size);
        frame.shrink_to_fit();
        Some(frame)
    }
}

impl fmt::Debug for ZstdEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, dictionary } = self;
        let mut debug = f.debug_struct("ZstdEncoding");
        debug.field("level", level).field("has_dictionary", &dictionary.is_some()).finish()
    }
}

/// The LZ4 block of `bytes`, if it is smaller than they are.
///
/// The output buffer is one byte too short for anything else, so LZ4 itself gives up early on
/// bytes that do not shrink; its refusal is the answer, not a failure.
pub(crate) fn compress_lz4(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.is_empty() || bytes.len() > MAX_LZ4_INPUT {
        return None;
    }
    let mut block = vec![0; bytes.len() - 1];
    let size = compress_to_buffer(bytes, Some(CompressionMode::DEFAULT), false, &mut block).ok()?;
    block.truncate(size);
    Some(block)
}

/// The number of the dictionary that a Zstandard frame was made with, if it was made with one.
pub(crate) fn dictionary_of(frame: &[u8]) -> Option<u32> {
    get_dict_id_from_frame(frame).map(u32::from)
}

/// Fills `sample`, which has the size that the index states, with the content of `block`.
pub(crate) fn decompress(
    codec: Codec,
    dictionary: Option<&Dictionary>,
    block: &[u8],
    sample: &mut [u8],
) -> Result<(), FormatError> {
    // The index has 32 bits for both.
    let stored_bytes = u32::try_from(block.len()).unwrap_or(u32::MAX);
    let bytes = u32::try_from(sample.len()).unwrap_or(u32::MAX);
    match codec {
        Codec::Lz4 => decompress_lz4(block, sample, stored_bytes, bytes),
        Codec::Zstd => decompress_zstd(dictionary, block, sample, stored_bytes, bytes),
    }
}

fn decompress_lz4(
    block: &[u8],
    sample: &mut [u8],
    stored_bytes: u32,
    expected: u32,
) -> Result<(), FormatError> {
    // LZ4 counts in `i32`.
    let too_large = |_| FormatError::Lz4Size { stored_bytes, bytes: expected };
    let size = i32::try_from(expected).map_err(too_large)?;
    i32::try_from(stored_bytes).map_err(too_large)?;
    let found = decompress_to_buffer(block, Some(size), sample)
        .map_err(|_| FormatError::Lz4Damaged { stored_bytes })?;
    if found == sample.len() {
        return Ok(());
    }
    Err(FormatError::Lz4Short { expected, found: found as u64 })
}

/// The output is the window, so the library allocates nothing in proportion to a number of the frame.
fn decompress_zstd(
    dictionary: Option<&Dictionary>,
    frame: &[u8],
    sample: &mut [u8],
    stored_bytes: u32,
    expected: u32,
) -> Result<(), FormatError> {
    let damaged = FormatError::ZstdDamaged { stored_bytes };
    match get_frame_content_size(frame) {
        Ok(Some(found)) if found == u64::from(expected) => {}
        Ok(Some(found)) => return Err(FormatError::ZstdContent { expected, found }),
        Ok(None) | Err(ContentSizeError) => return Err(damaged),
    }
    let dictionary = match dictionary_of(frame) {
        Some(needed) => {
            let found = dictionary.filter(|found| {
                get_dict_id(&found.bytes).is_some_and(|found| u32::from(found) == needed)
            });
            let missing = FormatError::ZstdDictionary { needed };
            Some(found.and_then(|found| found.prepared.as_ref()).ok_or(missing)?)
        }
        None => None,
    };
    let mut decompress = |decompressor: &mut DCtx<'static>| -> SafeResult {
        match dictionary {
            Some(dictionary) => decompressor.decompress_using_ddict(sample, frame, dictionary),
            None => decompressor.decompress(sample, frame),
        }
    };
    let found = DECOMPRESSOR.with_borrow_mut(|decompressor| {
        if decompressor.is_none() {
            *decompressor = DCtx::try_create();
        }
        decompressor.as_mut().and_then(|decompressor| decompress(decompressor).ok())
    });
    if found == Some(sample.len()) { Ok(()) } else { Err(damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_blocks_that_are_smaller_are_kept() {
        let zstd = ZstdEncoding::new(ZstdLevel::default(), None).unwrap();
        for compress in [&compress_lz4 as &dyn Fn(&[u8]) -> _, &|bytes| zstd.compress(bytes)] {
            assert_eq!(compress(b""), None);
            assert_eq!(compress(b"no repeats"), None);
            assert!(compress(&[7; 100]).unwrap().len() < 100);
        }
    }
}
