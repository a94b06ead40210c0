//! Metadata blocks of a sample or a whole file.

use std::any::Any;
use std::fmt::Write;

use serde::Serialize;
use serde::de::IgnoredAny;
use tbl_format::metadata::MetadataType;
use tbl_io::{MetadataBlock, SampleSource, TblFile};

use super::Args;
use crate::args::GlobalArgs;
use crate::data_set;
use crate::failure::{Failure, Verdict};
use crate::output::{Stdout, write_file};

/// A block that is not JSON.
#[derive(Serialize)]
struct Listed {
    r#type: String,
    bytes: usize,
    hex: String,
}

const NOT_TBL: Failure = Failure::Usage { what: "--metadata is for TBL files" };

/// Writes the blocks of a sample, by its number in its source.
pub(super) fn of_sample(
    source: &(dyn SampleSource + 'static),
    local: u64,
    args: &Args,
) -> Result<Verdict, Failure> {
    write(tbl_file(source)?.metadata(local)?, args)
}

/// Writes the blocks of whole files, one file after the other. Blocks that several files share are
/// written once.
pub(super) fn of_files(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut blocks = Vec::new();
    for source in data_set::open_sources(global, &[&args.file])? {
        data_set::note(source.as_ref());
        let of_file = tbl_file(source.as_ref())?.file_metadata()?;
        let is_new = |block: &MetadataBlock| !blocks.contains(block);
        let new: Vec<_> = of_file.into_iter().filter(is_new).collect();
        blocks.extend(new);
    }
    write(blocks, args)
}

fn tbl_file(source: &dyn Any) -> Result<&TblFile, Failure> {
    source.downcast_ref().ok_or(NOT_TBL)
}

fn write(mut blocks: Vec<MetadataBlock>, args: &Args) -> Result<Verdict, Failure> {
    blocks.retain(|block| !block.is_extension());
    let bytes = match args.block {
        Some(block) if block < blocks.len() => blocks.swap_remove(block).data,
        Some(_) => {
            return Err(Failure::Usage { what: "--block: no metadata block has this number" });
        }
        None => blocks.iter().flat_map(json_line).collect(),
    };
    match &args.output {
        Some(path) => write_file(path, args.force, |file| file.write_all(&bytes))?,
        None => {
            let is_text = args.block.is_none();
            let mut stdout = if is_text { Stdout::open()? } else { Stdout::open_binary()? };
            stdout.bytes(&bytes)?;
            stdout.finish()?;
        }
    }
    Ok(Verdict::Good)
}

/// The block as a JSON value, and the end of its line.
fn json_line(block: &MetadataBlock) -> Vec<u8> {
    let MetadataBlock { kind, data } = block;
    let is_json = *kind == MetadataType::Json && serde_json::from_slice::<IgnoredAny>(data).is_ok();
    let mut line = if is_json {
        data.clone()
    } else {
        let mut hex = String::with_capacity(2 * data.len());
        for byte in data {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        }
        let listed = Listed { r#type: kind.to_string(), bytes: data.len(), hex };
        serde_json::to_vec(&listed).expect("text and numbers are JSON")
    };
    line.push(b'\n');
    line
}
