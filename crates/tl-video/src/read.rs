//! Positioned reads of a file, and a window over the part that headers are read from.

use std::io;
use std::ops::Range;

use crate::container::Container;
use crate::error::{Name, VideoError};
use crate::limits::Limits;

/// A file of fixed length that is read at any position: local, in memory or in a store.
pub trait ReadAt {
    /// The length of the file in bytes.
    ///
    /// # Errors
    /// The error of the file.
    fn length(&self) -> io::Result<u64>;

    /// Fills `bytes` from the file, starting at `offset`. Callers ask for ranges inside the file.
    ///
    /// # Errors
    /// The error of the file, also for a range that is not inside it.
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, bytes)
    }
}

impl ReadAt for [u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| self.get(start..)?.get(..bytes.len()));
        bytes.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        self.as_slice().length()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(offset, bytes)
    }
}

#[cfg(any(unix, windows))]
impl ReadAt for std::fs::File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(self, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    offset += read as u64;
                    bytes = &mut bytes[read..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Bytes of the first read, and of one far from the last.
const FIRST_READ: u64 = 4 << 10;

/// Bytes of the largest read for headers that follow each other closely.
const LARGEST_READ: u64 = 256 << 10;

/// A file from which headers are read one after another. Reads grow while the headers are close to
/// each other, so that a walk over small packets takes few reads, and one over large packets
/// few bytes.
pub(crate) struct Reader<'a> {
    source: &'a dyn ReadAt,
    pub(crate) container: Container,
    pub(crate) limits: Limits,
    pub(crate) len: u64,
    window: Vec<u8>,
    window_at: u64,
    next_read: u64,
    headers: u64,
}

impl<'a> Reader<'a> {
    /// The reader of a file, whose container its first bytes tell.
    pub(crate) fn open(source: &'a dyn ReadAt, limits: &Limits) -> Result<Self, VideoError> {
        let len =
            source.length().map_err(|source| VideoError::Read { offset: 0, bytes: 0, source })?;
        let mut reader = Self {
            source,
            container: Container::Mp4,
            limits: *limits,
            len,
            window: Vec::new(),
            window_at: 0,
            next_read: FIRST_READ,
            headers: 0,
        };
        let start = reader.up_to(0, Container::SNIFF_BYTES as u64)?;
        let container = Container::sniff(start);
        reader.container = container.ok_or(VideoError::UnknownContainer { length: len })?;
        Ok(reader)
    }

    /// Counts a header that is visited.
    pub(crate) fn charge_header(&mut self) -> Result<(), VideoError> {
        self.headers += 1;
        self.limits.charge_headers(self.headers)
    }

    /// At most `need` bytes at `offset`, fewer at the end of the file. `need` is the size of a
    /// header.
    pub(crate) fn up_to(&mut self, offset: u64, need: u64) -> Result<&[u8], VideoError> {
        let need = need.min(self.len.saturating_sub(offset));
        if self.inside(offset, need).is_none() {
            let end = self.window_at + self.window.len() as u64;
            let is_close = (end..=end.saturating_add(self.next_read)).contains(&offset);
            self.next_read = match (self.window.is_empty(), is_close) {
                (false, true) => (self.next_read * 2).min(LARGEST_READ),
                _ => FIRST_READ,
            };
            let bytes = self.next_read.max(need).min(self.len - offset.min(self.len));
            let mut window = std::mem::take(&mut self.window);
            window.resize(to_usize(bytes), 0);
            self.fill(offset, &mut window)?;
            self.window = window;
            self.window_at = offset;
        }
        let range = self.inside(offset, need).unwrap_or_default();
        Ok(self.window.get(range).unwrap_or_default())
    }

    /// Exactly `N` bytes at `offset`.
    pub(crate) fn array<const N: usize>(
        &mut self,
        offset: u64,
        what: Name,
    ) -> Result<[u8; N], VideoError> {
        let container = self.container;
        let bytes = self.up_to(offset, N as u64)?;
        let have = bytes.len() as u64;
        let array = bytes.try_into().ok();
        array.ok_or(VideoError::Truncated { container, what, offset, need: N as u64, have })
    }

    /// A structure of `bytes` bytes at `offset`, which is charged before memory is taken.
    pub(crate) fn table(&self, offset: u64, bytes: u64, what: Name) -> Result<Vec<u8>, VideoError> {
        self.check_inside(offset, bytes, what)?;
        self.limits.charge_table(bytes)?;
        if let Some(range) = self.inside(offset, bytes) {
            return Ok(self.window.get(range).unwrap_or_default().to_vec());
        }
        let mut table = vec![0; to_usize(bytes)];
        self.fill(offset, &mut table)?;
        Ok(table)
    }

    /// Fails when a structure does not end in the file.
    pub(crate) fn check_inside(
        &self,
        offset: u64,
        need: u64,
        what: Name,
    ) -> Result<(), VideoError> {
        let have = self.len.saturating_sub(offset);
        if need > have {
            return Err(VideoError::Truncated {
                container: self.container,
                what,
                offset,
                need,
                have,
            });
        }
        Ok(())
    }

    fn inside(&self, offset: u64, need: u64) -> Option<Range<usize>> {
        let start = usize::try_from(offset.checked_sub(self.window_at)?).ok()?;
        let end = start.checked_add(usize::try_from(need).ok()?)?;
        (end <= self.window.len()).then_some(start..end)
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) -> Result<(), VideoError> {
        let read = self.source.read_exact_at(offset, bytes);
        read.map_err(|source| VideoError::Read { offset, bytes: bytes.len() as u64, source })
    }
}

fn to_usize(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
