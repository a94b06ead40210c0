//! `tl digest`: one hash over everything a data set or a table says.

mod table;

use sha2::{Digest, Sha256};
use tbl_io::Entry;

use crate::args::{DigestArgs, GlobalArgs};
use crate::data_set::DataSet;
use crate::failure::{DamagedParts, Failure, Verdict};
use crate::output::{Progress, Stdout};
use crate::table::Table;
use crate::text::Hex;

/// The length that stands for a name that is not there.
const NO_NAME: u64 = u64::MAX;
/// The label that stands for a label that is not there.
const NO_LABEL: i64 = i64::MIN;

/// Prints the digest. Its byte layout is in the command's help.
pub(crate) fn run(args: &DigestArgs, global: GlobalArgs) -> Result<Verdict, Failure> {
    if let Some(table) = Table::open(&args.file)? {
        return table::run(&table, args, global);
    }
    if args.columns {
        return Err(Failure::Usage { what: "--columns is for IDV and TBF files" });
    }
    let data = DataSet::open(&args.file)?;
    let source = data.source();
    let mut progress = Progress::new(global, source.sample_count());
    let mut hash = Sha256::new();
    let mut bytes = Vec::new();
    let mut damaged = DamagedParts::default();
    for index in 0..source.sample_count() {
        progress.set(index);
        let read = source.entry(index).and_then(|entry| {
            source.read_into(index, &mut bytes)?;
            let label = data.label(index)?;
            Ok((entry, label))
        });
        match read {
            Ok((entry, label)) => add(&mut hash, index, label, &entry, &bytes),
            Err(error) => damaged.count_if_damage(error.for_sample(index, None))?,
        }
    }
    drop(progress);
    // The hash of what is left would pass for that of the whole.
    let verdict = damaged.verdict(source.sample_count(), "samples")?;
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
