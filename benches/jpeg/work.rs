//! What is decoded: sets of files, and of each file everything, a crop, or a reduced image.

use std::env;
use std::path::{Path, PathBuf};

use tl_benches::paired::Workload;
use tl_benches::{image_files, is_measuring, photographs};
use tl_decode::{Format, JpegDecoder, Limits, probe};
use tl_simd::resample::Rect;
use tl_transform::{Draw, Recipe};

/// What the crops and reduced images are made for.
const TARGET: u32 = 224;

/// The seed of the crops.
const SEED: u64 = 42;

/// One file and what is wanted of it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) bytes: Vec<u8>,
    /// The size of the result: of the whole image at `eighths`/8.
    pub(crate) size: (u32, u32),
    /// The scale, as libjpeg-turbo counts: 8 is the full size.
    pub(crate) eighths: u32,
    /// The part that is wanted, in pixels of the result.
    pub(crate) region: Option<Rect>,
    /// The row index of the file; empty if it can have none.
    pub(crate) index: Vec<u8>,
}

impl Job {
    /// The same with all of the image.
    pub(crate) fn without_region(&self) -> Self {
        Self { bytes: self.bytes.clone(), region: None, index: Vec::new(), ..*self }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Full,
    Crop,
    Scaled,
}

/// Everything there is to measure: the photographs as they are, and the derived sets in the folder
/// that `TURBOLOADER_JPEG_SETS` names.
pub(crate) fn workloads() -> Vec<Workload<Job>> {
    let most = if is_measuring() { usize::MAX } else { 4 };
    let mut originals = photographs(most);
    let set = if originals.iter().any(|photograph| photograph.set == "imagenet") {
        "imagenet"
    } else {
        "testdata"
    };
    originals.retain(|photograph| {
        photograph.set == set && Format::sniff(&photograph.bytes) == Some(Format::Jpeg)
    });
    let originals: Vec<Vec<u8>> =
        originals.into_iter().map(|photograph| photograph.bytes).collect();

    let mut found = vec![
        workload(format!("{set}, full"), Kind::Full, originals.clone()),
        workload(format!("{set}, RandomResizedCrop({TARGET})"), Kind::Crop, originals),
    ];
    let derived = env::var_os("TURBOLOADER_JPEG_SETS").map(PathBuf::from);
    if derived.is_none() {
        println!("TURBOLOADER_JPEG_SETS is not set: no re-encoded, progressive and large files");
    }
    let sets = [
        ("q90_420", "q90 4:2:0, full".to_owned(), Kind::Full),
        ("progressive", "progressive, full".to_owned(), Kind::Full),
        ("large", format!("2048 px to {TARGET}, scaled"), Kind::Scaled),
    ];
    for (folder, name, kind) in sets {
        let files =
            derived.as_deref().map_or_else(Vec::new, |root| files(&root.join(folder), most));
        if !files.is_empty() {
            found.push(workload(name, kind, files));
        }
    }
    found
}

fn files(folder: &Path, most: usize) -> Vec<Vec<u8>> {
    image_files(folder, most).into_iter().map(|photograph| photograph.bytes).collect()
}

fn workload(name: String, kind: Kind, files: Vec<Vec<u8>>) -> Workload<Job> {
    let jobs = files.into_iter().zip(0..).map(|(bytes, sample)| job(bytes, kind, sample)).collect();
    Workload { name, jobs }
}

fn job(bytes: Vec<u8>, kind: Kind, sample: u64) -> Job {
    let info = probe(&bytes).expect("a photograph");
    let (width, height) = (info.width, info.height);
    let index = Vec::new();
    let mut job = Job { bytes, size: (width, height), eighths: 8, region: None, index };
    match kind {
        Kind::Full => {}
        Kind::Crop => {
            let recipe = Recipe::imagenet_train(TARGET).expect("a valid size");
            let plan = recipe
                .plan(width, height, Draw { seed: SEED, epoch: 0, sample })
                .expect("a valid size");
            job.region = Some(plan.head.region);
            let mut decoder = JpegDecoder::new(Limits::default());
            decoder.row_index(&job.bytes, &mut job.index).expect("a photograph");
        }
        Kind::Scaled => {
            let scaled =
                |eighths: u32| ((width * eighths).div_ceil(8), (height * eighths).div_ceil(8));
            let covers = |&eighths: &u32| scaled(eighths).0.min(scaled(eighths).1) >= TARGET;
            job.eighths = [1, 2, 4].into_iter().find(covers).unwrap_or(8);
            job.size = scaled(job.eighths);
        }
    }
    job
}
