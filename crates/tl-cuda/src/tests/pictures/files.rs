//! Files, compared with what the host decodes and resizes.

use std::path::{Path, PathBuf};

use tl_decode::{
    Image, JpegDecoder, JpegParts, JpegRequest, Level, Limits, PartStage, Plane, PlaneColor,
    RowIndex, Scale,
};
use tl_simd::jpeg::ycc_to_rgb;
use tl_simd::resample::{Area, ImageView, Rect, Resampler, Resize, ResizeArea};

use super::reference::place;
use super::{Fixture, Picture, PictureResize, PictureWeights, Placement, Random, some_filter};

/// The size of all results.
const SIZE: (u32, u32) = (30, 24);

/// Pixels around what a plane's resize reads.
const MARGIN: u32 = 16;

/// Memory for files, by the instructions of one level.
struct Host {
    level: Level,
    decoder: JpegDecoder,
    parts: JpegParts,
    image: Image,
    weights: PictureWeights,
}

/// A part of a file in a result.
struct Wanted {
    scale: Scale,
    resize: ResizeArea,
    placement: Placement,
}

/// Pictures, and what they have to become.
#[derive(Default)]
struct Pairs {
    pictures: Vec<Picture>,
    expected: Vec<Vec<u8>>,
    rows: usize,
}

impl Host {
    fn new(level: Level) -> Self {
        Self {
            level,
            decoder: JpegDecoder::new(Limits::default()).with_level(level),
            parts: JpegParts::default(),
            image: Image::default(),
            weights: PictureWeights::default(),
        }
    }

    /// Adds the pictures of `wanted` in all ways in which the device decodes them.
    fn add(
        &mut self,
        pairs: &mut Pairs,
        bytes: &[u8],
        index: Option<RowIndex<'_>>,
        wanted: &Wanted,
    ) {
        for is_pixels in [true, false] {
            let Some((resize, region, pixels)) = self.expected(bytes, wanted, is_pixels) else {
                continue;
            };
            let window = (wanted.resize.window.width, wanted.resize.window.height);
            let expected = place(&wanted.placement, window, &pixels);
            for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
                let request = JpegRequest {
                    scale: wanted.scale,
                    region: Some(region),
                    index,
                    ..JpegRequest::default()
                };
                let reached =
                    self.decoder.parts(bytes, &request, stage, is_pixels, &mut self.parts);
                let reached = reached.unwrap();
                if reached != Some(stage) {
                    continue;
                }
                pairs.rows += usize::from(stage == PartStage::EntropyRows);
                let mut picture = Picture::default();
                let sample = pairs.pictures.len() as u64;
                let placement = &wanted.placement;
                if picture.prepare(sample, &self.parts, &resize, placement, &mut self.weights) {
                    pairs.pictures.push(picture);
                    pairs.expected.push(expected.clone());
                }
            }
        }
    }

    /// The resize, the region that has to be decoded for it, and the pixels of its window by the host.
    fn expected(
        &mut self,
        bytes: &[u8],
        wanted: &Wanted,
        is_pixels: bool,
    ) -> Option<(PictureResize, Rect, Vec<u8>)> {
        let Wanted { scale, resize, .. } = *wanted;
        let request = JpegRequest { scale, ..JpegRequest::default() };
        if is_pixels {
            let region = resize.source();
            let request = JpegRequest { region: Some(region), ..request };
            self.decoder.decode(bytes, &request, &mut self.image).ok()?;
            let view = ImageView::packed(&self.image.data, region.width, region.height, 3);
            let pixels = resized(self.level, view.at(region.x, region.y), &resize);
            return Some((PictureResize::Pixels(resize), region, pixels));
        }
        let region = with_margin(&resize);
        let request = JpegRequest { region: Some(region), ..request };
        let planes = self.decoder.decode_planes(bytes, &request).ok()?;
        let mut areas = [resize; 3];
        let mut made = Vec::new();
        for (plane, area) in planes.planes().iter().zip(&mut areas) {
            area.area = area_of(plane, &resize.area);
            let view = ImageView::new(plane.data, plane.width, plane.height, plane.stride, 1);
            made.push(resized(self.level, view.at(plane.first.0, plane.first.1), area));
        }
        let mut pixels = vec![0; made[0].len() * 3];
        match &made[..] {
            [y, cb, cr] if planes.color() == PlaneColor::YCbCr => {
                ycc_to_rgb(self.level, [y, cb, cr], &mut pixels);
            }
            [_] | [_, _, _] => {
                let places = pixels.as_chunks_mut::<3>().0.iter_mut().enumerate();
                for (at, pixel) in places {
                    *pixel = std::array::from_fn(|channel| made[channel % made.len()][at]);
                }
            }
            _ => return None,
        }
        Some((PictureResize::Planes(areas), region, pixels))
    }
}

fn resized(level: Level, view: ImageView<'_>, resize: &ResizeArea) -> Vec<u8> {
    let mut out = Vec::new();
    Resampler::new().run_area(level, view, resize, |_, row| out.extend_from_slice(row));
    out
}

/// The pixels that the planes' resizes read, within the area.
fn with_margin(resize: &ResizeArea) -> Rect {
    let inner = resize.source();
    let Area { left, top, right, bottom } = resize.area;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "edges of pixels")]
    let [left, top, right, bottom] = [left, top, right, bottom].map(|edge| edge as u32);
    let x = inner.x.saturating_sub(MARGIN).max(left);
    let y = inner.y.saturating_sub(MARGIN).max(top);
    let width = (inner.x + inner.width + MARGIN).min(right) - x;
    let height = (inner.y + inner.height + MARGIN).min(bottom) - y;
    Rect { x, y, width, height }
}

fn area_of(plane: &Plane<'_>, area: &Area) -> Area {
    let (across, down) = plane.step;
    Area {
        left: area.left / across,
        top: area.top / down,
        right: (area.right / across).min(f64::from(plane.size.0)),
        bottom: (area.bottom / down).min(f64::from(plane.size.1)),
    }
}

impl Wanted {
    /// Something of an image, with a result of [`SIZE`].
    fn some(random: &mut Random, full: (u32, u32), scale: Scale) -> Self {
        let size = (scale.apply(full.0), scale.apply(full.1));
        let x = random.below(size.0);
        let y = random.below(size.1);
        let region =
            Rect { x, y, width: random.range(1, size.0 - x), height: random.range(1, size.1 - y) };
        let region = if random.below(4) == 0 { Rect::of_size(size.0, size.1) } else { region };
        let window = (random.range(1, SIZE.0), random.range(1, SIZE.1));
        let window = if random.below(2) == 0 { SIZE } else { window };
        let x = random.below(10);
        let y = random.below(10);
        let resized = (window.0 + x + random.below(5), window.1 + y + random.below(5));
        let window = Rect { x, y, width: window.0, height: window.1 };
        let placement = Placement {
            size: SIZE,
            left: random.below(SIZE.0 - window.width + 1),
            top: random.below(SIZE.1 - window.height + 1),
            fill: [9, 200, 77],
            flip: random.below(2) == 0,
            flip_vertical: random.below(4) == 0,
        };
        let resize = Resize { region, resized, window, filter: some_filter(random) };
        Self { scale, resize: resize.into(), placement }
    }
}

impl Pairs {
    /// Decodes the pictures in one batch.
    fn check(self, fixture: &Fixture, context: &str) -> usize {
        let found = fixture.decode(&self.pictures, SIZE);
        for ((found, expected), picture) in found.iter().zip(&self.expected).zip(&self.pictures) {
            assert!(found == expected, "{context}: {picture:?}");
        }
        self.pictures.len()
    }
}

/// Adds `rounds` parts of a file at every scale.
fn add_file(host: &mut Host, random: &mut Random, pairs: &mut Pairs, bytes: &[u8], rounds: usize) {
    let Ok(info) = tl_decode::probe(bytes) else { return };
    let mut index = Vec::new();
    let has_index = host.decoder.row_index(bytes, &mut index).unwrap();
    let index = has_index.then(|| RowIndex::parse(&index).unwrap());
    for scale in Scale::HALVINGS {
        for _ in 0..rounds {
            let wanted = Wanted::some(random, (info.width, info.height), scale);
            host.add(pairs, bytes, index, &wanted);
        }
    }
}

/// The JPEG files below a folder.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let is_image = |path: &PathBuf| {
        let ending = path.extension().unwrap_or_default();
        ending.eq_ignore_ascii_case("jpg") || ending.eq_ignore_ascii_case("jpeg")
    };
    paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .filter(is_image)
        .collect()
}

pub(super) fn repository(folder: &str) -> PathBuf {
    tl_testdata::shipped!("").join(folder)
}

#[test]
fn every_kind_of_file_has_the_pixels_of_the_host() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(5);
    let mut pictures = 0;
    let mut rows = 0;
    let mut host = Host::new(Level::Scalar);
    for path in files(&repository("jpeg")) {
        let mut pairs = Pairs::default();
        add_file(&mut host, &mut random, &mut pairs, &std::fs::read(&path).unwrap(), 4);
        rows += pairs.rows;
        pictures += pairs.check(&fixture, &path.display().to_string());
    }
    assert!(pictures > 3000 && rows > 1000, "{pictures} pictures, {rows} of rows");
    assert_eq!(fixture.uploader.stats().pictures, pictures as u64);
}

#[test]
fn damaged_files_that_the_host_decodes_have_its_pixels() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(8);
    let mut host = Host::new(Level::Scalar);
    let mut pairs = Pairs::default();
    for file in ["optimised.jpg", "grey.jpg", "sampling_2x2_1x1_1x1.jpg", "restart_rows.jpg"] {
        let good = std::fs::read(repository("jpeg").join(file)).unwrap();
        let data = u32::try_from(good.len() * 2 / 3).unwrap();
        for _ in 0..100 {
            let mut bytes = good.clone();
            let length = u32::try_from(bytes.len()).unwrap();
            bytes[random.range(length - data, length - 3) as usize] ^= 1 << random.below(8);
            let mut index = Vec::new();
            // Damage that is not seen: coefficients after the last one, other numbers.
            if let Ok(true) = host.decoder.row_index(&bytes, &mut index) {
                let info = tl_decode::probe(&bytes).unwrap();
                let wanted = Wanted::some(&mut random, (info.width, info.height), Scale::FULL);
                host.add(&mut pairs, &bytes, RowIndex::parse(&index).ok(), &wanted);
            }
        }
    }
    assert!(pairs.rows > 50, "{} of rows", pairs.rows);
    pairs.check(&fixture, "damaged files");
}

#[test]
fn committed_photographs_have_the_pixels_of_the_host() {
    let fixture = Fixture::new(8 << 20);
    let mut random = Random(6);
    let mut host = Host::new(Level::detect());
    for path in files(&repository("photos")) {
        let mut pairs = Pairs::default();
        add_file(&mut host, &mut random, &mut pairs, &std::fs::read(&path).unwrap(), 1);
        assert!(pairs.check(&fixture, &path.display().to_string()) > 0);
    }
}

#[tl_testdata::needs("imagenet")]
#[test]
fn photographs_have_the_pixels_of_the_host() {
    let fixture = Fixture::new(8 << 20);
    let mut random = Random(7);
    let mut host = Host::new(Level::detect());
    let files = files(&tl_testdata::path!("imagenet"));
    for path in files.iter().step_by(files.len().div_ceil(30)) {
        let mut pairs = Pairs::default();
        add_file(&mut host, &mut random, &mut pairs, &std::fs::read(path).unwrap(), 1);
        assert!(pairs.check(&fixture, &path.display().to_string()) > 0);
    }
}
