//! The files of a cache folder: the path of an entry, the list of all, and stale ones.
//!
//! Only files with names that this module gives are ever counted or deleted.

use std::fs::{self, DirBuilder, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::cache::key::Key;

/// The name of this version's folder, below the one that the user names.
const NAME: &str = "turboloader-cache-1";

/// File systems give out space in such blocks, and that is what a file is counted as.
const BLOCK_BYTES: u64 = 4096;

/// A cache folder and its paths.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// A file that can be removed.
#[derive(Debug)]
pub(crate) struct Removable {
    pub(crate) modified: SystemTime,
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new(named: &Path) -> Self {
        Self { root: named.join(NAME) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Creates the folder if it is missing, for its owner alone: it may have what is read with
    /// credentials.
    pub(crate) fn create(&self) -> io::Result<()> {
        self.root.parent().map_or(Ok(()), fs::create_dir_all)?;
        let made = DirBuilder::new().mode(0o700).create(&self.root);
        match made {
            // Another process made it, or somebody who opened it to others.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        fs::create_dir_all(self.drafts())
    }

    /// True if users other than the owner and its group can list and read it.
    pub(crate) fn is_open(&self) -> bool {
        let mode =
            |path: &Path| path.metadata().map_or(0, |metadata| metadata.permissions().mode());
        let Ok(root) = self.root.canonicalize() else { return false };
        mode(&root) & 0o005 == 0o005 && root.ancestors().all(|folder| mode(folder) & 0o001 > 0)
    }

    /// Locked by every process that uses the folder, for as long as it does.
    pub(crate) fn users(&self) -> PathBuf {
        self.root.join("users")
    }

    /// The file with the number of bytes in use.
    pub(crate) fn usage(&self) -> PathBuf {
        self.root.join("usage")
    }

    /// The file whose bytes are locked by those who fetch blocks.
    pub(crate) fn claims(&self) -> PathBuf {
        self.root.join("claims")
    }

    /// The folder in which entries are written before they get their names.
    pub(crate) fn drafts(&self) -> PathBuf {
        self.root.join("drafts")
    }

    pub(crate) fn entry(&self, key: Key) -> PathBuf {
        let name = key.to_string();
        let (shelf, file) = name.split_at(2);
        self.root.join(shelf).join(file)
    }

    /// True if it has neither entries nor drafts, as far as a look at it tells.
    pub(crate) fn is_new(&self) -> io::Result<bool> {
        for shelf in fs::read_dir(&self.root)? {
            if is_hex(&shelf?, 2) {
                return Ok(false);
            }
        }
        Ok(fs::read_dir(self.drafts())?.next().is_none())
    }

    /// Bytes of all entries and drafts. Looking for them ends early with `Interrupted` when `is_over`.
    pub(crate) fn used(&self, is_over: &dyn Fn() -> bool) -> io::Result<u64> {
        let mut used = 0u64;
        self.for_each(is_over, |_, metadata| used = used.saturating_add(cost(metadata.len())))?;
        for draft in fs::read_dir(self.drafts())? {
            used = used.saturating_add(cost(draft?.metadata().map_or(0, |draft| draft.len())));
        }
        Ok(used)
    }

    /// Entries last used before `before`, or all of them, the oldest first, and the bytes of all
    /// entries. Ends early as [`used`](Self::used).
    pub(crate) fn older(
        &self,
        before: Option<SystemTime>,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<(Vec<Removable>, u64)> {
        let mut older = Vec::new();
        let mut seen = 0u64;
        self.for_each(is_over, |entry, metadata| {
            seen = seen.saturating_add(cost(metadata.len()));
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if before.is_none_or(|before| modified < before) {
                older.push(Removable { modified, path: entry.path() });
            }
        })?;
        older.sort_unstable_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        Ok((older, seen))
    }

    /// Removes drafts, whose writers are known to be gone.
    pub(crate) fn remove_drafts(&self) -> io::Result<()> {
        for draft in fs::read_dir(self.drafts())? {
            fs::remove_file(draft?.path())?;
        }
        Ok(())
    }

    fn for_each(
        &self,
        is_over: &dyn Fn() -> bool,
        mut visit: impl FnMut(&DirEntry, &Metadata),
    ) -> io::Result<()> {
        for shelf in fs::read_dir(&self.root)? {
            let shelf = shelf?;
            if !is_hex(&shelf, 2) {
                continue;
            }
            for entry in fs::read_dir(shelf.path())? {
                if is_over() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let entry = entry?;
                // An entry that was deleted since the listing is skipped.
                if is_hex(&entry, 62)
                    && let Ok(metadata) = entry.metadata()
                    && metadata.is_file()
                {
                    visit(&entry, &metadata);
                }
            }
        }
        Ok(())
    }
}

/// Removes a file and returns what it was counted as; 0 when it was gone already.
pub(crate) fn remove(path: &Path) -> io::Result<u64> {
    let metadata = fs::symlink_metadata(path);
    let removed = metadata.and_then(|metadata| fs::remove_file(path).map(|()| metadata.len()));
    match removed {
        Ok(len) => Ok(cost(len)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// As [`remove`], unless the file was used since `before`.
pub(crate) fn remove_older(path: &Path, before: SystemTime) -> io::Result<u64> {
    let used = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    if used.is_ok_and(|used| used >= before) { Ok(0) } else { remove(path) }
}

/// Bytes that a file of this length is counted as.
pub(crate) fn cost(len: u64) -> u64 {
    len.checked_next_multiple_of(BLOCK_BYTES).unwrap_or(u64::MAX)
}

fn is_hex(entry: &DirEntry, digits: usize) -> bool {
    let name = entry.file_name();
    let name = name.as_encoded_bytes();
    name.len() == digits && name.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
