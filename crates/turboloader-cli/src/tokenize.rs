//! `tl tokenize`: texts into a file of tokens.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;
use tbl_io::{Escaped, Location, Placement, Source};
use tl_tokens::{
    OnBadText, TextOptions, TokenTarget, Tokenize, TokenizeEvent, TokenizeSummary, Tokenizer,
};

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Progress, Stdout};

/// Texts that are named; the others are counted.
const MAX_LISTED: u64 = 10;

/// The progress bar counts blocks of this many bytes.
const BAR_BYTES: u64 = 1 << 20;

/// Tokenize texts into a file for language models
///
/// Texts are strings in JSON Lines (.jsonl, .ndjson, .json), a column of Parquet files, or whole
/// files (.txt and others); .gz and .zst files are decompressed while they are read. A folder means
/// all files below it with these extensions. Documents keep the order of the files and of the texts
/// in them: the output is the same for any number of threads.
/// The tokens are those of the library `tokenizers`: any tokenizer.json of Hugging Face. Truncation
/// and padding that the file asks for are not applied.
/// The output is that of Megatron-LM's preprocess_data.py: FILE, with 16 bits for a token if the
/// vocabulary has fewer than 65500, otherwise 32, and the documents in an .idx next to it. With
/// --to raw it is only the tokens, as nanoGPT writes them: u16, or u32 for more than 65536.
///
/// Examples:
///   tl tokenize corpus/*.jsonl.zst -o corpus.bin --tokenizer tokenizer.json --end-token '</s>'
///   tl tokenize wiki.parquet -o wiki.bin --tokenizer tokenizer.json --field content
///   tl tokenize books/ -o books.bin --to raw --tokenizer tokenizer.json --end-token 50256
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Files and folders of texts, in this order
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<PathBuf>,

    /// The file of tokens to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The tokenizer.json
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,

    /// The key of the text in JSON Lines, or its column
    #[arg(long, value_name = "NAME", default_value = "text")]
    field: String,

    /// The token after each document, by its name or number; documents without tokens get none
    /// (default: none)
    #[arg(long, value_name = "TOKEN")]
    end_token: Option<String>,

    /// Have the tokens that the tokenizer puts around a text, such as [CLS] and [SEP]
    #[arg(long)]
    special_tokens: bool,

    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = To::Megatron)]
    to: To,

    /// Handling of texts that cannot be used: lines that are not JSON or lack the text, texts that
    /// are not UTF-8 or too large. raise stops with the error, skip leaves them out
    #[arg(long, value_enum, value_name = "CHOICE", default_value_t = OnError::Raise)]
    on_error: OnError,

    /// The largest text, in MiB
    #[arg(long, value_name = "MIB", default_value_t = TextOptions::DOCUMENT_BYTES >> 20,
          value_parser = clap::value_parser!(u64).range(1..=1024))]
    max_document: u64,

    /// Threads that tokenize (default: one per core)
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,

    /// Do not wait until the data is on the disk
    #[arg(long)]
    no_sync: bool,

    /// Replace the output if it exists
    #[arg(short, long)]
    force: bool,
}

/// The formats of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// Megatron-LM's .bin and .idx
    Megatron,
    /// Tokens alone
    Raw,
}

/// The handling of texts that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnError {
    /// Stop with the error
    Raise,
    /// Leave the text out
    Skip,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    output: &'a str,
    documents: u64,
    tokens: u64,
    #[serde(rename = "type")]
    number: &'static str,
    skipped: u64,
    files: u64,
    bytes: u64,
}

/// Tokenizes.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut stdout = Stdout::open()?;
    let tokenizer = Tokenizer::open(&Source::open(&args.tokenizer)?)?;
    let end_token = args.end_token.as_ref().map(|name| tokenizer.token(name)).transpose()?;
    let text = TextOptions {
        field: args.field.clone(),
        special_tokens: args.special_tokens,
        end_token,
        document_bytes: args.max_document << 20,
    };
    let job = Tokenize {
        text,
        to: match args.to {
            To::Megatron => TokenTarget::Megatron,
            To::Raw => TokenTarget::Raw,
        },
        on_bad: match args.on_error {
            OnError::Raise => OnBadText::Raise,
            OnError::Skip => OnBadText::Skip,
        },
        workers: args.jobs.unwrap_or_else(output::default_workers),
        placement: Placement { overwrite: args.force, sync: !args.no_sync },
        ..Tokenize::new(&tokenizer)
    };
    let start = Instant::now();
    let inputs: Vec<Location> = args.sources.iter().map(Location::new).collect();
    let mut progress: Option<Progress> = None;
    let mut skipped = 0;
    let summary = job.run(&global.stores(), &inputs, &args.output, &mut |event| {
        match event {
            TokenizeEvent::Progress { bytes, of } => {
                let bar = progress.get_or_insert_with(|| Progress::new(global, of / BAR_BYTES));
                bar.set(bytes / BAR_BYTES);
            }
            TokenizeEvent::Skipped(error) => {
                skipped += 1;
                if skipped <= MAX_LISTED {
                    output::note(&format_args!("left out: {error}"));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    drop(progress);
    report(args, global, &summary, start);
    if args.json {
        let TokenizeSummary { documents, tokens, number, skipped, files, bytes, .. } = summary;
        let output = args.output.to_string_lossy();
        stdout.json_line(&Report {
            schema: "tl.tokenize/1",
            output: &output,
            documents,
            tokens,
            number: number.name(),
            skipped,
            files,
            bytes,
        })?;
    }
    stdout.finish()?;
    Ok(Verdict::Good)
}

/// Prints what was left out, and the closing line.
fn report(args: &Args, global: &GlobalArgs, summary: &TokenizeSummary, start: Instant) {
    let TokenizeSummary { documents, tokens, number, skipped, left_out, .. } = *summary;
    if left_out > 0 {
        output::note(&format_args!("{left_out} files without a name of texts were not read"));
    }
    if skipped > 0 {
        output::note(&format_args!("{skipped} of {} texts were left out", documents + skipped));
    }
    if !global.quiet {
        let output = Escaped(args.output.as_os_str().as_bytes());
        let seconds = start.elapsed().as_secs_f64();
        output::note(&format_args!(
            "{output}: {documents} documents, {tokens} tokens of {}, {seconds:.2} s",
            number.name()
        ));
    }
}
