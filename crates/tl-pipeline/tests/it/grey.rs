//! Images of one channel.

use std::path::PathBuf;

use tl_decode::{Color, DecodeOptions, Decoder, Image};
use tl_pipeline::{
    Batching, Buckets, CacheConfig, CacheKind, Dataset, Fields, ImageField, Loader, LoaderConfig,
    MemoryCache, PipelineError, Renderer, Shuffle, Work,
};
use tl_transform::op::{
    CenterCrop, ColorJitter, Normalize, RandomErasing, RandomHorizontalFlip, RandomResizedCrop,
    RandomRotation, Resize, Size, ToFloat,
};
use tl_transform::{BatchOp, Channels, DecodeMode, Draw, Dtype, Layout, Op, OutputSpec, Recipe};

use crate::memory::{bmps, config, loader};

const FLOATS: OutputSpec = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

fn photos() -> Dataset {
    let folder: PathBuf = tl_testdata::shipped!("photos");
    Dataset::open(&[folder]).unwrap()
}

/// Recipes of one pass, of steps, with erasing, and none at all.
fn recipes() -> Vec<Recipe> {
    let jitter: ColorJitter =
        serde_json::from_str(r#"{"brightness":0.5,"contrast":0.5,"saturation":0.5}"#).unwrap();
    let rotation: RandomRotation = serde_json::from_str(r#"{"degrees":30}"#).unwrap();
    let erase: RandomErasing = serde_json::from_str(r#"{"p":1.0}"#).unwrap();
    let crop: Op = RandomResizedCrop::new(40).into();
    let norm = Normalize { mean: [0.5; 3].into(), std: [0.25; 3].into() };
    let float = |ops| Recipe::new(ops, FLOATS).unwrap();
    vec![
        float(vec![
            crop.clone(),
            RandomHorizontalFlip::default().into(),
            ToFloat {}.into(),
            norm.into(),
        ]),
        float(vec![crop, jitter.into(), rotation.into(), ToFloat {}.into(), erase.into()]),
        Recipe::new(
            vec![Resize::new(50).into(), CenterCrop { size: Size::exact(60, 44) }.into()],
            PIXELS,
        )
        .unwrap(),
    ]
}

/// The image of a sample as its recipe makes it of three equal channels.
fn expected(recipe: &Recipe, dataset: &Dataset, index: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    dataset.read_into(index, &mut bytes).unwrap();
    let mut grey = Image::new();
    let options = DecodeOptions { color: Color::Grey, ..DecodeOptions::default() };
    Decoder::new(options).decode_into(&bytes, &mut grey).unwrap();
    let rgb: Vec<u8> = grey.data.iter().flat_map(|&value| [value; 3]).collect();
    let draw = Draw { seed: 42, epoch: 0, sample: index };
    let plan = recipe.plan(grey.width, grey.height, draw).unwrap();
    let mut renderer = Renderer::new(recipe);
    let mut out = vec![0; renderer.output_bytes(plan.output_size())];
    renderer.render(&plan, &rgb, grey.width, grey.height, &mut out).unwrap();
    let number = recipe.output().dtype.bytes();
    match recipe.output().layout {
        Layout::Chw => out[..out.len() / 3].to_vec(),
        Layout::Hwc => {
            out.chunks_exact(3 * number).flat_map(|pixel| &pixel[..number]).copied().collect()
        }
    }
}

fn with(recipe: Recipe) -> LoaderConfig {
    let recipe = recipe.with_channels(Channels::Grey).unwrap();
    LoaderConfig { sampler: Shuffle::None.into(), ..config(Work::Images(recipe)) }
}

#[test]
fn grey_images_are_the_first_of_three_equal_channels() {
    let dataset = photos();
    for recipe in recipes() {
        let cache = MemoryCache { kind: CacheKind::Decoded, bytes: 64 << 20 };
        let cache = CacheConfig { memory: Some(cache), disk: None };
        let cached = LoaderConfig { cache, ..with(recipe.clone()) };
        for config in [with(recipe.clone()), cached] {
            let loader = loader(photos(), config);
            // The second pass reads what the first has cached.
            for _ in 0..2 {
                for batch in loader.epoch(0) {
                    let batch = batch.unwrap();
                    let sizes = batch.shape().unwrap().to_vec();
                    assert_eq!(sizes.iter().filter(|&&side| side == 1).count(), 1, "{sizes:?}");
                    let image = batch.images().len() / batch.len();
                    for (row, &index) in batch.indices().iter().enumerate() {
                        let found = &batch.images()[row * image..][..image];
                        assert_eq!(found, expected(&recipe, &dataset, index), "{recipe} {index}");
                    }
                }
            }
        }
    }
}

#[test]
fn images_in_their_own_sizes_have_one_channel() {
    let dataset = photos();
    let shortest = Recipe::new(vec![Resize::new(30).into()], PIXELS).unwrap();
    for recipe in [Recipe::decode(), shortest] {
        for batch in loader(photos(), with(recipe.clone())).epoch(0) {
            let batch = batch.unwrap();
            for (row, &index) in batch.indices().iter().enumerate() {
                let sample = batch.sample(row).unwrap();
                assert_eq!(sample.channels, 1);
                let pixels = (sample.width * sample.height) as usize;
                assert_eq!(sample.bytes.len(), pixels);
                assert_eq!(sample.bytes, expected(&recipe, &dataset, index));
            }
        }
    }
}

#[test]
fn padded_batches_and_mixed_ones_have_one_channel() {
    let shortest = Recipe::new(vec![Resize::new(16).into()], PIXELS).unwrap();
    let batching = Batching::Buckets(Buckets { window: 2, multiple: 8 });
    let padded = loader(bmps(9), LoaderConfig { batching, ..with(shortest.clone()) });
    let lists = loader(bmps(9), with(shortest));
    let whole: Vec<_> = lists.epoch(0).map(Result::unwrap).collect();
    for batch in padded.epoch(0) {
        let batch = batch.unwrap();
        let [_, height, width, channels] = batch.shape().unwrap()[..] else { panic!("four sides") };
        assert_eq!(channels, 1);
        for (row, &index) in batch.indices().iter().enumerate() {
            let index = usize::try_from(index).unwrap();
            let own = whole[index / 4].sample(index % 4).unwrap();
            let image = &batch.images()[row * width * height..][..width * height];
            for (y, line) in own.bytes.chunks_exact(own.width as usize).enumerate() {
                assert_eq!(&image[y * width..][..line.len()], line);
            }
        }
    }
    let mix: BatchOp = serde_json::from_str(r#"{"op":"mix_up","num_classes":5,"p":1.0}"#).unwrap();
    let ops = vec![RandomResizedCrop::new(8).into(), ToFloat {}.into()];
    let plain = Recipe::new(ops, FLOATS).unwrap();
    let mixed = plain.clone().with_batch_ops(vec![mix]).unwrap();
    let plain = loader(bmps(8), with(plain));
    let mixed = loader(bmps(8), with(mixed));
    for (plain, mixed) in plain.epoch(0).zip(mixed.epoch(0)) {
        let (plain, mixed) = (plain.unwrap(), mixed.unwrap());
        let before = plain.images_f32().unwrap().chunks_exact(64).collect::<Vec<_>>();
        let tl_transform::Mixing::MixUp { lambda } = mixed.mixed()[0].mixing else {
            panic!("mixed")
        };
        for (row, image) in mixed.images_f32().unwrap().chunks_exact(64).enumerate() {
            let other = before[(row + before.len() - 1) % before.len()];
            for ((found, own), other) in image.iter().zip(before[row]).zip(other) {
                let expected = f64::from(*own) * lambda + f64::from(*other) * (1.0 - lambda);
                assert!((f64::from(*found) - expected).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn recipes_of_one_image_have_the_same_channels() {
    let grey = recipes().remove(0).with_channels(Channels::Grey).unwrap();
    let rgb = recipes().remove(0);
    let images = vec![ImageField::of_sample("x", rgb)];
    let fields = Fields { images, ..Fields::default() };
    let config = LoaderConfig { fields, ..config(Work::Images(grey.clone())) };
    let error = Loader::new(bmps(3), config).map(drop).unwrap_err();
    assert!(matches!(error, PipelineError::Unusable(_)), "{error}");
    assert!(error.to_string().contains("the same channels"), "{error}");
    assert!(grey.to_string().ends_with("f32 CHW, grey"), "{grey}");
    let json = serde_json::to_string(&grey).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), grey);
}

#[test]
fn fast_decoding_stays_close() {
    let dataset = photos();
    for recipe in recipes().into_iter().take(1) {
        let fast = recipe.clone().with_decode(DecodeMode::FAST).unwrap();
        for batch in loader(photos(), with(fast)).epoch(0) {
            let batch = batch.unwrap();
            let images = batch.images_f32().unwrap().chunks_exact(40 * 40);
            for (image, &index) in images.zip(batch.indices()) {
                let exact = expected(&recipe, &dataset, index);
                let exact = exact.as_chunks::<4>().0.iter().map(|b| f32::from_ne_bytes(*b));
                let differences = image.iter().zip(exact).map(|(a, b)| f64::from((a - b).abs()));
                let mean = differences.sum::<f64>() / image.len() as f64;
                assert!(mean < 0.05, "sample {index}: {mean}");
            }
        }
    }
}
