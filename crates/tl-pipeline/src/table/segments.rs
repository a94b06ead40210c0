//! Folders of TBF segments: one data set, to which segments are added.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tbl_io::{Location, ReadError};

/// Whether a file of this name counts as a segment of its folder: it ends in `.tbf` and is not hidden.
#[must_use]
pub fn is_segment_name(path: &Path) -> bool {
    !is_hidden(path) && path.extension().is_some_and(|found| found.eq_ignore_ascii_case("tbf"))
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
    // A folder that cannot be listed is reported by its reader.
    let Ok(entries) = fs::read_dir(folder) else { return Ok(None) };
    let mut segments = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if is_segment_name(&path) {
            segments.push(path);
        } else if !is_hidden(&path) {
            return Ok(None);
        }
    }
    segments.sort_unstable();
    Ok(Some(segments).filter(|segments| !segments.is_empty()))
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
        fs::write(path("photo.jpg"), "").unwrap();
        assert_eq!(expanded()[0], folder.path().into());
    }
}
