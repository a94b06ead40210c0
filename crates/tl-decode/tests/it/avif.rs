//! AVIF files that ask for more time or memory than their size tells.

use std::time::{Duration, Instant};

use tl_decode::{DecodeError, DecodeOptions, Decoder, Image, Limit, Limits, probe};

use crate::manifest::entries;

fn boxed(kind: &[u8; 4], contents: &[u8]) -> Vec<u8> {
    let length = u32::try_from(8 + contents.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), &kind[..], contents].concat()
}

/// A box with version and flags of 0.
fn full(kind: &[u8; 4], contents: &[u8]) -> Vec<u8> {
    boxed(kind, &[&[0; 4], contents].concat())
}

/// The boxes of a file of one or two items, of which the first is the image of 1 by 1 pixels.
struct File {
    /// The extents of the image's data: offsets and lengths.
    extents: Vec<[u32; 2]>,
    /// Properties after `ispe` (1) and `av1C` (2).
    properties: Vec<u8>,
    /// Entries of `ipma` after that of the image.
    associations: Vec<Vec<u8>>,
    references: Vec<u8>,
    /// Bytes after the boxes of metadata.
    data: Vec<u8>,
}

impl File {
    fn new() -> Self {
        let data = Vec::new();
        let associations = Vec::new();
        let references = Vec::new();
        Self { extents: vec![[0, 4]], properties: Vec::new(), associations, references, data }
    }

    fn bytes(&self) -> Vec<u8> {
        let count = u16::try_from(self.extents.len()).unwrap_or(u16::MAX);
        let extents: Vec<u8> =
            self.extents.as_flattened().iter().flat_map(|n| n.to_be_bytes()).collect();
        let places = [&[0x44, 0, 0, 1, 0, 1, 0, 0], &count.to_be_bytes()[..], &extents].concat();
        let infe = boxed(b"infe", b"\x02\0\0\0\0\x01\0\0av01\0");
        let size = full(b"ispe", &[0, 0, 0, 1, 0, 0, 0, 1]);
        let list = [size, boxed(b"av1C", &[0x81, 0, 0x0C, 0]), self.properties.clone()].concat();
        let count = u32::try_from(1 + self.associations.len()).unwrap_or(u32::MAX);
        let entries = [&[0, 1, 2, 1, 2][..], &self.associations.concat()].concat();
        let ipma = full(b"ipma", &[&count.to_be_bytes()[..], &entries].concat());
        let meta = [
            full(b"pitm", &[0, 1]),
            full(b"iloc", &places),
            full(b"iinf", &[&[0, 1][..], &infe].concat()),
            boxed(b"iprp", &[boxed(b"ipco", &list), ipma].concat()),
            full(b"iref", &self.references),
        ];
        let file = [boxed(b"ftyp", b"avif\0\0\0\0avif"), full(b"meta", &meta.concat())].concat();
        [file, boxed(b"mdat", &self.data)].concat()
    }
}

fn decode_with(bytes: &[u8], max_working_bytes: u64) -> Result<Image, DecodeError> {
    let limits = Limits { max_working_bytes, ..Limits::default() };
    let mut image = Image::new();
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    Decoder::new(options).decode_into(bytes, &mut image)?;
    Ok(image)
}

#[test]
fn an_item_has_its_properties_in_one_place() {
    let mut file = File::new();
    assert_eq!(probe(&file.bytes()).unwrap().width, 1);
    file.associations = vec![vec![0, 2, 1, 1], vec![0, 2, 1, 1]];
    let error = probe(&file.bytes()).unwrap_err().to_string();
    assert!(error.contains("AVIF item with properties in two places (ipma)"), "{error}");
    assert!(error.ends_with("is 2"), "{error}");
}

#[test]
fn references_to_long_properties_take_no_time() {
    // An auxiliary item that refers to the image 200 000 times and has a text of 400 000 bytes, without
    // an end, 255 times.
    let mut file = File::new();
    file.properties = full(b"auxC", &[b'a'; 400_000]);
    file.associations = vec![[&[0, 2, 255][..], &[3; 255]].concat()];
    let to = [0, 1].repeat(50_000);
    let entry = boxed(b"auxl", &[&[0, 2], &50_000u16.to_be_bytes()[..], &to].concat());
    file.references = entry.repeat(4);
    let bytes = file.bytes();
    let start = Instant::now();
    assert!(!probe(&bytes).unwrap().has_alpha);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn data_in_pieces_is_not_joined_before_it_is_charged() {
    let mut file = File::new();
    file.data = vec![0; 1 << 20];
    file.extents = vec![[0, 1 << 20]; 500];
    let bytes = file.bytes();
    assert_eq!(probe(&bytes).unwrap().width, 1);
    let need = (500 << 20) + 500 + 3;
    let max = Limits::default().max_working_bytes;
    let error = decode_with(&bytes, max).unwrap_err();
    let expected = DecodeError::LimitExceeded { limit: Limit::WorkingBytes, max, need };
    assert_eq!(error.to_string(), expected.to_string());
}

#[test]
fn planes_of_a_grid_are_charged_as_they_are_decoded() {
    let entry = entries().into_iter().find(|entry| entry.file() == "avif/grid.avif").unwrap();
    let mut bytes = entry.bytes();
    let expected = decode_with(&bytes, 1 << 20).unwrap();
    // The configuration of the tiles says monochrome; they are 4:2:0.
    let place = bytes.windows(4).position(|kind| kind == b"av1C").unwrap();
    assert_eq!(bytes[place + 4..place + 8], [0x81, 0, 0x0C, 0]);
    bytes[place + 6] = 0x1C;
    // A tile of 64 by 64 takes 25 bytes a sample to decode. The image is of 118 by 90.
    let tile = 64 * 64 * 25;
    let stated = 118 * 90;
    let need = tile + stated + 2 * 59 * 45;
    assert!(decode_with(&bytes, need).unwrap() == expected);
    for max in [tile + stated, need - 1] {
        let error = decode_with(&bytes, max).unwrap_err();
        let expected = DecodeError::LimitExceeded { limit: Limit::WorkingBytes, max, need };
        assert_eq!(error.to_string(), expected.to_string());
    }
}
