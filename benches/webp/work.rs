//! The files of the benchmark: sets of lossy files, each whole or a crop of it.

use std::env;
use std::path::PathBuf;

use tl_benches::paired::Workload;
use tl_benches::{image_files, is_measuring, photographs};
use tl_decode::{Format, probe};
use tl_simd::resample::Rect;
use tl_transform::{Draw, Recipe};

/// The side of the images that crops are made for.
const TARGET: u32 = 224;

/// The seed of the crops.
const SEED: u64 = 42;

/// One file and what is wanted of it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) bytes: Vec<u8>,
    /// Width and height of the whole image.
    pub(crate) size: (u32, u32),
    /// The part that is wanted.
    pub(crate) region: Option<Rect>,
}

/// The WebP photographs of testdata, or the sets in the folder that `TURBOLOADER_WEBP_SETS` names:
/// each as a whole, and in crops.
pub(crate) fn workloads() -> Vec<Workload<Job>> {
    let most = if is_measuring() { usize::MAX } else { 4 };
    let sets = match env::var_os("TURBOLOADER_WEBP_SETS").map(PathBuf::from) {
        Some(root) => ["mixed", "q80", "q90"].map(|set| (set, image_files(&root.join(set), most))),
        None => {
            println!("TURBOLOADER_WEBP_SETS is not set: only the photographs of testdata");
            [("testdata", photographs(0)), ("", Vec::new()), ("", Vec::new())]
        }
    };
    let is_webp = |bytes: &[u8]| Format::sniff(bytes) == Some(Format::WebP);
    let mut found = Vec::new();
    for (set, files) in sets {
        let files: Vec<Vec<u8>> =
            files.into_iter().map(|file| file.bytes).filter(|bytes| is_webp(bytes)).collect();
        if files.is_empty() {
            continue;
        }
        for is_crop in [false, true] {
            let request = if is_crop { "RandomResizedCrop(224)" } else { "full" };
            let jobs = files.iter().zip(0..).map(|(bytes, sample)| job(bytes, is_crop, sample));
            found.push(Workload { name: format!("{set}, {request}"), jobs: jobs.collect() });
        }
    }
    found
}

fn job(bytes: &[u8], is_crop: bool, sample: u64) -> Job {
    let info = probe(bytes).expect("a photograph");
    let size = (info.width, info.height);
    let recipe = Recipe::imagenet_train(TARGET).expect("a valid size");
    let draw = Draw { seed: SEED, epoch: 0, sample };
    let plan = recipe.plan(size.0, size.1, draw).expect("a valid size");
    Job { bytes: bytes.to_vec(), size, region: is_crop.then_some(plan.head.region) }
}
