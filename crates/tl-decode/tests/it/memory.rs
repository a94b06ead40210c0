//! Limits are charged before anything is allocated.

use tl_decode::{DecodeError, DecodeOptions, Decoder, Image, Limit, Limits};

use crate::manifest::entries;

fn decode_with(bytes: &[u8], limits: Limits) -> (Result<(), DecodeError>, Image) {
    let mut image = Image::new();
    let options = DecodeOptions { limits, ..DecodeOptions::default() };
    (Decoder::new(options).decode_into(bytes, &mut image), image)
}

#[test]
fn each_limit_refuses_before_the_image_is_allocated() {
    let defaults = Limits::default();
    let cases = [
        (Limit::Pixels, Limits { max_pixels: 16, ..defaults }),
        (Limit::Dimension, Limits { max_dimension: 4, ..defaults }),
        (Limit::DecodedBytes, Limits { max_decoded_bytes: 48, ..defaults }),
    ];
    for entry in entries().iter().filter(|entry| entry.get("error").is_none()) {
        if entry.get("size") == Some("[1, 1]") {
            continue;
        }
        for (expected, limits) in cases {
            let (result, image) = decode_with(&entry.bytes(), limits);
            let Err(DecodeError::LimitExceeded { limit, max, need }) = result else {
                panic!("{} passed {expected}", entry.file());
            };
            assert_eq!(limit, expected, "{}", entry.file());
            assert!(need > max, "{}", entry.file());
            assert_eq!(image.data.capacity(), 0, "{}", entry.file());
        }
    }
}

#[test]
fn claims_that_the_bytes_cannot_keep_cost_nothing() {
    for entry in entries().iter().filter(|entry| entry.file().contains("large_claim")) {
        let (result, image) = decode_with(&entry.bytes(), Limits::default());
        result.expect_err(entry.file());
        assert_eq!(image.data.capacity(), 0, "{}", entry.file());
    }
}
