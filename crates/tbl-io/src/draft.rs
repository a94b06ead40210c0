//! The seam of writing: a file of the local system or an object of a store, which appears when it is
//! complete.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::atomic_file::{AtomicFile, Placement, folder_of};

/// An object of a store under construction.
///
/// This is the trait that a store implements to be written to; [`Storage::create`](crate::Storage::create)
/// returns one. Its bytes are written from front to back, except for room that is left for those that
/// are known last.
///
/// # Contract
///
/// - Nothing has the object's name before [`finish`](Self::finish), and then all of it.
/// - Dropping it before that leaves no object, and nothing that the store charges for.
/// - Memory does not grow with the object.
/// - All methods may block, and should fail soon after [`is_interrupted`](crate::is_interrupted) is true
///   for the thread that waits.
/// - After an error only dropping it is of use. Retries are the store's own business.
pub trait Upload: Send + fmt::Debug {
    /// Announces about how many bytes the object will have, before the first is written. Stores that
    /// take a limited number of parts make them larger. The default does nothing.
    fn expect(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The fault of the store, also one of bytes before these.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Leaves room: the next byte that [`write`](Self::write) appends is at `position`, which is not
    /// before the current end.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    fn skip_to(&mut self, position: u64) -> io::Result<()>;

    /// Fills room that was left, in any order, each byte once.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Completes the object, all of whose bytes were written.
    ///
    /// # Errors
    /// As for [`write`](Self::write), and [`AlreadyExists`](io::ErrorKind::AlreadyExists).
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A file or an object under construction, written from front to back. Dropping it before
/// [`commit`](Self::commit) leaves neither.
///
/// [`Stores::create`](crate::Stores::create) makes one.
#[derive(Debug)]
pub struct Draft(Kind);

#[derive(Debug)]
enum Kind {
    File(AtomicFile),
    Object { name: PathBuf, upload: Box<dyn Upload> },
}

impl Draft {
    /// Starts a file of the local system that will be called `path`.
    ///
    /// # Errors
    /// As for [`AtomicFile::create`].
    pub fn of_file(path: &Path, placement: Placement) -> io::Result<Self> {
        AtomicFile::create(path, placement).map(Kind::File).map(Self)
    }

    /// An object that errors call `name`.
    pub(crate) fn of_object(name: PathBuf, upload: Box<dyn Upload>) -> Self {
        Self(Kind::Object { name, upload })
    }

    /// The path or the URL that it will have, as errors name it.
    pub fn target(&self) -> &Path {
        match &self.0 {
            Kind::File(file) => file.target(),
            Kind::Object { name, .. } => name,
        }
    }

    /// The local file; `None` for an object.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.0 {
            Kind::File(file) => Some(file.file()),
            Kind::Object { .. } => None,
        }
    }

    /// The folder for what has to wait until the end.
    pub(crate) fn spool_folder(&self) -> PathBuf {
        match &self.0 {
            Kind::File(file) => folder_of(file.target()).to_owned(),
            Kind::Object { .. } => std::env::temp_dir(),
        }
    }

    /// As [`Upload::expect`].
    pub(crate) fn expect(&mut self, bytes: u64) {
        if let Kind::Object { upload, .. } = &mut self.0 {
            upload.expect(bytes);
        }
    }

    /// Continues at this position. Of an object it is not before the end.
    pub(crate) fn skip_to(&mut self, position: u64) -> io::Result<()> {
        match &mut self.0 {
            Kind::File(file) => file.file().seek(SeekFrom::Start(position)).map(drop),
            Kind::Object { upload, .. } => upload.skip_to(position),
        }
    }

    /// Fills room that was left.
    pub(crate) fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &mut self.0 {
            Kind::File(file) => file.file().write_all_at(bytes, offset),
            Kind::Object { upload, .. } => upload.write_at(offset, bytes),
        }
    }

    /// Gives it its name, after everything written so far has reached the disk if the placement asks
    /// for that.
    ///
    /// # Errors
    /// As for [`AtomicFile::commit`] and [`Upload::finish`].
    pub fn commit(self) -> io::Result<()> {
        match self.0 {
            Kind::File(file) => file.commit(),
            Kind::Object { upload, .. } => upload.finish(),
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::File(file) => file.file().write(bytes),
            Kind::Object { upload, .. } => upload.write(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
