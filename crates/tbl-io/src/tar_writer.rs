//! Writes TAR archives of regular files: ustar headers, with PAX records only where ustar cannot
//! say it. The result depends on names and bytes alone: owner, mode and times are constants.

mod header;

use std::io::{BufWriter, Write};
use std::path::Path;

use tbl_format::path::{PathDefect, check_name};

use crate::atomic_file::Placement;
use crate::draft::Draft;
use crate::location::Location;
use crate::storage::Stores;
use crate::write_error::{MAX_NAME_BYTES, NameDefect, WriteError};

/// Members and padding are multiples of this.
const BLOCK: u64 = 512;
/// `tar` writes whole records of 20 blocks; some readers expect the last one to be complete.
const RECORD: u64 = 20 * BLOCK;
/// Two zero blocks end an archive.
const END_MARKER: u64 = 2 * BLOCK;
/// End marker and fill of one record.
const MAX_ZEROS: usize = 2 * 512 + 20 * 512;
/// Collects headers, padding and small members into few writes; larger members bypass it.
const BUFFER_BYTES: usize = 256 << 10;

/// Options of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TarOptions {
    /// Wait until the archive is on the disk before it gets its name.
    pub sync: bool,
    /// Replace a file of that name.
    pub overwrite: bool,
}

impl Default for TarOptions {
    /// Durable, and never replaces anything.
    fn default() -> Self {
        Self { sync: true, overwrite: false }
    }
}

/// A summary of the archive that [`TarWriter::finish`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TarSummary {
    /// Members, extended headers not counted.
    pub members: u64,
    /// Size of the archive.
    pub bytes: u64,
}

/// A TAR archive under construction. It gets its name in [`finish`](Self::finish); dropping the
/// writer before that leaves no file.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("train.tar");
/// use tbl_io::{TarOptions, TarWriter};
///
/// let mut writer = TarWriter::create(&path, TarOptions::default())?;
/// writer.append(b"n01443537/goldfish.jpg", b"\xff\xd8...")?;
/// writer.append(b"n01443537/goldfish.cls", b"1")?;
/// let summary = writer.finish()?;
/// assert_eq!((summary.members, summary.bytes), (2, 10_240));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TarWriter {
    out: BufWriter<Draft>,
    summary: TarSummary,
}

impl TarWriter {
    /// Starts an archive that will be called `path`.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the file exists already and may not be replaced, or cannot be
    /// created.
    pub fn create(path: &Path, options: TarOptions) -> Result<Self, WriteError> {
        Self::create_in(&Stores::new(), &Location::new(path), options)
    }

    /// As [`create`](Self::create), also for the URL of an object in one of the stores.
    ///
    /// # Errors
    /// As for [`create`](Self::create), and the fault of the store.
    pub fn create_in(
        stores: &Stores,
        location: &Location,
        options: TarOptions,
    ) -> Result<Self, WriteError> {
        let TarOptions { sync, overwrite } = options;
        let draft = stores.create(location, Placement { overwrite, sync })?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, draft);
        Ok(Self { out, summary: TarSummary { members: 0, bytes: 0 } })
    }

    /// Announces about how many bytes the archive will have, before the first member.
    pub(crate) fn expect(&mut self, bytes: u64) {
        self.out.get_mut().expect(bytes);
    }

    /// Appends a regular file. A name given twice makes two members, of which readers that
    /// extract keep the later.
    ///
    /// # Errors
    /// [`WriteError::MemberName`] for a name that TAR cannot store or that could lead out of the
    /// folder that the archive is extracted to, [`WriteError::Io`] when the disk
    /// is full or fails. The archive cannot be continued after an I/O error.
    pub fn append(&mut self, name: &[u8], bytes: &[u8]) -> Result<(), WriteError> {
        check_member_name(name).map_err(|defect| WriteError::MemberName {
            path: self.path().to_owned(),
            name: name.to_owned(),
            defect,
        })?;
        // A slice is shorter than 2^63 bytes, and so is everything written to one file.
        let size = bytes.len() as u64;
        let header = header::encode(name, size);
        let written = self
            .out
            .write_all(&header)
            .and_then(|()| self.out.write_all(bytes))
            .and_then(|()| self.out.write_all(zeros(size.next_multiple_of(BLOCK) - size)));
        self.check(written)?;
        self.summary.members += 1;
        self.summary.bytes += header.len() as u64 + size.next_multiple_of(BLOCK);
        Ok(())
    }

    /// Appends bytes of another archive, which must together be whole members; the last piece of
    /// a member is padded.
    ///
    /// # Errors
    /// [`WriteError::Io`], as for [`append`](Self::append).
    pub(crate) fn append_blocks(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let padded = (bytes.len() as u64).next_multiple_of(BLOCK);
        let written = self
            .out
            .write_all(bytes)
            .and_then(|()| self.out.write_all(zeros(padded - bytes.len() as u64)));
        self.check(written)?;
        self.summary.bytes += padded;
        Ok(())
    }

    /// Writes the end marker and gives the archive its name.
    ///
    /// # Errors
    /// [`WriteError::Io`]; nothing has the final name then, unless syncing the folder failed.
    pub fn finish(mut self) -> Result<TarSummary, WriteError> {
        let end = (self.summary.bytes + END_MARKER).next_multiple_of(RECORD);
        let missing = zeros(end - self.summary.bytes);
        let written = self.out.write_all(missing).and_then(|()| self.out.flush());
        self.check(written)?;
        let summary = TarSummary { bytes: end, ..self.summary };
        let (draft, _) = self.out.into_parts();
        let path = draft.target().to_owned();
        draft.commit().map_err(|source| WriteError::Io { path, source })?;
        Ok(summary)
    }

    /// The name the archive will have.
    pub fn path(&self) -> &Path {
        self.out.get_ref().target()
    }

    fn check(&self, result: std::io::Result<()>) -> Result<(), WriteError> {
        result.map_err(|source| WriteError::Io { path: self.path().to_owned(), source })
    }
}

fn check_member_name(name: &[u8]) -> Result<(), NameDefect> {
    if name.len() > MAX_NAME_BYTES {
        return Err(NameDefect::TooLong);
    }
    check_name(name)?;
    match name.last() {
        None => Err(PathDefect::Empty.into()),
        Some(b'/') => Err(NameDefect::Folder),
        Some(_) => Ok(()),
    }
}

/// `count` zeros, at most what the end marker and the rest of its record take.
fn zeros(count: u64) -> &'static [u8] {
    static ZEROS: [u8; MAX_ZEROS] = [0; MAX_ZEROS];
    usize::try_from(count).ok().and_then(|count| ZEROS.get(..count)).unwrap_or(&ZEROS)
}
