//! Photographs through exact and fast decoding: what each is equal to, and how far they are apart.

use std::path::PathBuf;

use tbl_format::SampleFormat;
use tl_decode::{DecodeOptions, Decoder, Exif, Image, JpegDecoder, Limits, OnDamaged, probe};
use tl_pipeline::{Dataset, LoaderConfig, Renderer, SampleRenderer, Stored, Target, Work};
use tl_simd::Level;
use tl_transform::op::{CenterCrop, RandomHorizontalFlip, Resize, Size};
use tl_transform::{DecodeMode, Draw, Interpolation, Layout, Op, OutputSpec, Recipe};

use crate::content::record;
use crate::memory::{config, loader};

const PIXELS: OutputSpec = OutputSpec { dtype: tl_transform::Dtype::U8, layout: Layout::Hwc };

fn photos() -> PathBuf {
    tl_testdata::shipped!("photos")
}

/// The JPEG files among the published photographs.
fn jpegs() -> Vec<Vec<u8>> {
    let dataset = Dataset::open(&[photos()]).unwrap();
    let mut files = Vec::new();
    for index in 0..dataset.len() {
        if dataset.facts(index).unwrap().format == SampleFormat::Jpeg {
            files.push(Vec::new());
            dataset.read_into(index, files.last_mut().unwrap()).unwrap();
        }
    }
    assert!(files.len() >= 8, "{} photographs", files.len());
    files
}

/// Small files of every kind of JPEG that is decoded: samplings, scans, colours, lossless.
fn kinds() -> Vec<(String, Vec<u8>)> {
    let folder = tl_testdata::shipped!("jpeg");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    let (mut decoder, mut image) = (Decoder::default(), Image::new());
    files.retain(|(_, file)| decoder.decode_into(file, &mut image).is_ok());
    assert!(files.len() >= 40, "{} kinds", files.len());
    files.sort();
    files
}

fn all_files() -> Vec<(String, Vec<u8>)> {
    let photographs =
        (0..).zip(jpegs()).map(|(number, file)| (format!("photograph {number}"), file));
    photographs.chain(kinds()).collect()
}

/// Training, evaluation, a crop beyond the image, filters of every width, and no resize at all.
fn recipes() -> Vec<Recipe> {
    let resize = |size, interpolation| Op::from(Resize { interpolation, ..Resize::new(size) });
    let crop = |width, height| Op::from(CenterCrop { size: Size::exact(width, height) });
    let flip = Op::from(RandomHorizontalFlip::default());
    let of = |ops: &[Op]| Recipe::new(ops.to_vec(), PIXELS).unwrap();
    vec![
        Recipe::imagenet_train(224).unwrap(),
        Recipe::imagenet_train(97).unwrap().into_pixels(Layout::Chw),
        Recipe::imagenet_eval(224).unwrap(),
        of(&[resize(64, Interpolation::Lanczos), crop(90, 30), flip.clone()]),
        of(&[resize(700, Interpolation::Bicubic), crop(31, 47)]),
        of(&[resize(50, Interpolation::Nearest), crop(40, 40)]),
        of(&[crop(800, 128), flip]),
    ]
}

fn render(
    renderer: &mut SampleRenderer,
    file: &[u8],
    sample: u64,
    row_index: Option<&[u8]>,
) -> Image {
    let (mut bytes, mut image) = (file.to_vec(), Image::new());
    let stored = Stored { format: SampleFormat::Jpeg, size: (0, 0), bytes: &mut bytes, row_index };
    let draw = Draw { seed: 42, epoch: 3, sample };
    renderer.render(stored, draw, Target::Image(&mut image)).unwrap();
    image
}

#[test]
fn exact_decoding_of_a_part_gives_the_bytes_of_the_whole() {
    for recipe in recipes() {
        let recipe = recipe.with_decode(DecodeMode::Exact).unwrap();
        let mut parts = SampleRenderer::new(&recipe, DecodeOptions::default());
        let (mut whole, mut decoded) = (Renderer::new(&recipe), Image::new());
        for (sample, (name, file)) in (0..).zip(all_files()) {
            Decoder::new(DecodeOptions::default()).decode_into(&file, &mut decoded).unwrap();
            let Image { width, height, data, .. } = &decoded;
            let plan = recipe.plan(*width, *height, Draw { seed: 42, epoch: 3, sample }).unwrap();
            let mut expected = vec![0; whole.output_bytes(plan.output_size())];
            whole.render(&plan, data, *width, *height, &mut expected).unwrap();
            let found = render(&mut parts, &file, sample, None);
            assert_eq!((found.width, found.height), plan.output_size());
            assert!(found.data == expected, "{recipe}, {name}");
        }
    }
}

#[test]
fn neither_level_nor_row_index_changes_a_byte() {
    let mut decoder = JpegDecoder::new(Limits::default());
    for (recipe, mode) in recipes().into_iter().flat_map(|recipe| {
        let fast = DecodeMode::Fast { decode_margin: 1.0 };
        [DecodeMode::Exact, DecodeMode::FAST, fast].map(|mode| (recipe.clone(), mode))
    }) {
        let recipe = recipe.with_decode(mode).unwrap();
        let renderer = || SampleRenderer::new(&recipe, DecodeOptions::default());
        let mut scalar = renderer().with_level(Level::Scalar);
        let mut others: Vec<_> =
            Level::available().map(|level| renderer().with_level(level)).collect();
        for (sample, (name, file)) in (0..).zip(all_files()).step_by(3) {
            let expected = render(&mut scalar, &file, sample, None);
            let mut index = Vec::new();
            let indexed = decoder.row_index(&file, &mut index).unwrap();
            for other in &mut others {
                for index in [None, indexed.then_some(&index[..])] {
                    let found = render(other, &file, sample, index);
                    assert!(found == expected, "{recipe}, {name}, {other:?}");
                }
            }
        }
    }
}

/// A region of planes holds the samples of its area and no more: a tap outside would panic.
#[test]
fn planes_of_a_region_hold_every_sample_that_is_read() {
    let folder = tl_testdata::shipped!("jpeg");
    // Their data belong to another subsampling, so most of the image is mid grey.
    let fractions =
        [[0x31, 0x21, 0x11], [0x41, 0x31, 0x11], [0x14, 0x13, 0x11], [0x23, 0x12, 0x11]].map(
            |factors| {
                let mut file = std::fs::read(folder.join("each_scan_420.jpg")).unwrap();
                let frame = file.windows(2).position(|marker| marker == [0xFF, 0xC0]).unwrap();
                for (at, factors) in [frame + 11, frame + 14, frame + 17].into_iter().zip(factors) {
                    file[at] = factors;
                }
                (format!("{factors:x?}"), file)
            },
        );
    let files: Vec<(String, Vec<u8>)> = kinds().into_iter().chain(fractions).collect();
    let window = |size, interpolation, side| {
        let resize = Op::from(Resize { interpolation, ..Resize::new(size) });
        let crop = Op::from(CenterCrop::new(side));
        Recipe::new(vec![resize, crop], PIXELS).unwrap()
    };
    let recipes = [
        (Recipe::imagenet_train(5).unwrap(), 60),
        (Recipe::imagenet_train(40).unwrap(), 60),
        (window(9, Interpolation::Lanczos, 3), 1),
        (window(90, Interpolation::Lanczos, 31), 1),
        (window(8, Interpolation::Nearest, 3), 1),
    ];
    for (recipe, draws) in recipes {
        for mode in [DecodeMode::FAST, DecodeMode::Fast { decode_margin: 1.0 }] {
            let recipe = recipe.clone().with_decode(mode).unwrap();
            let options = DecodeOptions { on_damaged: OnDamaged::Keep, ..DecodeOptions::default() };
            let mut renderer = SampleRenderer::new(&recipe, options);
            for (name, file) in &files {
                for sample in 0..draws {
                    let found = render(&mut renderer, file, sample, None);
                    assert!(!found.data.is_empty(), "{recipe}, {name}");
                }
            }
        }
    }
}

#[test]
fn batches_of_photographs_do_not_depend_on_the_number_of_workers() {
    for mode in [DecodeMode::Exact, DecodeMode::FAST] {
        let recipe = Recipe::imagenet_train(64).unwrap().with_decode(mode).unwrap();
        let batches = |workers| {
            let config = LoaderConfig { workers, ..config(Work::Images(recipe.clone())) };
            record(&loader(Dataset::open(&[photos()]).unwrap(), config), 1)
        };
        let expected = batches(1);
        for workers in [2, 3, 7] {
            assert!(batches(workers) == expected, "{mode}, {workers} workers");
        }
    }
}

/// Mean and 99.9th percentile of the absolute differences, and PSNR.
fn distance(left: &[u8], right: &[u8]) -> (f64, usize, f64) {
    assert_eq!(left.len(), right.len());
    let mut counts = [0_u32; 256];
    for (&left, &right) in left.iter().zip(right) {
        counts[usize::from(left.abs_diff(right))] += 1;
    }
    let samples = left.len() as f64;
    let sum = |power: i32| -> f64 {
        (0_u32..).zip(counts).map(|(d, count)| f64::from(d).powi(power) * f64::from(count)).sum()
    };
    let mut rest = left.len() as f64 / 1000.0;
    let percentile = (0..256).rev().find(|&difference| {
        rest -= f64::from(counts[difference]);
        rest < 0.0
    });
    let psnr = 10.0 * (255.0 * 255.0 * samples / sum(2)).log10();
    (sum(1) / samples, percentile.unwrap(), psnr)
}

#[test]
fn fast_decoding_stays_close_to_exact_decoding() {
    let recipe = Recipe::imagenet_train(224).unwrap().into_pixels(Layout::Hwc);
    // At 56 pixels most crops are decoded at a smaller scale.
    let small = Recipe::imagenet_train(56).unwrap().into_pixels(Layout::Hwc);
    for (recipe, worst_mean, worst_percentile, worst_psnr) in
        [(recipe, 0.4, 6, 50.0), (small, 0.7, 8, 46.0)]
    {
        let options = DecodeOptions::default();
        let exact = recipe.clone().with_decode(DecodeMode::Exact).unwrap();
        let mut exact = SampleRenderer::new(&exact, options);
        let mut fast = SampleRenderer::new(&recipe, options);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (photograph, file) in (0..).zip(jpegs()) {
            for draw in 0..8 {
                left.extend(render(&mut exact, &file, photograph * 8 + draw, None).data);
                right.extend(render(&mut fast, &file, photograph * 8 + draw, None).data);
            }
        }
        let (mean, percentile, psnr) = distance(&left, &right);
        println!("{recipe}: mean {mean:.3}, 99.9 % {percentile}, PSNR {psnr:.2} dB");
        assert!(left != right && mean < worst_mean, "{recipe}: {mean}");
        assert!(percentile <= worst_percentile, "{recipe}: {percentile}");
        assert!(psnr > worst_psnr, "{recipe}: {psnr}");
    }
}

/// A JPEG whose EXIF data say that it lies on its side, as long as the file.
fn turned(file: &[u8]) -> Vec<u8> {
    let exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let mut turned = file[..2].to_vec();
    turned.extend([0xFF, 0xE1, 0, u8::try_from(exif.len() + 2).unwrap()]);
    turned.extend_from_slice(exif);
    turned.extend_from_slice(&file[2..]);
    turned
}

#[test]
fn a_turned_photograph_is_planned_upright() {
    let file = turned(&jpegs()[0]);
    let info = probe(&file).unwrap();
    assert_eq!(info.upright_size(), (info.height, info.width));
    let options = DecodeOptions { exif: Exif::Apply, ..DecodeOptions::default() };
    let recipe = Recipe::imagenet_train(64).unwrap();
    let found = render(&mut SampleRenderer::new(&recipe, options), &file, 5, None);
    let mut decoded = Image::new();
    Decoder::new(options).decode_into(&file, &mut decoded).unwrap();
    let plan =
        recipe.plan(info.height, info.width, Draw { seed: 42, epoch: 3, sample: 5 }).unwrap();
    let mut renderer = Renderer::new(&recipe);
    let mut expected = vec![0; renderer.output_bytes(plan.output_size())];
    renderer.render(&plan, &decoded.data, decoded.width, decoded.height, &mut expected).unwrap();
    assert!(found.data == expected);
}
