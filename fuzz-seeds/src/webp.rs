//! WebP: a region holds the pixels of the whole image, and every level of
//! instructions gives the same.

use tl_decode::{Color, DecodeError, Format, Image, Level, Rect, WebpDecoder, WebpRequest, probe};

use crate::decode::limits;
use crate::jpeg::cut;
use crate::jpeg_file::Choices;

/// Decodes a region and the whole image, of a file after the request: where both succeed, the
/// region's pixels are the image's, and a region of a good image decodes.
pub fn webp_region_equals_full(data: &[u8]) {
    let mut choices = Choices(data);
    let color = [Color::Rgb, Color::Rgba, Color::Grey][usize::from(choices.byte() % 3)];
    let [x, y, across, down] = std::array::from_fn(|_| u32::from(choices.byte()));
    let file = choices.0;
    if Format::sniff(file) != Some(Format::WebP) {
        return;
    }
    let Ok(info) = probe(file) else { return };
    let x = x % info.width;
    let y = y % info.height;
    let width = across % (info.width - x) + 1;
    let height = down % (info.height - y) + 1;
    let region = Rect { x, y, width, height };
    let request = WebpRequest { color, ..WebpRequest::default() };
    let whole = decode(Level::Scalar, file, &request);
    for level in Level::available() {
        let part = decode(level, file, &WebpRequest { region: Some(region), ..request });
        match (&whole, &part) {
            (Ok(whole), Ok(part)) => assert_eq!(part.data, cut(whole, region), "{region:?}"),
            (Ok(_), Err(error)) => panic!("{level}, {region:?}: {error}"),
            // What lies below the region is not looked at.
            (Err(_), _) => {}
        }
        match (&whole, decode(level, file, &request)) {
            (Ok(whole), Ok(image)) => assert_eq!(image, *whole, "{level}"),
            (Err(expected), Err(error)) => assert_eq!(error.to_string(), expected.to_string()),
            (_, other) => panic!("{level} decodes otherwise: {other:?}"),
        }
    }
}

fn decode(level: Level, file: &[u8], request: &WebpRequest) -> Result<Image, DecodeError> {
    let mut image = Image::new();
    let mut decoder = WebpDecoder::new(limits()).with_level(level);
    decoder.decode(file, request, &mut image).map(|_| image)
}
