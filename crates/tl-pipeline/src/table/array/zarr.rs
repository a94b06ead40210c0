//! Zarr 3: arrays and groups of arrays in folders, whose `zarr.json` says how chunks are stored.

mod chunks;
mod codec;
mod copy;
mod fill;
mod metadata;

use serde_json::Value;
use tbl_io::{Source, Stores};
use tl_handoff::sync::Arc;

use super::{Array, ArrayDefect, ONLY_COLUMN, Values, check_rows};
use crate::error::{PipelineError, TableError};
pub(super) use chunks::Chunks;
use metadata::{Metadata, Node};

/// The largest `zarr.json` that is read. Groups may have those of their arrays in theirs.
const MOST_BYTES: u64 = 64 << 20;

/// The array whose `zarr.json` this is, or those of a group: in the order of their names.
pub(super) fn arrays(stores: &Stores, source: &Source) -> Result<Vec<Array>, PipelineError> {
    match read(source)? {
        Node::Array(metadata) => Ok(vec![array(stores, source, "", *metadata)]),
        Node::Group { members } => {
            let arrays = match members {
                Some(members) => of_members(stores, source, members)?,
                None => of_folder(stores, source)?,
            };
            if arrays.is_empty() {
                return Err(fault(source, ArrayDefect::NoArrays));
            }
            check_rows(&arrays).map_err(|defect| fault(source, defect))?;
            Ok(arrays)
        }
    }
}

/// The arrays whose metadata the group has.
fn of_members(
    stores: &Stores,
    source: &Source,
    members: Vec<(String, Value)>,
) -> Result<Vec<Array>, PipelineError> {
    let mut arrays = Vec::new();
    for (name, value) in members {
        let parsed = Node::parse(&value).map_err(|reason| {
            let reason = format!("member `{}`: {reason}", name.escape_debug());
            fault(source, ArrayDefect::Metadata { reason })
        })?;
        if let Node::Array(metadata) = parsed {
            arrays.push(array(stores, source, &name, *metadata));
        }
    }
    Ok(arrays)
}

/// The arrays in the folder of the group.
fn of_folder(stores: &Stores, source: &Source) -> Result<Vec<Array>, PipelineError> {
    let folder = source.location().folder();
    let mut arrays = Vec::new();
    for name in stores.zarr_members(&folder)? {
        let Some(member) = stores.open_zarr_member(&folder, &name)? else { continue };
        if let Node::Array(metadata) = read(&member)? {
            let name = String::from_utf8_lossy(&name);
            arrays.push(array(stores, source, &name, *metadata));
        }
    }
    Ok(arrays)
}

fn read(source: &Source) -> Result<Node, PipelineError> {
    if source.len() > MOST_BYTES {
        let reason = format!("{} bytes, expected at most {MOST_BYTES}", source.len());
        return Err(fault(source, ArrayDefect::Metadata { reason }));
    }
    let mut bytes = Vec::new();
    source.read_range_into(0, source.len(), &mut bytes)?;
    let value: Result<Value, _> = serde_json::from_slice(&bytes);
    let node = value.map_err(|error| error.to_string()).and_then(|value| Node::parse(&value));
    node.map_err(|reason| fault(source, ArrayDefect::Metadata { reason }))
}

fn fault(source: &Source, defect: ArrayDefect) -> PipelineError {
    let location = source.location().clone();
    PipelineError::Table { location, source: TableError::from(defect) }
}

/// The array called `name` in the group of `source`; without a name the one of `source` itself.
fn array(stores: &Stores, source: &Source, name: &str, metadata: Metadata) -> Array {
    let mut folder = source.location().folder();
    if !name.is_empty() {
        folder = folder.join(name.as_bytes());
    }
    let Metadata { shape, layout } = metadata;
    let chunks = layout.and_then(|layout| {
        let number = layout.number;
        let is_big_endian = layout.is_big_endian;
        let chunks = Chunks::new(stores.clone(), folder, shape.clone(), layout)?;
        Ok((number, is_big_endian, Values::Chunks(Arc::new(chunks))))
    });
    let name = if name.is_empty() { ONLY_COLUMN } else { name }.to_owned();
    match chunks {
        Ok((number, is_big_endian, values)) => {
            Array { name, number: Ok(number), shape, is_big_endian, values }
        }
        Err(reason) => {
            Array { name, number: Err(reason), shape, is_big_endian: false, values: Values::None }
        }
    }
}
