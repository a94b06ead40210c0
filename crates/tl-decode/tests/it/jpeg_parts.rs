//! JPEG images in parts: finished by the definitions, they are what decoding gives.

mod reference;

use std::path::{Path, PathBuf};

use tl_decode::{
    DecodeError, Image, JpegDecoder, JpegParts, JpegRequest, Limit, Limits, OnDamaged, PartStage,
    Rect, RowIndex,
};

use crate::jpeg::{Numbers, SCALES, decoder, each_damaged, entries, for_each, read};

/// The memory for images and their parts.
struct Bench {
    decoder: JpegDecoder,
    parts: JpegParts,
    image: Image,
}

impl Bench {
    fn new() -> Self {
        Self { decoder: decoder(), parts: JpegParts::default(), image: Image::new() }
    }

    fn index(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut index = Vec::new();
        self.decoder.row_index(bytes, &mut index).expect("a good file").then_some(index)
    }

    /// Compares the parts of a good file with its pixels and its planes; the stage of each.
    fn check(
        &mut self,
        context: &str,
        bytes: &[u8],
        request: &JpegRequest<'_>,
        stage: PartStage,
    ) -> [Option<PartStage>; 2] {
        let context = format!("{context} with {request:?}");
        let Self { decoder, parts, image } = self;
        let of_pixels = decoder.parts(bytes, request, stage, true, parts).expect(&context);
        let decoded = decoder.decode(bytes, request, image);
        if let Some(stage) = of_pixels {
            assert_eq!(parts.decoded, decoded.expect(&context), "{context}");
            let whole = Rect::of_size(image.width, image.height);
            let samples = reference::samples(parts, stage);
            let pixels = reference::pixels(parts.color, &samples, request.region.unwrap_or(whole));
            assert!(pixels == image.data, "{context}, {stage:?}");
        }
        let of_planes = decoder.parts(bytes, request, stage, false, parts).expect(&context);
        if let Some(stage) = of_planes {
            let planes = decoder.decode_planes(bytes, request).expect(&context);
            let header = (planes.color(), planes.decoded(), planes.planes().len());
            assert_eq!((parts.color, parts.decoded, parts.components.len()), header, "{context}");
            let samples = reference::samples(parts, stage);
            let described = parts.components.iter().zip(samples);
            for (plane, (component, samples)) in planes.planes().iter().zip(described) {
                assert_eq!((component.size, component.step), (plane.size, plane.step), "{context}");
                for (row, y) in plane.data.chunks(plane.stride).zip(0..plane.height) {
                    let sample =
                        |x| samples.at(i64::from(plane.first.0 + x), i64::from(plane.first.1 + y));
                    let expected = (0..plane.width).map(sample);
                    assert!(row[..plane.width as usize].iter().copied().eq(expected), "{context}");
                }
            }
        }
        [of_pixels, of_planes]
    }
}

#[test]
fn the_coefficients_of_every_kind_are_its_pixels_and_its_planes() {
    let mut bench = Bench::new();
    let mut numbers = Numbers(5);
    let mut checked = 0;
    for_each(|file, bytes, scale| {
        let whole = JpegRequest { scale, ..JpegRequest::default() };
        for round in 0..6 {
            let info = tl_decode::probe(bytes).expect(file);
            let region = numbers.rect(scale.apply(info.width), scale.apply(info.height));
            let request = JpegRequest { region: (round > 0).then_some(region), ..whole };
            let stages = bench.check(file, bytes, &request, PartStage::Coefficients);
            let only_host =
                file.starts_with("lossless") || file.contains("cmyk") || file.contains("ycck");
            let expected = (!only_host).then_some(PartStage::Coefficients);
            assert_eq!(stages, [expected; 2], "{file}");
            checked += usize::from(!only_host);
        }
    });
    assert!(checked > 1500, "{checked} regions");
}

#[test]
fn the_entropy_coded_rows_of_files_with_an_index_are_their_pixels_and_planes() {
    let mut bench = Bench::new();
    let mut numbers = Numbers(7);
    let mut by_rows = 0;
    for_each(|file, bytes, scale| {
        let Some(index) = bench.index(bytes) else { return };
        let index = Some(RowIndex::parse(&index).expect(file));
        let whole = JpegRequest { scale, index, ..JpegRequest::default() };
        for round in 0..6 {
            let info = tl_decode::probe(bytes).expect(file);
            let region = numbers.rect(scale.apply(info.width), scale.apply(info.height));
            let request = JpegRequest { region: (round > 0).then_some(region), ..whole };
            let stages = bench.check(file, bytes, &request, PartStage::EntropyRows);
            // Markers stand at the ends of rows, or inside.
            let inside = file.starts_with("restart") && !file.contains("rows");
            let only_host = file.contains("cmyk") || file.contains("ycck");
            let stage = if inside { PartStage::Coefficients } else { PartStage::EntropyRows };
            assert_eq!(stages, [(!only_host).then_some(stage); 2], "{file}");
            by_rows += usize::from(!inside && !only_host);
        }
    });
    assert!(by_rows > 1000, "{by_rows} regions");
}

#[tl_testdata::needs("imagenet")]
#[test]
fn the_parts_of_photographs_are_their_pixels_and_planes() {
    let mut bench = Bench::new();
    let mut numbers = Numbers(8);
    let files = photographs(&tl_testdata::path!("imagenet"));
    for (path, number) in files.iter().zip(0usize..).step_by(files.len().div_ceil(40)) {
        let bytes = std::fs::read(path).expect("a photograph");
        let context = path.display().to_string();
        let info = tl_decode::probe(&bytes).expect(&context);
        let index = bench.index(&bytes).unwrap_or_default();
        let index = RowIndex::parse(&index).ok();
        for round in 0..2 {
            let (scale, _) = SCALES[(number + round) % 4];
            let region = numbers.rect(scale.apply(info.width), scale.apply(info.height));
            let request =
                JpegRequest { scale, region: Some(region), index, ..JpegRequest::default() };
            for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
                bench.check(&context, &bytes, &request, stage);
            }
        }
    }
}

/// The JPEG files in a folder and those below.
fn photographs(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files.extend(photographs(&path));
        } else if path
            .extension()
            .is_some_and(|ext| ext.eq_ignore_ascii_case("jpeg") || ext == "jpg")
        {
            files.push(path);
        }
    }
    files
}

/// The index of another file is refused. One that lies, with checksums that fit, gives rows that stay
/// inside of the bytes, or an error.
#[test]
fn wrong_indexes_are_refused_or_give_rows_inside_of_the_bytes() {
    let mut bench = Bench::new();
    let mut numbers = Numbers(9);
    let mut refused = 0;
    for name in ["tall.jpg", "restart_rows.jpg", "grey.jpg"] {
        let file = entries().into_iter().find(|entry| entry.file() == name).expect(name);
        let bytes = read(&file);
        let good = bench.index(&bytes).expect(name);
        let mut other = bytes.clone();
        other.push(0);
        let Bench { decoder, parts, .. } = &mut bench;
        let mut parts_of = |bytes: &[u8], index: &[u8]| {
            let index = Some(RowIndex::parse(index).expect(name));
            let request = JpegRequest { index, ..JpegRequest::default() };
            let reached = decoder.parts(bytes, &request, PartStage::EntropyRows, true, parts);
            (reached, parts.entropy.clone())
        };
        let (error, _) = parts_of(&other, &good);
        let error = error.expect_err("another file").to_string();
        assert!(error.ends_with(": row index of another file"), "{error}");
        for at in 20..good.len() {
            let mut forged = good.clone();
            forged[at] = numbers.below(256).to_le_bytes()[0];
            let own = crc32fast::hash(&[&forged[..16], &forged[20..]].concat());
            forged[16..20].copy_from_slice(&own.to_le_bytes());
            let (reached, entropy) = parts_of(&bytes, &forged);
            if let Err(error) = reached {
                let error = error.to_string();
                assert!(error.ends_with("row index that is not of this file"), "{error}");
                refused += 1;
                continue;
            }
            assert!(entropy.bytes.len() <= bytes.len() + 12 * entropy.rows.len());
            for row in &entropy.rows {
                let rest = &entropy.bytes[row.at as usize..][row.len as usize..];
                assert!(row.at % 4 == 0 && rest[..8] == [0; 8], "{name} at {at}: {row:?}");
            }
        }
    }
    assert!(refused > 20, "{refused} refused");
}

/// Planes of such files can be had, pixels cannot.
#[test]
fn fractional_samplings_have_parts_of_planes_alone() {
    let mut bench = Bench::new();
    let files = entries().into_iter().filter(|entry| entry.file().starts_with("fractional"));
    let mut seen = 0;
    for entry in files {
        // Their headers were changed, so that their data does not end where it should.
        let on_damaged = OnDamaged::Keep;
        let request = JpegRequest { on_damaged, ..JpegRequest::default() };
        let stages = bench.check(entry.file(), &read(&entry), &request, PartStage::Coefficients);
        assert_eq!(stages, [None, Some(PartStage::Coefficients)], "{}", entry.file());
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn errors_and_kept_damage_are_those_of_decoding() {
    let limits = Limits {
        max_pixels: 1 << 20,
        max_decoded_bytes: 4 << 20,
        max_working_bytes: 64 << 20,
        ..Limits::default()
    };
    let mut bench = Bench { decoder: JpegDecoder::new(limits), ..Bench::new() };
    let mut good = 0;
    let mut failed = 0;
    each_damaged(6, |entry, at, bytes, request| {
        let Bench { decoder, parts, image } = &mut bench;
        let reached = decoder.parts(bytes, request, PartStage::EntropyRows, true, parts);
        let decoded = decoder.decode(bytes, request, image);
        match (reached, decoded) {
            (Ok(None), _) => {}
            (Ok(Some(stage)), Ok(decoded)) => {
                assert_eq!(stage, PartStage::Coefficients);
                assert_eq!(parts.decoded, decoded, "{} at {at}", entry.file());
                // Most of the time goes here, and one in some is enough.
                if image.data.len() < 100_000 && at % 16 == 0 {
                    let samples = reference::samples(parts, stage);
                    let whole = Rect::of_size(image.width, image.height);
                    let region = request.region.unwrap_or(whole);
                    let pixels = reference::pixels(parts.color, &samples, region);
                    assert!(pixels == image.data, "{} at {at}", entry.file());
                    good += 1;
                }
            }
            (Err(error), Err(expected)) => {
                let texts: [DecodeError; 2] = [error, expected];
                let [error, expected] = texts.map(|error| error.to_string());
                assert_eq!(error, expected, "{} at {at}", entry.file());
                failed += 1;
            }
            (reached, decoded) => {
                panic!("{} at {at}: {reached:?}, decoded {decoded:?}", entry.file());
            }
        }
    });
    assert!(good > 1000 && failed > 5000, "{good} good and {failed} bad files");
}

#[test]
fn the_memory_of_parts_is_kept_and_limits_leave_the_image_to_the_host() {
    let name = |name: &str| entries().into_iter().find(|entry| entry.file() == name);
    let bytes = read(&name("tall.jpg").expect("a file"));
    let mut bench = Bench::new();
    let index = bench.index(&bytes).expect("an index");
    let index = Some(RowIndex::parse(&index).expect("an index"));
    let request = JpegRequest { index, ..JpegRequest::default() };
    let mut kept = Vec::new();
    for round in 0..6 {
        let Bench { decoder, parts, .. } = &mut bench;
        let stage = if round % 2 == 0 { PartStage::Coefficients } else { PartStage::EntropyRows };
        decoder.parts(&bytes, &request, stage, true, parts).expect("a good file");
        if round < 2 {
            kept.clear();
        }
        kept.push([
            parts.components.capacity(),
            parts.coefficients.blocks.capacity(),
            parts.coefficients.rows.capacity(),
            parts.entropy.components.capacity(),
            parts.entropy.codes.capacity(),
            parts.entropy.rows.capacity(),
            parts.entropy.bytes.capacity(),
        ]);
    }
    assert!(kept.iter().all(|capacities| *capacities == kept[0]), "{kept:?}");

    let limits = (1..1 << 20)
        .step_by(256)
        .map(|bytes| Limits { max_working_bytes: bytes, ..Limits::default() });
    let mut decoders = limits.map(JpegDecoder::new);
    let enough =
        |decoder: &mut JpegDecoder| decoder.decode(&bytes, &request, &mut Image::new()).is_ok();
    let mut decoder = decoders.find_map(|mut decoder| enough(&mut decoder).then_some(decoder));
    let decoder = decoder.as_mut().expect("a limit that is enough for the host");
    let mut parts = JpegParts::default();
    let stage = PartStage::Coefficients;
    let reached = decoder.parts(&bytes, &request, stage, true, &mut parts).expect("no error");
    assert_eq!(reached, None);
    assert_eq!(parts.coefficients.rows.capacity(), 0, "nothing is allocated before");
}

/// The parts of two regions that are cut out of those of the rectangle around both.
#[test]
fn parts_that_are_cut_out_of_others_are_those_of_their_region() {
    let mut bench = Bench::new();
    let mut numbers = Numbers(11);
    let mut cut = [0; 2];
    for_each(|file, bytes, scale| {
        let index = bench.index(bytes);
        let index = index.as_ref().map(|index| RowIndex::parse(index).expect(file));
        let info = tl_decode::probe(bytes).expect(file);
        let whole = Rect::of_size(scale.apply(info.width), scale.apply(info.height));
        for round in 0..4 {
            let region = numbers.rect(whole.width, whole.height);
            let around = around(&mut numbers, &region, &whole);
            let pixels = round % 2 == 0;
            let request = JpegRequest { scale, index, ..JpegRequest::default() };
            let of = |region| JpegRequest { region: Some(region), ..request };
            for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
                let Bench { decoder, parts, .. } = &mut bench;
                let mut larger = JpegParts::default();
                let reached = decoder.parts(bytes, &of(around), stage, pixels, &mut larger);
                let Some(stage) = reached.expect(file) else { continue };
                decoder.parts(bytes, &of(region), stage, pixels, parts).expect(file);
                let mut found = JpegParts::default();
                found.cut(&larger, region);
                let context = format!("{file} at {scale}, {region:?} of {around:?}, {stage:?}");
                same(&context, parts, &found, stage);
                cut[usize::from(stage == PartStage::EntropyRows)] += 1;
            }
        }
    });
    assert!(cut[0] > 1000 && cut[1] > 500, "{cut:?}");
}

/// A rectangle of `whole` around `region`.
fn around(numbers: &mut Numbers, region: &Rect, whole: &Rect) -> Rect {
    let x = numbers.below(region.x + 1);
    let y = numbers.below(region.y + 1);
    let right = region.x + region.width;
    let bottom = region.y + region.height;
    let width = right + numbers.below(whole.width - right + 1) - x;
    let height = bottom + numbers.below(whole.height - bottom + 1) - y;
    Rect { x, y, width, height }
}

/// Compares the samples of `expected` with those at the same places of `found`.
fn same(context: &str, expected: &JpegParts, found: &JpegParts, stage: PartStage) {
    let head = |parts: &JpegParts| (parts.color, parts.decoded, parts.components.len());
    assert_eq!(head(found), head(expected), "{context}");
    let of = |parts: &JpegParts| reference::samples(parts, stage);
    for (number, (found_samples, samples)) in of(found).iter().zip(of(expected)).enumerate() {
        let component = &expected.components[number];
        let cut = &found.components[number];
        assert_eq!((cut.size, cut.step), (component.size, component.step), "{context}");
        let side = u32::from(component.scale.eighths());
        let Rect { x, y, width, height } = component.blocks;
        let right = ((x + width) * side).min(component.size.0);
        let bottom = ((y + height) * side).min(component.size.1);
        for y in y * side..bottom {
            for x in x * side..right {
                let at = [x, y].map(i64::from);
                let value = found_samples.at(at[0], at[1]);
                assert_eq!(value, samples.at(at[0], at[1]), "{context}, {at:?}");
            }
        }
    }
}

/// Limits that are just enough for a step of decoding, or a byte short of it.
#[test]
fn limits_decide_alike_for_parts_and_for_decoding() {
    let mut numbers = Numbers(12);
    let mut refused = 0;
    for_each(|file, bytes, scale| {
        let mut index = Vec::new();
        let is_indexed = decoder().row_index(bytes, &mut index).unwrap_or(false);
        let index = is_indexed.then(|| RowIndex::parse(&index).expect(file));
        let info = tl_decode::probe(bytes).expect(file);
        let region = numbers.rect(scale.apply(info.width), scale.apply(info.height));
        let request = JpegRequest { scale, index, region: Some(region), ..JpegRequest::default() };
        for pixels in [true, false] {
            for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
                let context = format!("{file} with {request:?}, {pixels}, {stage:?}");
                refused += at_each_limit(&context, bytes, &request, pixels, stage);
            }
        }
    });
    assert!(refused > 1000, "{refused} limits");
}

/// Compares decoding with parts at the limits of memory that matter, and around them; their number.
fn at_each_limit(
    context: &str,
    bytes: &[u8],
    request: &JpegRequest<'_>,
    pixels: bool,
    stage: PartStage,
) -> usize {
    let mut parts = JpegParts::default();
    let mut image = Image::new();
    let mut outcome = |limits: Limits| {
        let mut decoder = JpegDecoder::new(limits);
        let host = if pixels {
            decoder.decode(bytes, request, &mut image).map(|_| ())
        } else {
            decoder.decode_planes(bytes, request).map(|_| ())
        };
        let reached = decoder.parts(bytes, request, stage, pixels, &mut parts);
        match (&reached, &host) {
            // The host decides.
            (Ok(None), _) => {}
            (Ok(Some(_)), Ok(())) => decoder.check(bytes, request, pixels).expect(context),
            (Err(error), Err(expected)) => {
                assert_eq!(error.to_string(), expected.to_string(), "{context}, {limits:?}");
            }
            _ => panic!("{context}, {limits:?}: {reached:?}, but {host:?}"),
        }
        host
    };
    let mut seen = 0;
    let mut limits = Limits { max_decoded_bytes: 0, max_working_bytes: 0, ..Limits::default() };
    while let Err(DecodeError::LimitExceeded { limit, need, .. }) = outcome(limits) {
        for need in [need.saturating_sub(1), need + 1, need] {
            if limit == Limit::DecodedBytes {
                limits.max_decoded_bytes = need;
            } else {
                limits.max_working_bytes = need;
            }
            drop(outcome(limits));
        }
        seen += 1;
        assert!(seen < 50, "{context}");
    }
    seen
}
