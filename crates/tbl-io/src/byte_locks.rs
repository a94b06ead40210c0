//! Locks of single bytes of a file, which the system releases when their process dies.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "the standard library locks whole files only")
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// A file whose bytes are locked one by one. A lock belongs to this opening of the file: another
/// one, in this process or elsewhere, cannot have the same byte. Forks share it.
///
/// On systems other than Linux all methods are errors of the kind
/// [`Unsupported`](io::ErrorKind::Unsupported).
#[derive(Debug)]
pub struct ByteLocks(File);

impl ByteLocks {
    /// Opens the file, which is created if it is missing. Its bytes need not exist.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(path).map(Self)
    }

    /// Locks a byte, or returns false if somebody else has it. Does not wait.
    ///
    /// # Errors
    /// The error of the system.
    pub fn try_lock(&self, byte: u16) -> io::Result<bool> {
        sys::try_lock(&self.0, byte)
    }

    /// Releases a byte.
    ///
    /// # Errors
    /// The error of the system.
    pub fn unlock(&self, byte: u16) -> io::Result<()> {
        sys::unlock(&self.0, byte)
    }

    /// Whether somebody else has locked a byte.
    ///
    /// # Errors
    /// The error of the system.
    pub fn is_locked_elsewhere(&self, byte: u16) -> io::Result<bool> {
        sys::is_locked_elsewhere(&self.0, byte)
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    pub(super) fn try_lock(file: &File, byte: u16) -> io::Result<bool> {
        match fcntl(file, libc::F_OFD_SETLK, libc::F_WRLCK, byte) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn unlock(file: &File, byte: u16) -> io::Result<()> {
        fcntl(file, libc::F_OFD_SETLK, libc::F_UNLCK, byte).map(|_| ())
    }

    pub(super) fn is_locked_elsewhere(file: &File, byte: u16) -> io::Result<bool> {
        let found = fcntl(file, libc::F_OFD_GETLK, libc::F_WRLCK, byte)?;
        Ok(libc::c_int::from(found) != libc::F_UNLCK)
    }

    /// Carries out a command on the lock of one byte, and returns the type of lock that the system
    /// leaves in its argument.
    fn fcntl(
        file: &File,
        command: libc::c_int,
        kind: libc::c_int,
        byte: u16,
    ) -> io::Result<libc::c_short> {
        let small = |number: libc::c_int| {
            libc::c_short::try_from(number).expect("the constants of locks are below 8")
        };
        let mut lock = libc::flock {
            l_type: small(kind),
            l_whence: small(libc::SEEK_SET),
            l_start: byte.into(),
            l_len: 1,
            l_pid: 0,
        };
        // SAFETY: the descriptor is open as long as `file` is borrowed, and the commands of this
        // module read and write one `flock`, which `lock` is.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(lock.l_type) }
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use std::fs::File;
    use std::io;

    pub(super) fn try_lock(_: &File, _: u16) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn unlock(_: &File, _: u16) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_locked_elsewhere(_: &File, _: u16) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_byte_belongs_to_one_opening_until_that_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks");
        let one = ByteLocks::open(&path).unwrap();
        let other = ByteLocks::open(&path).unwrap();
        assert!(one.try_lock(7).unwrap());
        assert!(one.try_lock(7).unwrap(), "it is ours");
        assert!(!other.try_lock(7).unwrap());
        assert!(other.try_lock(8).unwrap());
        assert!(other.try_lock(u16::MAX).unwrap());
        assert!(other.is_locked_elsewhere(7).unwrap());
        assert!(!other.is_locked_elsewhere(8).unwrap(), "its own");
        assert!(one.is_locked_elsewhere(8).unwrap());
        one.unlock(7).unwrap();
        assert!(!other.is_locked_elsewhere(7).unwrap());
        drop(other);
        assert!(one.try_lock(8).unwrap());
        assert_eq!(path.metadata().unwrap().len(), 0);
    }
}
