//! `tl explain`: what a recipe does and where, or what it does to one sample.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::{ArgGroup, ValueHint};
use tbl_format::SampleFormat;
use tbl_io::SampleSource;
use tl_decode::{DecodeOptions, Exif, ImageInfo};
use tl_pipeline::{DatasetView, PipelineError, ViewError};
use turboloader::Explanation;

use crate::args::{DeviceName, GlobalArgs, RecipeName, ViewArgs};
use crate::data_set::{self, Sample};
use crate::failure::{Failure, Verdict};
use crate::output::Stdout;
use crate::recipe;

const NOTHING_TO_EXPLAIN: Failure = Failure::Usage {
    what: "recipe raw has no operations to explain: it only reads the stored bytes",
};

/// Describe what a recipe does and where, or what it does to one sample or batch
///
/// Without --sample: lists each operation with its number in the random streams and the place where
/// it runs, counted over plans drawn for 256 samples of the given size. With --sample: prints
/// everything drawn for that sample, as training draws it in that epoch with that seed. The plan
/// depends on the sample's size: pass --size, or the data set. With --batch: prints how the images
/// of that batch are mixed.
///
/// --json prints one object, `"schema":"tl.explain/1"`; `sample.plan` has the passes and steps in
/// execution order, in the form that tl-transform reads.
///
/// Examples:
///   tl explain imagenet-train
///   tl explain recipe.json --sample 17 --epoch 3 --seed 42 --size 500x375
///   tl explain recipe.json --sample 17 train.tbl --json
///   tl explain recipe.json --device cuda
///   tl explain recipe.json --batch 4 --epoch 3 --seed 42
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, group = ArgGroup::new("drawn").multiple(true))]
pub(crate) struct Args {
    /// imagenet-train, imagenet-eval, decode, or the path of a recipe in JSON or TOML
    #[arg(value_name = "RECIPE", value_hint = ValueHint::FilePath)]
    pub(crate) recipe: RecipeName,

    /// The data set that holds the sample: a TAR archive, a folder or a TBL file
    #[arg(value_name = "DATA", requires = "sample", conflicts_with = "size")]
    pub(crate) data: Option<PathBuf>,

    /// Describe the work on the sample with this number; with options that select samples, the
    /// sample at this place of the selection
    #[arg(long, value_name = "N", group = "drawn")]
    pub(crate) sample: Option<u64>,

    /// Describe how the batch with this number is mixed, counted from 0
    #[arg(long, value_name = "N", group = "drawn")]
    pub(crate) batch: Option<u64>,

    /// The epoch of the sample or batch
    #[arg(long, value_name = "E", default_value_t = 0, requires = "drawn")]
    pub(crate) epoch: u32,

    /// The seed of the augmentation
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Width and height of the decoded image
    #[arg(long, value_name = "WxH", default_value = "500x375")]
    pub(crate) size: ImageSize,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// Describe the work with batches on a GPU, as for tl bench. No device is opened
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Option<DeviceName>,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize(pub(crate) u32, pub(crate) u32);

/// Text that is not an [`ImageSize`].
#[derive(Debug, thiserror::Error)]
#[error("expected width and height in pixels, such as 500x375")]
pub(crate) struct NoImageSize;

impl FromStr for ImageSize {
    type Err = NoImageSize;

    fn from_str(text: &str) -> Result<Self, NoImageSize> {
        let (width, height) = text.split_once('x').ok_or(NoImageSize)?;
        let side = |text: &str| text.parse::<u32>().map_err(|_| NoImageSize);
        Ok(Self(side(width)?, side(height)?))
    }
}

/// Prints the explanation.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let recipe = recipe::load(&args.recipe, None)?.ok_or(NOTHING_TO_EXPLAIN)?;
    let located = Located::of(args, global)?;
    let sample = located.as_ref().map(|located| located.index).or(args.sample);
    let ImageSize(width, height) = match &located {
        Some(located) => located.size()?,
        None => args.size,
    };
    let mut explanation = Explanation::new(&recipe, (width, height), args.seed)?;
    if let Some(sample) = sample {
        explanation = explanation.with_sample(args.epoch, sample)?;
    }
    if args.device.is_some() {
        explanation = explanation.with_device();
    }
    if let Some(number) = args.batch {
        explanation = explanation.with_batch(args.epoch, number);
    }
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&explanation.to_json())?;
    } else {
        if let Some(view) = located.as_ref().and_then(|located| located.view.as_ref()) {
            stdout.line(&view.explain())?;
        }
        stdout.line(&explanation)?;
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

/// The sample that is explained.
struct Located {
    source: Arc<dyn SampleSource>,
    local: u64,
    /// Its number in the data set.
    index: u64,
    /// The view that has it, if options select samples.
    view: Option<DatasetView>,
}

impl Located {
    /// The sample of the arguments; `None` without a data set.
    fn of(args: &Args, global: &GlobalArgs) -> Result<Option<Self>, Failure> {
        let (Some(data), Some(sample)) = (&args.data, args.sample) else {
            let what = "options that select samples need DATA and --sample";
            return if args.view.is_given() { Err(Failure::Usage { what }) } else { Ok(None) };
        };
        if !args.view.is_given() {
            let (source, local) = data_set::open_sample(global, data, sample)?;
            return Ok(Some(Self { source: source.into(), local, index: sample, view: None }));
        }
        let view = args.view.of(&data_set::open(global, &[data])?)?;
        let place = || ViewError::OutOfRange { place: sample, len: view.len() };
        let index = view.sample_at(sample).ok_or_else(place).map_err(PipelineError::from)?;
        let dataset = view.dataset();
        let shards = dataset.shards().iter().enumerate();
        let mut found = shards.filter_map(|(number, source)| {
            let samples = dataset.shard_samples(number)?;
            samples.contains(&index).then(|| (Arc::clone(source), index - samples.start))
        });
        let found = found.next();
        Ok(found.map(|(source, local)| Self { source, local, index, view: Some(view.clone()) }))
    }

    /// Width and height of the pixels that training makes a plan for.
    fn size(&self) -> Result<ImageSize, Failure> {
        let sample = Sample { source: &*self.source, local: self.local, index: self.index };
        let entry = sample.entry()?;
        if entry.format == SampleFormat::RawU8 {
            return Ok(ImageSize(entry.width, entry.height));
        }
        let mut bytes = Vec::new();
        sample.read_into(&mut bytes)?;
        let info = tl_decode::probe(&bytes)
            .map_err(|error| Failure::data(format_args!("{}: {error}", sample.subject(&entry))))?;
        let ImageInfo { width, height, .. } = info;
        let turned = DecodeOptions::default().exif == Exif::Apply;
        let (width, height) = if turned { info.upright_size() } else { (width, height) };
        Ok(ImageSize(width, height))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_numbers() {
        assert_eq!("500x375".parse::<ImageSize>().unwrap(), ImageSize(500, 375));
        for wrong in ["500", "500x", "x5", "1x2x3", "-1x5", "1 x2", "99999999999x1"] {
            assert!(wrong.parse::<ImageSize>().is_err(), "{wrong}");
        }
    }
}
