//! Entropy-coded rows that are not what their index says, and parts that do not fit.

use tl_decode::{EntropyRow, HuffmanCodes, JpegParts};

use super::coder::{BitWriter, Coder, value};
use super::synthetic::{Amplitude, Image, Stage};
use super::*;

/// The parts of an image of several rows.
fn parts(random: &mut Random) -> JpegParts {
    let kinds = [Upsampling::None, Upsampling::H2V2, Upsampling::H2V2];
    // Nothing follows the last MCU that is decoded, so the ends of rows are looked at.
    let size = (90, 60);
    Image::color(random, PlaneColor::YCbCr, Scale::FULL, size, kinds).parts(Stage::Rows)
}

/// The sample that a batch of `parts` names, and after it a batch of others.
fn wrong_sample(fixture: &Fixture, parts: &JpegParts) -> Option<u64> {
    let window = Rect::of_size(90, 60);
    let resize = PictureResize::Pixels(whole(90, 60));
    let mut picture = Picture::default();
    let mut weights = PictureWeights::default();
    assert!(picture.prepare(4711, parts, &resize, &placed(window), &mut weights));
    let images = fixture.images(1, 90 * 60);
    let source = || pinned(&fixture.device, &vec![7; images.area]);
    let upload = |rows: &[RowPicture<'_>]| {
        fixture.uploader.upload(source(), Some(&images), rows, &[]).unwrap()
    };
    let buffer = upload(&[RowPicture { row: 0, picture: &picture }]);
    // Another copy is enqueued before anybody waits.
    let next = upload(&[]);
    let wrong = buffer.wrong_index().unwrap();
    assert_eq!(buffer.wrong_index().unwrap(), wrong, "it is known from now on");
    assert_eq!(next.wrong_index().unwrap(), None);
    assert!(next.read().unwrap()[..images.area].iter().all(|sample| *sample == 7));
    wrong
}

#[test]
fn rows_that_do_not_end_where_the_index_says_name_their_sample() {
    let mut random = Random(9);
    let good = parts(&mut random);
    let wrong = Some(4711);
    let check = |change: fn(&mut EntropyRow), expected: Option<u64>| {
        let mut parts = good.clone();
        change(&mut parts.entropy.rows[1]);
        assert_eq!(wrong_sample(&Fixture::new(1 << 20), &parts), expected);
    };
    check(|_| (), None);
    check(|row| row.end.as_mut().unwrap().position += 1, wrong);
    check(|row| row.end.as_mut().unwrap().predictors[2] ^= 1, wrong);
    check(|row| row.end = None, None);
    check(|row| row.predictors[0] ^= 1, wrong);
    check(|row| row.bit = (row.bit + 1) % 8, wrong);
    check(|row| row.len /= 2, wrong);
    check(|row| row.len = 0, wrong);
    check(|row| row.at = 0, wrong);
}

#[test]
fn pictures_that_cannot_be_decoded_are_errors_and_keep_nothing() {
    for function in ["cuMemcpyDtoHAsync_v2", "cuLaunchKernel"] {
        let device = device_with(&[&format!("FAILING=\"{function}\""), "CODE=1"]).unwrap();
        let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
        let decoder = Some(Arc::new(PictureDecoder::new(&device).unwrap()));
        let window = Rect::of_size(90, 60);
        let pixels = 90 * 60;
        let resize = PictureResize::Pixels(whole(90, 60));
        let picture = picture(&parts(&mut Random(9)), &resize, &placed(window));
        let images =
            Images { conversion: None, decoder, count: 1, pixels, width: pixels, area: 3 * pixels };
        let source: Arc<dyn HostBytes> = Arc::new(vec![0; 3 * pixels]);
        for _ in 0..3 {
            let rows = [RowPicture { row: 0, picture: &picture }];
            let failed =
                uploader.upload(Arc::clone(&source), Some(&images), &rows, &[]).unwrap_err();
            let DeviceReason::Library { function: found, .. } = failed else { panic!("{failed}") };
            assert_eq!(found, function.trim_end_matches("_v2"));
            assert_eq!(Arc::strong_count(&source), 1);
        }
        assert_eq!(uploader.stats().pictures, 0);
    }
}

/// Uploads a picture twice with a driver of these macros; its pixels, and the uploader.
fn uploaded(macros: &[&str], limits: BufferLimits) -> Result<(Vec<u8>, Uploader), DeviceReason> {
    let window = Rect::of_size(90, 60);
    let pixels = 90 * 60;
    let resize = PictureResize::Pixels(whole(90, 60));
    let picture = picture(&parts(&mut Random(9)), &resize, &placed(window));
    let device = device_with(macros).unwrap();
    let uploader = Uploader::new(&device, limits).unwrap();
    let decoder = Some(Arc::new(PictureDecoder::new(&device).unwrap()));
    let images =
        Images { conversion: None, decoder, count: 1, pixels, width: pixels, area: 3 * pixels };
    let source: Arc<dyn HostBytes> = Arc::new(vec![0; 3 * pixels]);
    let rows = [RowPicture { row: 0, picture: &picture }];
    let upload = || uploader.upload(Arc::clone(&source), Some(&images), &rows, &[]);
    // The second copy has the memory of the first.
    let first = upload()?.read()?[..images.area].to_vec();
    assert!(upload()?.read()?[..images.area] == first);
    Ok((first, uploader))
}

#[test]
fn pictures_are_decoded_where_no_memory_can_be_pinned() {
    let limits = BufferLimits::default();
    let pinned = uploaded(&[], limits).unwrap();
    assert_eq!(pinned.1.take_unpinned(), None);
    let macros = ["FAILING=\"cuMemHostAlloc\"", "CODE=2"];
    let ordinary = uploaded(&macros, limits).unwrap();
    assert!(ordinary.0 == pinned.0);
    let reason = ordinary.1.take_unpinned().unwrap();
    assert!(reason.to_string().contains("cannot be pinned"), "{reason}");
    assert_eq!(ordinary.1.take_unpinned(), None, "it is told once");
    let limits = BufferLimits { requires_pinned: true, ..limits };
    assert_eq!(uploaded(&macros, limits).err(), Some(reason));
}

#[test]
fn copies_wait_for_others_where_memory_is_bounded() {
    let fixture = Fixture::with_lanes(1 << 20, 3);
    let window = Rect::of_size(90, 60);
    let resize = PictureResize::Pixels(whole(90, 60));
    let picture = picture(&parts(&mut Random(9)), &resize, &placed(window));
    let images = fixture.images(1, 90 * 60);
    let rows = [RowPicture { row: 0, picture: &picture }];
    let limit = 2 * picture.bytes().next_multiple_of(4096) as u64;
    fixture.uploader.limit_copies(limit);
    let expected = fixture.decode(std::slice::from_ref(&picture), (90, 60));
    let upload = || {
        let source = pinned(&fixture.device, &vec![7; images.area]);
        let buffer = fixture.uploader.upload(source, Some(&images), &rows, &[]).unwrap();
        assert!(fixture.uploader.copy_bytes() <= limit);
        assert!(buffer.read().unwrap()[..images.area] == expected[0]);
    };
    let work = || (0..10).for_each(|_| upload());
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn all_memory_of_the_device_is_counted() {
    let device = device();
    let scratch = 300_000;
    let payload = 50_000;
    let limits = BufferLimits { scratch, payload, ..BufferLimits::default() };
    let uploader = Uploader::new(&device, limits).unwrap();
    let decoder = Some(Arc::new(PictureDecoder::new(&device).unwrap()));
    let resize = PictureResize::Pixels(whole(90, 60));
    let picture = picture(&parts(&mut Random(9)), &resize, &placed(Rect::of_size(90, 60)));
    let rows: Vec<_> = (0..40).map(|row| RowPicture { row, picture: &picture }).collect();
    assert!(40 * picture.scratch_bytes() > 2 * scratch && picture.scratch_bytes() < scratch);
    let count = rows.len();
    let pixels = 90 * 60;
    let area = 3 * pixels * count;
    let images = Images { conversion: None, decoder, count, pixels, width: 90, area };
    let before = device.allocated();
    let buffer = uploader.upload(Arc::new(vec![0; area]), Some(&images), &rows, &[]).unwrap();
    buffer.ready().synchronize().unwrap();
    // The pixels, the scratch memory and nothing more of it, and the copies of as many pictures as have
    // room at once, with what describes each of them.
    let counted = uploader.stats().allocated - before;
    let copy = counted - (buffer.bytes() + scratch) as u64;
    let each = (copy - payload as u64) / count as u64;
    assert!((100..1000).contains(&each), "{copy} bytes");
    assert!(count * picture.copied_bytes() > 3 * payload, "{}", picture.copied_bytes());
    drop(buffer);
    drop(uploader);
    assert_eq!(device.allocated(), before);
}

#[test]
fn coefficients_after_the_last_one_are_in_its_place_and_end_the_block() {
    let mut random = Random(13);
    let size = (24, 8);
    let mut image = Image::grey(&mut random, Scale::FULL, size, Amplitude::Photograph);
    image.size = size;
    let mut parts = image.parts(Stage::Rows);
    parts.entropy.skipped = 0;
    parts.entropy.mcus_per_row = 3;
    let coder = Coder::new();
    let mut bits = BitWriter::default();
    // Runs of 15, the last of which leaves the block.
    value(&mut bits, &coder.dc, 0, 90);
    (1..5).for_each(|number| value(&mut bits, &coder.ac, 15, number * 20));
    // Zeros that do.
    value(&mut bits, &coder.dc, 0, -30);
    (0..4).for_each(|_| coder.ac.put(&mut bits, 0xF0));
    // A last coefficient in its place.
    value(&mut bits, &coder.dc, 0, 5);
    (0..3).for_each(|_| coder.ac.put(&mut bits, 0xF0));
    value(&mut bits, &coder.ac, 14, -50);
    parts.entropy.bytes = bits.finish();
    let len = u32::try_from(parts.entropy.bytes.len()).unwrap();
    parts.entropy.bytes.resize(len.next_multiple_of(4) as usize + 8, 0);
    let start = EntropyRow { len, ..EntropyRow::default() };
    parts.entropy.rows = vec![start];

    let block = |coefficients: &[(usize, i16)]| {
        let mut block = [0; 64];
        coefficients.iter().for_each(|&(place, value)| block[place] = value);
        block
    };
    // Places 16, 32, 48 and 63 in zigzag order.
    let runs = block(&[(0, 90), (12, 20), (35, 40), (58, 60), (63, 80)]);
    image.planes[0].blocks = vec![runs, block(&[(0, 60)]), block(&[(0, 65), (63, -50)])];
    let resize = PictureResize::Pixels(whole(size.0, size.1));
    let placement = placed(Rect::of_size(size.0, size.1));
    let fixture = Fixture::new(1 << 20);
    let found = fixture.decode(&[picture(&parts, &resize, &placement)], size);
    assert!(found[0] == expected(&image, &resize, &placement));
}

#[test]
fn forged_rows_and_codes_touch_nothing_else() {
    let fixture = Fixture::new(4 << 20);
    let mut random = Random(10);
    let window = Rect::of_size(90, 60);
    let resize = PictureResize::Pixels(whole(90, 60));
    let good = picture(&parts(&mut Random(9)), &resize, &placed(window));
    let forged: Vec<_> = (0..40)
        .map(|number| picture(&forged(&mut random, number % 2 == 0), &resize, &placed(window)))
        .collect();
    let rows = forged.iter().zip(0..).flat_map(|(forged, number)| {
        [forged, &good]
            .into_iter()
            .zip(2 * number..)
            .map(|(picture, row)| RowPicture { row, picture })
    });
    let rows: Vec<_> = rows.collect();
    let images = fixture.images(rows.len() + 1, 90 * 60);
    let source = pinned(&fixture.device, &vec![5; images.area]);
    let found = fixture.uploader.upload(source, Some(&images), &rows, &[]).unwrap().read().unwrap();
    let found: Vec<_> = found.chunks_exact(90 * 60 * 3).take(rows.len() + 1).collect();
    for image in found[1..80].iter().step_by(2) {
        assert!(*image == found[1], "pictures next to forged ones");
    }
    assert!(found[80].iter().all(|sample| *sample == 5));
}

/// An image with other data, and codes that no table has.
fn forged(random: &mut Random, has_codes: bool) -> JpegParts {
    let mut parts = parts(random);
    for _ in 0..random.range(1, 40) {
        let place = random.below(u32::try_from(parts.entropy.bytes.len()).unwrap());
        parts.entropy.bytes[place as usize] ^= 1 << random.below(8);
    }
    if has_codes {
        let mut number = || random.below(u32::MAX);
        let limits = std::array::from_fn(|_| number() >> 15);
        let offsets = std::array::from_fn(|_| number());
        let symbols = std::array::from_fn(|_| number().to_le_bytes()[0]);
        parts.entropy.codes[1] = HuffmanCodes { limits, offsets, symbols };
    }
    parts
}

#[test]
fn what_kernels_do_not_decode_is_left_to_the_host() {
    let mut random = Random(11);
    let window = Rect::of_size(90, 60);
    let resize = PictureResize::Pixels(whole(90, 60));
    let mut picture = Picture::default();
    let mut weights = PictureWeights::default();
    let mut prepared = |parts: &JpegParts, resize: &PictureResize| {
        let is_prepared = picture.prepare(0, parts, resize, &placed(window), &mut weights);
        assert_eq!(picture.is_empty(), !is_prepared);
        is_prepared
    };
    let good = parts(&mut random);
    assert!(prepared(&good, &resize));
    let mut inks = good.clone();
    inks.color = PlaneColor::Cmyk;
    inks.components.push(inks.components[0].clone());
    assert!(!prepared(&inks, &resize));
    let mut scaled = good.clone();
    scaled.components[1].scale = Scale::from_eighths(6).unwrap();
    assert!(!prepared(&scaled, &resize));
    let mut fractional = good.clone();
    fractional.components[2].upsampling = Upsampling::Fractional;
    assert!(!prepared(&fractional, &resize));
    let grey = Image::grey(&mut random, Scale::FULL, (90, 60), Amplitude::Photograph);
    let mut large = grey.parts(Stage::Coefficients);
    large.components[0].size = (20_000, 20_000);
    large.components[0].blocks = Rect::of_size(2500, 2500);
    assert!(!prepared(&large, &resize));
}

#[test]
fn parts_that_do_not_fit_each_other_are_refused() {
    let good = parts(&mut Random(12));
    let check = |change: fn(&mut JpegParts), placement: &Placement| {
        let mut parts = good.clone();
        change(&mut parts);
        let prepare = || {
            let resize = PictureResize::Pixels(whole(90, 60));
            let mut weights = PictureWeights::default();
            Picture::default().prepare(0, &parts, &resize, placement, &mut weights)
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(prepare))
    };
    let whole = placed(Rect::of_size(90, 60));
    assert!(check(|_| (), &whole).unwrap());
    let changes: [fn(&mut JpegParts); 14] = [
        |parts| parts.components[0].blocks.width -= 1,
        |parts| parts.components[1].blocks.height -= 1,
        |parts| parts.components[1].blocks.x = u32::MAX,
        |parts| parts.components[1].size = (0, 1),
        |parts| parts.entropy.rows.truncate(2),
        |parts| parts.entropy.rows[0].at += 1,
        |parts| parts.entropy.rows[0].len = u32::MAX,
        |parts| parts.entropy.rows[0].bit = 8,
        |parts| parts.entropy.components[0].dc = 2,
        |parts| parts.entropy.components[0].across = 1,
        |parts| parts.entropy.components[0].component = 3,
        |parts| parts.entropy.components[1].component = 2,
        |parts| parts.entropy.components.truncate(2),
        |parts| parts.entropy.skipped = u32::MAX,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(check(change, &whole).is_err(), "change {number}");
    }
    let outside = Placement { left: 1, ..whole };
    assert!(check(|_| (), &outside).is_err());
}
