//! Recipes whose operations need whole images: the same bytes on any number of threads and at any
//! level, bounded memory, several images of a sample.

use tbl_format::SampleFormat;
use tl_decode::{DecodeOptions, Image, Limits};
use tl_pipeline::{
    LoaderConfig, PipelineError, Renderer, SampleFault, SampleRenderer, Stored, Target, Work,
};
use tl_simd::Level;
use tl_transform::{DecodeMode, Draw, Layout, Parity, Recipe};

use crate::content::record;
use crate::memory::{bmp, bmps, config, dataset, loader, pixels, sample};

/// Operations of every family, before, between and after crops, with nested operations.
pub(crate) const EVERYTHING: &str = r#"{"ops": [
    {"op": "random_rotation", "degrees": 20, "interpolation": "bilinear", "expand": true},
    {"op": "random_resized_crop", "size": [20, 24]},
    {"op": "color_jitter", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    {"op": "random_choice", "ops": [
        {"op": "random_apply", "p": 0.5, "ops": [{"op": "gaussian_blur", "kernel_size": 5}]},
        {"op": "compose", "ops": [{"op": "grayscale"}, {"op": "random_perspective", "p": 1}]},
        {"op": "random_order", "ops": [{"op": "random_invert"}, {"op": "random_equalize"},
            {"op": "random_posterize", "bits": 3}, {"op": "random_autocontrast"}]}]},
    {"op": "elastic_transform", "alpha": 20, "sigma": 3},
    {"op": "random_affine", "degrees": 10, "translate": [0.2, 0.2], "shear": 10},
    {"op": "random_adjust_sharpness", "sharpness_factor": 2},
    {"op": "gaussian_noise", "sigma": 0.05},
    {"op": "grid_mask", "distance": [4, 9]},
    {"op": "random_photometric_distort"},
    {"op": "random_solarize", "threshold": 200},
    {"op": "center_crop", "size": [22, 18]},
    {"op": "random_horizontal_flip"},
    {"op": "to_float"},
    {"op": "normalize", "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]},
    {"op": "random_erasing", "value": "random"}],
    "output": {"dtype": "f32", "layout": "chw"}}"#;

pub(crate) fn everything() -> Recipe {
    serde_json::from_str(EVERYTHING).unwrap()
}

#[test]
fn batches_do_not_depend_on_the_number_of_workers() {
    for parity in [Parity::Pil, Parity::Tensor] {
        let work = Work::Images(everything().with_parity(parity).unwrap());
        let batches = |workers| {
            record(&loader(bmps(23), LoaderConfig { workers, ..config(work.clone()) }), 3)
        };
        let expected = batches(1);
        for workers in [2, 3, 7] {
            assert!(batches(workers) == expected, "{parity}, {workers} workers");
        }
    }
}

fn render(renderer: &mut SampleRenderer, number: u32, image: &mut Image) {
    let (width, height, pixels) = pixels(number);
    let mut bytes = bmp(width, height, &pixels);
    let format = SampleFormat::Bmp;
    let stored = Stored { format, size: (0, 0), bytes: &mut bytes, row_index: None };
    let draw = Draw { seed: 42, epoch: 3, sample: number.into() };
    renderer.render(stored, draw, Target::Image(image)).unwrap();
}

#[test]
fn results_do_not_depend_on_the_level_or_on_what_was_done_before() {
    for parity in [Parity::Pil, Parity::Tensor] {
        let recipe = everything().with_parity(parity).unwrap();
        let renderer = || SampleRenderer::new(&recipe, DecodeOptions::default());
        let (mut found, mut expected) = (Image::new(), Image::new());
        let mut used: Vec<_> =
            Level::available().map(|level| renderer().with_level(level)).collect();
        for number in 0..40 {
            render(&mut renderer().with_level(Level::Scalar), number, &mut expected);
            for used in &mut used {
                render(used, number, &mut found);
                assert!(found == expected, "{parity}, sample {number}, {used:?}");
            }
        }
    }
}

/// A batch has the bytes that its plans give when they are printed, read and run one by one.
#[test]
fn a_printed_plan_gives_the_same_bytes() {
    let recipe = everything();
    let mut renderer = Renderer::new(&recipe);
    let mut samples = SampleRenderer::new(&recipe, DecodeOptions::default());
    let mut image = Image::new();
    for number in 0..20 {
        let (width, height, pixels) = pixels(number);
        let draw = Draw { seed: 42, epoch: 3, sample: number.into() };
        let json = serde_json::to_string(&recipe.plan(width, height, draw).unwrap()).unwrap();
        let plan = serde_json::from_str(&json).unwrap();
        let mut out = vec![0; renderer.output_bytes((18, 22))];
        renderer.render(&plan, &pixels, width, height, &mut out).unwrap();
        render(&mut samples, number, &mut image);
        assert!(image.data == out, "{number}: {json}");
    }
}

#[test]
fn raw_samples_go_through_the_steps() {
    let raw = dataset((0..9).map(|number| sample(number, SampleFormat::RawU8)).collect());
    let work = || config(Work::Images(everything()));
    assert_eq!(record(&loader(raw, work()), 1), record(&loader(bmps(9), work()), 1));
}

/// Images on the way, the one before a step and the one after it, are measured before they are made,
/// whatever the result is.
#[test]
fn images_on_the_way_are_bounded() {
    let json = r#"{"ops": [{"op": "grayscale"}, {"op": "center_crop", "size": 3000},
        {"op": "grayscale"}, {"op": "center_crop", "size": 4}],
        "output": {"dtype": "u8", "layout": "hwc"}}"#;
    let recipe: Recipe = serde_json::from_str(json).unwrap();
    let limits = Limits { max_decoded_bytes: 53_999_999, ..Limits::default() };
    let options = |limits| DecodeOptions { limits, ..DecodeOptions::default() };
    let render = |limits| {
        let decode = options(limits);
        let config = LoaderConfig { decode, ..config(Work::Images(recipe.clone())) };
        loader(bmps(1), config).epoch(0).next().unwrap().map(|batch| batch.images().len())
    };
    assert_eq!(render(Limits { max_decoded_bytes: 54_000_000, ..limits }).unwrap(), 48);
    let error = render(limits).unwrap_err();
    let PipelineError::Sample(error) = error else { panic!("{error}") };
    let fault = &error.fault;
    let SampleFault::OutputSize { bytes, limit } = fault else { panic!("{fault}") };
    assert_eq!((*bytes, *limit), (54_000_000, 53_999_999));
}

/// The rows that resizes of wide pixels take are measured too.
#[test]
fn rows_of_wide_resizes_are_bounded() {
    let json = r#"{"pixels": "f32", "ops": [{"op": "resize", "size": [4, 9]}, {"op": "to_float"}],
        "output": {"dtype": "f32", "layout": "chw"}}"#;
    let recipe: Recipe = serde_json::from_str(json).unwrap();
    let (width, height, _) = pixels(0);
    let plan = recipe.plan(width, height, Draw::default()).unwrap();
    let need = recipe.scratch_bytes(&plan).unwrap();
    assert!(need > u64::from(width) * 3 * 64, "{need}");
    let decoded = u64::from(width) * u64::from(height) * 12;
    assert!(need > decoded, "{need} {decoded}");
    let render = |max_decoded_bytes| {
        let limits = Limits { max_decoded_bytes, ..Limits::default() };
        let decode = DecodeOptions { limits, ..DecodeOptions::default() };
        let config = LoaderConfig { decode, ..config(Work::Images(recipe.clone())) };
        loader(bmps(1), config).epoch(0).next().unwrap().map(|batch| batch.images().len())
    };
    assert_eq!(render(need).unwrap(), 4 * 9 * 12);
    let PipelineError::Sample(error) = render(need - 1).unwrap_err() else { panic!("a sample") };
    let SampleFault::OutputSize { bytes, limit } = error.fault else { panic!("{}", error.fault) };
    assert_eq!((bytes, limit), (need, need - 1));
}

#[test]
fn views_lie_one_behind_the_other() {
    for (json, count) in [(r#""five_crop""#, 5), (r#""ten_crop""#, 10)] {
        let text = format!(
            r#"{{"ops": [{{"op": "resize", "size": 16}}, {{"op": {json}, "size": [8, 9]}},
                {{"op": "random_rotation", "degrees": 30}}],
                "output": {{"dtype": "u8", "layout": "hwc"}}}}"#
        );
        let recipe: Recipe = serde_json::from_str(&text).unwrap();
        assert_eq!(recipe.views(), count);
        let mut renderer = Renderer::new(&recipe);
        let loader = loader(bmps(6), config(Work::Images(recipe.clone())));
        for batch in loader.epoch(2) {
            let batch = batch.unwrap();
            let count = count as usize;
            assert_eq!(batch.shape().as_deref(), Some(&[batch.len(), count, 8, 9, 3][..]));
            let rows = batch.images().chunks_exact(count * 9 * 8 * 3);
            for (row, &index) in rows.zip(batch.indices()) {
                let (width, height, pixels) = pixels(u32::try_from(index).unwrap());
                let draw = Draw { seed: 42, epoch: 2, sample: index };
                for (view, image) in (0..).zip(row.chunks_exact(9 * 8 * 3)) {
                    let mut plan = recipe.plan(width, height, draw).unwrap();
                    recipe.plan_view_into((width, height), draw, view, &mut plan).unwrap();
                    let mut expected = vec![0; 9 * 8 * 3];
                    renderer.render(&plan, &pixels, width, height, &mut expected).unwrap();
                    assert!(image == expected, "view {view} of sample {index}");
                }
            }
        }
    }
}

/// The views of a photograph are cut from one decoding of all that they need.
#[test]
fn views_of_a_photograph_are_those_of_its_pixels() {
    let json = r#"{"ops": [{"op": "resize", "size": 64}, {"op": "ten_crop", "size": [48, 40]}],
        "output": {"dtype": "u8", "layout": "hwc"}}"#;
    let recipe: Recipe = serde_json::from_str(json).unwrap();
    let file = std::fs::read(tl_testdata::shipped!("photos/animals/chelsea.jpg")).unwrap();
    let render = |recipe: &Recipe| {
        let (mut bytes, mut image) = (file.clone(), Image::new());
        let format = SampleFormat::Jpeg;
        let stored = Stored { format, size: (0, 0), bytes: &mut bytes, row_index: None };
        let mut renderer = SampleRenderer::new(recipe, DecodeOptions::default());
        renderer.render(stored, Draw::default(), Target::Image(&mut image)).unwrap();
        image
    };
    let exact = render(&recipe);
    assert_eq!((exact.width, exact.height), (40, 10 * 48));
    let mut decoded = Image::new();
    tl_decode::Decoder::default().decode_into(&file, &mut decoded).unwrap();
    let (width, height) = (decoded.width, decoded.height);
    let mut renderer = Renderer::new(&recipe);
    let mut plan = recipe.plan(width, height, Draw::default()).unwrap();
    for (view, image) in (0..).zip(exact.data.chunks_exact(40 * 48 * 3)) {
        recipe.plan_view_into((width, height), Draw::default(), view, &mut plan).unwrap();
        let mut expected = vec![0; image.len()];
        renderer.render(&plan, &decoded.data, width, height, &mut expected).unwrap();
        assert!(image == expected, "view {view}");
    }
    let fast = render(&recipe.clone().with_decode(DecodeMode::FAST).unwrap());
    let pairs = exact.data.iter().zip(&fast.data);
    let sum: u32 = pairs.map(|(left, right)| u32::from(left.abs_diff(*right))).sum();
    assert!(fast != exact && sum < 2 * u32::try_from(exact.data.len()).unwrap(), "{sum}");
}

#[test]
fn views_of_varying_size_are_refused() {
    let json = r#"{"ops": [{"op": "ten_crop", "size": 4},
        {"op": "random_rotation", "degrees": 30, "expand": true}],
        "output": {"dtype": "u8", "layout": "hwc"}}"#;
    let recipe: Recipe = serde_json::from_str(json).unwrap();
    assert_eq!(recipe.output_size(), None);
    let config = config(Work::Images(recipe.into_pixels(Layout::Hwc)));
    let error = tl_pipeline::Loader::new(bmps(1), config).unwrap_err();
    assert!(error.to_string().contains("channels first need one size: add Resize"), "{error}");
}

#[test]
fn views_are_not_mixed_and_not_without_number() {
    let crops = |count: usize, more: &str| {
        let crop = r#"{"op": "ten_crop", "size": 4}"#;
        let ops = vec![crop; count].join(",");
        format!(r#"{{"ops": [{ops}], {more} "output": {{"dtype": "u8", "layout": "hwc"}}}}"#)
    };
    let recipe: Recipe =
        serde_json::from_str(&crops(1, r#""batch_ops": [{"op": "cut_mix"}],"#)).unwrap();
    let error = tl_pipeline::Loader::new(bmps(1), config(Work::Images(recipe))).unwrap_err();
    assert!(error.to_string().contains("one view per sample"), "{error}");
    assert_eq!(serde_json::from_str::<Recipe>(&crops(2, "")).unwrap().views(), 100);
    let error = serde_json::from_str::<Recipe>(&crops(200, "")).unwrap_err();
    assert!(error.to_string().contains("at most 256"), "{error}");
}
