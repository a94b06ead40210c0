//! Images of 16 bits, of floats and with alpha: what holds of all batches holds of theirs.

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tl_pipeline::{
    Batching, Buckets, CacheConfig, CacheKind, Dataset, DiskCache, Loader, LoaderConfig,
    MemoryCache, PipelineError, Renderer, SampleFault, Shard, Work,
};
use tl_transform::{Channels, Draw, Op, PixelType, Recipe};

use crate::memory::{Stored, config, dataset, loader, pixels, sample, watched};

const SAMPLES: u32 = 17;

/// Images of a form, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Form {
    pixels: PixelType,
    channels: Channels,
    stored: SampleFormat,
}

const FORMS: [Form; 6] = [
    Form { pixels: PixelType::U16, channels: Channels::Grey, stored: SampleFormat::Tiff },
    Form { pixels: PixelType::U16, channels: Channels::Rgb, stored: SampleFormat::Tiff },
    Form { pixels: PixelType::F32, channels: Channels::Grey, stored: SampleFormat::Tiff },
    Form { pixels: PixelType::F32, channels: Channels::Rgb, stored: SampleFormat::RawU8 },
    Form { pixels: PixelType::U8, channels: Channels::Rgba, stored: SampleFormat::Bmp },
    Form { pixels: PixelType::U8, channels: Channels::Rgba, stored: SampleFormat::RawU8 },
];

impl Form {
    /// Width, height and samples of image `number`, in the machine's byte order.
    fn image(self, number: u32) -> (u32, u32, Vec<u8>) {
        let (width, height, rgb) = pixels(number);
        let samples = match (self.pixels, self.channels) {
            (PixelType::U8, _) => {
                let rgba = rgb.as_chunks::<3>().0.iter().map(|&[r, g, b]| [r, g, b, 255]);
                rgba.collect::<Vec<_>>().concat()
            }
            (PixelType::U16, channels) => {
                let count = (width * height * channels.count()) as usize;
                let words = rgb.iter().zip((0_u16..4093).cycle()).take(count);
                words.flat_map(|(&r, at)| ((u16::from(r) << 8) ^ at).to_ne_bytes()).collect()
            }
            (PixelType::F32, Channels::Grey) => {
                let numbers = rgb.iter().step_by(3).map(|&r| f32::from(r) * 3.7 - 200.0);
                numbers.flat_map(f32::to_ne_bytes).collect()
            }
            (PixelType::F32, _) => rgb.iter().flat_map(|&r| f32::from(r).to_ne_bytes()).collect(),
        };
        (width, height, samples)
    }

    fn sample(self, number: u32) -> Stored {
        if self.stored != SampleFormat::Tiff {
            return sample(number, self.stored);
        }
        let (width, height, samples) = self.image(number);
        let bytes = tiff(width, height, self, &samples);
        let key = format!("{number:04}.tif");
        Stored { key, label: None, format: SampleFormat::Tiff, size: (width, height), bytes }
    }

    fn samples(self) -> Vec<Stored> {
        (0..SAMPLES).map(|number| self.sample(number)).collect()
    }

    fn recipe(self, ops: &str) -> Recipe {
        let ops: Vec<Op> = serde_json::from_str(ops).unwrap();
        let floats = ops.iter().any(|op| matches!(op, Op::ToFloat(_)));
        let output = Recipe::decode_to(self.pixels, self.channels).output();
        let output = if floats { Recipe::imagenet_train(8).unwrap().output() } else { output };
        Recipe::on_pixels(self.pixels, self.channels, ops, output).unwrap()
    }

    /// The result of a recipe on sample `index` alone.
    fn alone(self, recipe: &Recipe, epoch: u32, index: u64) -> ((u32, u32), Vec<u8>) {
        let (width, height, pixels) = self.image(u32::try_from(index).unwrap());
        let plan = recipe.plan(width, height, Draw { seed: 42, epoch, sample: index }).unwrap();
        let mut renderer = Renderer::new(recipe);
        let mut out = vec![0; renderer.output_bytes(plan.output_size())];
        renderer.render(&plan, &pixels, width, height, &mut out).unwrap();
        (plan.output_size(), out)
    }
}

/// An uncompressed TIFF file.
fn tiff(width: u32, height: u32, form: Form, samples: &[u8]) -> Vec<u8> {
    const ENTRIES: u32 = 10;
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    let channels = form.channels.count();
    let bits = 8 * u32::try_from(form.pixels.bytes()).unwrap();
    let kind = if form.pixels == PixelType::F32 { 3 } else { 1 };
    // After the header and the directory: the bits and the kind of each sample.
    let lists = 8 + 2 + 12 * ENTRIES + 4;
    let data = lists + 2 * 2 * channels;
    let of_each = |value: u32, at: u32| if channels == 1 { value } else { at };
    let length = u32::try_from(samples.len()).unwrap();
    let entries = [
        (256, LONG, 1, width),
        (257, LONG, 1, height),
        (258, SHORT, channels, of_each(bits, lists)),
        (259, SHORT, 1, 1),
        (262, SHORT, 1, if channels == 1 { 1 } else { 2 }),
        (273, LONG, 1, data),
        (277, SHORT, 1, channels),
        (278, LONG, 1, height),
        (279, LONG, 1, length),
        (339, SHORT, channels, of_each(kind, lists + 2 * channels)),
    ];
    let mut file = if cfg!(target_endian = "little") { b"II".to_vec() } else { b"MM".to_vec() };
    let short = |value: u32| u16::try_from(value).unwrap().to_ne_bytes();
    file.extend(short(42));
    file.extend(8_u32.to_ne_bytes());
    file.extend(short(ENTRIES));
    for (tag, kind, count, value) in entries {
        file.extend(short(tag));
        file.extend(kind.to_ne_bytes());
        file.extend(count.to_ne_bytes());
        if kind == SHORT && count == 1 {
            file.extend(short(value));
            file.extend([0, 0]);
        } else {
            file.extend(value.to_ne_bytes());
        }
    }
    file.extend(0_u32.to_ne_bytes());
    for value in [bits, kind] {
        (0..channels).for_each(|_| file.extend(short(value)));
    }
    file.extend_from_slice(samples);
    file
}

/// Recipes whose images have one size.
const FIXED: [&str; 4] = [
    r#"[{"op": "random_resized_crop", "size": 12}, {"op": "random_horizontal_flip"}]"#,
    r#"[{"op": "resize", "size": [14, 10]}, {"op": "random_rotation", "degrees": 40},
        {"op": "random_erasing", "p": 0.8, "value": 9}]"#,
    r#"[{"op": "center_crop", "size": 24}, {"op": "pad", "padding": 3, "padding_mode": "reflect"},
        {"op": "to_float"}, {"op": "random_erasing"}]"#,
    r#"[{"op": "elastic_transform"}, {"op": "random_crop", "size": 11}, {"op": "to_float"}]"#,
];

/// Recipes whose images keep sizes of their own.
const OWN: [&str; 2] = [
    "[]",
    r#"[{"op": "random_shortest_size", "min_size": [9, 14]}, {"op": "random_vertical_flip"}]"#,
];

/// Every row of an epoch, by its sample: size and bytes.
fn rows(loader: &Loader, epoch: u32) -> Vec<(u64, (u32, u32), Vec<u8>)> {
    let mut found = Vec::new();
    for batch in loader.epoch(epoch) {
        let batch = batch.unwrap();
        let row_bytes = batch.images().len() / batch.len();
        for (row, &index) in batch.indices().iter().enumerate() {
            if let Some(sample) = batch.sample(row) {
                found.push((index, (sample.width, sample.height), sample.bytes.to_vec()));
            } else {
                let spec = batch.spec().unwrap();
                let bytes = batch.images()[row * row_bytes..][..row_bytes].to_vec();
                found.push((index, (spec.width, spec.height), bytes));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Workers, ranks, caches, a memory budget and resuming change no byte of wide images.
    #[test]
    fn wide_rows_depend_on_the_recipe_alone(
        form in proptest::sample::select(FORMS.to_vec()),
        ops in proptest::sample::select([&FIXED[..], &OWN[..]].concat()),
        workers in 1_usize..5,
        batch_size in 1_usize..6,
        cache in 0_u8..4,
        budgeted: bool,
        resumed in 0_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let recipe = form.recipe(ops);
        let kind = if cache % 2 == 0 { CacheKind::Encoded } else { CacheKind::Decoded };
        let memory = (cache > 0).then_some(MemoryCache { kind, bytes: 1 << 20 });
        let disk = (cache == 3).then(|| DiskCache { kind, folder: folder.path().into(), bytes: 1 << 22 });
        let config = LoaderConfig {
            workers,
            batch_size: 2 * batch_size,
            cache: CacheConfig { memory, disk },
            memory_budget: budgeted.then_some(400 << 20),
            ..config(Work::Images(recipe.clone()))
        };
        let data = || watched(form.samples(), || (), || ());
        let whole = loader(data(), config.clone());
        for epoch in 0..2 {
            let found = rows(&whole, epoch);
            prop_assert_eq!(found.len(), SAMPLES as usize);
            for (index, size, bytes) in found {
                let (expected_size, expected) = form.alone(&recipe, epoch, index);
                prop_assert_eq!(size, expected_size);
                prop_assert!(bytes == expected, "sample {} of {:?}, {}", index, form, ops);
            }
        }
        // One rank's state continues with two.
        let mut epoch = whole.epoch(1);
        let received = epoch.by_ref().take(resumed).flat_map(|b| b.unwrap().indices().to_vec());
        let mut indices: Vec<u64> = received.collect();
        let state = epoch.state().unwrap();
        drop(epoch);
        for rank in 0..2 {
            let shard = Shard { rank, world: 2, ..Shard::default() };
            let half = loader(data(), LoaderConfig { batch_size, shard, ..config.clone() });
            for batch in half.resume(&state).unwrap() {
                indices.extend_from_slice(batch.unwrap().indices());
            }
        }
        indices.sort_unstable();
        indices.dedup();
        prop_assert_eq!(indices, (0..u64::from(SAMPLES)).collect::<Vec<_>>());
    }

    /// Padded batches have each wide image at their corner and zeros around it.
    #[test]
    fn padded_batches_hold_wide_images(
        form in proptest::sample::select(FORMS.to_vec()),
        ops in proptest::sample::select(OWN.to_vec()),
        workers in 1_usize..4,
        window in 1_u32..5,
        multiple in 1_u32..9,
        floats: bool,
    ) {
        let ops = if floats {
            let mut listed: Vec<serde_json::Value> = serde_json::from_str(ops).unwrap();
            listed.push(serde_json::json!({"op": "to_float"}));
            serde_json::to_string(&listed).unwrap()
        } else {
            ops.to_owned()
        };
        let recipe = form.recipe(&ops);
        let batching = Batching::Buckets(Buckets { window, multiple });
        let config = LoaderConfig { workers, batching, ..config(Work::Images(recipe.clone())) };
        let loader = loader(dataset(form.samples()), config);
        let channels = form.channels.count() as usize;
        let number = recipe.output().dtype.bytes();
        let mut seen = 0;
        for batch in loader.epoch(0) {
            let batch = batch.unwrap();
            let spec = batch.spec().unwrap();
            let row_bytes = batch.images().len() / batch.len();
            for (row, &index) in batch.indices().iter().enumerate() {
                let ((width, height), image) = form.alone(&recipe, 0, index);
                prop_assert_eq!(batch.sizes()[row], [height, width]);
                let (planes, pixel) = if floats { (channels, number) } else { (1, channels * number) };
                let mut expected = vec![0; row_bytes];
                let stride = spec.width as usize * pixel;
                let line = width as usize * pixel;
                for (at, bytes) in image.chunks_exact(line).enumerate() {
                    let plane = at / height as usize;
                    let y = plane * spec.height as usize + at % height as usize;
                    expected[y * stride..][..line].copy_from_slice(bytes);
                }
                prop_assert_eq!(planes * spec.height as usize * stride, row_bytes);
                prop_assert!(batch.images()[row * row_bytes..][..row_bytes] == expected[..]);
                seen += 1;
            }
        }
        prop_assert_eq!(seen, SAMPLES);
    }
}

/// Stored pixels of 8 bits are refused as 16-bit images.
#[test]
fn raw_pixels_are_not_scaled_to_16_bits() {
    let form =
        Form { pixels: PixelType::U16, channels: Channels::Rgb, stored: SampleFormat::RawU8 };
    let samples: Dataset = dataset(vec![sample(0, SampleFormat::RawU8)]);
    let recipe = form.recipe(FIXED[0]);
    let error = loader(samples, config(Work::Images(recipe))).epoch(0).next().unwrap().unwrap_err();
    let PipelineError::Sample(error) = error else { panic!("{error}") };
    assert!(matches!(error.fault, SampleFault::Decode(_)), "{}", error.fault);
    let message = error.to_string();
    assert!(
        message.ends_with("16-bit pixels of an image that is stored as 8-bit RGB"),
        "{message}"
    );
}
