//! Writing files below one folder without ever following a link out of it, each of them whole or
//! not at all.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tbl_format::path::{RelativePath, check_component};
use tbl_io::{AtomicFile, Placement};

use crate::failure::Failure;

/// The folder in which Linux shows a process its open folders: a path through it starts at the folder
/// itself, wherever that has been moved and whatever has its name now.
const OPEN_FOLDERS: &str = "/proc/self/fd";

const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// A folder to write below. Every step from it opens one component relative to an open folder
/// and refuses symbolic links, so what another process or an earlier sample puts there cannot
/// redirect a write.
#[derive(Debug)]
pub(crate) struct Tree {
    path: PathBuf,
    root: OwnedFd,
    replace: bool,
    /// Whether [`OPEN_FOLDERS`] exists.
    can_name_open_folders: bool,
    /// The folder of the last file: most files share it with the one before.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Tree {
    /// Opens `path`, and makes it first if it is missing.
    pub(crate) fn create(path: &Path, replace: bool) -> Result<Self, Failure> {
        let failure = |source| Failure::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failure)?;
        let root =
            rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| failure(error.into()))?;
        let can_name_open_folders = Path::new(OPEN_FOLDERS).is_dir();
        Ok(Self { path: path.to_owned(), root, replace, can_name_open_folders, last: None })
    }

    /// Writes a new file.
    pub(crate) fn write(&mut self, name: &RelativePath, bytes: &[u8]) -> Result<(), Failure> {
        let (folder, file_name) = name.split();
        self.enter(folder).map_err(|source| self.failure(name, source))?;
        let parent = match &self.last {
            Some((_, open)) => open,
            None => &self.root,
        };
        let written = if self.can_name_open_folders {
            self.write_at_once(parent, file_name, bytes)
        } else {
            self.write_directly(parent, file_name, bytes)
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(Failure::Exists { path: self.full_path(name) })
            }
            other => other.map_err(|source| self.failure(name, source)),
        }
    }

    /// The file has its name only once it is whole, however the process ends.
    fn write_at_once(&self, parent: &OwnedFd, file_name: &[u8], bytes: &[u8]) -> io::Result<()> {
        let folder = Path::new(OPEN_FOLDERS).join(parent.as_raw_fd().to_string());
        // Neither linking nor renaming follows a link that is in the file's place.
        let target = folder.join(OsStr::from_bytes(file_name));
        let placement = Placement { overwrite: self.replace, sync: false };
        let draft = AtomicFile::create(&target, placement)?;
        draft.file().write_all(bytes)?;
        draft.commit()
    }

    /// For systems that do not name open folders.
    fn write_directly(&self, parent: &OwnedFd, file_name: &[u8], bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create_file(parent, file_name)?;
        let written = file.write_all(bytes);
        if written.is_err() {
            // Half a sample under its full name would pass for the sample. Where even removing it
            // fails, the first error is still the one to report.
            rustix::fs::unlinkat(parent, file_name, AtFlags::empty()).unwrap_or(());
        }
        written
    }

    fn create_file(&self, parent: &OwnedFd, file_name: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let create = || rustix::fs::openat(parent, file_name, flags | OFlags::CLOEXEC, FILE_MODE);
        match create() {
            Err(Errno::EXIST) if self.replace => {
                rustix::fs::unlinkat(parent, file_name, AtFlags::empty())?;
                create()
            }
            other => other,
        }
        .map(File::from)
    }

    /// Makes `folder` (empty, or ending with a slash) the open one.
    fn enter(&mut self, folder: &[u8]) -> io::Result<()> {
        if folder.is_empty() {
            self.last = None;
            return Ok(());
        }
        if self.last.as_ref().is_some_and(|(name, _)| name == folder) {
            return Ok(());
        }
        let components = folder.strip_suffix(b"/").unwrap_or(folder).split(|&byte| byte == b'/');
        let mut open: Option<OwnedFd> = None;
        for component in components {
            // The type has checked them. Here, where `..` would lead out, they are checked again.
            check_component(component)
                .map_err(|defect| io::Error::new(io::ErrorKind::InvalidInput, defect))?;
            let parent = open.as_ref().unwrap_or(&self.root);
            match rustix::fs::mkdirat(parent, component, FOLDER_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            open = Some(rustix::fs::openat(parent, component, flags, Mode::empty())?);
        }
        self.last = open.map(|open| (folder.to_vec(), open));
        Ok(())
    }

    fn full_path(&self, name: &RelativePath) -> PathBuf {
        self.path.join(OsStr::from_bytes(name.as_bytes()))
    }

    fn failure(&self, name: &RelativePath, source: io::Error) -> Failure {
        Failure::Io { path: self.full_path(name), source }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tbl_format::path::RelativePath;

    use super::Tree;
    use crate::failure::Failure;

    fn at(name: &str) -> RelativePath {
        RelativePath::new(name.as_bytes()).unwrap()
    }

    #[test]
    fn a_folder_is_entered_by_plain_names_only() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::create(&folder.path().join("in"), false).unwrap();
        for name in ["../", "a/../../", "a/./", "./", "a//b/", "/", "/a/", "a\0/", "a/..\0/"] {
            let error = tree.enter(name.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{name:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_never_followed() {
        follow_no_link(true);
        follow_no_link(false);
    }

    fn follow_no_link(can_name_open_folders: bool) {
        let new =
            |path, replace| Tree { can_name_open_folders, ..Tree::create(path, replace).unwrap() };
        let outside = tempfile::tempdir().unwrap();
        let inside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("victim"), b"safe").unwrap();
        symlink(outside.path(), inside.path().join("folder")).unwrap();
        symlink(outside.path().join("victim"), inside.path().join("file")).unwrap();
        for replace in [false, true] {
            let mut tree = new(inside.path(), replace);
            assert!(matches!(tree.write(&at("folder/victim"), b"x"), Err(Failure::Io { .. })));
            assert!(matches!(tree.write(&at("folder/new/file"), b"x"), Err(Failure::Io { .. })));
        }
        let mut tree = new(inside.path(), false);
        assert!(matches!(tree.write(&at("file"), b"x"), Err(Failure::Exists { .. })));
        let mut tree = new(inside.path(), true);
        tree.write(&at("file"), b"replaced").unwrap();
        assert_eq!(fs::read(inside.path().join("file")).unwrap(), b"replaced");
        assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"safe");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn folders_are_made_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::create(&folder.path().join("new/deep"), false).unwrap();
        for name in ["a/b/1", "a/b/2", "3", "a/4"] {
            tree.write(&at(name), name.as_bytes()).unwrap();
            let path = folder.path().join("new/deep").join(name);
            assert_eq!(fs::read(path).unwrap(), name.as_bytes());
        }
    }
}
