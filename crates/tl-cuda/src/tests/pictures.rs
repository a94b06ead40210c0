//! Decoding on a device, compared with the kernels of `tl-simd` and with the decoder of the host.

mod coder;
mod faults;
mod files;
mod rates;
mod reference;
mod synthetic;

use tl_decode::{JpegParts, PlaneColor, Scale, Upsampling};
use tl_simd::resample::{Filter, Rect, Resize, ResizeArea, TensorFilter};

use super::*;
use reference::expected;
use synthetic::{Amplitude, Image, Stage};

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = ((self.0 >> 32) * u64::from(limit)) >> 32;
        u32::try_from(high).unwrap()
    }

    fn range(&mut self, from: u32, to: u32) -> u32 {
        from + self.below(to - from + 1)
    }
}

/// The uploader and what it decodes with.
struct Fixture {
    device: TestDevice,
    uploader: Uploader,
    decoder: Arc<PictureDecoder>,
}

impl Fixture {
    fn new(scratch: usize) -> Self {
        Self::with_lanes(scratch, 2)
    }

    fn with_lanes(scratch: usize, lanes: usize) -> Self {
        let device = device();
        // The smallest take pictures one by one.
        let payload = scratch / 16;
        let limits = BufferLimits { scratch, payload, lanes, ..BufferLimits::default() };
        let uploader = Uploader::new(&device, limits).unwrap();
        let decoder = Arc::new(PictureDecoder::new(&device).unwrap());
        Self { device, uploader, decoder }
    }

    fn images(&self, count: usize, pixels: usize) -> Images {
        let decoder = Some(Arc::clone(&self.decoder));
        Images { conversion: None, decoder, count, pixels, width: pixels, area: count * pixels * 3 }
    }

    /// The pixels of pictures that make results of one size.
    fn decode(&self, pictures: &[Picture], size: (u32, u32)) -> Vec<Vec<u8>> {
        let image = size.0 as usize * size.1 as usize;
        let images = self.images(pictures.len(), image);
        let source = pinned(&self.device, &vec![7; images.area]);
        let rows = pictures.iter().enumerate();
        let rows: Vec<_> = rows.map(|(row, picture)| RowPicture { row, picture }).collect();
        let buffer = self.uploader.upload(source, Some(&images), &rows, &[]).unwrap();
        let found = buffer.read().unwrap();
        found.chunks_exact(image * 3).take(pictures.len()).map(<[u8]>::to_vec).collect()
    }
}

fn placed(window: Rect) -> Placement {
    let size = (window.width, window.height);
    Placement { size, left: 0, top: 0, fill: [0; 3], flip: false, flip_vertical: false }
}

fn picture(parts: &JpegParts, resize: &PictureResize, placement: &Placement) -> Picture {
    let mut picture = Picture::default();
    let mut weights = PictureWeights::default();
    assert!(picture.prepare(0, parts, resize, placement, &mut weights));
    assert!(!picture.is_empty() && picture.bytes() > 0);
    picture
}

#[track_caller]
fn check(fixture: &Fixture, image: &Image, resize: &PictureResize, placement: &Placement) {
    for stage in [Stage::Coefficients, Stage::Rows] {
        let parts = image.parts(stage);
        let picture = picture(&parts, resize, placement);
        let found = fixture.decode(&[picture], placement.size);
        let expected = expected(image, resize, placement);
        let first = found[0].iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(
            first,
            None,
            "{stage:?} {resize:?} {placement:?}: {} {}",
            found[0].len(),
            expected.len()
        );
    }
}

/// The resize that changes nothing.
fn whole(width: u32, height: u32) -> ResizeArea {
    let region = Rect::of_size(width, height);
    Resize { region, resized: (width, height), window: region, filter: Filter::Bilinear }.into()
}

#[test]
fn blocks_have_the_samples_of_the_host_whatever_their_coefficients() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(1);
    for scale in Scale::HALVINGS {
        for amplitude in [Amplitude::Photograph, Amplitude::Large, Amplitude::Extreme] {
            for flat in [false, true] {
                let side = u32::from(scale.eighths());
                let size = (40 * side - 1, 20 * side);
                let mut image = Image::grey(&mut random, scale, size, amplitude);
                if flat {
                    image.flatten();
                }
                let resize = PictureResize::Pixels(whole(size.0, size.1));
                let placement = placed(Rect::of_size(size.0, size.1));
                check(&fixture, &image, &resize, &placement);
            }
        }
    }
}

#[test]
fn pixels_are_those_of_the_host_for_every_upsampling() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(2);
    let kinds = [
        Upsampling::None,
        Upsampling::H2V1,
        Upsampling::H1V2,
        Upsampling::H2V2,
        Upsampling::Replicate(2, 1),
        Upsampling::Replicate(1, 2),
        Upsampling::Replicate(2, 2),
        Upsampling::Replicate(4, 1),
        Upsampling::Replicate(3, 2),
    ];
    for color in [PlaneColor::YCbCr, PlaneColor::Rgb] {
        for kind in kinds {
            for (width, height) in [(5, 4), (64, 48), (37, 23), (38, 1), (97, 51)] {
                let scale = Scale::HALVINGS[random.below(4) as usize];
                let image = Image::color(
                    &mut random,
                    color,
                    scale,
                    (width, height),
                    [Upsampling::None, kind, kind],
                );
                let resize = PictureResize::Pixels(whole(width, height));
                check(&fixture, &image, &resize, &placed(Rect::of_size(width, height)));
            }
        }
    }
}

fn some_filter(random: &mut Random) -> Filter {
    const FILTERS: [Filter; 8] = [
        Filter::Nearest,
        Filter::Box,
        Filter::Bilinear,
        Filter::Hamming,
        Filter::Bicubic,
        Filter::Lanczos,
        Filter::Tensor(TensorFilter::Bilinear),
        Filter::Tensor(TensorFilter::PlainBicubic),
    ];
    FILTERS[random.below(8) as usize]
}

/// A resize of a part of an image.
fn some_resize(random: &mut Random, size: (u32, u32)) -> ResizeArea {
    let x = random.below(size.0);
    let y = random.below(size.1);
    let width = random.range(1, size.0 - x);
    let height = random.range(1, size.1 - y);
    let region = Rect { x, y, width, height };
    let mut resized = (random.range(1, 60), random.range(1, 60));
    if random.below(4) == 0 {
        resized.0 = width;
    }
    let left = random.below(resized.0);
    let top = random.below(resized.1);
    let width = random.range(1, resized.0 - left);
    let height = random.range(1, resized.1 - top);
    let window = Rect { x: left, y: top, width, height };
    Resize { region, resized, window, filter: some_filter(random) }.into()
}

fn some_placement(random: &mut Random, window: Rect) -> Placement {
    let left = random.below(2) * random.below(9);
    let top = random.below(2) * random.below(9);
    let right = random.below(2) * random.below(9);
    let bottom = random.below(2) * random.below(9);
    Placement {
        size: (left + window.width + right, top + window.height + bottom),
        left,
        top,
        fill: [1, 2, 250],
        flip: random.below(2) > 0,
        flip_vertical: random.below(2) > 0,
    }
}

#[test]
fn resized_pixels_are_those_of_the_host() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(3);
    for round in 0..150 {
        let size = (random.range(3, 150), random.range(3, 150));
        let kind = [Upsampling::None, Upsampling::H2V1, Upsampling::H2V2][random.below(3) as usize];
        let image = if round % 5 == 0 {
            Image::grey(&mut random, Scale::FULL, size, Amplitude::Photograph)
        } else {
            let kinds = [Upsampling::None, kind, kind];
            Image::color(&mut random, PlaneColor::YCbCr, Scale::FULL, size, kinds)
        };
        let resize = some_resize(&mut random, size);
        let placement = some_placement(&mut random, resize.window);
        check(&fixture, &image, &PictureResize::Pixels(resize), &placement);
    }
}

#[test]
fn planes_that_are_resized_as_they_are_stored_are_those_of_the_host() {
    let fixture = Fixture::new(1 << 20);
    let mut random = Random(4);
    for round in 0..100 {
        let size = (random.range(3, 150), random.range(3, 150));
        let color = if round % 4 == 0 { PlaneColor::Rgb } else { PlaneColor::YCbCr };
        let kind = [Upsampling::None, Upsampling::H2V2, Upsampling::Fractional][round % 3];
        let image =
            Image::color(&mut random, color, Scale::HALF, size, [Upsampling::None, kind, kind]);
        let resize = some_resize(&mut random, size);
        let areas = image.areas(&resize);
        let placement = some_placement(&mut random, resize.window);
        check(&fixture, &image, &PictureResize::Planes(areas), &placement);
    }
}

#[test]
fn pictures_and_images_of_the_host_share_a_batch() {
    // Of this scratch memory each picture needs most.
    for scratch in [1, 1 << 20] {
        let fixture = Fixture::new(scratch);
        let mut random = Random(8);
        let size = (33, 21);
        let pixels = 33 * 21;
        let resize = PictureResize::Pixels(whole(33, 21));
        let placement = placed(Rect::of_size(33, 21));
        let images: Vec<_> = (0..6)
            .map(|_| Image::grey(&mut random, Scale::FULL, size, Amplitude::Photograph))
            .collect();
        for rows in [&[0, 1, 2, 3, 4, 5][..], &[1, 2, 5], &[3], &[], &[0, 5]] {
            let stage = if rows.len() > 2 { Stage::Coefficients } else { Stage::Rows };
            let pictures: Vec<_> = rows
                .iter()
                .map(|row| picture(&images[*row].parts(stage), &resize, &placement))
                .collect();
            let pictures: Vec<_> = rows
                .iter()
                .zip(&pictures)
                .map(|(row, picture)| RowPicture { row: *row, picture })
                .collect();
            let source = noise(6 * pixels * 3 + 100);
            let mut expected = source[..6 * pixels * 3].to_vec();
            for row in rows {
                let own = expected.chunks_exact_mut(pixels * 3).nth(*row).unwrap();
                own.copy_from_slice(&reference::expected(&images[*row], &resize, &placement));
            }
            let before = fixture.uploader.stats();
            let plain = fixture.images(6, pixels);
            let buffer = fixture.uploader.upload(
                pinned(&fixture.device, &source),
                Some(&plain),
                &pictures,
                &[],
            );
            let buffer = buffer.unwrap();
            let found = buffer.read().unwrap();
            assert!(found[..expected.len()] == expected, "{rows:?}");
            assert!(found[buffer.place(plain.area)..] == source[plain.area..], "{rows:?}");

            let conversion =
                Conversion::new(&fixture.device, Dtype::F16, Layout::Chw, &Table::imagenet())
                    .unwrap();
            let images = Images { conversion: Some(Arc::new(conversion)), ..plain.clone() };
            let upload = |source: &[u8], rows: &[RowPicture<'_>]| {
                let source = pinned(&fixture.device, source);
                fixture.uploader.upload(source, Some(&images), rows, &[]).unwrap().read().unwrap()
            };
            assert!(
                upload(&source, &pictures)
                    == upload(&[&expected, &source[plain.area..]].concat(), &[])
            );
            let stats = fixture.uploader.stats().since(&before);
            assert_eq!(stats.pictures, 2 * rows.len() as u64);
        }
    }
}

#[test]
fn lanes_decode_the_pictures_of_several_threads() {
    // Chunks are of few pictures.
    let fixture = Fixture::with_lanes(1 << 16, 3);
    let size = (33, 21);
    let mut random = Random(15);
    let kinds = [Upsampling::None, Upsampling::H2V2, Upsampling::H2V2];
    let resize = PictureResize::Pixels(whole(size.0, size.1));
    let placement = placed(Rect::of_size(size.0, size.1));
    let images: Vec<_> = (0..12)
        .map(|_| Image::color(&mut random, PlaneColor::YCbCr, Scale::FULL, size, kinds))
        .collect();
    let expected: Vec<_> =
        images.iter().map(|image| expected(image, &resize, &placement)).collect();
    let parts: Vec<_> = images.iter().map(|image| image.parts(Stage::Rows)).collect();
    let decode = |thread: usize| {
        for batch in 0..24 {
            let numbers = (0..1 + (batch + thread) % 9).map(|row| (thread + batch * row) % 12);
            let numbers: Vec<_> = numbers.collect();
            let pictures: Vec<_> = numbers
                .iter()
                .map(|number| picture(&parts[*number], &resize, &placement))
                .collect();
            let found = fixture.decode(&pictures, size);
            for (found, number) in found.iter().zip(numbers) {
                assert!(*found == expected[number], "image {number} of batch {batch}");
            }
        }
    };
    let decode = &decode;
    std::thread::scope(|scope| {
        (0..4).for_each(|thread| drop(scope.spawn(move || decode(thread))));
    });
}
