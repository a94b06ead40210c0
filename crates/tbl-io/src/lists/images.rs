//! Images and videos that are named one by one: in sequence they are one source.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use tbl_format::SampleFormat;
use tbl_format::path::check_new_name;

use crate::error::ReadError;
use crate::files::Files;
use crate::limits::ReadLimits;
use crate::listed::{Listed, Parts};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::sample::SourceKind;
use crate::storage::Stores;

/// Locations in sequence that are opened in one go.
pub(crate) enum Piece {
    Images(Images),
    Others(Vec<Location>),
}

/// Images or videos in sequence.
pub(crate) struct Images(Vec<Location>);

/// Splits locations into images or videos and others, by the extensions of their names.
pub(crate) fn pieces(locations: Vec<Location>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for location in locations {
        let is_image = is_image(&location);
        match pieces.last_mut() {
            Some(Piece::Images(Images(images))) if is_image => images.push(location),
            Some(Piece::Others(others)) if !is_image => others.push(location),
            _ if is_image => pieces.push(Piece::Images(Images(vec![location]))),
            _ => pieces.push(Piece::Others(vec![location])),
        }
    }
    pieces
}

fn is_image(location: &Location) -> bool {
    let name = location.as_os_str().as_bytes();
    let is_named =
        SampleFormat::from_file_name(name).is_image() || SampleFormat::is_video_name(name);
    // The query of a signed URL is part of one object's name and of no other's.
    is_named
        && location.url().is_none_or(|url| !url.contains('?'))
        && location.path().is_none_or(|path| !path.is_dir())
}

impl Images {
    /// The images below the folder that all of them share; where their names below it are unsafe,
    /// those of each folder.
    pub(crate) fn open(&self, stores: &Stores) -> Result<Vec<Listed>, ReadError> {
        let Self(images) = self;
        let shared = shared_folder(images);
        let is_below = |image: &Location| check_new_name(after(image, shared)).is_ok();
        if images.iter().all(is_below) {
            return Ok(vec![open_below(stores, shared, images)?]);
        }
        let runs = images.chunk_by(|a, b| folder(a) == folder(b));
        runs.map(|run| open_below(stores, folder(&run[0]), run)).collect()
    }
}

/// The front of the location up to its last slash.
fn folder(location: &Location) -> &[u8] {
    let text = location.as_os_str().as_bytes();
    text.get(..text.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1)).unwrap_or(text)
}

fn after<'a>(location: &'a Location, folder: &[u8]) -> &'a [u8] {
    let text = location.as_os_str().as_bytes();
    text.get(folder.len()..).unwrap_or_default()
}

/// The folders that the locations begin with.
fn shared_folder(images: &[Location]) -> &[u8] {
    let Some(first) = images.first() else { return &[] };
    let mut shared = folder(first);
    for image in images {
        let text = image.as_os_str().as_bytes();
        let equal = shared.iter().zip(text).take_while(|(a, b)| a == b).count();
        let equal = shared.get(..equal).unwrap_or_default();
        let slash = equal.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        shared = equal.get(..slash).unwrap_or_default();
    }
    // Paths below different schemes or hosts share no folder.
    let is_host = |folder: &[u8]| folder.ends_with(b"://") || folder.ends_with(b":/");
    let is_url = first.url().is_some();
    if is_url && is_host(shared) { &[] } else { shared }
}

fn open_below(stores: &Stores, folder: &[u8], images: &[Location]) -> Result<Listed, ReadError> {
    let mut names = Names::new();
    let root = match folder {
        b"" => b".",
        b"/" => folder,
        // The slash of a URL makes it a folder.
        _ if images.iter().any(|image| image.url().is_some()) => folder,
        _ => folder.strip_suffix(b"/").unwrap_or(folder),
    };
    let root = Location::new(OsStr::from_bytes(root));
    for image in images {
        names
            .push(after(image, folder))
            .map_err(|TooManyNames| ReadError::too_many_names(&root))?;
    }
    let (files, missing) = Files::named(stores, root.clone(), &names)?;
    if let Some(first) = missing.first().and_then(|&first| images.get(first as usize)) {
        // Opening it says more, such as that it may not be read.
        return Err(match stores.open_file(first) {
            Err(error) => error,
            Ok(_) => ReadError::io(first, io::ErrorKind::NotFound.into()),
        });
    }
    let parts = Parts {
        kind: SourceKind::Files,
        location: root,
        samples: u32::try_from(names.len()).unwrap_or(u32::MAX),
        names,
        labels: Vec::new(),
        class_names: Vec::new(),
        columns: Vec::new(),
        limits: ReadLimits::default(),
        notes: Vec::new(),
    };
    Ok(Listed::new(files, parts))
}
