//! The objects of COCO's annotations in batches: `cargo run --example objects -- FILE [IMAGES]`.
//!
//! Prints the boxes, keypoints and pixels of masks of each image in training crops. `IMAGES` is the
//! folder of the images. Annotations that cannot be used end with 1 and one line.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use tbl_io::{Coco, Location, SampleSource, Stores, open_coco};
use tl_pipeline::{
    BoxField, Dataset, Fields, InstanceMaskField, KeypointField, Loader, LoaderConfig, Shuffle,
    ValueFormat, Work,
};
use tl_transform::Recipe;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(file) = arguments.next() else {
        println!("usage: objects FILE [IMAGES]");
        return ExitCode::SUCCESS;
    };
    match show(&file, arguments.next()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn show(file: &OsString, images: Option<OsString>) -> Result<(), Box<dyn Error>> {
    let options = Coco { images: images.map(Location::new), dense: true, ..Coco::default() };
    let samples = open_coco(&Stores::new(), file, &options)?;
    let place = "/annotations/*/keypoints".to_owned();
    let keypoints = KeypointField {
        flip_pairs: samples.flip_pairs().to_vec(),
        fills_missing: true,
        ..KeypointField::new("keypoints", "json", ValueFormat::Json(place))
    };
    let fields = Fields {
        boxes: Some(BoxField::coco("json")),
        keypoints: vec![keypoints],
        instance_masks: Some(InstanceMaskField::coco("json")),
        ..Fields::default()
    };
    let config = LoaderConfig {
        batch_size: 4,
        workers: 1,
        sampler: Shuffle::None.into(),
        prefetch_next_epoch: false,
        fields,
        ..LoaderConfig::new(Work::Images(Recipe::imagenet_train(64)?))
    };
    let loader = Loader::new(Dataset::from_sources(vec![Box::new(samples)])?, config)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        for row in 0..batch.len() {
            let index = batch.indices()[row];
            let boxes = batch.boxes(row);
            let points = batch.keypoints(0, row);
            let pixels = batch.instance_masks(row).iter().filter(|pixel| **pixel == 1).count();
            println!("{index}: boxes {boxes:?}, keypoints {points:?}, {pixels} pixels of masks");
        }
    }
    Ok(())
}
