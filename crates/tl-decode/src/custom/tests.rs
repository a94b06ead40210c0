use super::*;

/// A decoder that makes what it was told to, whatever the bytes are.
#[derive(Clone)]
struct Made {
    image: Image,
    probed: Option<ImageForm>,
}

impl Made {
    fn new(form: ImageForm, data: &[u8]) -> Self {
        let ImageForm { width, height, channels, pixels } = form;
        let image = Image { width, height, channels, pixels, data: data.to_vec() };
        Self { image, probed: None }
    }
}

impl Decode for Made {
    fn takes(&self, extension: &str, bytes: &[u8]) -> bool {
        assert_ne!(bytes, b"panic", "asked\nfor it");
        extension == "made" || bytes.starts_with(b"MADE")
    }

    fn probe(&self, _: &[u8]) -> Result<Option<ImageForm>, CustomError> {
        Ok(self.probed)
    }

    fn decode(&self, bytes: &[u8], _: &Limits, image: &mut Image) -> Result<(), CustomError> {
        assert!(image.data.is_empty(), "an empty image");
        assert_ne!(bytes, b"MADE panic", "decoding\nit");
        if bytes == b"MADE fail" {
            return Err("line one\nline two".into());
        }
        *image = self.image.clone();
        Ok(())
    }
}

const fn form(channels: u8, pixels: PixelType) -> ImageForm {
    ImageForm { width: 2, height: 1, channels, pixels }
}

fn options(color: Color, pixels: PixelType) -> DecodeOptions {
    DecodeOptions { color, pixels, ..DecodeOptions::default() }
}

fn decoded(made: &Made, options: &DecodeOptions) -> Result<Image, CustomFault> {
    let decoders = Decoders::new().with("made", 1, made.clone());
    let mut image = Image::new();
    image.data = vec![9; 100];
    decoders.iter().next().unwrap().decode(b"MADE", options, &mut image)?;
    Ok(image)
}

fn bytes_of<T: Copy, const N: usize>(numbers: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| bytes(*number)).collect()
}

#[test]
fn files_are_chosen_by_name_and_content_in_the_order_of_decoders() {
    let made = || Made::new(form(1, PixelType::U8), &[0; 2]);
    let decoders = Decoders::new().with("a", 1, made()).with("b", 2, made()).with("a", 3, made());
    let names: Vec<_> = decoders.iter().map(|one| (one.name(), one.version())).collect();
    assert_eq!(names, [("b", 2), ("a", 3)]);
    let taken = |name: &[u8], bytes: &[u8]| {
        decoders.find(name, bytes).map(|found| found.map(|found| found.name().to_owned()))
    };
    let taken = |name, bytes| taken(name, bytes).unwrap();
    assert_eq!(taken(b"x/y.MaDe", b"").as_deref(), Some("b"));
    assert_eq!(taken(b"", b"MADE..").as_deref(), Some("b"));
    for (name, bytes) in [(&b"made"[..], &b"..."[..]), (b"x.made/y", b""), (b"a.made.jpg", b"")] {
        assert_eq!(taken(name, bytes), None, "{name:?}");
    }
    let error = decoders.find(b"", b"panic").unwrap_err().to_string();
    assert!(
        error.starts_with("decoder b: panicked: ") && error.contains("asked\\nfor it"),
        "{error}"
    );
}

#[test]
fn identities_differ_with_names_versions_and_order() {
    let made = || Made::new(form(1, PixelType::U8), &[0; 2]);
    let decoders = |pairs: &[(&str, u32)]| {
        let mut decoders = Decoders::new();
        for (name, version) in pairs {
            decoders = decoders.with(*name, *version, made());
        }
        decoders.identity()
    };
    assert!(decoders(&[]).is_empty());
    let all = [
        decoders(&[("a", 1), ("b", 1)]),
        decoders(&[("b", 1), ("a", 1)]),
        decoders(&[("a", 2), ("b", 1)]),
        decoders(&[("ab", 1)]),
        decoders(&[("a", 1)]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(all.iter().skip(at + 1).all(|other| one != other));
    }
}

#[test]
fn images_take_the_channels_and_pixels_that_are_asked_for() {
    let u16s = |numbers: &[u16]| bytes_of(numbers, u16::to_ne_bytes);
    let f32s = |numbers: &[f32]| bytes_of(numbers, f32::to_ne_bytes);
    let check = |made: Made, color, pixels, expected: Vec<u8>| {
        let image = decoded(&made, &options(color, pixels)).unwrap();
        assert_eq!(image.data, expected, "{:?} to {color:?} {pixels:?}", made.image);
        assert_eq!((image.channels, image.pixels), (color.channels(), pixels));
    };
    let grey = Made::new(form(1, PixelType::U8), &[7, 200]);
    let rgb = Made::new(form(3, PixelType::U8), &[1, 2, 3, 250, 251, 252]);
    let rgba = Made::new(form(4, PixelType::U8), &[1, 2, 3, 0, 250, 251, 252, 9]);
    check(grey.clone(), Color::Grey, PixelType::U8, vec![7, 200]);
    check(grey.clone(), Color::Rgb, PixelType::U8, vec![7, 7, 7, 200, 200, 200]);
    check(grey.clone(), Color::Rgba, PixelType::U8, vec![7, 7, 7, 255, 200, 200, 200, 255]);
    check(grey, Color::Grey, PixelType::F32, f32s(&[7.0, 200.0]));
    check(rgb.clone(), Color::Rgba, PixelType::U8, vec![1, 2, 3, 255, 250, 251, 252, 255]);
    // Pillow: (19595 r + 38470 g + 7471 b + 32768) >> 16.
    check(rgb, Color::Grey, PixelType::U8, vec![2, 251]);
    check(rgba.clone(), Color::Rgb, PixelType::U8, vec![1, 2, 3, 250, 251, 252]);
    check(rgba, Color::Grey, PixelType::U8, vec![2, 251]);
    let wide = Made::new(form(1, PixelType::U16), &u16s(&[300, 65_535]));
    check(wide.clone(), Color::Grey, PixelType::U16, u16s(&[300, 65_535]));
    check(wide.clone(), Color::Rgb, PixelType::U16, u16s(&[300, 300, 300, 65_535, 65_535, 65_535]));
    check(wide, Color::Grey, PixelType::F32, f32s(&[300.0, 65_535.0]));
    let float = Made::new(form(1, PixelType::F32), &f32s(&[0.5, -3.0]));
    check(float.clone(), Color::Grey, PixelType::F32, f32s(&[0.5, -3.0]));
    check(float.clone(), Color::Rgb, PixelType::F32, f32s(&[0.5, 0.5, 0.5, -3.0, -3.0, -3.0]));
    let refused = decoded(&float, &options(Color::Rgb, PixelType::U8));
    let error = refused.unwrap_err();
    assert!(matches!(error, CustomFault::Pixels { .. }), "{error}");
}

#[test]
fn what_is_no_image_or_too_large_is_refused() {
    let fails = |made: &Made, options: &DecodeOptions| decoded(made, options).unwrap_err();
    let plain = options(Color::Rgb, PixelType::U8);
    let good = form(3, PixelType::U8);
    for bytes in [5, 7] {
        let error = fails(&Made::new(good, &vec![0; bytes]), &plain);
        assert!(matches!(error, CustomFault::Form { need: 6, .. }), "{error}");
    }
    // 64 channels of floats are 256 bytes, whose low byte is 0.
    for channels in [0, 2, 64] {
        let error = fails(&Made::new(form(channels, PixelType::F32), &[]), &plain);
        assert!(matches!(error, CustomFault::Channels { .. }), "{error}");
    }
    let error = fails(&Made::new(ImageForm { width: 0, ..good }, &[]), &plain);
    assert!(matches!(error, CustomFault::Empty { .. }), "{error}");
    let mut limited = plain;
    limited.limits.max_decoded_bytes = 5;
    let error = fails(&Made::new(good, &[0; 6]), &limited);
    let CustomFault::Limit(limit) = &error else { panic!("{error}") };
    let exceeded = DecodeError::LimitExceeded { limit: Limit::DecodedBytes, max: 5, need: 6 };
    assert_eq!(limit.to_string(), exceeded.to_string());
    // A probe is charged before anything is decoded.
    let probed = ImageForm { width: u32::MAX, height: u32::MAX, ..good };
    let made = Made { probed: Some(probed), ..Made::new(good, &[0; 6]) };
    assert!(matches!(fails(&made, &plain), CustomFault::Limit(_)));
    let probed = Some(ImageForm { height: 2, ..good });
    let error = fails(&Made { probed, ..made }, &plain);
    assert!(matches!(error, CustomFault::Probe { .. }), "{error}");
    // Grey that fits, whose RGB does not.
    let error = fails(&Made::new(form(1, PixelType::U8), &[0; 2]), &limited);
    assert!(matches!(error, CustomFault::Limit(_)), "{error}");
}

/// A decoder that compares its image with the limits itself, as it is told to.
struct Careful;

impl Decode for Careful {
    fn takes(&self, _: &str, _: &[u8]) -> bool {
        true
    }

    fn decode(&self, _: &[u8], limits: &Limits, _: &mut Image) -> Result<(), CustomError> {
        form(4, PixelType::F32).charge(limits)?;
        Err("the limits allow it".into())
    }
}

/// A loader with a budget repeats a sample that was above the limits, and no other.
#[test]
fn a_limit_that_a_decoder_finds_is_one() {
    let decoders = Decoders::new().with("careful", 1, Careful);
    let decoder = decoders.find(b"", b"").unwrap().unwrap();
    let mut options = options(Color::Rgb, PixelType::U8);
    let error = decoder.decode(b"", &options, &mut Image::new()).unwrap_err();
    assert!(matches!(error, CustomFault::Failed(_)), "{error}");
    options.limits.max_decoded_bytes = 31;
    let error = decoder.decode(b"", &options, &mut Image::new()).unwrap_err();
    assert!(matches!(error, CustomFault::Limit(_)), "{error}");
}

#[test]
fn errors_and_panics_are_one_line() {
    let decoders = Decoders::new().with("made", 1, Made::new(form(1, PixelType::U8), &[0; 2]));
    let decode = |bytes: &[u8]| {
        let decoder = decoders.find(b"", bytes).unwrap().unwrap();
        decoder.decode(bytes, &DecodeOptions::default(), &mut Image::new()).unwrap_err().to_string()
    };
    assert_eq!(decode(b"MADE fail"), "line one\\nline two");
    let text = decode(b"MADE panic");
    assert!(text.starts_with("panicked: ") && text.contains("decoding\\nit"), "{text}");
}
