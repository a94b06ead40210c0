//! JPEG images that a device decodes: the pixels of the host, bit for bit, from the same files with the
//! same errors.

use std::fs;
use std::path::{Path, PathBuf};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, WriteOptions};
use tl_decode::{DecodeOptions, JpegDecoder, Limits, OnDamaged};
use tl_pipeline::{
    Dataset, Delivery, DeviceDecode, DeviceOptions, Loader, LoaderConfig, OnError, Shuffle,
};
use tl_transform::op::{
    CenterCrop, ColorJitter, Normalize, RandomErasing, RandomHorizontalFlip, RandomResizedCrop,
    RandomVerticalFlip, Resize, Size, ToFloat,
};
use tl_transform::{DecodeMode, Dtype, Interpolation, Layout, Op, OutputSpec, Recipe};

use crate::delivery::{compare, images, on_device, on_host, options_with, photos, there};

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
fn kinds() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = jpegs(&root.join("testdata/jpeg"));
    files.extend(jpegs(&root.join("testdata/photos")).into_iter().take(6));
    let mut decoder = tl_decode::Decoder::new(DecodeOptions::default());
    files.retain(|(_, bytes)| decoder.decode_into(bytes, &mut tl_decode::Image::new()).is_ok());
    files
}

/// A TBL file of these, with the row indexes of those that can have one.
fn indexed(path: &Path, files: &[(String, Vec<u8>)]) -> (Dataset, u64) {
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
fn recipe(ops: &[Op], dtype: Dtype, layout: Layout) -> Recipe {
    let mut ops = ops.to_vec();
    if dtype != Dtype::U8 {
        ops.extend([ToFloat {}.into(), Normalize::IMAGENET.into()]);
    }
    Recipe::new(ops, OutputSpec { dtype, layout }).unwrap()
}

fn cropped(side: u32) -> Vec<Op> {
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
fn views_of_a_sample_are_decoded_one_by_one() {
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
