//! Recipes that decode with nvJPEG, by a library whose pixels are the bytes of the file: after decoding
//! they are those of the host, bit for bit, and other files are decoded exactly.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_decode::{DecodeOptions, JpegDecoder, Limits, OnDamaged};
use tl_pipeline::{
    Batch, Batching, Buckets, CacheConfig, CacheKind, Dataset, Delivery, DeviceDecode,
    DeviceOptions, DeviceReason, ErrorBudget, Loader, LoaderConfig, MemoryCache, OnError,
    PipelineError, SampleFault, SampleRenderer, Stored, Target, Work,
};
use tl_transform::op::{CenterCrop, ColorJitter, RandomErasing, RandomResizedCrop, Resize, Size};
use tl_transform::{DecodeMode, Draw, Dtype, Layout, Op, Recipe};

use crate::decoding::{cropped, kinds, recipe};
use crate::delivery::{images, on_device, on_host, options_with, photos, there};
use crate::library::library;

/// A library of nvJPEG that was compiled with these macros.
fn stand_in(macros: &[&str]) -> PathBuf {
    library("nvjpeg.c", macros, Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// The device with such a library; `None` on a real one, whose memory the library cannot write.
fn device(macros: &[&str]) -> Option<DeviceOptions> {
    let is_real = std::env::var_os("TURBOLOADER_TEST_DEVICE").is_some();
    let nvjpeg = || Some(stand_in(macros));
    (!is_real).then(|| DeviceOptions { nvjpeg: nvjpeg(), ..options_with(&[]) })
}

fn by_nvjpeg(recipe: Recipe) -> LoaderConfig {
    images(recipe.with_decode(DecodeMode::NvJpeg).unwrap())
}

/// The size of a file that nvJPEG is to decode, from its frame header.
fn expected_size(name: &str, bytes: &[u8]) -> Option<(u16, u16)> {
    // RGB, restart markers inside of rows, and several scans.
    let others = ["rgb.jpg", "ids_rgb.jpg", "restart_each.jpg"];
    let scans =
        ["each_scan_420", "each_scan_restart", "chroma_first", "chroma_scan", "requantised"];
    if others.contains(&name) || scans.contains(&name.trim_end_matches(".jpg")) {
        return None;
    }
    let mut at = 2;
    loop {
        let marker = bytes[at + 1];
        if marker == 0xFF {
            at += 1;
            continue;
        }
        let number = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let frame = &bytes[at + 9..];
        match marker {
            0xC0 | 0xC1 => {
                let factors: Vec<u8> =
                    frame[1..].chunks(3).take(frame[0].into()).map(|part| part[1]).collect();
                let is_usual = match (frame[0], &factors[..]) {
                    (1, _) => true,
                    (3, [luma, blue, red]) => {
                        let [across, down] = [luma >> 4, luma & 15];
                        let [chroma_across, chroma_down] = [blue >> 4, blue & 15];
                        let steps = [across / chroma_across.max(1), down / chroma_down.max(1)];
                        let usual = [[1, 1], [2, 1], [2, 2], [1, 2], [4, 1], [4, 2]];
                        blue == red
                            && across.is_multiple_of(chroma_across)
                            && down.is_multiple_of(chroma_down)
                            && usual.contains(&steps)
                    }
                    _ => false,
                };
                return is_usual.then(|| (number(at + 7), number(at + 5)));
            }
            0xC2..=0xCF if ![0xC4, 0xC8, 0xCC].contains(&marker) => return None,
            _ => at += 2 + usize::from(number(at + 2)),
        }
    }
}

/// The files, the same samples with the pixels that the library makes of them, and the number that it
/// decodes.
fn pair(root: &Path, files: &[(String, Vec<u8>)], is_indexed: bool) -> (Dataset, Dataset, u64) {
    let paths = ["files.tbl", "pixels.tbl"].map(|name| root.join(name));
    let [mut of_files, mut of_pixels] =
        paths.each_ref().map(|path| StreamWriter::create(path, WriteOptions::default()).unwrap());
    let mut decoder = JpegDecoder::new(Limits::default());
    let mut count = 0;
    for (label, (name, bytes)) in (0..).zip(files) {
        let mut index = Vec::new();
        let has_index = is_indexed && decoder.row_index(bytes, &mut index).unwrap_or(false);
        let format = SampleFormat::Jpeg;
        let (key, label) = (Some(name.as_bytes()), Some(label));
        let sample = NewSample { format, key, label, ..NewSample::new(bytes) };
        let row_index = has_index.then_some(&index[..]);
        of_files.write_sample(&NewSample { row_index, ..sample }).unwrap();
        let Some((width, height)) = expected_size(name, bytes) else {
            of_pixels.write_sample(&sample).unwrap();
            continue;
        };
        count += 1;
        let (width, height) = (u32::from(width), u32::from(height));
        let pixels = 3 * width as usize * height as usize;
        let pixels: Vec<u8> = bytes.iter().copied().cycle().take(pixels).collect();
        let format = SampleFormat::RawU8;
        let sample = NewSample { bytes: &pixels, width, height, format, ..sample };
        of_pixels.write_sample(&sample).unwrap();
    }
    of_files.finish().unwrap();
    of_pixels.finish().unwrap();
    let [files, pixels] = paths.map(|path| Dataset::open(&[path]).unwrap());
    (files, pixels, count)
}

/// The names of the samples whose images differ.
fn differing(files: &Dataset, batch: &Batch, expected: &Batch) -> Vec<String> {
    let device = batch.device().unwrap();
    let image = device.image_bytes() / batch.len();
    let found = device.buffer().read().unwrap();
    let images = found.chunks(image).zip(expected.images().chunks(image));
    let names = images.zip(batch.indices()).filter(|((found, expected), _)| found != expected);
    let name = |sample: u64| files.entry(sample).unwrap().key.unwrap().into_owned();
    names.map(|(_, sample)| String::from_utf8(name(*sample)).unwrap()).collect()
}

/// Compares two epochs by nvJPEG with those of the host over the same pixels; the images that nvJPEG
/// has decoded in both.
fn compare(
    files: &Dataset,
    pixels: &Dataset,
    config: &LoaderConfig,
    options: &DeviceOptions,
) -> u64 {
    let config = LoaderConfig { prefetch_next_epoch: false, ..config.clone() };
    let mut host = config.clone();
    if let Work::Images(recipe) = &config.work {
        host.work = Work::Images(recipe.clone().with_decode(DecodeMode::Exact).unwrap());
    }
    let delivery = on_device(options.clone());
    let loader = Loader::new(files.clone(), LoaderConfig { delivery, ..config }).unwrap();
    assert!(loader.notes().is_empty(), "{:?}", loader.notes());
    let host = Loader::new(pixels.clone(), host).unwrap();
    for epoch in 0..2 {
        let mut batches = loader.epoch(epoch);
        for expected in host.epoch(epoch) {
            let batch = batches.next().unwrap().unwrap();
            let expected = expected.unwrap();
            assert_eq!(differing(files, &batch, &expected), Vec::<String>::new());
            assert!(there(&batch) == on_host(&expected), "{:?}", batch.indices());
        }
        assert!(batches.next().is_none());
    }
    let used = loader.device_use().unwrap();
    assert!(used.to_string().ends_with("by nvJPEG, version 12.4.7"), "{used}");
    assert!(loader.report().to_string().contains(" images by nvJPEG"));
    loader.stats().uploads.nvjpeg
}

#[test]
fn pixels_of_the_library_become_the_batches_that_the_host_makes_of_them() {
    let Some(options) = device(&[]) else { return };
    let files = kinds();
    let crop = |width, height| Op::from(CenterCrop { size: Size::exact(width, height) });
    for is_indexed in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let (files, pixels, count) = pair(root.path(), &files, is_indexed);
        assert!(count > 40, "{count}");
        let recipes = [
            recipe(&cropped(37), Dtype::F16, Layout::Chw),
            recipe(&[Resize::new(50).into(), crop(90, 31)], Dtype::U8, Layout::Hwc),
            recipe(&[crop(200, 64)], Dtype::F32, Layout::Hwc),
            recipe(&cropped(16), Dtype::Bf16, Layout::Chw).with_draws(2).unwrap(),
        ];
        for recipe in recipes {
            let views = u64::from(recipe.views());
            let config = by_nvjpeg(recipe);
            let found = compare(&files, &pixels, &config, &options);
            assert_eq!(found, 2 * count * views);
        }
    }
}

#[test]
fn the_choice_of_files_does_not_depend_on_what_else_the_device_decodes() {
    let Some(options) = device(&[]) else { return };
    let root = tempfile::tempdir().unwrap();
    let files: Vec<_> = kinds().into_iter().step_by(3).collect();
    let (files, pixels, _) = pair(root.path(), &files, false);
    let config = by_nvjpeg(recipe(&cropped(24), Dtype::F32, Layout::Chw));
    let settings = [
        (DeviceDecode::Never, None, None),
        (DeviceDecode::Coefficients, Some(0), None),
        (DeviceDecode::RowIndex, Some(200), None),
        (DeviceDecode::Auto, None, Some(1 << 30)),
    ];
    for (decode, row_indexes, memory_budget) in settings {
        let options = DeviceOptions { decode, row_indexes, ..options.clone() };
        let prefetch = 2;
        let config = LoaderConfig { memory_budget, prefetch, ..config.clone() };
        compare(&files, &pixels, &config, &options);
    }
}

#[test]
fn damaged_files_are_decoded_or_refused_as_in_exact_decoding() {
    let Some(options) = device(&[]) else { return };
    let root = tempfile::tempdir().unwrap();
    for (name, mut bytes) in kinds() {
        // Other files are decoded exactly even if they are sound.
        if expected_size(&name, &bytes).is_some() {
            bytes.truncate(bytes.len() * 3 / 5);
            fs::write(root.path().join(name), bytes).unwrap();
        }
    }
    let dataset = Dataset::open(&[root.path()]).unwrap();
    let exact = recipe(&cropped(24), Dtype::F16, Layout::Chw);
    let error_budget = ErrorBudget { count: Some(1000), rate: None };
    let host = images(exact.clone());
    let host = LoaderConfig { on_error: OnError::Skip, error_budget, ..host };
    let keep = DecodeOptions { on_damaged: OnDamaged::Keep, ..DecodeOptions::default() };
    for decode in [DecodeOptions::default(), keep] {
        let host = LoaderConfig { decode, ..host.clone() };
        let config = LoaderConfig { work: by_nvjpeg(exact.clone()).work, ..host.clone() };
        let config = LoaderConfig { delivery: on_device(options.clone()), ..config };
        let loader = |config| Loader::new(dataset.clone(), config).unwrap();
        let [host, there_too] = [loader(host), loader(config)];
        let expected: Vec<Batch> = host.epoch(0).map(Result::unwrap).collect();
        let found: Vec<Batch> = there_too.epoch(0).map(Result::unwrap).collect();
        assert_eq!(found.len(), expected.len());
        for (batch, expected) in found.iter().zip(&expected) {
            assert!(there(batch) == on_host(expected));
        }
        let errors = |loader: &Loader| -> Vec<String> {
            loader.audit().iter().map(|entry| entry.error.to_string()).collect()
        };
        assert_eq!(errors(&there_too), errors(&host));
        assert!(errors(&host).len() > 20);
        assert_eq!(there_too.stats().uploads.nvjpeg, 0);
    }
}

#[test]
fn a_file_that_the_library_refuses_is_an_error_with_its_name() {
    let files = kinds();
    let refused = files.iter().find(|(name, _)| name == "coffee_cup.jpg").unwrap();
    let Some(options) = device(&[&format!("REFUSED={}", refused.1.len())]) else { return };
    let root = tempfile::tempdir().unwrap();
    let (dataset, ..) = pair(root.path(), &files, true);
    let config = by_nvjpeg(recipe(&cropped(24), Dtype::U8, Layout::Hwc));
    let config = LoaderConfig { delivery: on_device(options), batch_size: 7, ..config };
    let loader = Loader::new(dataset, LoaderConfig { on_error: OnError::Skip, ..config }).unwrap();
    let outcomes: Vec<_> = loader.epoch(0).collect();
    let error = outcomes.iter().find_map(|outcome| outcome.as_ref().err()).unwrap();
    let PipelineError::Sample(source) = error else { panic!("{error}") };
    assert!(matches!(source.fault, SampleFault::NvJpegFile { .. }), "{source}");
    let text = error.to_string();
    assert!(text.contains("coffee_cup.jpg") && text.contains("NVJPEG_STATUS_BAD_JPEG"), "{text}");
}

#[test]
fn an_epoch_resumes_with_the_same_batches_and_other_modes_are_refused() {
    let Some(options) = device(&[]) else { return };
    let config = by_nvjpeg(recipe(&cropped(24), Dtype::F32, Layout::Chw));
    let config = LoaderConfig { delivery: on_device(options), ..config };
    let loader = Loader::new(photos(), config.clone()).unwrap();
    let all: Vec<Batch> = loader.epoch(1).map(Result::unwrap).collect();
    let mut first = loader.epoch(1);
    for _ in 0..2 {
        first.next().unwrap().unwrap();
    }
    let state = first.state().unwrap();
    drop(first);
    let resumed = Loader::new(photos(), config).unwrap();
    let rest: Vec<Batch> = resumed.resume(&state).unwrap().map(Result::unwrap).collect();
    assert_eq!(rest.len() + 2, all.len());
    for (found, expected) in rest.iter().zip(&all[2..]) {
        assert!(there(found) == there(expected));
    }
    let exact = images(recipe(&cropped(24), Dtype::F32, Layout::Chw));
    let other = Loader::new(photos(), exact).unwrap();
    let refused = other.resume(&state).map(drop).unwrap_err();
    assert!(matches!(refused, PipelineError::StateMismatch { .. }), "{refused}");
}

#[test]
fn a_trace_names_the_library() {
    let Some(options) = device(&[]) else { return };
    let config = by_nvjpeg(recipe(&cropped(24), Dtype::F32, Layout::Chw));
    let config = LoaderConfig { delivery: on_device(options), trace: 1000, ..config };
    let loader = Loader::new(photos(), config).unwrap();
    loader.epoch(0).for_each(|batch| drop(there(&batch.unwrap())));
    let traced = || {
        let mut text = Vec::new();
        loader.write_trace(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    // The thread that waits for copies may be a little later.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !traced().contains("\"copy to the device, nvJPEG\"") {
        assert!(Instant::now() < deadline, "{}", traced());
        std::thread::yield_now();
    }
}

/// The error of a loader that cannot be made.
fn refusal(config: LoaderConfig) -> PipelineError {
    Loader::new(photos(), config).map(drop).unwrap_err()
}

#[test]
fn libraries_and_devices_that_are_not_there_are_errors_by_name() {
    let config = by_nvjpeg(recipe(&cropped(24), Dtype::U8, Layout::Hwc));
    let with = |options| LoaderConfig { delivery: Delivery::Device(options), ..config.clone() };
    let driver = Some(PathBuf::from("/nowhere/libcuda.so.1"));
    let absent = DeviceOptions { library: driver, ..DeviceOptions::default() };
    let error = refusal(with(absent));
    assert!(matches!(error, PipelineError::Device { reason: DeviceReason::NoDriver { .. } }));
    let Some(options) = device(&[]) else { return };
    let without = |nvjpeg| with(DeviceOptions { nvjpeg, required: false, ..options.clone() });
    let error = refusal(without(Some(PathBuf::from("/nowhere/libnvjpeg.so.12")))).to_string();
    assert!(error.contains("/nowhere/libnvjpeg.so.12"), "{error}");
    assert!(error.ends_with("(pip install 'turboloader-rs[nvjpeg]')"), "{error}");
    let error = refusal(without(Some(stand_in(&["MAJOR=10"])))).to_string();
    assert!(error.ends_with("version 10.4.7, expected 11.0 or newer"), "{error}");
    let lacking = stand_in(&["nvjpegDecodeBatched=other"]);
    let error = refusal(without(Some(lacking))).to_string();
    assert!(error.ends_with("nvJPEG: nvjpegDecodeBatched: not in the library"), "{error}");
    let failing = stand_in(&["FAILING=\"nvjpegCreateEx\""]);
    let error = refusal(without(Some(failing))).to_string();
    assert!(error.ends_with("NVJPEG_STATUS_ARCH_MISMATCH"), "{error}");
    let failing = stand_in(&["FAILING=\"nvjpegJpegStateCreate\""]);
    let loader = Loader::new(photos(), without(Some(failing))).unwrap();
    let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("nvjpegJpegStateCreate"), "{error}");
}

#[test]
fn recipes_and_settings_that_need_pixels_on_the_host_are_refused_by_name() {
    let jitter: ColorJitter = serde_json::from_str(r#"{"brightness":0.5}"#).unwrap();
    let erase: RandomErasing = serde_json::from_str(r#"{"p":1.0}"#).unwrap();
    let crop = Op::from(RandomResizedCrop::new(24));
    let resized = |size| Op::from(Resize { size: Some(Size::exact(size, size)), ..Resize::new(1) });
    let of = |ops: &[Op]| by_nvjpeg(recipe(ops, Dtype::F32, Layout::Chw));
    let device = |config| LoaderConfig { delivery: on_device(options_with(&[])), ..config };
    let check = |config, expected: &str| {
        let error = refusal(config);
        assert!(matches!(error, PipelineError::Unusable(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let plain = of(std::slice::from_ref(&crop));
    check(plain.clone(), "needs batches on a device");
    let pinned = Delivery::Pinned(DeviceOptions::default());
    check(LoaderConfig { delivery: pinned, ..plain.clone() }, "needs batches on a device");
    check(device(of(&[crop.clone(), jitter.into()])), "`ColorJitter` runs on the CPU");
    check(device(of(&[crop, erase.into()])), "`RandomErasing` runs on the CPU");
    check(device(of(&[resized(30), resized(20)])), "`a sequence of resizes`");
    let fill = LoaderConfig { on_error: OnError::Fill, ..plain.clone() };
    check(device(fill), "`OnError::Fill`");
    let batching = Batching::Buckets(Buckets::default());
    check(device(LoaderConfig { batching, ..plain.clone() }), "`buckets`");
    let memory = Some(MemoryCache { kind: CacheKind::Decoded, bytes: 1 << 20 });
    let cache = CacheConfig { memory, ..CacheConfig::default() };
    check(device(LoaderConfig { cache, ..plain }), "decodes with nvJPEG");
}

#[test]
fn nothing_else_decodes_for_such_a_recipe() {
    let recipe = Recipe::imagenet_eval(8).unwrap().with_decode(DecodeMode::NvJpeg).unwrap();
    let mut renderer = SampleRenderer::new(&recipe, DecodeOptions::default());
    let mut bytes = kinds().remove(0).1;
    let format = SampleFormat::Jpeg;
    let stored = Stored { format, size: (0, 0), bytes: &mut bytes, row_index: None };
    let mut image = tl_decode::Image::new();
    let refused = renderer.render(stored, Draw::default(), Target::Image(&mut image));
    assert!(matches!(refused, Err(SampleFault::NvJpeg)));
}
