//! Lists of samples, such as manifests, and the data sets that they describe.

mod coco;
mod csv;
mod flip_pairs;
mod imagenet;
mod images;
mod json_stream;
mod jsonl;
mod label;
mod label_table;
mod manifest;
mod mat;
mod metadata;
mod pairs;
mod pattern;
mod rows;
mod table;

use crate::error::ReadError;
use crate::location::Location;
use crate::sample::SampleSource;
use crate::storage::{Opened, Stores, ZARR_METADATA};

pub use coco::open_coco;
pub(crate) use imagenet::val_classes;
pub(crate) use images::{Piece, pieces};
pub(crate) use label_table::read_label_table;
pub use manifest::open_manifest;
pub use pairs::{Pairs, Unpaired, open_pairs};

/// A location that is open: a list of samples, or something else.
pub(crate) enum Found {
    List(Box<dyn SampleSource>),
    Other(Opened),
}

/// Opens a manifest or annotations by the name of the file, and the metadata files of a folder.
pub(crate) fn find(stores: &Stores, opened: Opened) -> Result<Found, ReadError> {
    match opened {
        Opened::Folder(folder) => match metadata::open(stores, &folder)? {
            Some(listed) => Ok(Found::List(Box::new(listed))),
            None => Ok(Found::Other(Opened::Folder(folder))),
        },
        Opened::File(source) => {
            if is_json(source.location()) {
                let listed = coco::of_source(stores, source, &stores.list_options().coco)?;
                return Ok(Found::List(Box::new(listed)));
            }
            if table::TableFormat::of(source.location()).is_none() {
                return Ok(Found::Other(Opened::File(source)));
            }
            let listed = manifest::of_source(stores, &source, &stores.list_options().manifest)?;
            Ok(Found::List(Box::new(listed)))
        }
    }
}

/// Whether the location is a manifest or annotations by the name of its file.
pub fn is_list(location: &Location) -> bool {
    is_json(location) || table::TableFormat::of(location).is_some()
}

fn is_json(location: &Location) -> bool {
    location.file_name() != ZARR_METADATA
        && location.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}
