//! Which JPEG files are whole: what libjpeg-turbo reads without a warning is read, with its pixels,
//! and what it warns about is damage.

use std::path::PathBuf;

use tl_decode::{
    Damage, DecodeError, Defect, Feature, Image, JpegDecoder, JpegRequest, Limit, Limits,
    OnDamaged, Rect, RowIndex,
};

const EOI: [u8; 2] = [0xFF, 0xD9];

/// Files of one scan, of several, with restart markers, and progressive ones.
const KINDS: [&str; 5] = [
    "tall.jpg",
    "each_scan_420.jpg",
    "restart_rows.jpg",
    "progressive_deep_420.jpg",
    "progressive_bands_restart.jpg",
];

fn read(name: &str) -> Vec<u8> {
    let folder: PathBuf = tl_testdata::shipped!("jpeg");
    std::fs::read(folder.join(name)).expect("the file exists")
}

fn decoder() -> JpegDecoder {
    JpegDecoder::new(Limits::default())
}

fn decode(bytes: &[u8], on_damaged: OnDamaged) -> Result<(Image, Option<Damage>), DecodeError> {
    let mut image = Image::new();
    let request = JpegRequest { on_damaged, ..JpegRequest::default() };
    let decoded = decoder().decode(bytes, &request, &mut image)?;
    Ok((image, decoded.damage))
}

/// The file decodes to the pixels of `original`, in whole and in part, without damage.
#[track_caller]
fn is_whole(bytes: &[u8], original: &[u8]) {
    let (expected, _) = decode(original, OnDamaged::Error).expect("a good file");
    for on_damaged in [OnDamaged::Error, OnDamaged::Keep] {
        let (image, damage) = decode(bytes, on_damaged).expect("a good file");
        assert!(image == expected);
        assert_eq!(damage, None);
    }
    let region = Some(Rect::of_size(9, 9));
    let request = JpegRequest { region, ..JpegRequest::default() };
    decoder().decode(bytes, &request, &mut Image::new()).expect("a good file");
    decoder().row_index(bytes, &mut Vec::new()).expect("a good file");
}

/// The file is refused with `what` at `offset`, which is reported if damage is kept.
#[track_caller]
fn is_damaged(bytes: &[u8], what: &str, offset: usize) {
    let error = decode(bytes, OnDamaged::Error).expect_err(what);
    let DecodeError::Malformed(Defect::Stray { what: found, offset: at, .. }) = error else {
        panic!("{error}, expected {what}");
    };
    let found = (found, at);
    assert_eq!(found, (what, offset as u64));
    let (_, damage) = decode(bytes, OnDamaged::Keep).expect("damage is kept");
    assert_eq!(damage.map(|damage| (damage.what, damage.offset)), Some(found));
}

/// The file with `part` at `at`.
fn with(file: &[u8], at: usize, part: &[u8]) -> Vec<u8> {
    [&file[..at], part, &file[at..]].concat()
}

fn end_of_image(file: &[u8]) -> usize {
    assert_eq!(file.last_chunk(), Some(&EOI));
    file.len() - EOI.len()
}

#[test]
fn only_segments_that_libjpeg_knows_are_passed_over() {
    let file = read("tall.jpg");
    let segment = |marker: u8| with(&file, 2, &[0xFF, marker, 0, 4, b'a', b'b']);
    for marker in [0xDC, 0xE5, 0xEF, 0xFE] {
        is_whole(&segment(marker), &file);
    }
    for marker in [0x02, 0xBF, 0xC8, 0xF0, 0xFD] {
        let error = decode(&segment(marker), OnDamaged::Error).expect_err("a marker of nothing");
        let DecodeError::Malformed(Defect::Stray { what, offset, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!((what, offset), ("unknown marker", 2), "{marker:x}");
        let behind = with(&file, end_of_image(&file), &segment(marker)[2..8]);
        is_damaged(&behind, "unknown marker", end_of_image(&file));
    }
    for marker in [0xDE, 0xDF] {
        let error = decode(&segment(marker), OnDamaged::Keep).expect_err("hierarchical");
        assert!(matches!(error, DecodeError::Unsupported(Feature::JpegHierarchical)), "{error}");
    }
    let error = decode(&with(&file, 2, &[0xFF, 0xD8]), OnDamaged::Error).expect_err("twice SOI");
    assert!(error.to_string().contains("second start of an image"), "{error}");
}

#[test]
fn a_scan_behind_a_complete_sequential_image_is_damage() {
    for name in ["tall.jpg", "each_scan_420.jpg"] {
        let file = read(name);
        let scan = file.windows(2).rposition(|marker| marker == [0xFF, 0xDA]).expect("a scan");
        let twice = with(&file, end_of_image(&file), &file[scan..end_of_image(&file)]);
        let header = usize::from(file[scan + 3]) + 2;
        is_damaged(&twice, "second scan of a component", end_of_image(&file) + header);
        if name == "tall.jpg" {
            decoder().row_index(&twice, &mut Vec::new()).expect_err("two scans");
        }
    }
}

/// The end of each scan's entropy-coded data.
fn scan_ends(file: &[u8]) -> Vec<usize> {
    let marker_at = |from: usize| {
        let ends = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7);
        from + file[from..].windows(2).position(ends).expect("a marker")
    };
    let scans = file.windows(2).enumerate().filter(|(_, marker)| *marker == [0xFF, 0xDA]);
    scans.map(|(at, _)| marker_at(at + 2 + usize::from(file[at + 3]))).collect()
}

#[test]
fn restart_markers_behind_the_last_mcu_are_passed_over() {
    for name in KINDS {
        let file = read(name);
        for at in scan_ends(&file) {
            for markers in [&[0xFF, 0xD0][..], &[0xFF, 0xD5], &[0xFF, 0xD3, 0xFF, 0xFF, 0xD4]] {
                is_whole(&with(&file, at, markers), &file);
                let junk = with(&file, at, &[markers, b"junkjunk"].concat());
                let error = decode(&junk, OnDamaged::Error).expect_err("data after the last MCU");
                let DecodeError::Malformed(Defect::Stray { offset, .. }) = error else {
                    panic!("{name}: {error}");
                };
                assert_eq!(offset, (at + markers.len()) as u64, "{name}: {error}");
                let (_, damage) = decode(&junk, OnDamaged::Keep).expect("damage is kept");
                assert_eq!(damage.map(|damage| damage.offset), Some(offset), "{name}");
            }
        }
    }
}

#[test]
fn a_row_index_may_end_at_a_restart_marker() {
    let file = read("restart_rows.jpg");
    let longer = with(&file, end_of_image(&file), &[0xFF, 0xD7]);
    let mut index = Vec::new();
    assert!(decoder().row_index(&longer, &mut index).expect("an index"));
    let index = Some(RowIndex::parse(&index).expect("an index"));
    let (mut image, (whole, _)) =
        (Image::new(), decode(&file, OnDamaged::Error).expect("a good file"));
    decoder()
        .decode(&longer, &JpegRequest { index, ..JpegRequest::default() }, &mut image)
        .expect("a good file");
    assert!(image == whole);
}

#[test]
fn up_to_seven_bytes_behind_the_last_mcu_are_no_damage() {
    for name in KINDS {
        let file = read(name);
        let restart = file.windows(2).position(|marker| matches!(marker, [0xFF, 0xD0..=0xD7]));
        for at in scan_ends(&file).into_iter().chain(restart) {
            for stray in 1..=12 {
                let longer = with(&file, at, &vec![0x5A; stray]);
                if stray <= 7 {
                    is_whole(&longer, &file);
                } else {
                    is_damaged(&longer, "entropy-coded data after the last MCU", at);
                }
            }
        }
    }
}

/// The most that a file may need to be decoded with `max_working_bytes`.
fn needs(bytes: &[u8], max_working_bytes: u64) -> Option<u64> {
    let limits = Limits { max_working_bytes, ..Limits::default() };
    let request = JpegRequest::default();
    match JpegDecoder::new(limits).decode(bytes, &request, &mut Image::new()) {
        Err(DecodeError::LimitExceeded { limit: Limit::WorkingBytes, need, .. }) => Some(need),
        _ => None,
    }
}

#[test]
fn the_data_of_scans_is_charged_with_its_fill_bytes() {
    for name in KINDS {
        let file = read(name);
        let fills = [&vec![0xFF; 1 << 20][..], &[0]].concat();
        let longer = with(&file, scan_ends(&file)[0], &fills);
        let need = needs(&longer, 1 << 20).expect("more than the fill bytes alone");
        assert!((1 << 20..3 << 20).contains(&need), "{name}: {need}");
        // Tables of scans are charged as they come.
        assert_eq!(needs(&longer, need + (1 << 19)), None, "{name}");
        let limits = Limits { max_working_bytes: 1 << 20, ..Limits::default() };
        match JpegDecoder::new(limits).row_index(&longer, &mut Vec::new()) {
            Ok(made) => assert!(!made && !name.starts_with("tall"), "{name}"),
            Err(error) => assert!(matches!(error, DecodeError::LimitExceeded { .. }), "{error}"),
        }
    }
}

#[test]
fn the_number_of_scans_is_limited() {
    let limits = Limits { jpeg_scans: 5, ..Limits::default() };
    let decode = |name| {
        let request = JpegRequest::default();
        JpegDecoder::new(limits).decode(&read(name), &request, &mut Image::new())
    };
    decode("each_scan_420.jpg").expect("three scans");
    let error = decode("progressive_deep_420.jpg").expect_err("more than five scans");
    let DecodeError::LimitExceeded { limit, max, need } = error else { panic!("{error}") };
    assert_eq!((limit, max, need), (Limit::JpegScans, 5, 6));
}

#[test]
fn a_file_that_is_cut_early_is_kept_within_the_limits() {
    for name in ["tall.jpg", "progressive_default_grey.jpg"] {
        let mut file = read(name);
        let frame = file.windows(2).position(|marker| matches!(marker, [0xFF, 0xC0 | 0xC2]));
        let size = frame.expect("a frame header") + 5;
        file[size..size + 4].copy_from_slice(&[0x10, 0, 0x10, 0]);
        let scan = file.windows(2).position(|marker| marker == [0xFF, 0xDA]).expect("a scan");
        file.truncate(scan + 30);
        let error = decode(&file, OnDamaged::Error).expect_err("too short");
        assert!(matches!(error, DecodeError::Malformed(Defect::Truncated { .. })), "{error}");
        let (image, damage) = decode(&file, OnDamaged::Keep).expect("kept");
        assert_eq!((image.width, image.height), (4096, 4096), "{name}");
        assert!(damage.is_some() && image.data.last() == Some(&128), "{name}");
        let limits = Limits { max_decoded_bytes: 1 << 20, ..Limits::default() };
        let request = JpegRequest { on_damaged: OnDamaged::Keep, ..JpegRequest::default() };
        let error = JpegDecoder::new(limits).decode(&file, &request, &mut Image::new());
        let error = error.expect_err("more than the limit");
        assert!(matches!(error, DecodeError::LimitExceeded { .. }), "{error}");
    }
}
