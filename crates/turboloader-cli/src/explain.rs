//! `tl explain`: what a recipe does and where, or what it does to one sample.

use std::path::Path;

use tbl_format::SampleFormat;
use tl_decode::{DecodeOptions, Exif, ImageInfo};
use turboloader::Explanation;

use crate::args::{ExplainArgs, ImageSize};
use crate::data_set;
use crate::failure::{Failure, Subject, Verdict};
use crate::output::Stdout;
use crate::recipe;

const NOTHING_TO_EXPLAIN: Failure =
    Failure::Usage { what: "raw reads the stored bytes and does nothing to them" };

/// Prints the explanation.
pub(crate) fn run(args: &ExplainArgs) -> Result<Verdict, Failure> {
    let recipe = recipe::load(&args.recipe, None)?.ok_or(NOTHING_TO_EXPLAIN)?;
    let ImageSize(width, height) = match (&args.data, args.sample) {
        (Some(data), Some(sample)) => sample_size(data, sample)?,
        _ => args.size,
    };
    let mut explanation = Explanation::new(&recipe, (width, height), args.seed)?;
    if let Some(sample) = args.sample {
        explanation = explanation.with_sample(args.epoch, sample)?;
    }
    if let Some(number) = args.batch {
        explanation = explanation.with_batch(args.epoch, number);
    }
    let mut stdout = Stdout::open()?;
    if args.json {
        stdout.json_line(&explanation.to_json())?;
    } else {
        stdout.line(&explanation)?;
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

/// Width and height of the pixels that training makes a plan for.
fn sample_size(data: &Path, sample: u64) -> Result<ImageSize, Failure> {
    let source = data_set::open(data)?;
    let entry = source.entry(sample)?;
    if entry.format == SampleFormat::RawU8 {
        return Ok(ImageSize(entry.width, entry.height));
    }
    let mut bytes = Vec::new();
    source.read_into(sample, &mut bytes)?;
    let info = tl_decode::probe(&bytes).map_err(|error| Failure::Decode {
        of: Subject::sample(source.as_ref(), sample, &entry),
        source: error,
    })?;
    let ImageInfo { width, height, .. } = info;
    let turned = DecodeOptions::default().exif == Exif::Apply;
    let (width, height) = if turned { info.upright_size() } else { (width, height) };
    Ok(ImageSize(width, height))
}
