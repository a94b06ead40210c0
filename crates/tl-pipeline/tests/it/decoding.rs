//! JPEG images that a device decodes: the pixels of the host, bit for bit, from the same files with the
//! same errors.

use std::fs;
use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_decode::{DecodeError, DecodeOptions, JpegDecoder, Limits, OnDamaged};
use tl_pipeline::{
    Batch, Collate, Dataset, Delivery, DeviceDecode, DeviceOptions, Loader, LoaderConfig,
    LoaderNote, OnError, Readers, SampleFault, Shuffle,
};
use tl_transform::op::{
    CenterCrop, ColorJitter, Normalize, RandomErasing, RandomHorizontalFlip, RandomResizedCrop,
    RandomVerticalFlip, Resize, Size, ToFloat,
};
use tl_transform::{DecodeMode, Dtype, Interpolation, Layout, Op, OutputSpec, Recipe};

use crate::delivery::{Contents, compare, images, on_device, on_host, options_with, photos, there};

fn device(decode: DeviceDecode) -> Delivery {
    on_device(DeviceOptions { decode, ..options_with(&[]) })
}

/// The files of a folder and those below it that are JPEG, by name.
fn jpegs(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(jpegs(&path));
        } else if path.extension().is_some_and(|extension| extension == "jpg") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((name, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Every kind of JPEG file that the host decodes.
pub(crate) fn kinds() -> Vec<(String, Vec<u8>)> {
    let mut files = jpegs(&tl_testdata::shipped!("jpeg"));
    files.extend(jpegs(&tl_testdata::shipped!("photos")).into_iter().take(6));
    let mut decoder = tl_decode::Decoder::new(DecodeOptions::default());
    files.retain(|(_, bytes)| decoder.decode_into(bytes, &mut tl_decode::Image::new()).is_ok());
    files
}

/// A TBL file of these, with the row indexes of those that can have one.
pub(crate) fn indexed(path: &Path, files: &[(String, Vec<u8>)]) -> (Dataset, u64) {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    let mut decoder = JpegDecoder::new(Limits::default());
    let mut count = 0;
    for (name, bytes) in files {
        let mut index = Vec::new();
        let is_indexed = decoder.row_index(bytes, &mut index).unwrap_or(false);
        count += u64::from(is_indexed);
        let row_index = is_indexed.then_some(&index[..]);
        let key = Some(name.as_bytes());
        let format = SampleFormat::Jpeg;
        let sample = NewSample { key, row_index, format, ..NewSample::new(bytes) };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    (Dataset::open(&[path]).unwrap(), count)
}

/// A recipe of these operations, with floats if the numbers are some.
pub(crate) fn recipe(ops: &[Op], dtype: Dtype, layout: Layout) -> Recipe {
    let mut ops = ops.to_vec();
    if dtype != Dtype::U8 {
        ops.extend([ToFloat {}.into(), Normalize::IMAGENET.into()]);
    }
    Recipe::new(ops, OutputSpec { dtype, layout }).unwrap()
}

pub(crate) fn cropped(side: u32) -> Vec<Op> {
    vec![
        RandomResizedCrop::new(side).into(),
        RandomHorizontalFlip::default().into(),
        RandomVerticalFlip::default().into(),
    ]
}

/// Images that a loader's device has decoded in an epoch.
fn decoded(dataset: &Dataset, config: LoaderConfig, delivery: &Delivery) -> u64 {
    let loader =
        Loader::new(dataset.clone(), LoaderConfig { delivery: delivery.clone(), ..config })
            .unwrap();
    let batches: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
    batches.iter().map(|batch| batch.device().unwrap().decoded() as u64).sum()
}

#[test]
fn every_kind_of_file_has_the_bits_of_the_host() {
    let root = tempfile::tempdir().unwrap();
    let files = kinds();
    let (dataset, indexes) = indexed(&root.path().join("kinds.tbl"), &files);
    assert!(indexes > 60, "{indexes}");
    let resize = |size, interpolation| Op::from(Resize { interpolation, ..Resize::new(size) });
    let crop = |width, height| Op::from(CenterCrop { size: Size::exact(width, height) });
    let recipes = [
        recipe(&cropped(37), Dtype::F16, Layout::Chw),
        recipe(&[resize(64, Interpolation::Lanczos), crop(90, 30)], Dtype::F32, Layout::Hwc),
        recipe(&[resize(300, Interpolation::Bicubic), crop(31, 47)], Dtype::U8, Layout::Hwc),
        recipe(&[resize(50, Interpolation::Nearest), crop(40, 40)], Dtype::Bf16, Layout::Chw),
        recipe(&[crop(800, 128), RandomHorizontalFlip::default().into()], Dtype::U8, Layout::Chw),
    ];
    let fast = DecodeMode::Fast { decode_margin: 1.0 };
    for (recipe, mode) in recipes.into_iter().flat_map(|recipe| {
        [DecodeMode::Exact, DecodeMode::FAST, fast].map(|mode| (recipe.clone(), mode))
    }) {
        let config = images(recipe.clone().with_decode(mode).unwrap());
        let is_first = recipe.output().dtype == Dtype::F16;
        let all = [DeviceDecode::Auto, DeviceDecode::Coefficients, DeviceDecode::RowIndex];
        // Those after the first recipe decode the coefficients of half of the files anyway.
        for decode in all.into_iter().take(if is_first { 3 } else { 1 }) {
            let delivery = device(decode);
            assert!(compare(&dataset, config.clone(), &delivery).is_empty(), "{mode} {decode:?}");
            let found = decoded(&dataset, config.clone(), &delivery);
            // Inks, lossless files and odd samplings are the host's.
            let least = if decode == DeviceDecode::RowIndex { 50 } else { 65 };
            assert!(found >= least && found <= files.len() as u64, "{found} of {decode:?}");
        }
    }
}

#[test]
fn pixels_that_go_through_steps_are_the_hosts() {
    let jitter: ColorJitter = serde_json::from_str(r#"{"brightness":0.5}"#).unwrap();
    let erase: RandomErasing = serde_json::from_str(r#"{"p":1.0}"#).unwrap();
    let of = |op: Op| images(recipe(&[&cropped(32)[..], &[op]].concat(), Dtype::U8, Layout::Hwc));
    let delivery = device(DeviceDecode::Auto);
    for config in [of(jitter.into()), of(erase.into())] {
        assert!(compare(&photos(), config.clone(), &delivery).is_empty());
        assert_eq!(decoded(&photos(), config, &delivery), 0);
    }
    let config = images(recipe(&cropped(32), Dtype::U8, Layout::Hwc));
    assert_eq!(decoded(&photos(), config.clone(), &device(DeviceDecode::Never)), 0);
    assert!(decoded(&photos(), config, &delivery) > 0);
}

#[test]
fn views_of_a_sample_are_cut_out_of_what_is_decoded_once() {
    let recipe = recipe(&cropped(40), Dtype::F32, Layout::Chw).with_draws(3).unwrap();
    let config = images(recipe);
    let delivery = device(DeviceDecode::Auto);
    assert!(compare(&photos(), config.clone(), &delivery).is_empty());
    let samples = decoded(&photos(), config, &delivery);
    assert!(samples > 0 && samples.is_multiple_of(3), "{samples}");
}

#[test]
fn rectangles_are_erased_after_the_conversion() {
    let erase = |text: &str| -> Op { serde_json::from_str::<RandomErasing>(text).unwrap().into() };
    let color = erase(r#"{"p":0.7,"value":[0.25,-1.0,2.0]}"#);
    let noise = erase(r#"{"p":0.7,"value":"random"}"#);
    let delivery = device(DeviceDecode::Auto);
    for (dtype, layout) in
        [(Dtype::F32, Layout::Chw), (Dtype::F16, Layout::Hwc), (Dtype::Bf16, Layout::Chw)]
    {
        let ops = [&cropped(30)[..], &[ToFloat {}.into(), Normalize::IMAGENET.into()]].concat();
        let ops = [&ops[..], &[color.clone(), noise.clone()]].concat();
        let recipe = Recipe::new(ops, OutputSpec { dtype, layout }).unwrap().with_draws(2).unwrap();
        let config = images(recipe);
        assert!(compare(&photos(), config.clone(), &delivery).is_empty(), "{dtype} {layout}");
        assert!(decoded(&photos(), config, &delivery) > 0);
    }
}

/// Files of which half are cut short or flipped, with a stretch of zeros in some.
fn damaged() -> Vec<(String, Vec<u8>)> {
    let mut files = kinds();
    for (number, (_, bytes)) in files.iter_mut().enumerate() {
        let middle = bytes.len() * 3 / 5;
        match number % 4 {
            0 => bytes.truncate(middle),
            1 => bytes[middle..][..2].fill(0xFF),
            _ => {}
        }
    }
    files
}

#[test]
fn damaged_files_are_the_same_errors() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("damaged");
    fs::create_dir(&folder).unwrap();
    for (name, bytes) in damaged() {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let dataset = Dataset::open(&[folder]).unwrap();
    let delivery = device(DeviceDecode::Auto);
    let config = images(recipe(&cropped(24), Dtype::F16, Layout::Chw));
    for on_error in [OnError::Skip, OnError::Replace] {
        let config = LoaderConfig { on_error, ..config.clone() };
        let loader = |config| Loader::new(dataset.clone(), config).unwrap();
        let host = loader(config.clone());
        let there_too = loader(LoaderConfig { delivery: delivery.clone(), ..config });
        for (batch, expected) in there_too.epoch(0).zip(host.epoch(0)) {
            assert!(there(&batch.unwrap()) == on_host(&expected.unwrap()), "{on_error:?}");
        }
        let errors = |loader: &Loader| -> Vec<String> {
            loader.audit().iter().map(|entry| entry.error.to_string()).collect()
        };
        assert_eq!(errors(&there_too), errors(&host));
        assert!(errors(&host).len() > 20, "{:?}", errors(&host));
    }
    let decode = DecodeOptions { on_damaged: OnDamaged::Keep, ..DecodeOptions::default() };
    compare(&dataset, LoaderConfig { decode, on_error: OnError::Skip, ..config }, &delivery);
}

#[test]
fn a_table_of_damaged_files_with_indexes_of_whole_ones_is_refused_by_checksum() {
    let root = tempfile::tempdir().unwrap();
    let files: Vec<_> = kinds().into_iter().take(12).collect();
    let path: PathBuf = root.path().join("a.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    let mut decoder = JpegDecoder::new(Limits::default());
    for (_, bytes) in &files {
        let mut index = Vec::new();
        let row_index = decoder.row_index(bytes, &mut index).unwrap().then_some(&index[..]);
        let mut other = bytes.clone();
        let last = other.len() - 3;
        other[last] ^= 1;
        let format = SampleFormat::Jpeg;
        writer.write_sample(&NewSample { row_index, format, ..NewSample::new(&other) }).unwrap();
    }
    writer.finish().unwrap();
    let dataset = Dataset::open(&[&path]).unwrap();
    let config = images(recipe(&cropped(24), Dtype::U8, Layout::Hwc));
    let config = LoaderConfig { batch_size: 1, sampler: Shuffle::None.into(), ..config };
    let outcome = |delivery| -> Vec<String> {
        let config = LoaderConfig { delivery, on_error: OnError::Skip, ..config.clone() };
        let loader = Loader::new(dataset.clone(), config).unwrap();
        loader.epoch(0).for_each(drop);
        loader.audit().iter().map(|entry| entry.error.to_string()).collect()
    };
    let host = outcome(Delivery::Host);
    assert!(host.iter().any(|error| error.contains("row index of another file")), "{host:?}");
    assert_eq!(outcome(device(DeviceDecode::Auto)), host);
}

fn crc32(bytes: &[u8]) -> u32 {
    let shifted = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    let next = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| shifted(crc));
    !bytes.iter().fold(!0, next)
}

/// Moves the start of the third row of an index by a bit.
fn forge(index: &mut [u8]) {
    let entry = 4 + 2 * usize::from(index[1]);
    index[20 + 2 * entry] ^= 1;
    // The CRC-32 of what is before it and after it.
    let forged = [&index[..16], &index[20..]].concat();
    index[16..20].copy_from_slice(&crc32(&forged).to_le_bytes());
}

/// Photographs, of which every third has a forged index, one of them in the last batch.
fn with_forged_indexes(path: &Path) -> Dataset {
    let mut writer = StreamWriter::create(path, WriteOptions::default()).unwrap();
    let mut decoder = JpegDecoder::new(Limits::default());
    let indexed = jpegs(&tl_testdata::shipped!("photos")).into_iter().filter_map(|(_, bytes)| {
        let mut index = Vec::new();
        decoder.row_index(&bytes, &mut index).unwrap().then_some((bytes, index))
    });
    for (number, (bytes, mut index)) in indexed.take(9).enumerate() {
        if number % 3 == 0 {
            forge(&mut index);
        }
        let row_index = Some(&index[..]);
        let format = SampleFormat::Jpeg;
        writer.write_sample(&NewSample { row_index, format, ..NewSample::new(&bytes) }).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

/// All rows are read to their ends.
fn whole() -> LoaderConfig {
    let whole = Resize { size: Some(Size::exact(40, 40)), ..Resize::new(40) };
    let recipe = recipe(&[whole.into()], Dtype::F16, Layout::Chw);
    LoaderConfig { batch_size: 3, sampler: Shuffle::None.into(), ..images(recipe) }
}

/// The contents of an epoch, as far as it comes, and the errors.
fn outcome(loader: &Loader, epoch: u32) -> Vec<Result<Contents, String>> {
    let contents = |batch: &Batch| match batch.device() {
        Some(_) => there(batch),
        None => on_host(batch),
    };
    let batches = loader.epoch(epoch);
    let mut found: Vec<_> =
        batches.map(|batch| batch.as_ref().map(contents).map_err(ToString::to_string)).collect();
    found.extend(loader.audit().iter().map(|entry| Err(entry.error.to_string())));
    found
}

#[test]
fn forged_row_indexes_have_the_outcome_of_the_host() {
    let root = tempfile::tempdir().unwrap();
    let dataset = with_forged_indexes(&root.path().join("forged.tbl"));
    let decodes = [DeviceDecode::Auto, DeviceDecode::RowIndex];
    let devices = decodes.map(device);
    for on_error in [OnError::Raise, OnError::Skip, OnError::Replace] {
        for delivery in &devices {
            let config = LoaderConfig { on_error, ..whole() };
            let loader = |delivery| {
                let config = LoaderConfig { delivery, ..config.clone() };
                Loader::new(dataset.clone(), config).unwrap()
            };
            let host = loader(Delivery::Host);
            let there_too = loader(delivery.clone());
            // The loader works as before afterwards.
            for epoch in [0, 0, 1] {
                let expected = outcome(&host, epoch);
                let errors = expected.iter().filter(|found| found.is_err()).count();
                assert!(errors > 0 && errors < expected.len() + 1, "{errors} of {on_error:?}");
                assert!(
                    outcome(&there_too, epoch) == expected,
                    "{on_error:?} {delivery:?} {epoch}"
                );
            }
            let notes = there_too.notes();
            let is_named = |note: &LoaderNote| note.to_string().contains("row index of sample ");
            assert!(notes.iter().any(is_named), "{notes:?}");
        }
    }
}

#[test]
fn a_batch_with_a_forged_row_index_is_made_again_before_it_is_seen() {
    let root = tempfile::tempdir().unwrap();
    let dataset = with_forged_indexes(&root.path().join("forged.tbl"));
    let config = LoaderConfig { on_error: OnError::Skip, ..whole() };
    let host = Loader::new(dataset.clone(), config.clone()).unwrap();
    let expected = outcome(&host, 0);
    let collated = |batch: &Batch| Ok(there(batch));
    let delivery = device(DeviceDecode::RowIndex);
    let config = LoaderConfig { collate: Some(Collate::new(collated)), delivery, ..config };
    let loader = Loader::new(dataset.clone(), config.clone()).unwrap();
    for (batch, expected) in loader.epoch(0).zip(&expected) {
        assert!(batch.unwrap().collated::<Contents>() == expected.as_ref().ok());
    }
    for readers in [Readers::Workers, Readers::Planned] {
        let config = LoaderConfig { collate: None, readers, workers: 2, ..config.clone() };
        let budget = Some(1 << 30);
        let config = LoaderConfig { memory_budget: budget, prefetch_bytes: Some(1), ..config };
        let loader = Loader::new(dataset.clone(), config).unwrap();
        assert!(outcome(&loader, 0) == expected, "{readers:?}");
        assert_eq!(loader.memory().held, 0);
        assert!(loader.memory().copies > 0);
        let last = loader.batch(0, 2).unwrap();
        assert!(there(&last) == *expected[2].as_ref().unwrap());
    }
}

/// The limits of memory at which something changes for one of these files, and those around them.
fn limits_of(dataset: &Dataset, config: &LoaderConfig) -> Vec<Limits> {
    let mut found = Vec::new();
    let mut next = vec![Limits { max_working_bytes: 0, ..Limits::default() }];
    next.push(Limits { max_decoded_bytes: 0, ..Limits::default() });
    while let Some(limits) = next.pop() {
        let decode = DecodeOptions { limits, ..DecodeOptions::default() };
        let config = LoaderConfig { decode, ..config.clone() };
        let loader = Loader::new(dataset.clone(), config).unwrap();
        loader.epoch(0).for_each(drop);
        for entry in loader.audit() {
            let fault = &entry.error.fault;
            let need = if let SampleFault::OutputSize { bytes, .. } = fault {
                Some(*bytes)
            } else if let SampleFault::Decode(DecodeError::LimitExceeded { need, .. }) = fault {
                Some(*need)
            } else {
                None
            };
            let need = need.expect("a limit");
            for need in [need - 1, need + 1, need] {
                let at = if limits.max_decoded_bytes < Limits::default().max_decoded_bytes {
                    Limits { max_decoded_bytes: need, ..limits }
                } else {
                    Limits { max_working_bytes: need, ..limits }
                };
                if !found.contains(&at) {
                    found.push(at);
                    next.push(at);
                }
            }
        }
    }
    found
}

#[test]
fn images_near_the_limits_have_the_outcome_of_the_host() {
    let root = tempfile::tempdir().unwrap();
    let names = ["sampling_2x2_1x1_1x1.jpg", "grey.jpg", "progressive_deep_420.jpg", "no_jfif.jpg"];
    let mut files = kinds();
    files.retain(|(name, _)| names.contains(&name.as_str()));
    let (dataset, indexes) = indexed(&root.path().join("kinds.tbl"), &files);
    assert!(indexes > 1 && files.len() > 2, "{indexes} of {}", files.len());
    let device = options_with(&[]);
    for (mode, views) in [(DecodeMode::Exact, 2), (DecodeMode::FAST, 3), (DecodeMode::Exact, 1)] {
        let recipe = recipe(&cropped(9), Dtype::U8, Layout::Hwc);
        let recipe = recipe.with_draws(views).unwrap().with_decode(mode).unwrap();
        let config = LoaderConfig { batch_size: 1, on_error: OnError::Skip, ..images(recipe) };
        let all = limits_of(&dataset, &config);
        assert!(all.len() > 20, "{all:?}");
        for (limits, decode) in all.iter().flat_map(|limits| {
            let decodes = [DeviceDecode::Auto, DeviceDecode::Coefficients];
            decodes.map(|decode| (*limits, decode))
        }) {
            let options = DecodeOptions { limits, ..DecodeOptions::default() };
            let config = LoaderConfig { decode: options, ..config.clone() };
            let host = Loader::new(dataset.clone(), config.clone()).unwrap();
            let delivery = on_device(DeviceOptions { decode, ..device.clone() });
            let config = LoaderConfig { delivery, ..config };
            let there_too = Loader::new(dataset.clone(), config).unwrap();
            let expected = outcome(&host, 0);
            assert!(outcome(&there_too, 0) == expected, "{mode}, {views}, {limits:?}, {decode:?}");
        }
    }
}
