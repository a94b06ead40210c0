//! The errors between bytes and pixels.
//!
//! A message is one printable line: it holds numbers and our own words, and text that comes from
//! a codec crate passes through a filter that drops control characters.

use std::fmt;

use thiserror::Error;
use tl_simd::resample::Rect;

use crate::format::Format;
use crate::image::{PixelType, SampleFormat};

/// The reason why an image was not decoded.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum DecodeError {
    /// The bytes are not a whole, undamaged image.
    #[error("malformed: {0}")]
    Malformed(#[from] Defect),
    /// The image uses a feature this crate does not decode.
    #[error("unsupported: {0}")]
    Unsupported(#[from] Feature),
    /// Decoding would exceed one of the [`Limits`](crate::Limits); nothing was allocated for it.
    #[error("limit exceeded: {limit} is {max}, this image needs {need}")]
    LimitExceeded {
        /// The limit that is too small.
        limit: Limit,
        max: u64,
        need: u64,
    },
    /// The region to decode is empty or not inside the image.
    #[error(
        "region of {}x{} pixels at {}, {} is not inside the image of {width}x{height}",
        region.width, region.height, region.x, region.y
    )]
    Region { region: Rect, width: u32, height: u32 },
}

/// A fault in the bytes of an image.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Defect {
    /// No decoder knows the first bytes.
    #[error(
        "not a JPEG, PNG, WebP, BMP, TIFF, GIF, PNM, QOI, JPEG 2000, JPEG XL or AVIF file ({}{length} bytes long)",
        Start(.start, *.length)
    )]
    UnknownFormat {
        /// The first four bytes, zero where the file is shorter.
        start: [u8; 4],
        /// The length of the file in bytes.
        length: usize,
    },
    /// Bytes end before a structure does.
    #[error("{format} {what} at byte {offset} needs {need} bytes, found {have}")]
    Truncated { format: Format, what: &'static str, offset: u64, need: u64, have: u64 },
    /// Compressed data ends or breaks before it has filled its part of the image.
    #[error("{format} {what}: expected {need}, found {have}")]
    ShortOutput { format: Format, what: &'static str, need: u64, have: u64 },
    /// A field holds a value that the format does not allow.
    #[error("{format} {what} is {found}")]
    Value { format: Format, what: &'static str, found: u64 },
    /// A field of the segment at `offset` holds a value that the format does not allow.
    #[error("{format} {what} in the segment at byte {offset} is {found}")]
    ValueAt {
        format: Format,
        what: &'static str,
        found: u64,
        /// The offset of the segment in the file.
        offset: u64,
    },
    /// A part that every image of the format has is not there.
    #[error("{format} without {what}")]
    Missing { format: Format, what: &'static str },
    /// Bytes at `offset` are not what the format has there.
    #[error("{format} at byte {offset}: {what}")]
    Stray { format: Format, what: &'static str, offset: u64 },
    /// Compressed data that its codec refuses.
    #[error("{0}")]
    Codec(#[from] CodecError),
}

/// A feature of a format that is recognised and not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum Feature {
    /// JPEG coding process, by the number of its SOF marker (T.81 table B.1).
    #[error("JPEG with {} (SOF{_0})", jpeg_process(*_0))]
    JpegFrame(u8),
    /// JPEG sample precision in bits.
    #[error("JPEG with {0} bits per sample")]
    JpegPrecision(u8),
    /// JPEG component count.
    #[error("JPEG with {0} components")]
    JpegComponents(u8),
    /// JPEG sampling factors that do not divide each other.
    #[error("JPEG sampling factors that do not divide each other")]
    JpegSampling,
    /// JPEG whose height follows the first scan (DNL marker).
    #[error("JPEG with its height after the first scan (DNL)")]
    JpegHeightInDnl,
    /// JPEG of several frames, each a refinement of the last (DHP or EXP marker).
    #[error("hierarchical JPEG")]
    JpegHierarchical,
    /// JPEG colour space.
    #[error("JPEG colour space")]
    JpegColor,
    /// BMP header of this size in bytes.
    #[error("BMP header of {0} bytes")]
    BmpHeader(u32),
    /// BMP compression.
    #[error("BMP compression {0}")]
    BmpCompression(u32),
    /// BMP bits per pixel.
    #[error("BMP with {0} bits per pixel")]
    BmpBits(u16),
    /// BMP channel mask whose bits are not next to each other.
    #[error("BMP channel mask {0:#010x}")]
    BmpMask(u32),
    /// TIFF compression.
    #[error("TIFF compression {_0}{}", tiff_compression(*_0))]
    TiffCompression(u16),
    /// TIFF photometric interpretation.
    #[error("TIFF photometric interpretation {0}")]
    TiffPhotometric(u16),
    /// TIFF sample type: bits and `SampleFormat`.
    #[error("TIFF samples of {bits} bits with sample format {format}")]
    TiffSamples { bits: u16, format: u16 },
    /// TIFF samples per pixel.
    #[error("TIFF with {0} samples per pixel")]
    TiffSampleCount(u16),
    /// TIFF predictor.
    #[error("TIFF predictor {0}")]
    TiffPredictor(u16),
    /// TIFF YCbCr subsampling outside JPEG.
    #[error("TIFF YCbCr subsampling {0}x{1}")]
    TiffSubsampling(u16, u16),
    /// PNM file of another kind than `P1` to `P6`, by the second byte of its magic number.
    #[error("PNM of kind P{}{}", char::from(*_0), pnm_kind(*_0))]
    PnmKind(u8),
    /// An image of a format whose decoder is not in this build.
    #[error("{format} images: tl-decode is built without its feature {feature}")]
    NotBuilt { format: Format, feature: &'static str },
    /// HEIF image coded as HEVC.
    #[error("HEIC images: convert them to JPEG, PNG or WebP")]
    Heic,
    /// AVIF whose image is an item of this kind: neither AV1 nor a grid of it.
    #[error("AVIF image item of kind {}", .0.escape_ascii())]
    AvifItem([u8; 4]),
    /// AVIF with a property that readers must know, or with one layer selected of several.
    #[error("AVIF image item with the property {}", .0.escape_ascii())]
    AvifProperty([u8; 4]),
    /// AVIF with items that are made of other items, by the number of their construction method.
    #[error("AVIF image item of construction method {0}")]
    AvifConstruction(u8),
    /// AVIF with matrix coefficients of this code point of ITU-T H.273, which libavif does not convert
    /// either, except those that are derived from unusual primaries (12).
    #[error("AVIF with matrix coefficients {0}")]
    AvifMatrix(u16),
    /// JPEG XL image of inks.
    #[error("JXL with inks (CMYK)")]
    JxlCmyk,
    /// JPEG 2000 image with this many channels.
    #[error("JPEG2000 with {0} channels")]
    Jpeg2000Components(u16),
    /// A mask that is not a PNG file of one channel.
    #[error("mask in a {format} file of {channels} channels of {bit_depth} bits")]
    Mask { format: Format, channels: u8, bit_depth: u8 },
    /// Samples that are not read as pixels of a wider type, because no value is converted.
    #[error(
        "{} pixels of a {format} file of {bit_depth}-bit {} samples, which are read as {instead} \
         pixels alone",
        pixels.in_words(),
        sample_format_name(*sample_format)
    )]
    Pixels {
        pixels: PixelType,
        format: Format,
        bit_depth: u8,
        sample_format: SampleFormat,
        instead: &'static str,
    },
    /// Wider pixels of an image that is stored as 8-bit RGB.
    #[error("{} pixels of an image that is stored as 8-bit RGB", pixels.in_words())]
    RawPixels { pixels: PixelType },
    /// Wide grey pixels of a file of colours, which no conversion gives.
    #[error("one channel of a {format} file of colours of {bit_depth} bits; ask for 3 channels")]
    WideGrey { format: Format, bit_depth: u8 },
    /// TIFF colours of more than 8 bits that are multiplied by alpha or not RGB.
    #[error("TIFF colours of {bits} bits that are {what}, as they are stored")]
    TiffWide { bits: u16, what: &'static str },
}

/// The name of a number type of stored samples.
fn sample_format_name(format: SampleFormat) -> &'static str {
    match format {
        SampleFormat::Unsigned => "unsigned",
        SampleFormat::Signed => "signed",
        SampleFormat::Float => "floating-point",
    }
}

/// The name of an unsupported coding process, by the number of its SOF marker.
fn jpeg_process(kind: u8) -> &'static str {
    match kind {
        3 => "lossless coding of this form",
        9 | 10 => "arithmetic coding",
        11 => "lossless arithmetic coding",
        _ => "hierarchical coding",
    }
}

/// The name of a compression that is not decoded, and the feature that decodes it.
fn tiff_compression(number: u16) -> &'static str {
    match number {
        6 => " (JPEG of TIFF 6.0)",
        34_925 => " (LZMA): tl-decode is built without its feature tiff-lzma",
        50_000 => " (Zstandard): tl-decode is built without its feature tiff-zstd",
        50_001 => " (WebP)",
        50_002 => " (JPEG XL)",
        _ => "",
    }
}

/// The name of a PNM file that is not decoded, by the second byte of its magic number.
fn pnm_kind(kind: u8) -> &'static str {
    match kind {
        b'7' => " (PAM)",
        b'F' | b'f' => " (PFM, floats)",
        _ => "",
    }
}

/// Names one field of [`Limits`](crate::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Width times height.
    Pixels,
    /// Width or height.
    Dimension,
    /// Bytes of the decoded image.
    DecodedBytes,
    /// Bytes a decoder holds besides the decoded image.
    WorkingBytes,
    /// Scans of a JPEG file.
    JpegScans,
    /// Bytes of metadata that are read (EXIF, TIFF tags, colour maps).
    MetadataBytes,
    /// Entries of a TIFF directory.
    TiffEntries,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pixels => "max_pixels",
            Self::Dimension => "max_dimension",
            Self::DecodedBytes => "max_decoded_bytes",
            Self::WorkingBytes => "max_working_bytes",
            Self::JpegScans => "jpeg_scans",
            Self::MetadataBytes => "max_metadata_bytes",
            Self::TiffEntries => "tiff_entries",
        })
    }
}

/// The error of the crate that decodes a format, printed as one line of printable characters.
#[derive(Debug)]
pub struct CodecError(Codec);

#[derive(Debug)]
enum Codec {
    Jpeg(jpeg_decoder::Error),
    Png(png::DecodingError),
    WebP(image_webp::DecodingError),
    #[cfg(feature = "avif")]
    Avif(tl_av1::Error),
    #[cfg(feature = "jpeg2000")]
    Jpeg2000(hayro_jpeg2000::DecodeError),
    #[cfg(feature = "jxl")]
    Jxl(jxl::error::Error),
    /// A panic, which tells nothing of the file.
    #[cfg(any(feature = "jpeg2000", feature = "jxl"))]
    Panic(Format),
}

#[cfg(any(feature = "jpeg2000", feature = "jxl"))]
impl CodecError {
    /// The error of a codec that panics on a file.
    pub(crate) fn of_panic(format: Format) -> Self {
        Self(Codec::Panic(format))
    }
}

impl From<jpeg_decoder::Error> for CodecError {
    fn from(error: jpeg_decoder::Error) -> Self {
        Self(Codec::Jpeg(error))
    }
}

impl From<png::DecodingError> for CodecError {
    fn from(error: png::DecodingError) -> Self {
        Self(Codec::Png(error))
    }
}

impl From<image_webp::DecodingError> for CodecError {
    fn from(error: image_webp::DecodingError) -> Self {
        Self(Codec::WebP(error))
    }
}

#[cfg(feature = "avif")]
impl From<tl_av1::Error> for CodecError {
    fn from(error: tl_av1::Error) -> Self {
        Self(Codec::Avif(error))
    }
}

#[cfg(feature = "jpeg2000")]
impl From<hayro_jpeg2000::DecodeError> for CodecError {
    fn from(error: hayro_jpeg2000::DecodeError) -> Self {
        Self(Codec::Jpeg2000(error))
    }
}

#[cfg(feature = "jxl")]
impl From<jxl::error::Error> for CodecError {
    fn from(error: jxl::error::Error) -> Self {
        Self(Codec::Jxl(error))
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        let mut line = OneLine(f);
        match &self.0 {
            Codec::Jpeg(error) => write!(line, "JPEG: {error}"),
            Codec::Png(error) => write!(line, "PNG: {error}"),
            Codec::WebP(error) => write!(line, "WebP: {error}"),
            #[cfg(feature = "avif")]
            Codec::Avif(error) => write!(line, "AVIF: {error}"),
            #[cfg(feature = "jpeg2000")]
            Codec::Jpeg2000(error) => write!(line, "JPEG2000: {error}"),
            #[cfg(feature = "jxl")]
            Codec::Jxl(error) => write!(line, "JXL: {error}"),
            #[cfg(any(feature = "jpeg2000", feature = "jxl"))]
            Codec::Panic(format) => write!(line, "{format}: the decoder panicked on this file"),
        }
    }
}

impl std::error::Error for CodecError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Codec::Jpeg(error) => Some(error),
            Codec::Png(error) => Some(error),
            Codec::WebP(error) => Some(error),
            #[cfg(feature = "avif")]
            Codec::Avif(error) => Some(error),
            #[cfg(feature = "jpeg2000")]
            Codec::Jpeg2000(error) => Some(error),
            #[cfg(feature = "jxl")]
            Codec::Jxl(error) => Some(error),
            #[cfg(any(feature = "jpeg2000", feature = "jxl"))]
            Codec::Panic(_) => None,
        }
    }
}

/// Passes printable ASCII on and writes every other character as an escape.
struct OneLine<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if c == ' ' || c.is_ascii_graphic() {
                self.0.write_char(c)?;
            } else {
                write!(self.0, "{}", c.escape_default())?;
            }
        }
        Ok(())
    }
}

/// The first bytes, as far as they exist.
struct Start<'a>(&'a [u8; 4], usize);

impl fmt::Display for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(start, length) = *self;
        match start.get(..length).unwrap_or(start) {
            [] => Ok(()),
            start => write!(f, "starts with {}, ", Hex(start)),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { " " };
            write!(f, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_of_jpeg_frames_have_names() {
        let text = |kind| DecodeError::from(Feature::JpegFrame(kind)).to_string();
        assert_eq!(text(9), "unsupported: JPEG with arithmetic coding (SOF9)");
        assert_eq!(text(7), "unsupported: JPEG with hierarchical coding (SOF7)");
        let twelve_bits = DecodeError::from(Feature::JpegPrecision(12)).to_string();
        assert_eq!(twelve_bits, "unsupported: JPEG with 12 bits per sample");
    }

    #[test]
    fn refused_compressions_of_tiff_have_names() {
        let text = |number| DecodeError::from(Feature::TiffCompression(number)).to_string();
        assert_eq!(
            text(34_925),
            "unsupported: TIFF compression 34925 (LZMA): tl-decode is built without its feature \
             tiff-lzma"
        );
        assert_eq!(text(50_001), "unsupported: TIFF compression 50001 (WebP)");
        assert_eq!(text(32_809), "unsupported: TIFF compression 32809");
    }

    #[test]
    fn what_is_no_image_is_shown_as_far_as_it_goes() {
        let text = |start, length| Defect::UnknownFormat { start, length }.to_string();
        let no_image =
            "not a JPEG, PNG, WebP, BMP, TIFF, GIF, PNM, QOI, JPEG 2000, JPEG XL or AVIF file";
        assert_eq!(text([0; 4], 0), format!("{no_image} (0 bytes long)"));
        let expected = format!("{no_image} (starts with ff d8, 2 bytes long)");
        assert_eq!(text([0xff, 0xd8, 0, 0], 2), expected);
        let expected = format!("{no_image} (starts with 00 01 02 03, 90 bytes long)");
        assert_eq!(text([0, 1, 2, 3], 90), expected);
    }

    #[test]
    fn codec_text_is_one_printable_line() {
        let error = jpeg_decoder::Error::Format("two\nlines \u{1b}[31m".to_owned());
        let line = DecodeError::from(Defect::from(CodecError::from(error))).to_string();
        assert_eq!(line, "malformed: JPEG: invalid JPEG format: two\\nlines \\u{1b}[31m");
    }
}
