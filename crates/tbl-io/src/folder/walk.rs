//! The files below a folder of the local file system.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::FolderSkips;
use crate::error::{FileKind, ReadError};
use crate::grouping::is_hidden;
use crate::names::{Names, TooManyNames};
use crate::source::file_kind;

/// Collects the files below a root, in no particular order.
pub(super) struct Walk<'a> {
    root: &'a Path,
    pub(super) names: Names,
    pub(super) skipped: FolderSkips,
    /// The smallest path that is passed over.
    pub(super) first_passed_over: Option<Vec<u8>>,
    /// Device and inode of every folder read so far.
    seen: HashSet<(u64, u64)>,
    /// Folders still to be read, relative to the root, with a slash at the end.
    pending: Vec<Vec<u8>>,
    /// Links to folders. They come after all real folders, so that a folder inside the tree
    /// keeps its own path.
    linked: Vec<Vec<u8>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            names: Names::new(),
            skipped: FolderSkips::default(),
            first_passed_over: None,
            seen: HashSet::new(),
            pending: Vec::new(),
            linked: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, root: &Metadata) -> Result<(), ReadError> {
        self.seen.insert((root.dev(), root.ino()));
        self.read_folder(&[])?;
        loop {
            while let Some(folder) = self.pending.pop() {
                self.enter(&folder)?;
            }
            // The smallest path first, whatever order the file system lists them in.
            self.linked.sort_unstable_by(|a, b| b.cmp(a));
            match self.linked.pop() {
                Some(folder) => self.enter(&folder)?,
                None => return Ok(()),
            }
        }
    }

    fn enter(&mut self, folder: &[u8]) -> Result<(), ReadError> {
        let path = self.root.join(OsStr::from_bytes(folder));
        let metadata = std::fs::metadata(&path).map_err(|error| ReadError::io(&path, error))?;
        if self.seen.insert((metadata.dev(), metadata.ino())) {
            self.read_folder(folder)
        } else {
            self.skipped.repeated_folders += 1;
            self.pass_over(folder);
            Ok(())
        }
    }

    fn read_folder(&mut self, folder: &[u8]) -> Result<(), ReadError> {
        let path = self.root.join(OsStr::from_bytes(folder));
        let io_error = |error| ReadError::io(&path, error);
        for entry in std::fs::read_dir(&path).map_err(io_error)? {
            let entry = entry.map_err(io_error)?;
            let name = entry.file_name();
            let relative = [folder, name.as_bytes()].concat();
            if is_hidden(name.as_bytes()) {
                self.skipped.hidden += 1;
                self.pass_over(&relative);
                continue;
            }
            let file_type = entry.file_type().map_err(io_error)?;
            if !file_type.is_symlink() {
                self.add(relative, file_type, false)?;
                continue;
            }
            match std::fs::metadata(entry.path()) {
                Ok(target) => self.add(relative, target.file_type(), true)?,
                // Dangling, or in a circle with nothing but links.
                Err(_) => {
                    self.skipped.broken_links += 1;
                    self.pass_over(&relative);
                }
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        mut relative: Vec<u8>,
        file_type: std::fs::FileType,
        is_link: bool,
    ) -> Result<(), ReadError> {
        match file_kind(file_type) {
            None => self
                .names
                .push(&relative)
                .map_err(|TooManyNames| ReadError::too_many_names(&self.root.into()))?,
            Some(FileKind::Directory) => {
                relative.push(b'/');
                let folders = if is_link { &mut self.linked } else { &mut self.pending };
                folders.push(relative);
            }
            Some(_) => {
                self.skipped.special_files += 1;
                self.pass_over(&relative);
            }
        }
        Ok(())
    }

    fn pass_over(&mut self, relative: &[u8]) {
        if self.first_passed_over.as_deref().is_none_or(|first| relative < first) {
            self.first_passed_over = Some(relative.to_vec());
        }
    }
}
