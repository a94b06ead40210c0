//! Further images of a sample: several recipes over one decode, several draws of one, and images in
//! sidecar files.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_io::{Field, NewSample, StreamWriter, WriteOptions};
use tl_decode::{DecodeOptions, Image};
use tl_pipeline::{
    Batch, Batching, Buckets, CacheConfig, CacheKind, ColumnType, Dataset, Fields, ImageField,
    ImageSource, ImageTransform, Loader, LoaderConfig, MemoryCache, OnError, PipelineError,
    Renderer, SampleRenderer, Shard, Shuffle, Stored, Target, Work,
};
use tl_transform::op::{
    ColorJitter, FiveCrop, GaussianBlur, RandomHorizontalFlip, RandomResizedCrop, Resize, Size,
};
use tl_transform::{BatchOp, DecodeMode, Draw, Dtype, Layout, Op, OutputSpec, Recipe};

use crate::memory::{bmp, bmps, config, loader, pixels};

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const SAMPLES: u32 = 11;

fn recipe(ops: Vec<Op>) -> Recipe {
    Recipe::new(ops, PIXELS).unwrap()
}

/// Images of exactly this size.
fn resize(width: u32, height: u32) -> Op {
    Resize { size: Some(Size::exact(width, height)), ..Resize::new(1) }.into()
}

/// Everything random about a view, in pixels of `side`.
fn view(side: u32) -> Recipe {
    let jitter = r#"{"brightness":0.4,"contrast":0.4,"saturation":0.2,"hue":0.1}"#;
    let jitter: ColorJitter = serde_json::from_str(jitter).unwrap();
    let crop = RandomResizedCrop::new(side);
    recipe(vec![crop.into(), RandomHorizontalFlip::default().into(), jitter.into()])
}

fn with(work: Recipe, images: Vec<ImageField>) -> LoaderConfig {
    let fields = Fields { images, ..Fields::default() };
    LoaderConfig { fields, ..config(Work::Images(work)) }
}

fn batches(loader: &Loader, epoch: u32) -> Vec<Batch> {
    loader.epoch(epoch).map(Result::unwrap).collect()
}

/// The rows of a column of bytes.
fn rows(batch: &Batch, name: &str) -> Vec<Vec<u8>> {
    let column = batch.column_named(name).unwrap();
    let row = column.bytes.len() / batch.len();
    column.bytes.chunks_exact(row).map(<[u8]>::to_vec).collect()
}

/// The images of a recipe of which the sample has drawn `before` others.
fn expected(recipe: &Recipe, index: u64, epoch: u32, before: u32) -> Vec<u8> {
    let (width, height, pixels) = pixels(u32::try_from(index).unwrap());
    let draw = Draw { seed: 42, epoch, sample: index }.of_image(before);
    let mut renderer = Renderer::new(recipe);
    let mut images = Vec::new();
    let one = recipe.clone().with_draws(1).unwrap();
    for number in 0..recipe.draws() {
        for view in 0..one.views() {
            let mut plan = tl_transform::Plan::whole(1, 1);
            one.plan_view_into((width, height), draw.of_image(number), view, &mut plan).unwrap();
            let mut out = vec![0; renderer.output_bytes(plan.output_size())];
            renderer.render(&plan, &pixels, width, height, &mut out).unwrap();
            images.extend(out);
        }
    }
    images
}

#[test]
fn every_recipe_gets_its_own_draw_and_changes_no_other() {
    let global = view(16).with_draws(2).unwrap();
    let local = recipe(vec![RandomResizedCrop::new(8).into()]).with_draws(6).unwrap();
    let five = recipe(vec![resize(14, 12), FiveCrop { size: Size::exact(7, 7) }.into()]);
    let images = vec![
        ImageField::of_sample("local", local.clone()),
        ImageField::of_sample("five", five.clone()),
    ];
    let loader = loader(bmps(SAMPLES), with(global.clone(), images));
    for batch in batches(&loader, 5) {
        let [local_rows, five_rows] = ["local", "five"].map(|name| rows(&batch, name));
        assert_eq!(batch.shape().as_deref(), Some(&[batch.len(), 2, 16, 16, 3][..]));
        let specs: Vec<_> = batch.columns().map(|column| column.shape()).collect();
        assert_eq!(specs, [vec![batch.len(), 6, 8, 8, 3], vec![batch.len(), 5, 7, 7, 3]]);
        assert!(batch.columns().all(|column| column.spec.number == ColumnType::U8));
        let first = batch.images().chunks_exact(2 * 16 * 16 * 3);
        for (row, (&index, image)) in batch.indices().iter().zip(first).enumerate() {
            assert_eq!(image, expected(&global, index, 5, 0));
            assert_eq!(local_rows[row], expected(&local, index, 5, 2));
            assert_eq!(five_rows[row], expected(&five, index, 5, 8));
        }
    }
}

#[test]
fn a_further_image_changes_nothing_about_the_first() {
    let alone = loader(bmps(SAMPLES), with(view(16), Vec::new()));
    let two = loader(bmps(SAMPLES), with(view(16), vec![ImageField::of_sample("view2", view(16))]));
    for (alone, two) in batches(&alone, 1).iter().zip(batches(&two, 1)) {
        assert_eq!(alone.images(), two.images());
        assert_ne!(two.images(), rows(&two, "view2").concat());
    }
    let draws = loader(bmps(SAMPLES), with(view(16).with_draws(2).unwrap(), Vec::new()));
    // A second draw of the recipe is the same image.
    for (two, draws) in batches(&two, 1).iter().zip(batches(&draws, 1)) {
        let second: Vec<u8> = draws
            .images()
            .chunks_exact(16 * 16 * 3)
            .skip(1)
            .step_by(2)
            .flatten()
            .copied()
            .collect();
        assert_eq!(rows(two, "view2").concat(), second);
    }
}

fn photos() -> PathBuf {
    tl_testdata::shipped!("photos")
}

/// The same photographs through one recipe alone, at the draw of a further image.
fn alone(dataset: &Dataset, recipe: &Recipe, index: u64, number: u32) -> Vec<u8> {
    let mut renderer = SampleRenderer::new(recipe, DecodeOptions::default());
    let mut bytes = Vec::new();
    dataset.read_into(index, &mut bytes).unwrap();
    let format = dataset.facts(index).unwrap().format;
    let stored = Stored { format, size: (0, 0), bytes: &mut bytes, row_index: None };
    let mut image = Image::new();
    let draw = Draw { seed: 42, epoch: 0, sample: index }.of_image(number);
    renderer.render(stored, draw, Target::Image(&mut image)).unwrap();
    image.data
}

#[test]
fn photographs_decoded_once_have_the_pixels_of_each_recipe_alone() {
    let dataset = Dataset::open(&[photos()]).unwrap();
    let blur = GaussianBlur::new(3);
    let recipes = [view(64), recipe(vec![resize(40, 30), blur.into()]), view(24)];
    let [first, second, third] = recipes.clone();
    let images = vec![ImageField::of_sample("b", second), ImageField::of_sample("c", third)];
    let loader = loader(Dataset::open(&[photos()]).unwrap(), with(first, images));
    for batch in batches(&loader, 0) {
        let [b, c] = ["b", "c"].map(|name| rows(&batch, name));
        let first = batch.images().chunks_exact(64 * 64 * 3);
        for (row, (&index, image)) in batch.indices().iter().zip(first).enumerate() {
            assert_eq!(image, alone(&dataset, &recipes[0], index, 0), "sample {index}");
            assert_eq!(b[row], alone(&dataset, &recipes[1], index, 1), "sample {index}");
            assert_eq!(c[row], alone(&dataset, &recipes[2], index, 2), "sample {index}");
        }
    }
}

#[test]
fn fast_decoding_takes_the_scale_of_the_largest_image() {
    let fast = |recipe: Recipe| recipe.with_decode(DecodeMode::FAST).unwrap();
    let large = fast(recipe(vec![resize(150, 150)]));
    let small = fast(recipe(vec![resize(20, 20)]));
    let dataset = Dataset::open(&[photos()]).unwrap();
    let images = vec![ImageField::of_sample("small", small.clone())];
    let loader = loader(Dataset::open(&[photos()]).unwrap(), with(large.clone(), images));
    let mut coarser = 0;
    for batch in batches(&loader, 0) {
        let small_rows = rows(&batch, "small");
        for (row, (&index, image)) in
            batch.indices().iter().zip(batch.images().chunks_exact(150 * 150 * 3)).enumerate()
        {
            assert_eq!(image, alone(&dataset, &large, index, 0));
            // Alone it is decoded at an eighth, here as the large one is.
            coarser += usize::from(small_rows[row] != alone(&dataset, &small, index, 1));
        }
    }
    assert!(coarser > 0);
}

fn png(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    file
}

/// Samples with the same image in `right.png`, and another one in `other.bmp`, which sample 3 lacks.
fn stereo(folder: &Path, right: impl Fn(u32) -> Vec<u8>) -> Dataset {
    let path = folder.join("stereo.tbl");
    if path.exists() {
        return Dataset::open(&[path]).unwrap();
    }
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for number in 0..SAMPLES {
        let (width, height, own) = pixels(number);
        let (other_width, other_height, other) = pixels(number + 100);
        let field = |extension: &str, bytes| Field { extension: extension.into(), bytes };
        let mut fields = vec![field("right.png", right(number))];
        if number != 3 {
            fields.push(field("other.bmp", bmp(other_width, other_height, &other)));
        }
        let (key, bytes) = (format!("{number:04}.bmp"), bmp(width, height, &own));
        let format = SampleFormat::Bmp;
        let key = Some(key.as_bytes());
        let new =
            NewSample { format, width, height, key, fields: &fields, ..NewSample::new(&bytes) };
        writer.write_sample(&new).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

fn same(number: u32) -> Vec<u8> {
    let (width, height, own) = pixels(number);
    png(width, height, &own)
}

#[test]
fn a_joint_image_moves_and_changes_as_the_first() {
    let folder = tempfile::tempdir().unwrap();
    for first in [view(16), view(12).with_draws(3).unwrap()] {
        let config = with(first, vec![ImageField::joint("right", "right.png")]);
        for batch in batches(&loader(stereo(folder.path(), same), config), 2) {
            assert_eq!(batch.images(), rows(&batch, "right").concat());
        }
    }
}

#[test]
fn an_image_of_a_file_has_its_recipe_and_its_draw() {
    let folder = tempfile::tempdir().unwrap();
    let own = view(9).with_draws(2).unwrap();
    let images = vec![
        ImageField::of_file("other", "other.bmp", own.clone()),
        ImageField::of_sample("view2", view(10)),
    ];
    let dataset = stereo(folder.path(), same);
    let config = LoaderConfig { on_error: OnError::Skip, ..with(view(16), images) };
    let mut count = 0;
    for batch in batches(&loader(dataset, config), 2) {
        let [other, second] = ["other", "view2"].map(|name| rows(&batch, name));
        for (row, &index) in batch.indices().iter().enumerate() {
            // The draws are numbered over the images of the sample first, then over files.
            assert_eq!(second[row], expected(&view(10), index, 2, 1));
            let (width, height, pixels) = pixels(u32::try_from(index).unwrap() + 100);
            let draw = Draw { seed: 42, epoch: 2, sample: index }.of_image(2);
            let mut renderer = Renderer::new(&own);
            let image = renderer.output_bytes((9, 9));
            let mut out = vec![0; 2 * image];
            for (view, out) in (0..).zip(out.chunks_exact_mut(image)) {
                let mut plan = tl_transform::Plan::whole(1, 1);
                own.plan_view_into((width, height), draw, view, &mut plan).unwrap();
                renderer.render(&plan, &pixels, width, height, out).unwrap();
            }
            assert_eq!(other[row], out);
            count += 1;
        }
    }
    // The sample without the file is left out, and the rows after it moved up.
    assert_eq!(count, SAMPLES - 1);
}

#[test]
fn faults_name_the_file() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let fault = |dataset: Dataset, image: ImageField| {
        let config = LoaderConfig { sampler: Shuffle::None.into(), ..with(view(16), vec![image]) };
        let error = loader(dataset, config).epoch(0).find_map(Result::err).unwrap();
        error.to_string()
    };
    let larger = |number| {
        let (width, height, own) = pixels(number + 1);
        png(width, height, &own)
    };
    let message = fault(stereo(folders[0].path(), larger), ImageField::joint("right", "right.png"));
    let expected = "image `right.png` has 27x22 pixels, the sample's own image 20x17: a common crop needs equal sizes";
    assert!(message.ends_with(expected), "{message}");
    let damaged = |number| same(number)[..40].to_vec();
    let message =
        fault(stereo(folders[1].path(), damaged), ImageField::joint("right", "right.png"));
    assert!(message.contains("(0000.bmp)") && message.contains("file `right.png`: "), "{message}");
    let message =
        fault(stereo(folders[2].path(), same), ImageField::of_file("o", "other.bmp", view(8)));
    assert!(message.ends_with("no sidecar file `other.bmp`"), "{message}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let refused = |config: LoaderConfig| {
        let error = Loader::new(bmps(SAMPLES), config).map(drop).unwrap_err();
        assert!(matches!(error, PipelineError::Unusable(_)), "{error}");
        error.to_string()
    };
    let check = |config: LoaderConfig, expected: &str| {
        let message = refused(config);
        assert!(message.contains(expected), "{message}");
    };
    let sized = |recipe| with(view(16), vec![ImageField::of_sample("x", recipe)]);
    check(sized(Recipe::decode()), "image `x`: recipe `u8 HWC` leaves the size to the image");
    check(sized(view(8).with_decode(DecodeMode::FAST).unwrap()), "the same decode mode");
    let mixed = Recipe::imagenet_train(16)
        .unwrap()
        .with_batch_ops(vec![
            serde_json::from_str::<BatchOp>(r#"{"op":"cut_mix","num_classes":5}"#).unwrap(),
        ])
        .unwrap();
    check(sized(mixed.clone().with_decode(DecodeMode::Exact).unwrap()), "mixes batches");
    check(with(mixed, vec![ImageField::joint("x", "png")]), "which mixes batches");
    let source = ImageSource::Sample;
    let itself = ImageField { name: "x".into(), source, transform: ImageTransform::Joint };
    check(with(view(16), vec![itself]), "would equal the first image");
    let bytes = Work::Bytes;
    let fields = Fields { images: vec![ImageField::of_sample("x", view(8))], ..Fields::default() };
    check(LoaderConfig { fields, ..config(bytes) }, "samples that are decoded");
    let many = view(8).with_draws(200).unwrap();
    check(with(many.clone(), vec![ImageField::of_sample("x", many)]), "400 images of a sample");
    let missing = with(view(16), vec![ImageField::joint("x", "left.png")]);
    let error = Loader::new(bmps(SAMPLES), missing).map(drop).unwrap_err();
    assert!(matches!(error, PipelineError::UnknownField { .. }), "{error}");
}

#[test]
fn lists_and_padded_batches_have_further_images_of_one_size() {
    let folder = tempfile::tempdir().unwrap();
    let shortest = recipe(vec![Resize::new(20).into()]);
    let images = || vec![ImageField::of_sample("view", view(10))];
    let lists = with(shortest, images());
    let buckets = Batching::Buckets(Buckets { window: 2, multiple: 4 });
    for config in [lists.clone(), LoaderConfig { batching: buckets, ..lists }] {
        for batch in batches(&loader(stereo(folder.path(), same), config), 2) {
            for (row, &index) in batch.indices().iter().enumerate() {
                assert_eq!(rows(&batch, "view")[row], expected(&view(10), index, 2, 1));
                assert_eq!(batch.sample(row).is_some(), batch.spec().is_none());
            }
        }
    }
}

/// Everything about an epoch, as rows in the order of their places.
fn record(loader: &Loader, epoch: u32) -> Vec<(u64, Vec<u8>)> {
    let mut record = Vec::new();
    for batch in loader.epoch(epoch) {
        let batch = batch.unwrap();
        let image = batch.images().len() / batch.len();
        for (row, &index) in batch.indices().iter().enumerate() {
            let columns = batch.columns().map(|column| {
                let bytes = column.bytes.len() / batch.len();
                column.bytes[row * bytes..][..bytes].to_vec()
            });
            let mut bytes = batch.images()[row * image..][..image].to_vec();
            bytes.extend(columns.flatten());
            record.push((index, bytes));
        }
    }
    record
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Workers, ranks, caches, a memory budget and resuming change no byte of any image.
    #[test]
    fn rows_depend_on_the_recipes_alone(
        workers in 1_usize..5,
        batch_size in 1_usize..6,
        draws in 1_u32..4,
        cached: bool,
        budgeted: bool,
        resumed in 0_usize..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let images = vec![
            ImageField::of_sample("a", view(9).with_draws(draws).unwrap()),
            ImageField::joint("right", "right.png"),
        ];
        let global = LoaderConfig { batch_size: 2 * batch_size, ..with(view(16), images) };
        let plain = loader(stereo(folder.path(), same), global.clone());
        let cache = MemoryCache { kind: CacheKind::Decoded, bytes: 1 << 20 };
        let cache = CacheConfig { memory: cached.then_some(cache), disk: None };
        let memory_budget = budgeted.then_some(400 << 20);
        let config = LoaderConfig { workers, cache, memory_budget, ..global.clone() };
        let other = loader(stereo(folder.path(), same), config);
        for epoch in 0..2 {
            prop_assert_eq!(record(&plain, epoch), record(&other, epoch));
        }
        // One rank's state continues with two.
        let mut epoch = plain.epoch(1);
        let received: u64 = epoch.by_ref().take(resumed).map(|b| b.unwrap().len() as u64).sum();
        let state = epoch.state().unwrap();
        let mut rest: Vec<(u64, Vec<u8>)> = Vec::new();
        for rank in 0..2 {
            let shard = Shard { rank, world: 2, ..Shard::default() };
            let config = LoaderConfig { batch_size, shard, ..global.clone() };
            let half = loader(stereo(folder.path(), same), config);
            for batch in half.resume(&state).unwrap() {
                let batch = batch.unwrap();
                for (row, &index) in batch.indices().iter().enumerate() {
                    rest.push((index, rows(&batch, "a")[row].clone()));
                }
            }
        }
        let whole: Vec<u64> = record(&plain, 1).iter().map(|row| row.0).collect();
        let mut expected = whole[usize::try_from(received).unwrap()..].to_vec();
        let mut found: Vec<u64> = rest.iter().map(|row| row.0).collect();
        expected.sort_unstable();
        found.sort_unstable();
        found.dedup();
        prop_assert!(expected.iter().all(|index| found.contains(index)));
        for (index, bytes) in rest {
            let of_index = view(9).with_draws(draws).unwrap();
            prop_assert_eq!(bytes, self::expected(&of_index, index, 1, 1));
        }
    }
}

#[test]
fn a_state_of_other_images_is_refused() {
    let one = loader(bmps(SAMPLES), with(view(16), vec![ImageField::of_sample("a", view(8))]));
    let state = one.state(0).unwrap();
    let same = loader(bmps(SAMPLES), with(view(16), vec![ImageField::of_sample("b", view(8))]));
    assert!(same.resume(&state).is_ok());
    for images in [vec![], vec![ImageField::of_sample("a", view(9))]] {
        let other = loader(bmps(SAMPLES), with(view(16), images));
        let error = other.resume(&state).map(drop).unwrap_err();
        assert!(matches!(error, PipelineError::StateMismatch { what: "recipe", .. }), "{error}");
    }
}
