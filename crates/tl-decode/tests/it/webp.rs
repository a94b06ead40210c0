//! Lossy WebP files: parts of them, every level, and the crate `image-webp`, whose pixels are
//! libwebp's.

use std::io::Cursor;
use std::path::Path;

use tl_decode::{Color, DecodeError, Image, Level, Limits, Rect, WebpDecoder, WebpRequest};

use crate::manifest::{Entry, entries};

fn webp_entries() -> impl Iterator<Item = Entry> {
    let good = entries().into_iter().filter(|entry| entry.get("error").is_none());
    good.filter(|entry| entry.file().starts_with("webp/"))
}

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    /// A number below `end`.
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let high = u32::try_from(self.0 >> 33).expect("31 bits");
        high % end
    }

    /// A region of an image of this size.
    fn region(&mut self, width: u32, height: u32) -> Rect {
        let (right, bottom) = (1 + self.below(width), 1 + self.below(height));
        let (x, y) = (self.below(right), self.below(bottom));
        Rect { x, y, width: right - x, height: bottom - y }
    }
}

fn cut(image: &Image, region: Rect) -> Vec<u8> {
    let bytes = image.pixel_bytes();
    let rows = image.data.chunks(image.row_bytes());
    let rows = rows.skip(region.y as usize).take(region.height as usize);
    rows.flat_map(|row| &row[region.x as usize * bytes..][..region.width as usize * bytes])
        .copied()
        .collect()
}

/// Checks parts of a file, in all colours, against the whole, which is returned.
fn require_parts(name: &str, bytes: &[u8], numbers: &mut Numbers) -> Image {
    let mut decoder = WebpDecoder::new(Limits::default());
    let (mut whole, mut part) = (Image::new(), Image::new());
    for color in [Color::Grey, Color::Rgba, Color::Rgb] {
        let request = WebpRequest { color, ..WebpRequest::default() };
        decoder.decode(bytes, &request, &mut whole).expect(name);
        for _ in 0..20 {
            let region = numbers.region(whole.width, whole.height);
            let request = WebpRequest { region: Some(region), ..request };
            decoder.decode(bytes, &request, &mut part).expect(name);
            assert_eq!((part.width, part.height), (region.width, region.height), "{name}");
            assert!(part.data == cut(&whole, region), "{name}: {region:?} of {color:?}");
        }
    }
    whole
}

#[test]
fn parts_have_the_pixels_of_the_whole() {
    let mut numbers = Numbers(1);
    for entry in webp_entries() {
        require_parts(entry.file(), &entry.bytes(), &mut numbers);
    }
}

#[test]
fn every_level_gives_the_same_pixels() {
    for entry in webp_entries() {
        let bytes = entry.bytes();
        let mut images = Level::available().map(|level| {
            let mut image = Image::new();
            let mut decoder = WebpDecoder::new(Limits::default()).with_level(level);
            let request = WebpRequest::default();
            let decoded = decoder.decode(&bytes, &request, &mut image);
            assert!(decoded.is_ok(), "{}: {decoded:?}", entry.file());
            image
        });
        let scalar = images.next().expect("the scalar level exists everywhere");
        assert!(images.all(|image| image == scalar), "{}", entry.file());
    }
}

#[test]
fn a_region_outside_the_image_is_refused() {
    let entry = webp_entries().next().expect("there are WebP files");
    let mut image = Image::new();
    for region in [
        Rect { x: 0, y: 0, width: 0, height: 1 },
        Rect { x: 0, y: 0, width: 20_000, height: 1 },
        Rect { x: u32::MAX, y: 0, width: 2, height: 1 },
    ] {
        let request = WebpRequest { region: Some(region), ..WebpRequest::default() };
        let refused = WebpDecoder::default().decode(&entry.bytes(), &request, &mut image);
        assert!(matches!(refused, Err(DecodeError::Region { .. })), "{region:?}: {refused:?}");
    }
}

/// A file whose token partition lost its last bytes, with sizes that say nothing of it.
#[test]
fn tokens_that_end_early_are_an_error_with_their_place() {
    let mut bytes = webp_entries().find(|entry| entry.file() == "webp/lossy.webp").unwrap().bytes();
    let (size_of_chunk, data) = (16..20, 20);
    let size = u32::from_le_bytes(bytes[size_of_chunk.clone()].try_into().unwrap());
    let shorter = (size / 2) & !1;
    bytes.truncate(data + shorter as usize);
    bytes[size_of_chunk].copy_from_slice(&shorter.to_le_bytes());
    let riff = u32::try_from(bytes.len() - 8).unwrap();
    bytes[4..8].copy_from_slice(&riff.to_le_bytes());
    let error = WebpDecoder::default()
        .decode(&bytes, &WebpRequest::default(), &mut Image::new())
        .unwrap_err()
        .to_string();
    let end = bytes.len();
    assert_eq!(
        error,
        format!("malformed: WebP at byte {end}: a partition of VP8 ends before its macroblocks")
    );
}

/// The pixels that `image-webp` makes, if the file is one still image that it can read.
fn by_image_webp(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).ok()?;
    if decoder.is_animated() {
        return None;
    }
    let mut pixels = vec![0; decoder.output_buffer_size()?];
    decoder.read_image(&mut pixels).ok()?;
    if decoder.has_alpha() {
        pixels = pixels.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect();
    }
    Some(pixels)
}

fn check_corpus(folder: &Path, numbers: &mut Numbers) -> u32 {
    let mut compared = 0;
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a folder entry").path();
        if path.extension().is_none_or(|extension| extension != "webp") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let small = Limits { max_pixels: 1 << 22, ..Limits::default() };
        let decoded =
            WebpDecoder::new(small).decode(&bytes, &WebpRequest::default(), &mut Image::new());
        if let (Ok(_), Some(expected)) = (decoded, by_image_webp(&bytes)) {
            let name = path.display().to_string();
            let whole = require_parts(&name, &bytes, numbers);
            assert!(whole.data == expected, "{name}");
            compared += 1;
        }
    }
    compared
}

#[tl_testdata::needs("corpora")]
#[test]
fn files_of_others_have_the_pixels_of_image_webp() {
    let corpora = tl_testdata::path!("corpora");
    let mut numbers = Numbers(2);
    // Files of fuzzers have coefficients that no encoder makes, for which `image-webp` has others.
    let compared: u32 = ["webp-libwebp", "webp-imagers"]
        .map(|set| check_corpus(&corpora.join(set), &mut numbers))
        .into_iter()
        .sum();
    assert!(compared >= 75, "{compared} files were compared");
}
