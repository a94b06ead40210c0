//! `tl preview`: a contact sheet of samples, or of their augmented versions.

mod cell;
mod ops;
mod showcase;
mod video;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ValueHint;
use tl_decode::{DecodeOptions, Image};
use tl_pipeline::DatasetView;
use tl_video::VideoError;
use turboloader::sheet::{
    BACKGROUND, Canvas, Cell, MAX_SHEET_PIXELS, Painter, Sheet, SheetError, evenly_spaced,
};
use turboloader::video::{VideoBytes, is_video, middle_frame};

use crate::args::{DecodeModeArgs, ExifChoice, GlobalArgs, RecipeName, ViewArgs};
use crate::data_set::{self, Sample};
use crate::failure::{Failure, Verdict};
use crate::output::write_file;
use crate::pixels::SampleDecoder;
use crate::recipe;
use cell::Training;

const GRID_SAMPLES: usize = 24;
const RECIPE_SAMPLES: usize = 8;
const NO_PICTURES: Failure =
    Failure::Usage { what: "--recipe raw has no pictures to show: it only reads the stored bytes" };
/// Draw a contact sheet of samples, or of their augmented versions
///
/// Without --recipe, shows the first N samples of the data set in a grid. With --recipe, shows one
/// row per sample: the original, then what training would see of it in successive epochs; pixels of
/// 16 bits and floats go from the least number of a picture, black, to its greatest. With --ops, shows one row per operation that recipes can have, each with different samples.
///
/// Of a data set of videos, it shows the frame in the middle of each. Of one video, it shows N frames
/// with their times.
///
/// Examples:
///   tl preview train.tar -o sheet.png
///   tl preview train.tbl -o rows.png --recipe imagenet-train -n 6 --draws 7
///   tl preview train.tbl -o rows.png --recipe recipe.json
///   tl preview train.tbl -o ops.png --ops
///   tl preview clip.mp4 -o frames.png -n 12
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, read as one data set; or one video
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The PNG file to write
    #[arg(short, long, value_name = "SHEET")]
    pub(crate) output: PathBuf,

    /// Show each sample as augmented by this recipe: decode, imagenet-train, imagenet-eval or a
    /// recipe file
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath, group = "rows")]
    pub(crate) recipe: Option<RecipeName>,

    /// Show the effect of every operation
    #[arg(long, group = "rows")]
    pub(crate) ops: bool,

    /// How many samples to show (default: 24, with --recipe and --ops 8)
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<NonZeroUsize>,

    /// How many augmented versions of each sample to show, or of each operation
    #[arg(long, value_name = "N", default_value = "6", requires = "rows")]
    pub(crate) draws: NonZeroUsize,

    /// The seed of the augmentation
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) decode: DecodeModeArgs,

    /// Whether to turn images upright, by their EXIF or XMP orientation, as `datasets` does
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = ExifChoice::Ignore)]
    pub(crate) exif: ExifChoice,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// Side of a picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 160,
          value_parser = clap::value_parser!(u32).range(32..=1024))]
    pub(crate) size: u32,

    /// Replace the output file if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

impl Args {
    fn decode_options(&self) -> DecodeOptions {
        DecodeOptions { exif: self.exif.into(), ..DecodeOptions::default() }
    }
}

/// Draws the sheet.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    if let [file] = &*args.files
        && let Some(source) = data_set::single_file(global, file)?
        && let video = VideoBytes::of_file(&source)
        && video.is_video()?
    {
        return video::run(args, &video);
    }
    if args.ops {
        return ops::run(args, global);
    }
    let data = data_set::open(global, &args.files)?;
    let mut training = match &args.recipe {
        None => None,
        Some(name) => {
            let recipe = recipe::load(name, None)?.ok_or(NO_PICTURES)?;
            Some(Training::new(args.decode.apply(recipe)?, args.seed, args.decode_options()))
        }
    };
    let count = args
        .count
        .map_or(if training.is_some() { RECIPE_SAMPLES } else { GRID_SAMPLES }, NonZeroUsize::get);
    let indices = chosen(&args.view.of(&data)?, count);
    let draws = match &args.recipe {
        None => 0,
        // These draw nothing: every epoch shows the same.
        Some(RecipeName::ImagenetEval | RecipeName::Decode) => 1,
        Some(_) => args.draws.get(),
    };
    let sheet = Sheet::new(indices.len(), draws, args.size).map_err(failure)?;
    let mut canvas = Canvas::new(sheet.width, sheet.height, BACKGROUND);
    let mut painter = Painter::new(args.size);
    let mut decoder = SampleDecoder::new(args.decode_options());
    let mut image = Image::new();
    let mut damaged = Vec::new();
    for (place, &index) in indices.iter().enumerate() {
        let mut cell = Cell::describe(&data, index)?;
        let sample = Sample::of(&data, index)?;
        let decoded = match decode(&mut decoder, sample, &mut image) {
            Ok(is_decoded) => is_decoded.then_some(&image),
            Err(failure) if failure.is_about_data() => {
                cell.is_image |= is_video(decoder.bytes());
                if cell.is_image {
                    damaged.push(failure);
                }
                None
            }
            Err(failure) => return Err(failure),
        };
        painter.original(&mut canvas, sheet.corner(place, 0), &cell, decoded);
        let (Some(training), Some(_)) = (&mut training, decoded) else { continue };
        for draw in 0..draws {
            let at = sheet.corner(place, draw + 1);
            training.draw(&mut painter, &mut canvas, at, sample, draw)?;
        }
    }
    write_file(&args.output, args.force, |file| canvas.write_png(file))?;
    let count = damaged.len();
    match damaged.into_iter().next() {
        None => Ok(Verdict::Good),
        Some(first) => {
            let of = indices.len();
            let sentence =
                format_args!("{count} of {of} samples do not decode, the first: {first}");
            Err(Failure::data(sentence))
        }
    }
}

/// Decodes an image, or the frame in the middle of a video; false for a video of a codec that has no
/// decoder here, of which only the caption is shown.
fn decode(
    decoder: &mut SampleDecoder,
    sample: Sample<'_>,
    image: &mut Image,
) -> Result<bool, Failure> {
    match decoder.sample(sample, image) {
        Err(failure) if failure.is_about_data() && is_video(decoder.bytes()) => {}
        other => return other.map(|()| true),
    }
    match middle_frame(decoder.bytes(), image) {
        Err(VideoError::NoDecoder { .. } | VideoError::Unsupported { .. }) => Ok(false),
        Err(error) => {
            let of = sample.subject(&sample.entry()?);
            Err(Failure::data(format_args!("{of}: {error}")))
        }
        Ok(()) => Ok(true),
    }
}

/// The numbers of `count` samples spread over a view.
fn chosen(view: &DatasetView, count: usize) -> Vec<u64> {
    let places = evenly_spaced(view.len(), count).into_iter();
    places.filter_map(|place| view.sample_at(place)).collect()
}

/// The failure of a sheet that cannot be drawn.
fn failure(error: SheetError) -> Failure {
    let message = error.to_string();
    match error {
        SheetError::TooLarge { columns, rows } => too_large(columns, rows),
        SheetError::Sample(error) => error.into(),
        SheetError::Write(_) | _ => Failure::data(format_args!("{message}")),
    }
}

/// The failure of a sheet of this many cells.
fn too_large(columns: usize, rows: usize) -> Failure {
    Failure::setting(format_args!(
        "a sheet of {columns} x {rows} cells has more than {MAX_SHEET_PIXELS} pixels (show fewer, \
         or smaller with --size)"
    ))
}
