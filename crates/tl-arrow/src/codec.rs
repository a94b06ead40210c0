//! Decompression of pages, into memory of the size that their headers state.

use std::io::Read;

use flate2::read::MultiGzDecoder;

/// The compression of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Uncompressed,
    Snappy,
    Gzip,
    Brotli,
    Zstd,
    Lz4Raw,
    /// LZ4's frames, which Arrow has.
    Lz4Frame,
}

/// The working memory of Brotli's decoder.
const BROTLI_BUFFER: usize = 4096;

impl Codec {
    /// The codec of this number; `None` for one that is not known.
    pub(crate) fn of(number: i64) -> Option<Self> {
        Some(match number {
            0 => Self::Uncompressed,
            1 => Self::Snappy,
            2 => Self::Gzip,
            4 => Self::Brotli,
            6 => Self::Zstd,
            7 => Self::Lz4Raw,
            _ => return None,
        })
    }

    /// The name of a codec that is not known here.
    pub(crate) fn unknown(number: i64) -> String {
        match number {
            3 => "LZO".to_owned(),
            5 => "LZ4 in Hadoop's frames".to_owned(),
            number => format!("codec {number}"),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "uncompressed",
            Self::Snappy => "snappy",
            Self::Gzip => "gzip",
            Self::Brotli => "brotli",
            Self::Zstd => "zstd",
            Self::Lz4Raw => "lz4_raw",
            Self::Lz4Frame => "lz4",
        }
    }

    /// Fills `page`, whose length is the one that the header states. False if the bytes are damaged, or
    /// those of a page of another length.
    pub(crate) fn decompress(self, stored: &[u8], page: &mut [u8]) -> bool {
        match self {
            Self::Uncompressed => {
                let is_whole = stored.len() == page.len();
                if is_whole {
                    page.copy_from_slice(stored);
                }
                is_whole
            }
            Self::Snappy => {
                // The decoder takes memory of any size, and states the size that it has filled.
                snap::raw::decompress_len(stored).is_ok_and(|len| len == page.len())
                    && snap::raw::Decoder::new().decompress(stored, page) == Ok(page.len())
            }
            Self::Zstd => {
                zstd::bulk::decompress_to_buffer(stored, page).is_ok_and(|len| len == page.len())
            }
            Self::Lz4Raw => {
                let len = i32::try_from(page.len()).ok();
                lz4::block::decompress_to_buffer(stored, len, page)
                    .is_ok_and(|len| len == page.len())
            }
            Self::Lz4Frame => lz4::Decoder::new(stored).is_ok_and(|mut frame| {
                // Only the end mark shows that a frame is whole.
                fill(&mut frame, page) && frame.finish().1.is_ok()
            }),
            Self::Gzip => fill(MultiGzDecoder::new(stored), page),
            Self::Brotli => {
                fill(brotli_decompressor::Decompressor::new(stored, BROTLI_BUFFER), page)
            }
        }
    }
}

/// Whether a stream has these many bytes and no more.
fn fill(mut stream: impl Read, page: &mut [u8]) -> bool {
    let mut more = [0];
    stream.read_exact(page).is_ok() && matches!(stream.read(&mut more), Ok(0))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn compressed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
        match codec {
            Codec::Uncompressed | Codec::Brotli => bytes.to_vec(),
            Codec::Snappy => snap::raw::Encoder::new().compress_vec(bytes).unwrap(),
            Codec::Zstd => zstd::bulk::compress(bytes, 1).unwrap(),
            Codec::Lz4Raw => lz4::block::compress(bytes, None, false).unwrap(),
            Codec::Lz4Frame => {
                let mut encoder = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
                encoder.write_all(bytes).unwrap();
                let (frame, result) = encoder.finish();
                result.map(|()| frame).unwrap()
            }
            Codec::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    const CODECS: [Codec; 6] = [
        Codec::Uncompressed,
        Codec::Snappy,
        Codec::Gzip,
        Codec::Zstd,
        Codec::Lz4Raw,
        Codec::Lz4Frame,
    ];

    #[test]
    fn pages_have_their_bytes() {
        for codec in CODECS {
            for len in [0, 1, 300, 70_000] {
                let bytes: Vec<u8> = (0..len).map(|n: u32| (n % 251).to_le_bytes()[0]).collect();
                let stored = compressed(codec, &bytes);
                let mut page = vec![7; bytes.len()];
                assert!(codec.decompress(&stored, &mut page), "{codec:?} {len}");
                assert_eq!(page, bytes, "{codec:?}");
            }
        }
    }

    #[test]
    fn a_page_of_another_length_is_damaged() {
        for codec in CODECS {
            let stored = compressed(codec, &[5; 300]);
            for len in [0, 299, 301] {
                assert!(!codec.decompress(&stored, &mut vec![0; len]), "{codec:?} {len}");
            }
            assert!(!codec.decompress(&stored[..stored.len() - 1], &mut [0; 300]), "{codec:?}");
        }
    }

    #[test]
    fn brotli_has_the_bytes_of_its_specification() {
        // Python's `brotli.compress(b"hello hello hello hello")`.
        let stored = [
            0x1b, 0x16, 0x00, 0xf8, 0x8d, 0x94, 0x6e, 0xde, 0x44, 0x55, 0x86, 0x96, 0x6c, 0x20,
            0x6f, 0x21, 0x4f, 0x1c, 0xe0, 0x38,
        ];
        let mut page = [0; 23];
        assert!(Codec::Brotli.decompress(&stored, &mut page));
        assert_eq!(page, *b"hello hello hello hello");
        assert!(!Codec::Brotli.decompress(&stored, &mut page[..22]));
        assert!(!Codec::Brotli.decompress(&stored[..19], &mut page));
    }
}
