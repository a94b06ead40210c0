//! The chunks of a file, read without the codec: their lengths and their text.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::SIGNATURE_SIZE;
use crate::error::{DecodeError, Defect};
use crate::format::Format;

/// Length, kind and checksum.
const OVERHEAD: usize = 12;

#[derive(Clone, Copy)]
pub(super) struct Chunk<'a> {
    /// Its offset in the file.
    at: usize,
    pub(super) kind: [u8; 4],
    pub(super) data: &'a [u8],
}

/// The chunks of `bytes` before the one that ends the image, or before the first that does not fit
/// in the file.
pub(super) fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = SIGNATURE_SIZE;
    let all = std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let (head, data) = rest.split_first_chunk::<8>()?;
        let [l0, l1, l2, l3, kind @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes([l0, l1, l2, l3])).ok()?;
        let chunk = Chunk { at, kind, data: data.get(..length)? };
        at = at.checked_add(length)?.checked_add(OVERHEAD)?;
        Some(chunk)
    });
    all.take_while(|chunk| &chunk.kind != b"IEND")
}

/// Refuses ancillary chunks that are shorter than their fields, as Pillow and pngcheck do. The
/// codec passes over them.
pub(super) fn require_whole(bytes: &[u8]) -> Result<(), DecodeError> {
    /// The offset of the colour type in IHDR.
    const COLOR_TYPE: usize = SIGNATURE_SIZE + 17;
    let color_type = bytes.get(COLOR_TYPE);
    for chunk in chunks(bytes) {
        let (what, need) = match (&chunk.kind, color_type) {
            (b"cHRM", _) => ("cHRM chunk", 32),
            (b"gAMA", _) => ("gAMA chunk", 4),
            (b"pHYs", _) => ("pHYs chunk", 9),
            (b"sRGB", _) => ("sRGB chunk", 1),
            (b"acTL", _) => ("acTL chunk", 8),
            (b"tRNS", Some(0)) => ("tRNS chunk", 2),
            (b"tRNS", Some(2)) => ("tRNS chunk", 6),
            _ => continue,
        };
        if chunk.data.len() < need {
            return Err(Defect::Truncated {
                format: Format::Png,
                what,
                offset: chunk.at as u64,
                need: need as u64,
                have: chunk.data.len() as u64,
            }
            .into());
        }
    }
    Ok(())
}

/// The text of the last chunk with this keyword, if it can be read. Only that chunk is inflated.
pub(super) fn text<'a>(bytes: &'a [u8], keyword: &[u8]) -> Option<Cow<'a, [u8]>> {
    let after_keyword = |chunk: Chunk<'a>| {
        let is_text = matches!(&chunk.kind, b"tEXt" | b"zTXt" | b"iTXt");
        let data = chunk.data.strip_prefix(keyword)?.strip_prefix(b"\0")?;
        is_text.then_some((chunk.kind, data))
    };
    let (kind, data) = chunks(bytes).filter_map(after_keyword).last()?;
    match &kind {
        b"tEXt" => Some(Cow::Borrowed(data)),
        b"zTXt" => inflate(data.strip_prefix(b"\0")?),
        _ => {
            let (&[compressed, method], rest) = data.split_first_chunk()?;
            // The language and the translated keyword.
            let text = rest.splitn(3, |byte| *byte == 0).nth(2)?;
            match (compressed, method) {
                (0, _) => Some(Cow::Borrowed(text)),
                (_, 0) => inflate(text),
                _ => None,
            }
        }
    }
}

/// Compressed text of up to 1 MiB; Pillow refuses longer text.
fn inflate<'a>(data: &[u8]) -> Option<Cow<'a, [u8]>> {
    const MAX_TEXT: u64 = 1 << 20;
    let mut text = Vec::new();
    let read = ZlibDecoder::new(data).take(MAX_TEXT + 1).read_to_end(&mut text);
    (read.is_ok() && text.len() as u64 <= MAX_TEXT).then_some(Cow::Owned(text))
}
