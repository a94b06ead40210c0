//! Positioned reads from one file, from bytes in memory or from an object of a store, with the same
//! rules.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::error::{FileKind, ReadError};
use crate::identity::{self, Times, Told};
use crate::interrupt::is_interrupted;
use crate::local_file::LocalFile;
use crate::location::Location;
use crate::ranges::{BackgroundReads, Part, PartFault, Pin, RangeFault, Ranges};

/// Bytes of an object that memory is taken for at once: enough for several requests.
const OBJECT_BLOCK: u64 = 32 << 20;

/// The use of the page cache by reads that run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageCache {
    /// Through the page cache.
    #[default]
    Used,
    /// Around it (`O_DIRECT`), where the file system can: for data sets that are far larger than
    /// memory and would only push other pages out. Samples are copied once more, to bring them from
    /// aligned memory to the front of their buffer.
    Bypassed,
}

/// A file of fixed length that any number of threads read at any position.
///
/// The length is taken when the file is opened. A file that is shorter by the time it is read
/// gives [`ReadError::ChangedWhileOpen`]; one that grew keeps its first length.
///
/// ```
/// let source = tbl_io::Source::from_bytes("in memory", b"abcdef".to_vec());
/// let mut bytes = [0; 3];
/// source.read_exact_at(2, &mut bytes)?;
/// assert_eq!(&bytes, b"cde");
/// assert!(source.read_exact_at(4, &mut bytes).is_err());
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    location: Location,
    len: u64,
    backing: Backing,
    times: Times,
}

#[derive(Clone, Debug)]
pub(crate) enum Backing {
    File(Arc<LocalFile>),
    /// A vector, because making a slice of it would copy it.
    Memory(Arc<Vec<u8>>),
    Ranges(Arc<dyn Ranges>),
}

impl Source {
    /// Opens a regular file. Anything else is refused by name without waiting for it: a FIFO has
    /// no length and opening a device may have effects.
    ///
    /// # Errors
    /// [`ReadError::Io`] or [`ReadError::NotAFile`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ReadError> {
        let path = path.as_ref();
        let OpenedFile { file, metadata } = open_with_metadata(path)?;
        let len = metadata.len();
        let backing = Backing::File(Arc::new(LocalFile::new(file, &metadata)));
        let location = Location::new(path);
        Ok(Self { location, len, backing, times: Times::default() })
    }

    /// An open file, with the location that errors name.
    pub(crate) fn of_file(location: &Location, file: File) -> Result<Self, ReadError> {
        let metadata = file.metadata().map_err(|error| ReadError::io(location, error))?;
        let len = metadata.len();
        let backing = Backing::File(Arc::new(LocalFile::new(file, &metadata)));
        Ok(Self { location: location.clone(), len, backing, times: Times::default() })
    }

    /// Bytes in memory under a name that errors will use.
    pub fn from_bytes(name: impl AsRef<OsStr>, bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        let backing = Backing::Memory(Arc::new(bytes));
        Self { location: Location::new(name), len, backing, times: Times::default() }
    }

    /// An object of a store, with the location that errors name.
    pub fn from_ranges(location: impl AsRef<OsStr>, ranges: Arc<dyn Ranges>) -> Self {
        let location = Location::new(location);
        let len = ranges.len();
        Self { location, len, backing: Backing::Ranges(ranges), times: Times::default() }
    }

    /// The path given to [`open`](Self::open), or the name given to
    /// [`from_bytes`](Self::from_bytes) or [`from_ranges`](Self::from_ranges).
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The file's length when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file was empty when it was opened.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends to `id` what tells the file from others and from itself before it was changed, for
    /// [`SampleSource::content_id`](crate::SampleSource::content_id). `None` for bytes in memory
    /// and where the system does not say.
    pub(crate) fn content_id(&self, id: &mut Vec<u8>) -> Option<Told> {
        match &self.backing {
            Backing::File(file) => {
                let file = file.current();
                let metadata = file.metadata().ok()?;
                identity::push(self.location.as_os_str(), &metadata, id);
                Some(Told::by_times(&metadata, &self.times, || rustix::fs::fstatfs(&file)))
            }
            Backing::Memory(_) => None,
            Backing::Ranges(ranges) => {
                let hidden = ranges.hidden();
                identity::push_object(&self.location, hidden, self.len, ranges.pin(), id)
            }
        }
    }

    /// Appends to `id` what tells the file from others and from itself before it was changed, for
    /// [`SampleSource::content_id`](crate::SampleSource::content_id), without a checksum of its bytes.
    /// False where that cannot be promised.
    pub fn identify(&self, id: &mut Vec<u8>) -> bool {
        self.content_id(id) == Some(Told::ByTimes)
    }

    /// The version of the bytes: that of an object, or the time at which a local file was last
    /// changed.
    ///
    /// # Errors
    /// [`ReadError::Io`].
    pub fn version(&self) -> Result<Pin, ReadError> {
        match &self.backing {
            Backing::File(file) => {
                let io_error = |error| ReadError::io(&self.location, error);
                let metadata = file.current().metadata().map_err(io_error)?;
                let text = format!("{}.{:09}", metadata.mtime(), metadata.mtime_nsec());
                Ok(Pin::Weak(text.into()))
            }
            Backing::Memory(_) => Ok(Pin::Unknown),
            Backing::Ranges(ranges) => Ok(ranges.pin().clone()),
        }
    }

    /// Whether the bytes are an object that is asked for with credentials.
    pub fn is_secret(&self) -> bool {
        self.ranges().is_some_and(|ranges| ranges.is_secret())
    }

    /// The object, if the bytes are in a store.
    pub(crate) fn ranges(&self) -> Option<&Arc<dyn Ranges>> {
        match &self.backing {
            Backing::Ranges(ranges) => Some(ranges),
            Backing::File(_) | Backing::Memory(_) => None,
        }
    }

    /// Fills `bytes` from the file, starting at `offset`.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`] when the range is not inside the file, [`ReadError::Io`].
    pub fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        let expected = bytes.len() as u64;
        self.check_range(offset, expected)?;
        match &self.backing {
            Backing::File(file) => {
                let path = Path::new(self.location.as_os_str());
                file.read_exact_at(path, offset, bytes).map_err(|error| {
                    if error.kind() == io::ErrorKind::UnexpectedEof {
                        self.changed(offset, expected)
                    } else {
                        ReadError::io(&self.location, error)
                    }
                })
            }
            Backing::Memory(memory) => {
                let start = usize::try_from(offset).ok();
                let range = start.and_then(|start| memory.get(start..)?.get(..bytes.len()));
                bytes.copy_from_slice(range.ok_or_else(|| self.changed(offset, expected))?);
                Ok(())
            }
            Backing::Ranges(ranges) => {
                // A store asks only while it waits, and bytes may arrive without a pause.
                let read = if is_interrupted() {
                    Err(RangeFault::Interrupted)
                } else {
                    ranges.read_exact_at(offset, bytes)
                };
                read.map_err(|fault| self.range_error(&**ranges, offset, expected, fault))
            }
        }
    }

    /// Replaces `bytes` with `len` bytes of the file from `offset` on, reusing its capacity.
    /// Nothing is allocated for a range that is not inside the file. The length of an object is
    /// only claimed, so memory for a large range of one grows with what arrives.
    ///
    /// # Errors
    /// As for [`read_exact_at`](Self::read_exact_at), and [`ReadError::Limit`] when the memory is
    /// not available; `bytes` is then unspecified.
    pub fn read_range_into(
        &self,
        offset: u64,
        len: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        self.check_range(offset, len)?;
        let block = if self.ranges().is_some() { OBJECT_BLOCK } else { len };
        let mut read = 0;
        let mut end = len.min(block);
        loop {
            self.make_room(offset, end, bytes)?;
            self.read_exact_at(offset + read as u64, &mut bytes[read..])?;
            if end == len {
                return Ok(());
            }
            read = bytes.len();
            end = len.min(end + block);
        }
    }

    /// Resizes `bytes` to hold the range, which is inside the file then.
    fn make_room(&self, offset: u64, len: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.check_range(offset, len)?;
        let limit = |limit| ReadError::Limit {
            location: self.location.clone(),
            what: "bytes to hold in memory",
            limit,
            need: len,
        };
        let len = usize::try_from(len).map_err(|_| limit(usize::MAX as u64))?;
        // No `clear` first: only bytes beyond the previous length need zeroing.
        bytes
            .try_reserve(len.saturating_sub(bytes.len()))
            .map_err(|_| limit(bytes.capacity() as u64))?;
        bytes.resize(len, 0);
        Ok(())
    }

    /// Reads several ranges, given by offset and length, which a store may read at once unless they
    /// are large.
    ///
    /// # Errors
    /// As for [`read_range_into`](Self::read_range_into), of the first range that fails.
    pub fn read_ranges(&self, ranges: &[(u64, u64)]) -> Result<Vec<Vec<u8>>, ReadError> {
        let mut read: Vec<Vec<u8>> = ranges.iter().map(|_| Vec::new()).collect();
        let total = ranges.iter().fold(0_u64, |total, &(_, len)| total.saturating_add(len));
        if total > OBJECT_BLOCK {
            for (&(offset, len), bytes) in ranges.iter().zip(&mut read) {
                self.read_range_into(offset, len, bytes)?;
            }
            return Ok(read);
        }
        for (&(offset, len), bytes) in ranges.iter().zip(&mut read) {
            self.make_room(offset, len, bytes)?;
        }
        let parts = ranges.iter().zip(&mut read);
        let mut parts: Vec<Part<'_>> =
            parts.map(|(&(offset, _), bytes)| Part { offset, bytes }).collect();
        if let Backing::Ranges(object) = &self.backing {
            object.read_parts(&mut parts).map_err(|PartFault { part, fault }| {
                let (offset, expected) = ranges.get(part).copied().unwrap_or_default();
                self.range_error(&**object, offset, expected, fault)
            })?;
        } else {
            parts.iter_mut().try_for_each(|part| self.read_exact_at(part.offset, part.bytes))?;
        }
        drop(parts);
        Ok(read)
    }

    /// Reads that no thread waits for, of an object in a store that has them.
    pub fn background(&self) -> Option<&dyn BackgroundReads> {
        match &self.backing {
            Backing::Ranges(ranges) => ranges.background(),
            Backing::File(_) | Backing::Memory(_) => None,
        }
    }

    /// Tells the operating system that the range will be read soon. A hint: the read itself will
    /// report what is wrong.
    pub fn will_need(&self, offset: u64, len: u64) {
        // Advice may be refused, for instance by a file system without a page cache.
        drop(self.advise(offset, len, Advice::WillNeed));
    }

    /// Tells the operating system that cached pages of the range can go, which makes the next
    /// read of them a cold one. Pages not yet written to disk stay.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the system refuses.
    pub fn dont_need(&self, offset: u64, len: u64) -> Result<(), ReadError> {
        self.advise(offset, len, Advice::DontNeed)
            .map_err(|error| ReadError::io(&self.location, error))
    }

    /// Releases what an object keeps of its first bytes, which opening a container has read.
    pub(crate) fn release_front(&self) {
        if let Backing::Ranges(ranges) = &self.backing {
            ranges.dont_need(0, self.len);
        }
    }

    /// The first offset from `offset` on that does not lie in a hole, or the file's length.
    /// File systems that keep no holes answer with `offset`.
    #[cfg(target_os = "linux")]
    pub(crate) fn next_data(&self, offset: u64) -> u64 {
        let Backing::File(file) = &self.backing else { return offset };
        // Moves the descriptor's own position, which positioned reads do not use.
        match rustix::fs::seek(file.current(), rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => data.clamp(offset, self.len),
            // No data up to the end.
            Err(rustix::io::Errno::NXIO) => self.len,
            Err(_) => offset,
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn next_data(&self, offset: u64) -> u64 {
        offset
    }

    fn advise(&self, offset: u64, len: u64, advice: Advice) -> io::Result<()> {
        match (&self.backing, NonZeroU64::new(len)) {
            (Backing::File(file), Some(len)) => advise(&file.current(), offset, len, advice),
            (Backing::Ranges(ranges), Some(len)) => {
                match advice {
                    Advice::WillNeed => ranges.will_need(offset, len.get()),
                    Advice::DontNeed => ranges.dont_need(offset, len.get()),
                }
                Ok(())
            }
            (Backing::Memory(_), _) | (_, None) => Ok(()),
        }
    }

    pub(crate) fn backing(&self) -> &Backing {
        &self.backing
    }

    /// The same bytes in a local file or in memory, if they are available.
    pub(crate) fn local(&self) -> Option<Cow<'_, Self>> {
        let Backing::Ranges(ranges) = &self.backing else { return Some(Cow::Borrowed(self)) };
        let is_same =
            |local: &Self| local.len == self.len && !matches!(local.backing, Backing::Ranges(_));
        ranges.local().filter(is_same).map(Cow::Owned)
    }

    /// A source that can be mapped: this one, or a copy of an object in memory.
    ///
    /// # Errors
    /// As for [`read_range_into`](Self::read_range_into).
    pub fn to_mappable(&self) -> Result<Cow<'_, Self>, ReadError> {
        if self.is_mappable() {
            return Ok(Cow::Borrowed(self));
        }
        let mut bytes = Vec::new();
        self.read_range_into(0, self.len, &mut bytes)?;
        Ok(Cow::Owned(Self::from_bytes(&self.location, bytes)))
    }

    /// Whether the bytes are in a local file.
    pub fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// Whether [`Mapped::new`](crate::Mapped::new) maps it: a file, bytes in memory, or an object
    /// with a local copy.
    pub fn is_mappable(&self) -> bool {
        self.local().is_some()
    }

    pub(crate) fn check_range(&self, offset: u64, len: u64) -> Result<(), ReadError> {
        if offset <= self.len && len <= self.len - offset {
            Ok(())
        } else {
            Err(self.changed(offset, len))
        }
    }

    /// The error of a read of `expected` bytes of an object from `offset` on.
    fn range_error(
        &self,
        ranges: &dyn Ranges,
        offset: u64,
        expected: u64,
        fault: RangeFault,
    ) -> ReadError {
        if let RangeFault::OfSource(error) = fault {
            return *error;
        }
        let location = self.location.clone();
        let pin = || ranges.pin().clone();
        if let RangeFault::Changed { found } = fault {
            return ReadError::ObjectChanged { location, expected: pin(), found, index: None };
        }
        if let RangeFault::ChangedSinceIndexed { found, index } = fault {
            let index = Some(index);
            return ReadError::ObjectChanged { location, expected: pin(), found, index };
        }
        ReadError::Remote { location, offset, expected, source: fault }
    }

    fn changed(&self, offset: u64, expected: u64) -> ReadError {
        ReadError::ChangedWhileOpen { location: self.location.clone(), offset, expected }
    }
}

/// Opens a regular file for reading. Anything else is refused by name without waiting for it: a
/// FIFO may have no writer, a device no end, and opening one may have effects.
///
/// Files of `/proc` are regular ones that do not say their length: callers that read to the end
/// still need a limit.
///
/// # Errors
/// [`ReadError::Io`] or [`ReadError::NotAFile`].
pub fn open_file(path: impl AsRef<Path>) -> Result<File, ReadError> {
    open_with_metadata(path.as_ref()).map(|opened| opened.file)
}

/// A file that was opened, and what the system says of it.
pub(crate) struct OpenedFile {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

pub(crate) fn open_with_metadata(path: &Path) -> Result<OpenedFile, ReadError> {
    let io_error = |error| ReadError::io(path, error);
    let check = |file_type: std::fs::FileType| match file_kind(file_type) {
        None => Ok(()),
        Some(found) => Err(ReadError::NotAFile { location: path.into(), found }),
    };
    check(std::fs::metadata(path).map_err(io_error)?.file_type())?;
    // The path may have been replaced since; O_NONBLOCK keeps the open from waiting for a FIFO's
    // writer and means nothing to a regular file.
    let file =
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(io_error)?;
    let metadata = file.metadata().map_err(io_error)?;
    check(metadata.file_type())?;
    Ok(OpenedFile { file, metadata })
}

#[derive(Clone, Copy)]
enum Advice {
    WillNeed,
    DontNeed,
}

/// `rustix` keeps this call free of unsafe code; it is in the tree already, below `tempfile`.
#[cfg(target_os = "linux")]
fn advise(file: &File, offset: u64, len: NonZeroU64, advice: Advice) -> io::Result<()> {
    let advice = match advice {
        Advice::WillNeed => rustix::fs::Advice::WillNeed,
        Advice::DontNeed => rustix::fs::Advice::DontNeed,
    };
    rustix::fs::fadvise(file, offset, Some(len), advice).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &File, _: u64, _: NonZeroU64, _: Advice) -> io::Result<()> {
    Ok(())
}

/// The kind of `file_type` when it is not a regular file.
pub(crate) fn file_kind(file_type: std::fs::FileType) -> Option<FileKind> {
    if file_type.is_file() {
        return None;
    }
    Some(if file_type.is_dir() {
        FileKind::Directory
    } else if file_type.is_fifo() {
        FileKind::Fifo
    } else if file_type.is_socket() {
        FileKind::Socket
    } else if file_type.is_char_device() {
        FileKind::CharacterDevice
    } else if file_type.is_block_device() {
        FileKind::BlockDevice
    } else {
        FileKind::Unknown
    })
}
