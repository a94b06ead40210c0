//! `tl digest`: one hash over everything a data set or a table says.

use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tbl_io::Entry;

use crate::args::{GlobalArgs, KeyArgs, ViewArgs};
use crate::data_set::{self, Sample};
use crate::failure::{DamagedParts, Failure, Verdict};
use crate::output::{Progress, Stdout};
#[cfg(feature = "tables")]
use crate::table::{self, Table};
use crate::text::Hex;

/// The refusal to select rows of a table.
#[cfg(feature = "tables")]
const NO_ROWS: &str =
    "the digest of a table has all rows: options that select samples do not apply";

/// The length that stands for a missing name.
const NO_NAME: u64 = u64::MAX;
/// The label that stands for a missing label.
const NO_LABEL: i64 = i64::MIN;

/// Print one SHA-256 over every sample of a data set or every value of a table
///
/// Two data sets have the same digest exactly when they hold the same samples in the same
/// order, in whatever container. The hashed bytes are, for each sample, in order:
///
///   index   u64, little-endian
///   name    u64 length, then the bytes; a sample without a name has length 2^64-1 and no bytes
///   label   i64, little-endian; -2^63 for a sample without one
///   bytes   u64 length, then the uncompressed bytes
///
/// Several files, a pattern, a name with ranges or a shard index are one data set. It has the same
/// digest as the output of `tl merge`: samples are numbered in order, and labels are joined by class
/// name.
///
/// Options that select samples give the digest of the file that `tl convert` writes with them: its
/// samples are numbered from 0.
///
/// A data set with an unreadable sample has no digest: the command counts the damaged samples and
/// exits with 1.
///
/// Two tables have the same digest if their rows, columns and values are the same, even with
/// different blocks, compression or codec names. The hashed bytes are the number of rows (u64),
/// then for each column its name and its type as `tl info` prints it (each after its length as
/// u64), and the 32 bytes of the column's SHA-256, which --columns prints. A column's SHA-256
/// covers its values row by row, in the form that docs/idv.md and docs/tbf.md call canonical.
/// Metadata is not hashed. A column that cannot be read is listed as `dead` with the reason, and
/// the table then has no digest.
///
/// Examples:
///   tl digest train.tar; tl digest train.tbl
///   tl digest 's3://bucket/train-{000..127}.tar'
///   tl digest iris.idv --columns --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// TAR archives, folders or TBL files, read as one data set; or an IDV file or a TBF segment
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print a digest for each column of a table instead
    #[arg(long)]
    pub(crate) columns: bool,

    /// Print JSON, one object per line
    #[arg(long, requires = "columns")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) key: KeyArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,
}

/// Prints the digest. Its byte layout is in the command's help.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    #[cfg(feature = "tables")]
    if let Some(table) = Table::open(global, &args.files)? {
        if args.view.is_given() {
            return Err(Failure::Usage { what: NO_ROWS });
        }
        return table::digest::run(&table, args, global);
    }
    if args.columns {
        return Err(Failure::Usage { what: "--columns is for IDV and TBF files" });
    }
    let data = data_set::open(global, &args.files)?;
    let view = args.view.of(&data)?;
    let mut progress = Progress::new(global, view.len());
    let mut hash = Sha256::new();
    let mut bytes = Vec::new();
    let mut damaged = DamagedParts::default();
    for (place, index) in (0..).zip(view.indices()?) {
        progress.set(place);
        let Sample { source, local, .. } = Sample::of(&data, index)?;
        tbl_io::announce_after(source, local);
        let read = source.entry(local).and_then(|entry| {
            source.read_into(local, &mut bytes)?;
            let label = data.try_label(index)?;
            Ok((entry, label))
        });
        match read {
            Ok((entry, label)) => add(&mut hash, place, label, &entry, &bytes),
            Err(error) => damaged.count_if_damage(error.in_data_set(index))?,
        }
    }
    drop(progress);
    // The hash of what is left would pass for that of the whole.
    let verdict = damaged.verdict(view.len(), "samples")?;
    let mut stdout = Stdout::open()?;
    stdout.line(&Hex(hash.finalize().into()))?;
    stdout.finish()?;
    Ok(verdict)
}

fn add(hash: &mut Sha256, index: u64, label: Option<i64>, entry: &Entry<'_>, bytes: &[u8]) {
    hash.update(index.to_le_bytes());
    match entry.key.as_deref() {
        Some(key) => {
            hash.update((key.len() as u64).to_le_bytes());
            hash.update(key);
        }
        None => hash.update(NO_NAME.to_le_bytes()),
    }
    hash.update(label.unwrap_or(NO_LABEL).to_le_bytes());
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}
