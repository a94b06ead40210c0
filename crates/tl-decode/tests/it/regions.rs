//! Parts of images of every format.

use tl_decode::{DecodeError, DecodeOptions, Decoder, Exif, Image, PixelType, Rect};

use crate::manifest::entries;

fn cut(image: &Image, region: Rect) -> Vec<u8> {
    let bytes = image.pixel_bytes();
    let rows = image.data.chunks(image.row_bytes()).skip(region.y as usize);
    rows.take(region.height as usize)
        .flat_map(|row| &row[region.x as usize * bytes..][..region.width as usize * bytes])
        .copied()
        .collect()
}

#[test]
fn a_region_of_any_format_has_the_pixels_of_the_whole() {
    let (mut whole, mut part) = (Image::new(), Image::new());
    let mut compared = 0;
    for entry in entries() {
        let bytes = entry.bytes();
        for exif in [Exif::Ignore, Exif::Apply] {
            for pixels in [PixelType::U8, PixelType::F32] {
                let mut decoder =
                    Decoder::new(DecodeOptions { exif, pixels, ..DecodeOptions::default() });
                if decoder.decode_into(&bytes, &mut whole).is_err() {
                    continue;
                }
                let Image { width, height, .. } = whole;
                let region = Rect {
                    x: width / 3,
                    y: height / 4,
                    width: width - width / 3,
                    height: height / 2 + 1,
                };
                let region = Rect { height: region.height.min(height - region.y), ..region };
                decoder.decode_region(&bytes, region, &mut part).unwrap();
                assert_eq!((part.width, part.height), (region.width, region.height));
                assert!(part.data == cut(&whole, region), "{}: {exif:?} {pixels:?}", entry.file());
                let outside = Rect { x: width, ..region };
                let refused = decoder.decode_region(&bytes, outside, &mut part);
                assert!(matches!(refused, Err(DecodeError::Region { .. })), "{}", entry.file());
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} images");
}
