//! Batches on a device: those of the host, bit for bit, whatever the device makes of them itself.
//!
//! The device is that of an emulated driver, or the real one whose number `TURBOLOADER_TEST_DEVICE`
//! is.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tl_pipeline::{
    Batch, Dataset, Delivery, DeviceOptions, DeviceReason, Fields, ImageField, ImageSource,
    ImageTransform, Loader, LoaderConfig, LoaderNote, OnError, PipelineError, Shuffle, Work,
};
use tl_transform::batch_op::MixUp;
use tl_transform::op::{
    CenterCrop, ColorJitter, GridMask, Normalize, RandomErasing, RandomHorizontalFlip,
    RandomResizedCrop, RandomVerticalFlip, Resize, ToFloat,
};
use tl_transform::{Channels, Dtype, Layout, OutputSpec, Recipe};

use crate::library::library;
use crate::memory::{bmps, config};

/// The options for a device of a driver that was compiled with these macros, or for the real device if
/// there are none.
pub(crate) fn options_with(macros: &[&str]) -> DeviceOptions {
    if let (Ok(number), []) = (env::var("TURBOLOADER_TEST_DEVICE"), macros) {
        return DeviceOptions { ordinal: number.parse().ok(), ..DeviceOptions::default() };
    }
    let library = library("emulator.c", macros, Path::new(env!("CARGO_TARGET_TMPDIR")));
    DeviceOptions { ordinal: Some(0), library: Some(library), ..DeviceOptions::default() }
}

pub(crate) fn on_device(options: DeviceOptions) -> Delivery {
    Delivery::Device(DeviceOptions { required: true, ..options })
}

pub(crate) fn photos() -> Dataset {
    let folder: PathBuf = tl_testdata::shipped!("photos");
    Dataset::open(&[folder]).unwrap()
}

/// Images, then labels, indices, flags and sizes.
#[derive(Debug, PartialEq)]
pub(crate) struct Contents {
    images: Vec<u8>,
    labels: Vec<i64>,
    indices: Vec<u64>,
    valid: Vec<u8>,
    sizes: Vec<u32>,
}

pub(crate) fn on_host(batch: &Batch) -> Contents {
    Contents {
        images: batch.images().to_vec(),
        labels: batch.labels().to_vec(),
        indices: batch.indices().to_vec(),
        valid: batch.valid().iter().map(|&valid| u8::from(valid)).collect(),
        sizes: batch.sizes().as_flattened().to_vec(),
    }
}

/// What the device has, read back.
pub(crate) fn there(batch: &Batch) -> Contents {
    let device = batch.device().unwrap();
    let bytes = device.buffer().read().unwrap();
    let fields = batch.pointers();
    let rows = batch.len();
    let at = |place: usize, count: usize| &bytes[place..place + count];
    let words = |place: usize, count: usize| {
        at(place, 8 * count).as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word))
    };
    let halves = at(device.place_of(fields.sizes), 8 * rows).as_chunks().0.iter();
    Contents {
        images: bytes[..device.image_bytes()].to_vec(),
        labels: words(device.place_of(fields.labels), rows).map(u64::cast_signed).collect(),
        indices: words(device.place_of(fields.indices), rows).collect(),
        valid: at(device.place_of(fields.valid), rows).to_vec(),
        sizes: halves.map(|&half| u32::from_ne_bytes(half)).collect(),
    }
}

/// Compares two epochs of a loader on the host with those of the same on the device, and returns the
/// notes of the latter.
pub(crate) fn compare(
    dataset: &Dataset,
    config: LoaderConfig,
    delivery: &Delivery,
) -> Vec<LoaderNote> {
    let host = Loader::new(dataset.clone(), config.clone()).unwrap();
    let config = LoaderConfig { delivery: delivery.clone(), ..config };
    let loader = Loader::new(dataset.clone(), config).unwrap();
    assert_eq!(loader.state(1).unwrap(), host.state(1).unwrap(), "states do not know the device");
    let mut count = 0;
    for epoch in 0..2 {
        for (batch, expected) in loader.epoch(epoch).zip(host.epoch(epoch)) {
            let batch = batch.unwrap();
            let expected = expected.unwrap();
            let device = batch.device().unwrap();
            assert_eq!(device.spec(), expected.spec());
            assert_eq!(device.shape(), expected.shape().map(|shape| shape.to_vec()));
            assert!(there(&batch) == on_host(&expected), "batch {} of {epoch}", batch.number());
            assert_eq!(batch.labels(), expected.labels(), "labels are on the host, too");
            count += 1;
        }
    }
    // Those of the next epoch begin early.
    assert!(loader.stats().uploads.batches >= count);
    assert!(loader.report().to_string().contains("\ncopies to the device: "));
    loader.notes()
}

pub(crate) fn images(recipe: Recipe) -> LoaderConfig {
    let config = LoaderConfig { batch_size: 5, ..config(Work::Images(recipe)) };
    LoaderConfig { sampler: Shuffle::Full.into(), seed: 7, workers: 3, ..config }
}

fn augmented(dtype: Dtype, layout: Layout) -> Recipe {
    let jitter: ColorJitter = serde_json::from_str(r#"{"brightness":0.5}"#).unwrap();
    let erase: RandomErasing = serde_json::from_str(r#"{"p":1.0}"#).unwrap();
    let mut ops = vec![
        RandomResizedCrop::new(40).into(),
        RandomHorizontalFlip::default().into(),
        RandomVerticalFlip::default().into(),
        jitter.into(),
        erase.into(),
    ];
    if dtype != Dtype::U8 {
        ops.extend([ToFloat {}.into(), Normalize::IMAGENET.into()]);
    }
    Recipe::new(ops, OutputSpec { dtype, layout }).unwrap()
}

#[test]
fn converted_batches_have_the_bits_of_the_host() {
    let delivery = on_device(options_with(&[]));
    for (dtype, layout) in [
        (Dtype::F32, Layout::Chw),
        (Dtype::F16, Layout::Chw),
        (Dtype::Bf16, Layout::Chw),
        (Dtype::U8, Layout::Chw),
        (Dtype::F32, Layout::Hwc),
        (Dtype::F16, Layout::Hwc),
        (Dtype::U8, Layout::Hwc),
    ] {
        let recipe = augmented(dtype, layout);
        assert!(compare(&photos(), images(recipe), &delivery).is_empty(), "{dtype} {layout}");
    }
    let plain = vec![Resize::new(50).into(), CenterCrop::new(33).into(), ToFloat {}.into()];
    let output = OutputSpec { dtype: Dtype::Bf16, layout: Layout::Chw };
    let recipe = Recipe::new(plain, output).unwrap().with_draws(2).unwrap();
    assert!(compare(&photos(), images(recipe), &delivery).is_empty());
}

#[test]
fn a_trace_has_the_copy_of_every_batch() {
    let delivery = on_device(options_with(&[]));
    let config = images(augmented(Dtype::F16, Layout::Chw));
    let config = LoaderConfig { delivery, trace: 10_000, prefetch_next_epoch: false, ..config };
    let loader = Loader::new(photos(), config).unwrap();
    // A batch that was read back has been copied before it.
    let mut batches = 0;
    for batch in loader.epoch(0) {
        there(&batch.unwrap());
        batches += 1;
    }
    let traced = || {
        let mut bytes = Vec::new();
        loader.write_trace(&mut bytes).unwrap();
        let mut trace: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        serde_json::from_value::<Vec<serde_json::Value>>(trace["traceEvents"].take()).unwrap()
    };
    let is_copy = |event: &serde_json::Value| event["name"] == "copy to the device";
    // The thread that waits for copies may be a little later.
    let deadline = Instant::now() + Duration::from_secs(60);
    while (traced().into_iter().filter(is_copy).count() as u64) < batches {
        assert!(Instant::now() < deadline, "{:?}", traced());
        std::thread::yield_now();
    }
    let events = traced();
    let lane = events.iter().find(|event| event["args"]["name"] == "device").unwrap();
    let mut numbers = Vec::new();
    for copy in events.iter().filter(|event| is_copy(event)) {
        assert_eq!(copy["tid"], lane["tid"]);
        assert!(copy["dur"].as_f64() > Some(0.0), "{copy}");
        numbers.push(copy["args"]["batch"].as_u64().unwrap());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..batches).collect::<Vec<_>>());
}

#[test]
fn batches_that_the_device_does_not_convert_are_copied_and_say_why() {
    let delivery = on_device(options_with(&[]));
    let floats = || augmented(Dtype::F32, Layout::Chw);
    let check = |config: LoaderConfig, expected: &'static str| {
        let notes = compare(&photos(), config, &delivery);
        let [LoaderNote::Device { reason: DeviceReason::Recipe { op }, .. }] = &*notes else {
            panic!("{notes:?}");
        };
        assert_eq!(*op, expected);
    };
    let grid = GridMask::default();
    let ops = vec![RandomResizedCrop::new(24).into(), ToFloat {}.into(), grid.into()];
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    check(images(Recipe::new(ops, output).unwrap()), "GridMask");
    let mix = MixUp { num_classes: Some(10), ..MixUp::default() };
    check(images(floats().with_batch_ops(vec![mix.into()]).unwrap()), "MixUp");
    let grey = floats().with_channels(Channels::Grey).unwrap();
    check(images(grey), "channels or pixels other than 8-bit RGB");
    check(LoaderConfig { on_error: OnError::Fill, ..images(floats()) }, "OnError::Fill");
    let second = ImageField {
        name: "second".to_owned(),
        source: ImageSource::Sample,
        transform: ImageTransform::Recipe(floats()),
    };
    let fields = Fields { images: vec![second], ..Fields::default() };
    check(LoaderConfig { fields, ..images(floats()) }, "further images");
    let bytes = LoaderConfig { batch_size: 7, ..config(Work::Bytes) };
    assert!(compare(&photos(), bytes, &delivery).is_empty(), "labels of stored bytes");
}

#[test]
fn a_device_that_is_not_there_is_a_note_or_an_error() {
    let recipe = augmented(Dtype::F16, Layout::Chw);
    for (macros, expected) in [
        (&["DEVICES=0"][..], "no CUDA device 0"),
        (&["VERSION=10020"], "the NVIDIA driver supports CUDA 10.2, and 11.0 is the oldest"),
        (&["FAILING=\"cuInit\"", "CODE=3"], "this process was forked from one that uses CUDA"),
        (&["MEMORY=200000"], "out of device memory: "),
        (
            &["FAILING=\"cuModuleLoadData\"", "CODE=2"],
            "libcuda.so.1: cuModuleLoadData: CUDA_ERROR_O",
        ),
    ] {
        let options = options_with(macros);
        let delivery = Delivery::Device(options.clone());
        let loader =
            Loader::new(photos(), LoaderConfig { delivery, ..images(recipe.clone()) }).unwrap();
        let [note @ LoaderNote::Device { .. }] = &*loader.notes() else { panic!("{macros:?}") };
        let note = note.to_string();
        let start = "batches on a device: on the host instead; ";
        assert!(note.strip_prefix(start).unwrap().starts_with(expected), "{note}");
        let host = Loader::new(photos(), images(recipe.clone())).unwrap();
        for (batch, expected) in loader.epoch(0).zip(host.epoch(0)) {
            let batch = batch.unwrap();
            assert!(batch.device().is_none());
            assert!(on_host(&batch) == on_host(&expected.unwrap()), "all of it is the host's");
        }
        let delivery = on_device(options);
        let refused = Loader::new(photos(), LoaderConfig { delivery, ..images(recipe.clone()) });
        let Err(PipelineError::Device { reason }) = refused else { panic!("{macros:?}") };
        assert!(reason.to_string().starts_with(expected), "{reason}");
    }
}

#[test]
fn no_library_is_opened_for_batches_on_the_host() {
    let library = Some(PathBuf::from("/nowhere/libcuda.so.1"));
    let recipe = augmented(Dtype::F16, Layout::Chw);
    let options = DeviceOptions { library, required: true, ..DeviceOptions::default() };
    let delivery = Delivery::Pinned(options);
    let refused = Loader::new(photos(), LoaderConfig { delivery, ..images(recipe.clone()) });
    let Err(PipelineError::Device { reason: DeviceReason::NoDriver { error } }) = refused else {
        panic!("the library does not exist");
    };
    assert!(error.contains("/nowhere/libcuda.so.1"), "{error}");
    assert!(Loader::new(photos(), images(recipe)).is_ok());
}

#[test]
fn pinned_batches_are_those_of_the_host() {
    let delivery = Delivery::Pinned(DeviceOptions { required: true, ..options_with(&[]) });
    let config = images(augmented(Dtype::F32, Layout::Chw));
    let host = Loader::new(photos(), config.clone()).unwrap();
    let loader = Loader::new(photos(), LoaderConfig { delivery, ..config }).unwrap();
    for (batch, expected) in loader.epoch(0).zip(host.epoch(0)) {
        let batch = batch.unwrap();
        assert!(batch.device().is_none() && batch.pinned().is_some());
        assert!(on_host(&batch) == on_host(&expected.unwrap()));
    }
    assert!(loader.stats().uploads.batches == 0 && loader.device_use().is_none());
}

#[test]
fn memory_that_cannot_be_pinned_has_a_note_besides_others() {
    let note = |loader: &Loader, wanted: &str| {
        let notes = loader.notes();
        let is_of = |note: &&LoaderNote| note.to_string().starts_with(wanted);
        notes.iter().filter(is_of).count()
    };
    let options = options_with(&["FAILING=\"cuMemHostAlloc\"", "CODE=2"]);
    let grey = augmented(Dtype::F32, Layout::Chw).with_channels(Channels::Grey).unwrap();
    for (delivery, notes) in
        [(Delivery::Device(options.clone()), 1), (Delivery::Pinned(options), 0)]
    {
        let config = LoaderConfig { delivery, ..images(grey.clone()) };
        let loader = Loader::new(photos(), config).unwrap();
        for batch in loader.epoch(0) {
            assert!(batch.unwrap().pinned().is_none());
        }
        assert_eq!(note(&loader, "pinned memory: ordinary memory instead"), 1);
        assert_eq!(note(&loader, "conversion on the device: "), notes);
    }
    let absent = DeviceOptions { library: Some("/nowhere".into()), ..DeviceOptions::default() };
    let config = LoaderConfig { delivery: Delivery::Pinned(absent), ..images(grey) };
    assert_eq!(note(&Loader::new(photos(), config).unwrap(), "pinned memory: ordinary"), 1);
}

/// Copies of pictures are made in memory of their own, which is pinned after the slab.
#[test]
fn copies_that_cannot_be_pinned_have_a_note_or_are_an_error() {
    let fails = ["FAILING=\"cuMemHostAlloc\"", "CODE=2", "CALLS=1"];
    let ops = vec![RandomResizedCrop::new(24).into()];
    let recipe = Recipe::new(ops, OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc }).unwrap();
    let one = LoaderConfig { batch_size: 100, workers: 1, ..images(recipe) };
    let one = LoaderConfig { prefetch_next_epoch: false, ..one };
    let epoch = |required| {
        let delivery = Delivery::Device(DeviceOptions { required, ..options_with(&fails) });
        let loader = Loader::new(photos(), LoaderConfig { delivery, ..one.clone() }).unwrap();
        let batch = loader.epoch(0).next().unwrap();
        (batch.map(|batch| there(&batch)), loader.notes())
    };
    let (batch, notes) = epoch(false);
    let host = Loader::new(photos(), one.clone()).unwrap();
    assert!(batch.unwrap() == on_host(&host.epoch(0).next().unwrap().unwrap()));
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.to_string().starts_with("pinned memory: ordinary memory instead"), "{note}");
    let Err(PipelineError::Device { reason }) = epoch(true).0 else { panic!("it is required") };
    assert!(reason.to_string().contains("cannot be pinned"), "{reason}");
}

#[test]
fn the_memory_of_the_device_bounds_the_batches_in_flight() {
    let recipe = augmented(Dtype::F32, Layout::Chw);
    let image = 40 * 40 * 3;
    // The pixels, the floats, and less than a KiB of numbers.
    let batch = 5 * image * (1 + 4) + 1024;
    let config = LoaderConfig { prefetch: 9, ..images(recipe) };
    let start = |batches: u64| {
        let options = DeviceOptions { memory: Some(batches * batch), ..options_with(&[]) };
        Loader::new(bmps(60), LoaderConfig { delivery: on_device(options), ..config.clone() })
    };
    let Err(PipelineError::Device { reason: DeviceReason::OutOfMemory { need, free } }) = start(2)
    else {
        panic!("two batches do not do");
    };
    assert!(need > free && free == 2 * batch, "{need} {free}");
    let loader = start(4).unwrap();
    assert!(loader.device_use().unwrap().converts);
    assert!(loader.config().prefetch < 9, "{}", loader.config().prefetch);
    for batch in loader.epoch(0) {
        batch.unwrap();
    }
    assert!(loader.stats().uploads.allocated <= 4 * batch);
    // Held batches exhaust it, which is an error by name.
    let held: Result<Vec<Batch>, PipelineError> = loader.epoch(1).collect();
    let reason = held.unwrap_err();
    let is_named =
        matches!(reason, PipelineError::Device { reason: DeviceReason::OutOfMemory { .. } });
    assert!(is_named, "{reason}");
}

#[test]
fn a_device_that_is_lost_ends_the_epoch_by_name() {
    let options = options_with(&["FAILING=\"cuMemcpyHtoDAsync_v2\"", "CODE=700", "CALLS=6"]);
    let dataset = bmps(40);
    let recipe = Recipe::new(
        vec![Resize { ..Resize::new(8) }.into(), CenterCrop::new(8).into()],
        OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc },
    );
    let config = LoaderConfig { delivery: on_device(options), ..images(recipe.unwrap()) };
    let loader = Loader::new(dataset, config).unwrap();
    let last = loader.epoch(0).last().unwrap();
    let Err(PipelineError::Device { reason }) = last else { panic!("copies fail") };
    let lost = "libcuda.so.1: cuMemcpyHtoDAsync: CUDA_ERROR_ILLEGAL_ADDRESS";
    assert_eq!(reason.to_string(), lost);
}
