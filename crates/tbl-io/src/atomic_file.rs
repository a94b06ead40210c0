//! A file that appears under its final name only when it is complete.
//!
//! On Linux the file has no name at all while it is written (`O_TMPFILE`), so a process that is
//! killed leaves no file; [`AtomicFile::commit`] gives it its name with `linkat`. Where the
//! file system or the platform has no unnamed files, a hidden temporary file in the target's
//! folder replaces it, removed when the value is dropped.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::location::Location;

/// The operation that gives a finished file its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Replace a regular file that already has the name.
    pub overwrite: bool,
    /// Wait until the data, and then the name, are on the disk.
    pub sync: bool,
}

/// A file under construction in the folder of its target. Dropping it discards the file.
#[derive(Debug)]
pub struct AtomicFile {
    file: File,
    /// `None` while the file has no name anywhere.
    draft: Option<TempPath>,
    target: PathBuf,
    placement: Placement,
}

impl AtomicFile {
    /// Starts a file that will be called `target`.
    ///
    /// # Errors
    /// `AlreadyExists` when the target exists and may not be replaced, `InvalidInput` when it is
    /// no regular file; otherwise what the operating system says about creating a file in that folder.
    pub fn create(target: &Path, placement: Placement) -> io::Result<Self> {
        refuse_occupied(target, placement.overwrite)?;
        let folder = folder_of(target);
        let (file, draft) = if let Some(file) = create_unnamed(folder)? {
            (file, None)
        } else {
            let (file, path) = hidden_beside(target, folder)?.into_parts();
            (file, Some(path))
        };
        Ok(Self { file, draft, target: target.to_owned(), placement })
    }

    /// The open file, readable and writable.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The name the file will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the file its name, after everything written so far has reached the disk if the
    /// placement asks for that.
    ///
    /// # Errors
    /// Whatever the operating system reports; the target is then as it was before, except that a
    /// failure to sync the folder comes after the file has its name.
    pub fn commit(self) -> io::Result<()> {
        if self.placement.sync {
            self.file.sync_all()?;
        }
        match self.draft {
            None => link_unnamed(&self.file, &self.target, self.placement.overwrite)?,
            Some(draft) if self.placement.overwrite => {
                draft.persist(&self.target).map_err(|e| e.error)?;
            }
            Some(draft) => draft.persist_noclobber(&self.target).map_err(|e| e.error)?,
        }
        if self.placement.sync {
            File::open(folder_of(&self.target))?.sync_all()?;
        }
        Ok(())
    }
}

/// The folder that holds `target`.
pub(crate) fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The error of a URL where no store is written to.
pub(crate) const LOCAL_ONLY: &str = "only local files are written here, expected a path";

/// Fails early, before hours of work, for a target that [`AtomicFile::commit`] would refuse.
fn refuse_occupied(target: &Path, overwrite: bool) -> io::Result<()> {
    if Location::new(target).url().is_some() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, LOCAL_ONLY));
    }
    let found = match fs::symlink_metadata(target) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !overwrite {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists already"));
    }
    // Renaming over a device node or a folder would destroy something other than a data set.
    if found.is_file() || found.is_symlink() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "exists and is not a regular file"))
    }
}

/// How much of its target's name a temporary file has in its own: file systems take 255 bytes, and
/// the target may have as many.
const MAX_DRAFT_NAME_BYTES: usize = 200;

/// A temporary file with a recognisable name: `.NAME.xxxxxx.partial`.
fn hidden_beside(target: &Path, folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = target.file_name().unwrap_or_default().as_bytes();
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(OsStr::from_bytes(name.get(..MAX_DRAFT_NAME_BYTES).unwrap_or(name)));
    prefix.push(".");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".partial");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(CREATE_MODE));
    }
    // The error would name a file that nobody asked for.
    builder.tempfile_in(folder).map_err(|error| error.kind().into())
}

/// Mode of a new file before the process's umask, as `cp` and the shell use it.
#[cfg(unix)]
const CREATE_MODE: u32 = 0o666;

/// Removes the temporary files that killed processes left in `folder`: those of files whose names
/// `is_target` accepts. Linux leaves some only on file systems without unnamed files, such as NFS, or
/// if a process is killed while it replaces a file. The caller ensures that no process writes these files.
///
/// # Errors
/// Whatever the operating system reports.
pub fn remove_drafts(folder: &Path, is_target: impl Fn(&OsStr) -> bool) -> io::Result<u64> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if draft_target(&entry.file_name()).is_some_and(&is_target) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The target of the temporary file with this name, which [`hidden_beside`] made.
fn draft_target(name: &OsStr) -> Option<&OsStr> {
    let name = name.as_bytes().strip_prefix(b".")?.strip_suffix(b".partial")?;
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    name.get(..dot).map(OsStr::from_bytes)
}

/// Creates a file without a name in `folder`; `None` where that is not supported.
#[cfg(target_os = "linux")]
fn create_unnamed(folder: &Path) -> io::Result<Option<File>> {
    use std::os::unix::fs::OpenOptionsExt;

    let opened = File::options()
        .read(true)
        .write(true)
        .mode(CREATE_MODE)
        .custom_flags(libc::O_TMPFILE)
        .open(folder);
    match opened {
        // Without /proc the file could never be given its name.
        Ok(file) => Ok(proc_path(&file).exists().then_some(file)),
        // EISDIR: a kernel that does not know O_TMPFILE tries to open the folder for writing.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL | libc::ENOENT)
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(target_os = "linux")]
fn proc_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Names an unnamed file, by way of a temporary name when an existing file has to be replaced:
/// `linkat` never replaces, `rename` does so atomically.
#[cfg(target_os = "linux")]
fn link_unnamed(file: &File, target: &Path, overwrite: bool) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};

    let from = proc_path(file);
    match linkat(CWD, &from, CWD, target, AtFlags::SYMLINK_FOLLOW) {
        Err(rustix::io::Errno::EXIST) if overwrite => {}
        other => return other.map_err(io::Error::from),
    }
    // The temporary file only reserves a name nobody else has.
    let reserved = hidden_beside(target, folder_of(target))?.into_temp_path();
    fs::remove_file(&reserved)?;
    linkat(CWD, &from, CWD, &*reserved, AtFlags::SYMLINK_FOLLOW)?;
    reserved.persist(target).map_err(|e| e.error)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed(_folder: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
fn link_unnamed(_file: &File, _target: &Path, _overwrite: bool) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const KEEP: Placement = Placement { overwrite: false, sync: true };
    const REPLACE: Placement = Placement { overwrite: true, sync: false };

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_only_at_commit() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new.tbl");
        let draft = AtomicFile::create(&target, KEEP).unwrap();
        draft.file().write_all(b"whole").unwrap();
        assert!(!target.exists());
        draft.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(folder.path()), ["new.tbl"]);
    }

    #[test]
    fn dropping_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("old.tbl");
        fs::write(&target, b"old").unwrap();
        let draft = AtomicFile::create(&target, REPLACE).unwrap();
        draft.file().write_all(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["old.tbl"]);
    }

    #[test]
    fn an_existing_file_is_replaced_only_when_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("old.tbl");
        fs::write(&target, b"old").unwrap();
        let refused = AtomicFile::create(&target, KEEP).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);

        let draft = AtomicFile::create(&target, REPLACE).unwrap();
        draft.file().write_all(b"new").unwrap();
        draft.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["old.tbl"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("raced.tbl");
        let draft = AtomicFile::create(&target, KEEP).unwrap();
        fs::write(&target, b"theirs").unwrap();
        assert_eq!(draft.commit().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
        assert_eq!(names(folder.path()), ["raced.tbl"]);
    }

    #[test]
    fn a_name_as_long_as_a_name_can_be_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("n".repeat(255));
        for content in [b"old", b"new"] {
            let draft = AtomicFile::create(&target, REPLACE).unwrap();
            draft.file().write_all(content).unwrap();
            draft.commit().unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()).len(), 1);
    }

    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("missing/new.tbl");
        let refused = AtomicFile::create(&target, KEEP).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert!(!refused.to_string().contains("partial"), "{refused}");
    }

    #[test]
    fn drafts_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.tbl", "b.tbl"] {
            let (_, path) = hidden_beside(Path::new(name), folder.path()).unwrap().into_parts();
            path.keep().unwrap();
        }
        for name in [".a.tbl", "a.tbl", ".partial"] {
            fs::write(folder.path().join(name), b"of somebody").unwrap();
        }
        assert_eq!(remove_drafts(folder.path(), |name| name == "a.tbl").unwrap(), 1);
        let left = names(folder.path());
        assert_eq!(left.len(), 4);
        assert!(left[1].starts_with(".b.tbl.") && left[0] == ".a.tbl", "{left:?}");
    }

    #[test]
    fn a_folder_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let refused = AtomicFile::create(folder.path(), REPLACE).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_named_draft_behaves_like_an_unnamed_one() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("named.tbl");
        let (file, path) = hidden_beside(&target, folder.path()).unwrap().into_parts();
        let draft = AtomicFile { file, draft: Some(path), target, placement: KEEP };
        draft.file().write_all(b"whole").unwrap();
        draft.commit().unwrap();
        assert_eq!(names(folder.path()), ["named.tbl"]);
    }
}
