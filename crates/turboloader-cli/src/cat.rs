//! `tl cat`: the bytes of one sample, or of one of its sidecar fields, or metadata; or one row of a
//! table.

mod metadata;
mod table;

use crate::args::{CatArgs, ItemName};
use crate::data_set;
use crate::failure::{Failure, Subject, Verdict};
use crate::output::{Stdout, write_file};
use crate::table::Table;

/// Writes the bytes.
pub(crate) fn run(args: &CatArgs) -> Result<Verdict, Failure> {
    if let Some(table) = Table::open(&args.file)? {
        return table::run(&table, args);
    }
    if args.columns.is_some() {
        return Err(Failure::Usage { what: "--columns is for IDV and TBF files" });
    }
    let index = match args.index {
        Some(ItemName::Number(index)) => Some(index),
        Some(ItemName::Id(_)) => {
            return Err(Failure::Usage { what: "ids are for TBF segments; samples have numbers" });
        }
        None => None,
    };
    let source = data_set::open(&args.file)?;
    let Some(index) = index.filter(|_| !args.metadata) else {
        return metadata::run(source.as_ref(), index, args);
    };
    let bytes = match &args.field {
        None => {
            let mut bytes = Vec::new();
            source.read_into(index, &mut bytes)?;
            bytes
        }
        Some(extension) => {
            let entry = source.entry(index)?;
            let of = Subject::sample(source.as_ref(), index, &entry);
            let no_field = Failure::NoField { of, extension: extension.clone() };
            let mut fields = Vec::new();
            source.read_fields(index, &mut fields)?;
            fields
                .into_iter()
                .find(|field| field.extension == extension.as_bytes())
                .map(|field| field.bytes)
                .ok_or(no_field)?
        }
    };
    match &args.output {
        Some(path) => write_file(path, args.force, |file| file.write_all(&bytes))?,
        None => {
            let mut stdout = Stdout::open_binary()?;
            stdout.bytes(&bytes)?;
            stdout.finish()?;
        }
    }
    Ok(Verdict::Good)
}
