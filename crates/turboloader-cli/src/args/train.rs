//! Arguments of the commands that run the training path, and of `completions`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use clap_complete::Shell;
use tl_transform::{DecodeMode, Recipe};

use super::inspect::DamageChoice;
use super::loader::LoaderArgs;
use super::recipe::{BenchRecipe, RecipeName};
use crate::failure::Failure;

/// Draw a contact sheet of samples, or of their augmented versions
///
/// Without --recipe, the first N samples of the data set in a grid. With --recipe, one row per
/// sample: the original, then what training would see of it in successive epochs. With --ops, one
/// row per operation that recipes can have, on samples that take turns.
///
/// Examples:
///   tl preview train.tar -o sheet.png
///   tl preview train.tbl -o rows.png --recipe imagenet-train -n 6 --draws 7
///   tl preview train.tbl -o rows.png --recipe recipe.json
///   tl preview train.tbl -o ops.png --ops
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PreviewArgs {
    /// A TAR archive, a folder or a TBL file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The PNG file to write
    #[arg(short, long, value_name = "SHEET")]
    pub(crate) output: PathBuf,

    /// Show what this recipe makes of each sample: decode, imagenet-train, imagenet-eval or a file
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath, group = "rows")]
    pub(crate) recipe: Option<RecipeName>,

    /// Show what every operation does
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

    /// Side of a picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 160,
          value_parser = clap::value_parser!(u32).range(32..=1024))]
    pub(crate) size: u32,

    /// Replace the output file if it exists
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Measure how fast a data set becomes batches
///
/// One warm-up epoch, which brings the files into the page cache and gives the time from opening
/// to the first batch. Then at least five epochs and at least the given seconds, or one epoch
/// where that takes longer. The rate is the median epoch's. Epochs during which other processes
/// used more than 0.15 cores do not count: measuring goes on for up to a minute to get five that
/// do, and with fewer than three all count and the result says so (`"quiet": false`).
/// Training, raw reads and recipe files are shuffled, decoding and evaluation are not, unless
/// --shuffle says otherwise; with it, the result says how random that order is.
///
/// The environment variable TURBOLOADER_SIMD selects the instruction set of the kernels: scalar,
/// avx2, avx512 or neon, as far as the CPU has it. Batches are the same with each.
///
/// With --digest also prints the SHA-256 of epoch 0: of every batch in order, its images (their
/// bytes as the batch holds them; for `decode`, width and height as u32 and the pixels of each
/// sample; for `raw`, length as u64 and the bytes of each sample), then its labels (i64), then
/// its sample indices (u64), all little-endian. A batch with a row that does not count adds a byte
/// for each row, 1 where it counts. Fields that are asked for follow, sample by sample: name and
/// columns with their length before them (u64; 2^64 - 1 where there is none), the number of boxes
/// (u64), the boxes (four f32 each) and their labels (i64), and the mask.
///
/// For tables, batches hold the numeric columns, or those given with --columns; a text column is
/// read as bytes. Instead of images, the digest then covers the values of each column of the row, in
/// order, followed by the matrix of --features.
///
/// With --rows the same is said row by row: sorted together, the lines of all ranks are those of one
/// process with the same global batch, as long as images are of one size and --mixing-group is the
/// same.
///
/// Examples:
///   tl bench train.tar --recipe imagenet-train --workers 2
///   tl bench train.tbl --recipe recipe.toml --json
///   tl bench train.tbl --recipe imagenet-train --shuffle block:1024x8
///   tl bench train.tbl --recipe imagenet-train --report --trace run.json --step-ms 40
///   tl bench photos.tbl drawings.tbl --mix 3,1 --length first-used-up --recipe imagenet-train
///   tl bench train.tbl --recipe imagenet-train --rank 0 --world 2 --batch-size 32 --rows 0.jsonl
///   tl bench adult.idv --recipe columns --digest
///   tl bench iris.idv --features PetalLength,PetalWidth --label Label --batch-size 256
///   tl bench coco.tbl --recipe detect.toml --boxes '/annotations/*/bbox' --box-format xywh
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct BenchArgs {
    /// TAR archives, folders or TBL files, read as one data set; or IDV files and TBF segments
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,

    /// What to do with each sample: decode (to RGB at full size), raw (read the stored bytes),
    /// imagenet-train (random resized crop, random horizontal flip, normalise, f32 planes),
    /// imagenet-eval (resize of the short side, centre crop, normalise, f32 planes), columns (of
    /// the rows of a table; the default with --features and --label), or the path of a recipe in
    /// JSON or TOML
    #[arg(long, value_name = "RECIPE", value_hint = ValueHint::FilePath,
          required_unless_present_any = ["features", "label"])]
    pub(crate) recipe: Option<BenchRecipe>,

    #[command(flatten)]
    pub(crate) columns_of: RowArgs,

    /// Side of the images in a batch, for the imagenet recipes (default: 224)
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) size: Option<u32>,

    /// With --recipe raw: lend the bytes from the mapped files, neither copied nor checked
    #[arg(long)]
    pub(crate) views: bool,

    /// Measure at least this long
    #[arg(long, value_name = "S", default_value_t = 8.0)]
    pub(crate) seconds: f64,

    #[command(flatten)]
    pub(crate) decode: DecodeModeArgs,

    /// What to do with damaged JPEG data
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = DamageChoice::Error)]
    pub(crate) on_damaged: DamageChoice,

    /// Write what was wrong with samples of epoch 0 to a file: one JSON object on a line, with
    /// position, sample, name, place in the file, reason and what became of it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,

    /// Add the SHA-256 of epoch 0
    #[arg(long)]
    pub(crate) digest: bool,

    /// Write the rows of epoch 0 to a file: one JSON object on a line, with the batch, the row in
    /// the global batch, the sample, its label, whether the row counts, and the SHA-256 of what it
    /// holds
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) rows: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) observe: ObserveArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    // Behind the others, because it has headings of its own.
    #[command(flatten)]
    pub(crate) loader: LoaderArgs,
}

/// What batches of a table hold, beside its columns.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Columns of tables")]
pub(crate) struct RowArgs {
    /// Columns of numbers that become one matrix of f32
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) features: Vec<String>,

    /// The column that has the labels
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
}

impl RowArgs {
    /// Whether anything was asked for.
    pub(crate) fn is_given(&self) -> bool {
        !self.features.is_empty() || self.label.is_some()
    }
}

/// What to look at while measuring.
#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    /// Add where the time of the measured epochs went, and what limits the rate
    #[arg(long)]
    pub(crate) report: bool,

    /// Write what workers and consumer did last, as a trace for ui.perfetto.dev or a browser's
    /// trace viewer (the latest 65 536 events)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,

    /// Replace the files of --trace, --audit and --rows if they exist
    #[arg(short, long)]
    pub(crate) force: bool,

    /// What the consumer takes for a batch, as a training step would
    #[arg(long, value_name = "MS", default_value_t = 0.0)]
    pub(crate) step_ms: f64,

    /// Serve the first batches again and again: the rate of the consumer if loading cost nothing
    #[arg(long, conflicts_with_all = ["report", "trace"])]
    pub(crate) replay: bool,
}

/// How closely a recipe decodes photographs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DecodeModeArgs {
    /// How JPEG photographs are decoded, for a recipe that resizes (default: fast for training,
    /// exact for evaluation)
    #[arg(long, value_enum, value_name = "MODE", requires = "recipe")]
    decode: Option<DecodeChoice>,

    /// Minimum ratio of decoded size to output size for fast decoding, 1 or more
    #[arg(long, value_name = "M", requires = "recipe")]
    decode_margin: Option<f32>,
}

/// What `--decode` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecodeChoice {
    /// With the pixels of Pillow
    Exact,
    /// From the smallest scale that has enough pixels, colours converted last
    Fast,
}

impl DecodeModeArgs {
    /// Whether anything was asked for.
    pub(crate) const fn is_given(&self) -> bool {
        self.decode.is_some() || self.decode_margin.is_some()
    }

    /// `recipe` with what was asked for in place of its own mode.
    pub(crate) fn apply(&self, recipe: Recipe) -> Result<Recipe, Failure> {
        let mode = match (self.decode, self.decode_margin) {
            (None, None) => return Ok(recipe),
            (Some(DecodeChoice::Exact), None) => DecodeMode::Exact,
            (Some(DecodeChoice::Exact), Some(_)) => return Err(Failure::MarginOfExact),
            (Some(DecodeChoice::Fast), None) => DecodeMode::FAST,
            (_, Some(decode_margin)) => DecodeMode::Fast { decode_margin },
        };
        Ok(recipe.with_decode(mode)?)
    }
}

/// Print a completion script for a shell
///
/// Example:
///   tl completions bash > ~/.local/share/bash-completion/completions/tl
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
