//! Folders of TBF segments: one data set, to which segments are added.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tbl_io::{Location, ReadError};

/// The contents of a folder, apart from hidden files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentFolder {
    /// The files named `*.tbf`, in the order of their names.
    pub segments: Vec<PathBuf>,
    /// The first by name of everything else. A folder that has such an entry is not one of segments.
    pub other: Option<PathBuf>,
}

impl SegmentFolder {
    /// Lists a folder.
    ///
    /// # Errors
    /// The error of the system if the folder cannot be listed.
    pub fn list(folder: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if is_hidden(&path) {
                continue;
            }
            if path.extension().is_some_and(|found| found.eq_ignore_ascii_case("tbf")) {
                found.segments.push(path);
            } else if found.other.as_ref().is_none_or(|other| path < *other) {
                found.other = Some(path);
            }
        }
        found.segments.sort_unstable();
        Ok(found)
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
}

/// The locations, with the segments in the order of their names instead of each folder that has
/// nothing else.
///
/// # Errors
/// A folder that cannot be listed.
pub(crate) fn with_segments<L: AsRef<OsStr>>(locations: &[L]) -> Result<Vec<Location>, ReadError> {
    let mut all = Vec::with_capacity(locations.len());
    for location in locations {
        let location = Location::new(location);
        let segments = location.path().map(segments_of).transpose();
        let segments =
            segments.map_err(|source| ReadError::Io { location: location.clone(), source })?;
        match segments.flatten() {
            Some(segments) => all.extend(segments.iter().map(Location::new)),
            None => all.push(location),
        }
    }
    Ok(all)
}

/// The segments of a folder that has nothing else but hidden files. `None` for another path.
fn segments_of(folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let found = SegmentFolder::list(folder)?;
    let is_one = found.other.is_none() && !found.segments.is_empty();
    Ok(is_one.then_some(found.segments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_segments_alone_stands_for_them_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let expanded = || with_segments(&[folder.path(), Path::new("a.tar")]).unwrap();
        let at = |name: &str| Location::new(path(name));
        assert_eq!(expanded(), [folder.path().into(), "a.tar".into()]);
        for name in ["b.tbf", "a.TBF", ".c.tbf", ".d"] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(expanded(), [at("a.TBF"), at("b.tbf"), "a.tar".into()]);
        for name in ["photo.jpg", "notes.txt", "queue"] {
            fs::write(path(name), "").unwrap();
        }
        assert_eq!(expanded()[0], folder.path().into());
        let listed = SegmentFolder::list(folder.path()).unwrap();
        assert_eq!(listed.segments, [path("a.TBF"), path("b.tbf")]);
        assert_eq!(listed.other, Some(path("notes.txt")));
    }
}
