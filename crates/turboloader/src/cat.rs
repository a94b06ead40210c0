//! `tl cat`: the bytes of one sample, or of one of its sidecar fields.

use crate::args::CatArgs;
use crate::data_set;
use crate::failure::{Failure, Subject, Verdict};
use crate::output::{Stdout, write_file};

/// Writes the bytes.
pub(crate) fn run(args: &CatArgs) -> Result<Verdict, Failure> {
    let source = data_set::open(&args.file)?;
    let bytes = match &args.field {
        None => {
            let mut bytes = Vec::new();
            source.read_into(args.index, &mut bytes)?;
            bytes
        }
        Some(extension) => {
            let entry = source.entry(args.index)?;
            let of = Subject::sample(source.as_ref(), args.index, &entry);
            let no_field = Failure::NoField { of, extension: extension.clone() };
            let mut fields = Vec::new();
            source.read_fields(args.index, &mut fields)?;
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
