//! The bytes of a video, read in place as far as they are needed.

use std::cell::{Cell, RefCell};
use std::io;

use tbl_io::{ReadError, StoredBytes};
use tl_video::{ReadAt, VideoError};

use crate::dataset::Dataset;
use crate::error::SampleFault;

/// Bytes of the largest read ahead of what is asked for, of a video in a store: a request takes as
/// long as a megabyte.
const AHEAD: u64 = 1 << 20;

/// The stored bytes of a sample, if they are its bytes as they are.
pub(crate) fn in_place(dataset: &Dataset, sample: u64) -> Result<Option<StoredBytes>, ReadError> {
    let facts = dataset.facts(sample)?;
    if facts.stored_bytes != facts.bytes {
        return Ok(None);
    }
    let (source, local) = dataset.locate(sample)?;
    let stored = source.stored_samples().map_or(Ok(None), |samples| samples.stored(local))?;
    Ok(stored.filter(|stored| stored.len == facts.bytes))
}

/// The bytes of a video where they are stored.
pub(crate) struct Video {
    stored: StoredBytes,
    is_remote: bool,
    /// The bytes that were read ahead, and their place.
    window: RefCell<(u64, Vec<u8>)>,
    /// Counts the bytes that were read.
    pub(crate) read: Cell<usize>,
}

impl Video {
    pub(crate) fn new(stored: StoredBytes) -> Self {
        let is_remote = stored.source.location().url().is_some();
        Self { stored, is_remote, window: RefCell::default(), read: Cell::new(0) }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.read.set(self.read.get() + bytes.len());
        let StoredBytes { source, offset: start, .. } = &self.stored;
        let place = start.checked_add(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        source.read_exact_at(place, bytes).map_err(io::Error::other)
    }
}

impl ReadAt for Video {
    fn length(&self) -> io::Result<u64> {
        Ok(self.stored.len)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let need = bytes.len() as u64;
        let rest = self.stored.len.checked_sub(offset).filter(|rest| need <= *rest);
        let rest = rest.ok_or(io::ErrorKind::UnexpectedEof)?;
        if !self.is_remote || need >= AHEAD {
            return self.read(offset, bytes);
        }
        let mut window = self.window.borrow_mut();
        let (start, held) = &mut *window;
        let at = offset.checked_sub(*start).and_then(|at| usize::try_from(at).ok());
        let is_held = at.is_some_and(|at| at.saturating_add(bytes.len()) <= held.len());
        if !is_held {
            held.resize(usize::try_from(rest.min(AHEAD)).unwrap_or(usize::MAX), 0);
            if let Err(error) = self.read(offset, held) {
                held.clear();
                return Err(error);
            }
            *start = offset;
        }
        let at = if is_held { at.unwrap_or(0) } else { 0 };
        let part = held.get(at..at + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(part);
        Ok(())
    }
}

/// A video whose packets are not read any more once `is_over` says so.
pub(crate) struct Until<'a> {
    pub(crate) video: &'a dyn ReadAt,
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl ReadAt for Until<'_> {
    fn length(&self) -> io::Result<u64> {
        self.video.length()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        if (self.is_over)() {
            return Err(io::Error::other("nobody waits for the clip"));
        }
        self.video.read_exact_at(offset, bytes)
    }
}

/// The fault of a sample whose video has this error, about this frame.
pub(super) fn fault(frame: Option<u64>, error: VideoError) -> SampleFault {
    let VideoError::Read { offset, bytes, source } = error else {
        return SampleFault::Video { frame, source: Box::new(error) };
    };
    match source.downcast::<ReadError>() {
        Ok(error) => error.into(),
        Err(source) => {
            let source = Box::new(VideoError::Read { offset, bytes, source });
            SampleFault::Video { frame, source }
        }
    }
}
