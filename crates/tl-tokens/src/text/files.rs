//! The files that texts are in.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tbl_io::{Location, ReadError, Source, Stores};

/// Extensions of JSON Lines. A file of one JSON value is an error of its first line.
const LINES: [&str; 3] = ["jsonl", "ndjson", "json"];

/// Extensions of files in folders that are one text each.
const WHOLE: [&str; 3] = ["txt", "text", "md"];

/// Extensions of tables.
const ROWS: [&str; 2] = ["parquet", "arrow"];

/// Extensions of compressed files, which come after those above.
const COMPRESSED: [&str; 3] = ["gz", "zst", "zstd"];

/// The texts of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// A string in the object of each line.
    Lines,
    /// The whole file.
    Whole,
    /// A column.
    Rows,
}

impl TextKind {
    /// The texts of an open file: tables are told by their first bytes, the others by the name.
    pub(crate) fn of(source: &Source) -> Result<Self, ReadError> {
        let mut front = [0; 6];
        if source.len() >= front.len() as u64 {
            source.read_exact_at(0, &mut front)?;
        }
        if front.starts_with(b"PAR1") || front.starts_with(b"PARE") || &front == b"ARROW1" {
            return Ok(Self::Rows);
        }
        Ok(Self::named(source.location().as_os_str().as_ref()).unwrap_or(Self::Whole))
    }

    /// The texts of a file of this name; `None` where the name does not say.
    fn named(path: &Path) -> Option<Self> {
        let name = path.file_name()?.as_bytes().to_ascii_lowercase();
        let name = str::from_utf8(&name).ok()?;
        let (stem, extension) = name.rsplit_once('.')?;
        let extension = match stem.rsplit_once('.') {
            Some((_, inner)) if COMPRESSED.contains(&extension) => inner,
            _ => extension,
        };
        let kinds = [(Self::Lines, &LINES[..]), (Self::Whole, &WHOLE), (Self::Rows, &ROWS)];
        kinds.into_iter().find(|(_, known)| known.contains(&extension)).map(|(kind, _)| kind)
    }
}

/// Files of texts, in order.
#[derive(Debug, Default)]
pub(super) struct TextFiles {
    pub(super) files: VecDeque<Location>,
    /// The bytes of all.
    pub(super) bytes: u64,
    /// Files in folders that are not known to have texts.
    pub(super) left_out: u64,
}

impl TextFiles {
    /// The files that locations stand for. Those in a folder are in the order of their paths.
    pub(super) fn find(stores: &Stores, locations: &[Location]) -> Result<Self, ReadError> {
        let mut found = Self::default();
        for location in stores.expand_all(locations)? {
            match stores.open_file(&location)? {
                Some(source) => found.push(&source),
                None => found.push_folder(stores, &location)?,
            }
        }
        Ok(found)
    }

    fn push(&mut self, source: &Source) {
        self.bytes = self.bytes.saturating_add(source.len());
        self.files.push_back(source.location().clone());
    }

    fn push_folder(&mut self, stores: &Stores, folder: &Location) -> Result<(), ReadError> {
        let error = |kind, text: &str| {
            let source = io::Error::new(kind, text);
            ReadError::Io { location: folder.clone(), source }
        };
        if folder.url().is_some() {
            let text = "is a folder of a store, expected files or a pattern, such as *.jsonl";
            return Err(error(io::ErrorKind::InvalidInput, text));
        }
        let before = self.files.len();
        let mut paths = Vec::new();
        walk(Path::new(folder.as_os_str()), &mut paths)?;
        paths.sort_unstable_by(|one, other| {
            one.as_os_str().as_bytes().cmp(other.as_os_str().as_bytes())
        });
        for path in paths {
            match TextKind::named(&path) {
                Some(_) => {
                    if let Some(source) = stores.open_file(&path)? {
                        self.push(&source);
                    }
                }
                None => self.left_out += 1,
            }
        }
        if self.files.len() == before {
            let text = "has no files of texts, expected .jsonl, .txt or .parquet";
            return Err(error(io::ErrorKind::NotFound, text));
        }
        Ok(())
    }
}

/// Adds the files below `folder` that are not hidden. Links to folders are not followed.
fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), ReadError> {
    let error = |source| ReadError::Io { location: folder.into(), source };
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        if entry.file_name().as_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        if entry.file_type().map_err(error)?.is_dir() {
            walk(&path, paths)?;
        } else if path.is_file() {
            paths.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_where_texts_are() {
        let check = |name: &str, expected| {
            assert_eq!(TextKind::named(Path::new(name)), expected, "{name}");
        };
        check("a/b.jsonl", Some(TextKind::Lines));
        check("b.JSONL.GZ", Some(TextKind::Lines));
        check("b.json.zst", Some(TextKind::Lines));
        check("b.txt", Some(TextKind::Whole));
        check("b.parquet", Some(TextKind::Rows));
        check("b.gz", None);
        check("jsonl", None);
        check("b.jpg", None);
    }
}
