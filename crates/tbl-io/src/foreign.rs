//! The kinds of files that hold no data set, by their first bytes, so that an error can name them.

use tbl_format::checksum::crc32c;

/// The most bytes that [`kind_of`] looks at.
pub(crate) const HEAD_BYTES: usize = 512;

/// A kind of file, with its article, and what its owner can do.
pub(crate) type Foreign = (&'static str, &'static str);

const IMAGE: &str = "pass the folder or the archive that it is in";
const UNPACK: &str = "unpack it, and pass the folder";
const TABLE: &str = "its rows are samples in builds with the feature `arrow`, and `tl convert` makes \
                     an IDV table of it";
const ROWS: &str = "its rows are samples in builds with the feature `arrow`";
const WRITE: &str = "write its samples into a folder, a TAR archive or a TBL file";
const NPY: &str = "write its images into a folder, a TAR archive or a TBL file; tokens are read with \
                   `--tokens auto`, in Python by `turboloader.tokens(path, length=2048)`";
const PICKLE: &str = "of CIFAR, download the binary version; otherwise write its samples into a \
                      folder, a TAR archive or a TBL file";

const VIDEO: &str = "name it .mp4, .mov, .mkv, .webm or .avi to load clips of it";

const TOKENS: &str = "its tokens are read with `--tokens auto`, in Python by \
                      `turboloader.tokens(path, length=2048)`";

/// A file called `.bin` that has no header of any kind.
pub(crate) const RAW: Foreign = (
    "a .bin file without a known header",
    "raw tokens are read with `--tokens u16`, in Python by \
     `turboloader.tokens(path, dtype=\"uint16\", length=2048)`, without a type next to an .idx",
);

/// Kinds by the bytes at an offset.
const MAGICS: [(usize, &[u8], Foreign); 39] = [
    (0, b"MMIDIDX\0\0", ("an index of Megatron-LM", TOKENS)),
    (0, b"\x88\xd84\x01", ("tokens of llm.c", TOKENS)),
    (0, b"\xa1\xd94\x01", ("tokens of llm.c", TOKENS)),
    (0, b"PAR1", ("a Parquet file", TABLE)),
    (0, b"ARROW1", ("an Arrow file", ROWS)),
    (0, b"Obj\x01", ("an Avro file", WRITE)),
    (0, b"ORC", ("an ORC file", WRITE)),
    (0, b"PK\x03\x04", ("a ZIP archive (as .npz and .pt files are)", UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", ("a 7-Zip archive", UNPACK)),
    (0, b"Rar!\x1a\x07", ("a RAR archive", UNPACK)),
    (0, b"\x04\x22\x4d\x18", ("an LZ4 file", UNPACK)),
    (0, b"\x89HDF\r\n\x1a\n", ("an HDF5 file", WRITE)),
    (0, b"CDF\x01", ("a NetCDF file", WRITE)),
    (0, b"\x93NUMPY", ("a NumPy array (.npy)", NPY)),
    (0, b"MATLAB 5.0", ("a MATLAB file", WRITE)),
    (0, b"SQLite format 3\0", ("an SQLite database", WRITE)),
    (16, b"\xde\xc0\xef\xbe", ("an LMDB database", WRITE)),
    (0, b"\xff\xd8\xff", ("a JPEG image", IMAGE)),
    (0, b"\x89PNG\r\n\x1a\n", ("a PNG image", IMAGE)),
    (8, b"WEBP", ("a WebP image", IMAGE)),
    (0, b"GIF8", ("a GIF image", IMAGE)),
    (0, b"II*\0", ("a TIFF image", IMAGE)),
    (0, b"MM\0*", ("a TIFF image", IMAGE)),
    (0, b"qoif", ("a QOI image", IMAGE)),
    (4, b"jP  ", ("a JPEG 2000 image", IMAGE)),
    (4, b"JXL ", ("a JPEG XL image", IMAGE)),
    (4, b"ftypheic", ("a HEIC image", IMAGE)),
    (4, b"ftypavif", ("an AVIF image", IMAGE)),
    (4, b"ftyp", ("an MP4 video", VIDEO)),
    (8, b"AVI ", ("an AVI video", VIDEO)),
    (8, b"WAVE", ("a WAV file", "sound is not read")),
    (0, b"fLaC", ("a FLAC file", "sound is not read")),
    (0, b"ID3", ("an MP3 file", "sound is not read")),
    (0, b"%PDF", ("a PDF file", WRITE)),
    (0, b"\x7fELF", ("a program", WRITE)),
    (0, b"\x80\x04\x95", ("a pickle", PICKLE)),
    (0, b"\x80\x05\x95", ("a pickle", PICKLE)),
    (0, b"\x80\x02", ("a pickle", PICKLE)),
    (0, b"GGUF", ("a GGUF file", WRITE)),
];

/// The kind of a file that begins with `head`: at most [`HEAD_BYTES`], and all of a shorter file.
pub(crate) fn kind_of(head: &[u8]) -> Option<Foreign> {
    if head.is_empty() {
        return Some(("an empty file", "was it copied completely?"));
    }
    let has = |offset: usize, magic: &[u8]| {
        head.get(offset..).is_some_and(|bytes| bytes.starts_with(magic))
    };
    let known = |is_long: bool| {
        let mut kinds = MAGICS.iter().filter(|(_, magic, _)| (magic.len() > 3) == is_long);
        kinds.find(|(offset, magic, _)| has(*offset, magic)).map(|&(_, _, foreign)| foreign)
    };
    // Text may begin with three letters by chance.
    known(true).or_else(|| records(head)).or_else(|| text(head)).or_else(|| known(false))
}

/// Files without a long magic. Bitmaps have two zero words. TensorFlow's records have a checksum of
/// the first length, and FFCV's files a version, a number of fields and a size of pages.
fn records(head: &[u8]) -> Option<Foreign> {
    const MASK: u32 = 0xa282_ead8;
    if head.starts_with(b"BM") && head.get(6..10) == Some(&[0; 4]) {
        return Some(("a BMP image", IMAGE));
    }
    let length = head.get(..8)?;
    let checksum = u32::from_le_bytes(head.get(8..12)?.try_into().ok()?);
    if crc32c(length).rotate_right(15).wrapping_add(MASK) == checksum {
        return Some(("a TFRecord file", WRITE));
    }
    let [2, 0, 1..=64, 0] = head.get(..4)? else { return None };
    let page = u64::from_le_bytes(head.get(4..12)?.try_into().ok()?);
    let is_page = page.is_power_of_two() && (1 << 16..=1 << 32).contains(&page);
    is_page.then_some(("an FFCV file (.beton)", WRITE))
}

/// Text: of the web, JSON, or any other.
fn text(head: &[u8]) -> Option<Foreign> {
    // The last character may be cut off.
    let text = match str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(head.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{c}');
    if !text.chars().all(is_text) {
        return None;
    }
    let start = text.trim_start().get(..5).unwrap_or(text).to_ascii_lowercase();
    Some(match &*start {
        "<!doc" | "<html" => ("a web page", "did a download fail?"),
        _ if start.starts_with(['{', '[']) => ("a JSON file", "pass the folder of the images"),
        _ => ("a text file", "tables (CSV) become IDV files by `tl convert`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &[u8], expected: Option<&str>) {
        assert_eq!(kind_of(head).map(|(kind, _)| kind), expected, "{head:?}");
    }

    #[test]
    fn files_are_known_by_their_first_bytes() {
        check(b"", Some("an empty file"));
        check(b"PAR1\x15\0", Some("a Parquet file"));
        check(b"RIFF\0\0\0\0WEBPVP8 ", Some("a WebP image"));
        check(b"\0\0\0\x20ftypisom", Some("an MP4 video"));
        check(b"\0\0\0\x20ftypavif", Some("an AVIF image"));
        check(b"  {\"images\": []}", Some("a JSON file"));
        check(b"<!DOCTYPE html>", Some("a web page"));
        check("path,label\nä.jpg,1\n".as_bytes(), Some("a text file"));
        // Cut within a character.
        check(&"path,ä".as_bytes()[..6], Some("a text file"));
        check(b"MMIDIDX\0\0\x01\0\0\0\0\0\0\0\x08", Some("an index of Megatron-LM"));
        check(
            &[&20_240_520_i32.to_le_bytes()[..], &[1, 0, 0, 0]].concat(),
            Some("tokens of llm.c"),
        );
        check(
            &[&20_240_801_i32.to_le_bytes()[..], &[7, 0, 0, 0]].concat(),
            Some("tokens of llm.c"),
        );
        check(b"BMW,3\nORC,4\n", Some("a text file"));
        check(b"BM\x46\0\0\0\0\0\0\0\x36\0", Some("a BMP image"));
        check(b"\xff\xd8\xff\xe0", Some("a JPEG image"));
        check(b"path,\xff\xfelabel", None);
        check(&[0; 512], None);
        check(&[1; 20], None);
    }

    #[test]
    fn records_are_known_by_checksum_and_pages() {
        let mut record = 600_u64.to_le_bytes().to_vec();
        let masked = crc32c(&record).rotate_right(15).wrapping_add(0xa282_ead8);
        record.extend(masked.to_le_bytes());
        check(&record, Some("a TFRecord file"));
        record[8] ^= 1;
        check(&record, None);
        let mut beton = vec![2, 0, 2, 0];
        beton.extend((8_u64 << 20).to_le_bytes());
        check(&beton, Some("an FFCV file (.beton)"));
        beton[4] = 1;
        check(&beton, None);
    }
}
