//! Times clips of videos: `clips [PATH [WORKERS [EPOCHS]]]`, with 16 successive frames each. Without a
//! path it takes a clip of the repository.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use tl_pipeline::{ClipSampling, ClipWork, Dataset, Loader, LoaderConfig, Stage, Work};
use tl_transform::Recipe;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let shipped = || tl_testdata::shipped!("video/h264_b.mp4");
    let path = arguments.next().map_or_else(shipped, PathBuf::from);
    let workers = arguments.next().map_or(Ok(1), |workers| workers.parse())?;
    let epochs = arguments.next().map_or(Ok(3), |epochs| epochs.parse())?;
    let work = ClipWork::new(Recipe::imagenet_train(224)?, ClipSampling::default());
    let config = LoaderConfig { batch_size: 4, workers, ..LoaderConfig::new(Work::Clips(work)) };
    let loader = Loader::new(Dataset::open(&[path])?, config)?;
    for epoch in 0..epochs {
        let start = Instant::now();
        let mut clips = 0;
        for batch in loader.epoch(epoch) {
            clips += batch?.len();
        }
        let seconds = start.elapsed().as_secs_f64();
        println!("epoch {epoch}: {:.2} clips a second", clips as f64 / seconds);
    }
    let stages = loader.stats().stages;
    for stage in Stage::ALL {
        println!("{stage}: {:.3} s", stages[stage].as_secs_f64());
    }
    Ok(())
}
