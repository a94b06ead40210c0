//! JPEG of every kind, scale and level against Pillow, and regions against whole images.

use std::path::PathBuf;

use tl_decode::{
    Color, DecodeError, DecodeOptions, Decoder, Feature, Image, JpegDecoder, JpegRequest, Level,
    Limits, OnDamaged, Plane, Rect, RowIndex, Scale,
};

use crate::manifest::{Entry, entries_of, sha256};

pub(crate) const SCALES: [(Scale, &str); 4] = [
    (Scale::FULL, "full"),
    (Scale::HALF, "half"),
    (Scale::QUARTER, "quarter"),
    (Scale::EIGHTH, "eighth"),
];

fn folder() -> PathBuf {
    tl_testdata::shipped!("jpeg")
}

pub(crate) fn entries() -> Vec<Entry> {
    let entries = entries_of(&folder());
    assert!(entries.len() > 80, "{} entries", entries.len());
    entries
}

pub(crate) fn read(entry: &Entry) -> Vec<u8> {
    std::fs::read(folder().join(entry.file())).expect("the file is next to the manifest")
}

pub(crate) fn decoder() -> JpegDecoder {
    JpegDecoder::new(Limits::default())
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from((self.0 >> 33) % u64::from(end)).expect("below a u32")
    }

    pub(crate) fn rect(&mut self, width: u32, height: u32) -> Rect {
        let (x, y) = (self.below(width), self.below(height));
        Rect { x, y, width: 1 + self.below(width - x), height: 1 + self.below(height - y) }
    }
}

#[test]
fn every_kind_decodes_as_pillow_does_at_every_scale_and_level() {
    for level in Level::available() {
        let mut decoder = decoder().with_level(level);
        for entry in entries() {
            for (scale, key) in SCALES {
                check(&mut decoder, &entry, key, JpegRequest { scale, ..JpegRequest::default() });
            }
            let color = Color::Grey;
            check(&mut decoder, &entry, "grey", JpegRequest { color, ..JpegRequest::default() });
        }
    }
}

/// At all sixteen scales, one after the other, whole and by a region.
#[test]
fn every_kind_decodes_as_libjpeg_turbo_does_at_every_eighth() {
    for level in Level::available() {
        let mut decoder = decoder().with_level(level);
        let mut numbers = Numbers(3);
        let (mut whole, mut part) = (Image::new(), Image::new());
        for entry in entries() {
            let Some(expected) = entry.get("eighths") else { continue };
            let (file, bytes) = (entry.file(), read(&entry));
            let mut pixels = Vec::new();
            for scale in Scale::all() {
                let request = JpegRequest { scale, ..JpegRequest::default() };
                decoder.decode(&bytes, &request, &mut whole).expect(file);
                pixels.extend_from_slice(&whole.data);
                let region = numbers.rect(whole.width, whole.height);
                let request = JpegRequest { region: Some(region), ..request };
                decoder.decode(&bytes, &request, &mut part).expect(file);
                let cut = crop(&whole.data, whole.row_bytes(), region, 3);
                assert!(part.data == cut, "{file} at {scale}, {region:?}");
            }
            assert_eq!(sha256(&pixels), expected, "{file} at {level}");
        }
    }
}

fn check(decoder: &mut JpegDecoder, entry: &Entry, key: &str, request: JpegRequest<'_>) {
    let mut image = Image::new();
    let result = decoder.decode(&read(entry), &request, &mut image);
    let file = entry.file();
    match (entry.get(key), result) {
        (Some(expected), Ok(_)) => assert_eq!(sha256(&image.data), expected, "{file} {key}"),
        (Some(_), Err(error)) => panic!("{file} {key}: {error}"),
        (None, Ok(_)) => panic!("{file} {key} decoded"),
        (None, Err(error)) => {
            let feature = if file.starts_with("fractional") {
                Feature::JpegSampling
            } else {
                Feature::JpegFrame(3)
            };
            assert!(
                matches!(error, DecodeError::Unsupported(found) if found == feature),
                "{file} {key}: {error}"
            );
        }
    }
}

/// Calls `f` with each file that decodes, at each of its scales.
pub(crate) fn for_each(mut f: impl FnMut(&str, &[u8], Scale)) {
    for entry in entries() {
        let bytes = read(&entry);
        for (scale, key) in SCALES {
            if entry.get(key).is_some() {
                f(entry.file(), &bytes, scale);
            }
        }
    }
}

#[test]
fn a_region_has_the_pixels_of_the_whole_image() {
    let mut decoder = decoder();
    let mut numbers = Numbers(1);
    let (mut whole, mut part) = (Image::new(), Image::new());
    for_each(|file, bytes, scale| {
        let request = JpegRequest { scale, ..JpegRequest::default() };
        decoder.decode(bytes, &request, &mut whole).expect(file);
        for _ in 0..20 {
            let region = numbers.rect(whole.width, whole.height);
            let request = JpegRequest { region: Some(region), ..request };
            decoder.decode(bytes, &request, &mut part).expect(file);
            let expected = crop(&whole.data, whole.row_bytes(), region, 3);
            assert!(part.data == expected, "{file} at {scale}, {region:?}");
        }
    });
}

/// What the factors of an only component are makes no difference, in progressive files as well.
#[test]
fn the_sampling_factors_of_an_only_component_cancel_out() {
    let mut decoder = decoder();
    let (mut plain, mut image) = (Image::new(), Image::new());
    for name in ["grey.jpg", "progressive_default_grey.jpg"] {
        let mut bytes = std::fs::read(folder().join(name)).expect("the file exists");
        let frame = bytes.windows(2).position(|marker| matches!(marker, [0xFF, 0xC0..=0xC2]));
        let factors = frame.expect("a frame header") + 11;
        assert_eq!(bytes[factors], 0x11, "{name}");
        decoder.decode(&bytes, &JpegRequest::default(), &mut plain).expect("a good file");
        let stride = plain.width as usize * 3;
        for other in [0x12, 0x21, 0x22, 0x13, 0x41] {
            bytes[factors] = other;
            decoder.decode(&bytes, &JpegRequest::default(), &mut image).expect("a good file");
            assert!(image.data == plain.data, "{name} {other:x}");
            let region = Rect { x: 9, y: 10, width: 11, height: 7 };
            let request = JpegRequest { region: Some(region), ..JpegRequest::default() };
            decoder.decode(&bytes, &request, &mut image).expect("a good file");
            assert!(image.data == crop(&plain.data, stride, region, 3), "{name} {other:x}");
        }
    }
}

#[test]
fn a_row_index_changes_no_pixel() {
    let mut decoder = decoder();
    let mut numbers = Numbers(4);
    let (mut whole, mut part) = (Image::new(), Image::new());
    let mut indexed = 0;
    for_each(|file, bytes, scale| {
        let mut index = Vec::new();
        if !decoder.row_index(bytes, &mut index).expect(file) {
            assert!(index.is_empty(), "{file}");
            return;
        }
        indexed += 1;
        let request = JpegRequest { scale, ..JpegRequest::default() };
        decoder.decode(bytes, &request, &mut whole).expect(file);
        let index = Some(RowIndex::parse(&index).expect(file));
        for _ in 0..20 {
            let region = numbers.rect(whole.width, whole.height);
            let request = JpegRequest { region: Some(region), index, ..request };
            decoder.decode(bytes, &request, &mut part).expect(file);
            let expected = crop(&whole.data, whole.row_bytes(), region, 3);
            assert!(part.data == expected, "{file} at {scale}, {region:?}");
        }
    });
    assert!(indexed > 200, "{indexed} files and scales");
}

#[test]
fn the_row_index_of_another_file_is_refused() {
    let file = |name| std::fs::read(folder().join(name)).expect("a file");
    let mut index = Vec::new();
    assert!(decoder().row_index(&file("wide.jpg"), &mut index).expect("an index"));
    let refuse = |index: &[u8], bytes: &[u8]| {
        let index = Some(RowIndex::parse(index).expect("an index"));
        let request = JpegRequest { index, ..JpegRequest::default() };
        let error = decoder().decode(bytes, &request, &mut Image::new()).expect_err("another file");
        assert!(error.to_string().ends_with(": row index of another file"), "{error}");
    };
    refuse(&index, &file("tall.jpg"));
    // An older version of the file differs in a byte that means nothing.
    let mut bytes = file("wide.jpg");
    bytes.push(0);
    refuse(&index, &bytes);
    let mut newer = Vec::new();
    assert!(decoder().row_index(&bytes, &mut newer).expect("an index"));
    refuse(&newer, &file("wide.jpg"));
}

#[test]
fn a_damaged_row_index_is_refused_at_every_bit() {
    for file in ["tall.jpg", "restart_rows.jpg"] {
        let bytes = std::fs::read(folder().join(file)).expect("a file");
        let mut index = Vec::new();
        assert!(decoder().row_index(&bytes, &mut index).expect("an index"));
        for bit in 0..index.len() * 8 {
            let mut damaged = index.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = RowIndex::parse(&damaged).expect_err(file).to_string();
            assert!(error.contains("row index"), "{file} with bit {bit}: {error}");
        }
        for len in 0..index.len() {
            let error = RowIndex::parse(&index[..len]).expect_err(file).to_string();
            assert!(error.contains("row index"), "{file}, {len} bytes: {error}");
        }
    }
}

/// The rows of a rectangle, one after the other.
fn crop(data: &[u8], stride: usize, rect: Rect, channels: usize) -> Vec<u8> {
    let (from, len) = (rect.x as usize * channels, rect.width as usize * channels);
    let rows = data.chunks(stride).skip(rect.y as usize).take(rect.height as usize);
    rows.flat_map(|row| &row[from..from + len]).copied().collect()
}

#[test]
fn planes_of_a_region_are_those_of_the_image_and_no_more_than_its_blocks() {
    let [mut decoder, mut regional] = [decoder(), decoder()];
    let mut numbers = Numbers(2);
    let mut image = Image::new();
    for_each(|file, bytes, scale| {
        if file.starts_with("lossless") {
            return;
        }
        let request = JpegRequest { scale, ..JpegRequest::default() };
        decoder.decode(bytes, &request, &mut image).expect(file);
        let whole = decoder.decode_planes(bytes, &request).expect(file);
        for _ in 0..10 {
            let region = numbers.rect(image.width, image.height);
            let request = JpegRequest { region: Some(region), ..request };
            let planes = regional.decode_planes(bytes, &request).expect(file);
            assert_eq!(planes.color(), whole.color(), "{file}");
            for (plane, whole) in planes.planes().iter().zip(whole.planes()) {
                check_plane(plane, whole, region, &format!("{file} at {scale}, {region:?}"));
            }
        }
    });
}

fn check_plane(plane: &Plane<'_>, whole: &Plane<'_>, region: Rect, context: &str) {
    assert_eq!((whole.first, (whole.width, whole.height)), ((0, 0), whole.size), "{context}");
    let (x, y) = plane.first;
    let part = Rect { x, y, width: plane.width, height: plane.height };
    let held = crop(plane.data, plane.stride, Rect { x: 0, y: 0, ..part }, 1);
    assert!(held == crop(whole.data, whole.stride, part, 1), "{context}");

    let covers = |from: u32, length: u32, step: f64, first: u32, held: u32, size: u32| {
        let [before, behind] = [from, from + length].map(|pixel| f64::from(pixel) / step);
        let (before, behind) = (before.floor(), behind.ceil().min(size.into()));
        let spare = [before - f64::from(first), f64::from(first + held) - behind];
        // Less than a block.
        spare.iter().all(|spare| (0.0..8.0).contains(spare))
    };
    assert!(
        covers(region.x, region.width, plane.step.0, x, plane.width, plane.size.0),
        "{context}"
    );
    assert!(
        covers(region.y, region.height, plane.step.1, y, plane.height, plane.size.1),
        "{context}"
    );
}

#[test]
fn a_region_outside_the_image_is_refused() {
    let bytes = std::fs::read(folder().join("grey.jpg")).expect("a file");
    let mut image = Image::new();
    for (x, y, width, height) in [(0, 0, 36, 1), (35, 0, 1, 1), (0, 0, 0, 3), (1, 1, u32::MAX, 1)] {
        let region = Some(Rect { x, y, width, height });
        let request = JpegRequest { region, ..JpegRequest::default() };
        let error = decoder().decode(&bytes, &request, &mut image).expect_err("outside");
        assert!(matches!(error, DecodeError::Region { width: 35, height: 29, .. }));
    }
}

#[test]
fn a_cut_file_keeps_the_rows_above_the_cut() {
    let bytes = std::fs::read(folder().join("tall.jpg")).expect("a file");
    let (mut whole, mut kept) = (Image::new(), Image::new());
    decoder().decode(&bytes, &JpegRequest::default(), &mut whole).expect("a whole file");
    let cut = &bytes[..bytes.len() - 300];

    let error = decoder().decode(cut, &JpegRequest::default(), &mut kept).expect_err("cut");
    let on_damaged = OnDamaged::Keep;
    let request = JpegRequest { on_damaged, ..JpegRequest::default() };
    let damage = decoder().decode(cut, &request, &mut kept).expect("kept").damage;
    let damage = damage.expect("the cut is reported");
    assert!(error.to_string().contains(damage.what), "{error}, {damage:?}");
    assert_eq!(damage.offset, cut.len() as u64);

    let rows = whole.data.chunks(whole.row_bytes()).zip(kept.data.chunks(whole.row_bytes()));
    let same = rows.take_while(|(whole, kept)| whole == kept).count();
    assert!((16..140).contains(&same), "{same} rows");
    let last = kept.data.last_chunk::<3>();
    assert_eq!(last, Some(&[128; 3]), "what is missing is mid grey");

    let mut any = Decoder::new(DecodeOptions { on_damaged, ..DecodeOptions::default() });
    any.decode_into(cut, &mut whole).expect("kept");
    assert!(whole == kept && any.damage() == Some(damage));
    any.decode_into(&bytes, &mut whole).expect("a whole file");
    assert_eq!(any.damage(), None);

    // A region above the cut needs nothing below it.
    let region = Some(Rect::of_size(9, 16));
    let request = JpegRequest { region, ..JpegRequest::default() };
    decoder().decode(cut, &request, &mut kept).expect("the rows are complete");
    assert!(kept.data == whole.data[..kept.data.len()]);
}

#[test]
fn damaged_files_of_every_kind_never_panic() {
    let limits = Limits {
        max_pixels: 1 << 20,
        max_decoded_bytes: 4 << 20,
        max_working_bytes: 8 << 20,
        ..Limits::default()
    };
    let mut decoder = JpegDecoder::new(limits);
    let mut image = Image::new();
    each_damaged(3, |entry, _, bytes, request| {
        let pixels = decoder.decode(bytes, request, &mut image);
        let planes = decoder.decode_planes(bytes, request);
        for error in [pixels.err(), planes.err()].into_iter().flatten() {
            assert!(error.to_string().len() < 300, "{}: {error}", entry.file());
        }
    });
}

/// Calls `check` with every file, each time with a bit of another byte flipped: the file, that byte, the
/// bytes, and a request.
pub(crate) fn each_damaged(
    seed: u64,
    mut check: impl FnMut(&Entry, usize, &[u8], &JpegRequest<'_>),
) {
    let mut numbers = Numbers(seed);
    for entry in entries() {
        let mut bytes = read(&entry);
        for at in 0..bytes.len() {
            let old = bytes[at];
            bytes[at] ^= 1 << numbers.below(8);
            let on_damaged = if at % 2 == 0 { OnDamaged::Keep } else { OnDamaged::Error };
            let (scale, _) = SCALES[numbers.below(4) as usize];
            let region = (at % 3 == 0).then(|| numbers.rect(9, 9));
            let request = JpegRequest { scale, region, on_damaged, ..JpegRequest::default() };
            check(&entry, at, &bytes, &request);
            bytes[at] = old;
        }
    }
}
