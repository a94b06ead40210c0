//! The chunks of a WebP file.

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::image::{ImageInfo, SampleFormat};
use crate::orientation::Orientation;

const RIFF_HEADER: usize = 12;
const CHUNK_HEADER: usize = 8;
/// Alpha flag of the VP8X chunk and, as bit 28, of the lossless header.
const VP8X_ALPHA: u8 = 0x10;
const VP8X_EXIF: u8 = 0x08;
const VP8X_XMP: u8 = 0x04;
const VP8X_ANIMATION: u8 = 0x02;

/// One chunk of a RIFF file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    pub(super) kind: [u8; 4],
    pub(super) data: &'a [u8],
    /// The offset of `data` in the file.
    pub(super) offset: usize,
}

/// The chunks of `bytes`; ends at the first that does not fit in the file.
pub(super) fn chunks(bytes: &[u8]) -> impl Iterator<Item = Chunk<'_>> {
    let mut at = RIFF_HEADER;
    std::iter::from_fn(move || {
        let (head, data) = bytes.get(at..)?.split_first_chunk::<CHUNK_HEADER>()?;
        let [k0, k1, k2, k3, size @ ..] = *head;
        let size = usize::try_from(u32::from_le_bytes(size)).ok()?;
        let offset = at + CHUNK_HEADER;
        let chunk = Chunk { kind: [k0, k1, k2, k3], data: data.get(..size)?, offset };
        // Chunks are padded to an even size; the padding of the last one is often missing.
        at = offset + size + size % 2;
        Some(chunk)
    })
}

pub(crate) fn probe(bytes: &[u8]) -> Result<ImageInfo, DecodeError> {
    let header = bytes.get(RIFF_HEADER..).unwrap_or_default();
    let Some((head, data)) = header.split_first_chunk::<CHUNK_HEADER>() else {
        return Err(Defect::Missing { format: Format::WebP, what: "a first chunk" }.into());
    };
    let missing = |what| DecodeError::from(Defect::Missing { format: Format::WebP, what });
    let (width, height, alpha) = match &head[..4] {
        b"VP8 " => {
            let (width, height) =
                super::header::size(data).ok_or_else(|| missing("a VP8 key frame header"))?;
            (width, height, false)
        }
        b"VP8L" => lossless_header(data).ok_or_else(|| missing("a VP8L header"))?,
        b"VP8X" => extended_header(data).ok_or_else(|| missing("a VP8X header"))?,
        _ => return Err(missing("a VP8, VP8L or VP8X chunk")),
    };
    let orientation = Orientation::of_metadata(
        metadata(bytes, VP8X_EXIF, *b"EXIF"),
        metadata(bytes, VP8X_XMP, *b"XMP "),
    );
    let channels = if alpha { 4 } else { 3 };
    Ok(ImageInfo {
        format: Format::WebP,
        width,
        height,
        channels,
        bit_depth: 8,
        sample_format: SampleFormat::Unsigned,
        has_alpha: alpha,
        orientation,
    })
}

/// The flags of the VP8X chunk, which is the first.
fn extended_flags(bytes: &[u8]) -> Option<u8> {
    let first = chunks(bytes).next().filter(|first| &first.kind == b"VP8X")?;
    first.data.first().copied()
}

/// True if the file holds several frames.
pub(super) fn is_animated(bytes: &[u8]) -> bool {
    extended_flags(bytes).is_some_and(|flags| flags & VP8X_ANIMATION != 0)
}

/// The first chunk of this kind, which libwebp finds only where the VP8X chunk has its flag.
fn metadata(bytes: &[u8], flag: u8, kind: [u8; 4]) -> Option<&[u8]> {
    extended_flags(bytes).filter(|flags| flags & flag != 0)?;
    chunks(bytes).find(|chunk| chunk.kind == kind).map(|chunk| chunk.data)
}

/// The first chunk of an image, and that of its alpha before it.
pub(super) struct Still<'a> {
    pub(super) image: Chunk<'a>,
    pub(super) alpha: Option<Chunk<'a>>,
}

impl<'a> Still<'a> {
    /// Finds the chunks as libwebp does.
    pub(super) fn find(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut alpha = None;
        for chunk in chunks(bytes) {
            match &chunk.kind {
                b"VP8 " | b"VP8L" => return Ok(Self { image: chunk, alpha }),
                b"ALPH" => alpha = Some(chunk),
                _ => {}
            }
        }
        let what = "a whole VP8 or VP8L chunk";
        Err(Defect::Missing { format: Format::WebP, what }.into())
    }
}

fn lossless_header(data: &[u8]) -> Option<(u32, u32, bool)> {
    let &[0x2F, b0, b1, b2, b3] = data.first_chunk()? else { return None };
    let bits = u32::from_le_bytes([b0, b1, b2, b3]);
    Some(((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1, bits >> 28 & 1 != 0))
}

fn extended_header(data: &[u8]) -> Option<(u32, u32, bool)> {
    let &[flags, _, _, _, w0, w1, w2, h0, h1, h2] = data.first_chunk()?;
    let size = |a, b, c| u32::from_le_bytes([a, b, c, 0]) + 1;
    Some((size(w0, w1, w2), size(h0, h1, h2), flags & VP8X_ALPHA != 0))
}

/// The RIFF size must not exceed the file: a cut image is read as far as it goes otherwise.
pub(super) fn require_whole(bytes: &[u8]) -> Result<(), DecodeError> {
    let size = bytes.get(4..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    let need = u64::from(u32::from_le_bytes(size)) + CHUNK_HEADER as u64;
    let have = bytes.len() as u64;
    if need > have {
        let format = Format::WebP;
        let what = "RIFF container";
        return Err(Defect::Truncated { format, what, offset: 0, need, have }.into());
    }
    Ok(())
}
