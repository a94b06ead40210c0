//! `tl extract`: samples and their fields as files below one folder, and never outside it.

mod names;
mod tree;

use std::path::PathBuf;

use tbl_io::{ConvertSummary, FileLayout};

use crate::args::{GlobalArgs, sample_number};
use crate::convert;
use crate::data_set::{self, Sample};
use crate::failure::{Failure, Verdict};
use crate::output::Progress;

pub(crate) use names::NameDefect;
use names::SampleFiles;
use tree::Tree;

/// Write samples and their sidecar fields as files below a folder
///
/// A sample goes to the path it is stored under, so a TAR archive or a folder is restored
/// unchanged. Samples without a name become 00000012.jpg, by number and format; raw pixels get the
/// extension rgb. Names that are absolute, contain `..` or a zero byte, or are longer than a file
/// system allows (255 bytes per component, 4095 with DIR) are refused before anything is written.
/// Symbolic links below DIR are not followed, so nothing is ever written outside DIR. A file
/// appears under its name only when it is complete.
/// Metadata blocks of TBL files are not written; `tl cat --metadata` prints them.
/// Labels that do not follow from the class folders become .cls files, as in a TAR archive that `tl
/// convert` writes. If readers would take two samples for one, or a sample for a field, the second
/// one gets its number in its name (NAME-12.EXT for sample 12), also if they are in different shards.
/// Renamed samples, and class names and metadata blocks that cannot be stored, are counted on standard
/// error.
///
/// Examples:
///   tl extract train.tbl -o train/
///   tl extract train.tar -o few/ 0 1 17
///   tl extract 'train-{000..127}.tar' -o few/ 0 100000
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// A TAR archive, a folder or a TBL file; or a pattern, a name with ranges (in quotes, so that the
    /// shell leaves it alone) or a shard index that stands for several, read as one data set
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The folder to write to; created if missing
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// The numbers of the samples to write (default: all)
    #[arg(value_name = "INDEX", value_parser = sample_number)]
    pub(crate) indices: Vec<u64>,

    /// Replace files that exist
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// Writes the samples. Every name that a file stores is checked before the first file is written.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let dataset = data_set::open(global, &[&args.file])?;
    let count = dataset.len();
    let index_of = |number: u64| match usize::try_from(number) {
        Ok(at) if !args.indices.is_empty() => args.indices.get(at).copied(),
        _ => (number < count).then_some(number),
    };
    let indices = || (0..).map_while(index_of);
    for index in indices() {
        data_set::require(global, &args.file, &dataset, index)?;
        check_names(Sample::of(&dataset, index)?, args.output.as_os_str().len())?;
    }
    convert::require_samples(dataset.shards())?;
    convert::note_labels(&dataset);
    let all = convert::select(&dataset)?;
    let selection = if args.indices.is_empty() { all } else { all.choose(&args.indices) };
    let mut layout = FileLayout::of_folder(&selection)?;
    let mut tree = Tree::create(&args.output, args.force)?;
    let mut progress = Progress::new(global, selection.sample_count());
    let mut bytes = Vec::new();
    let mut fields = Vec::new();
    for (number, index) in (0..).zip(indices()) {
        let sample = Sample::of(&dataset, index)?;
        sample.read_into(&mut bytes)?;
        fields.clear();
        let read = dataset.read_fields_where(index, &mut |_, _| true, &mut fields);
        read.map_err(|error| error.in_data_set(index))?;
        let name = layout.place(&selection, number, &bytes, &mut fields)?;
        let files = SampleFiles::new(&name, fields.iter().map(|field| &*field.extension))
            .map_err(|defect| unsafe_name(sample, defect))?;
        tree.write(&files.sample, &bytes)?;
        for (name, field) in files.fields.iter().zip(&fields) {
            tree.write(name, &field.bytes)?;
        }
        progress.set(number + 1);
    }
    drop(progress);
    let summary = ConvertSummary { unstored: layout.unstored(), ..ConvertSummary::default() };
    convert::note_unstored(&args.output, &summary);
    Ok(Verdict::Good)
}

/// Checks the names of a sample and its fields, whose bytes are not read, in a folder whose path has
/// `folder_bytes`.
fn check_names(sample: Sample<'_>, folder_bytes: usize) -> Result<(), Failure> {
    let entry = sample.entry()?;
    let mut extensions = Vec::new();
    let mut note = |extension: &[u8], _| {
        extensions.push(extension.to_vec());
        false
    };
    let Sample { source, local, index } = sample;
    source
        .read_fields_where(local, &mut note, &mut Vec::new())
        .map_err(|error| error.in_data_set(index))?;
    // Samples without a name get one that is safe.
    let key = entry.key.as_deref().unwrap_or(b"0");
    let name = FileLayout::file_name(key, entry.format);
    SampleFiles::new(&name, extensions.iter().map(Vec::as_slice))
        .and_then(|files| files.check_length(folder_bytes))
        .map_err(|defect| unsafe_name(sample, defect))
}

fn unsafe_name(sample: Sample<'_>, defect: NameDefect) -> Failure {
    match sample.entry() {
        Ok(entry) => {
            let of = sample.subject(&entry);
            Failure::data(format_args!("{of}: refusing to extract: {defect}"))
        }
        Err(error) => error.into(),
    }
}
