//! Videos as files: their indexes, and errors that name the file.

use std::io;

use tbl_io::{ErrorKind, ErrorPlace, Location, ReadError, Source};
use tl_pipeline::Fault;
use tl_video::{Container, Limits, ReadAt, VideoError, VideoIndex};

/// A video that cannot be indexed or decoded.
#[derive(Debug, thiserror::Error)]
#[error("{location}: {source}")]
#[expect(missing_docs, reason = "the type says it")]
pub struct VideoFault {
    pub location: Location,
    pub source: VideoError,
}

impl Fault for VideoFault {
    fn kind(&self) -> ErrorKind {
        if matches!(self.source, VideoError::Read { .. }) {
            ErrorKind::System
        } else if matches!(self.source, VideoError::LimitExceeded { .. }) {
            ErrorKind::Limit
        } else {
            ErrorKind::Data
        }
    }

    fn place(&self) -> ErrorPlace {
        ErrorPlace::at(self.location.clone())
    }
}

/// A file that the readers of videos read.
#[derive(Clone, Copy, Debug)]
pub struct VideoSource<'a>(pub &'a Source);

impl ReadAt for VideoSource<'_> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len())
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, bytes).map_err(io::Error::other)
    }
}

/// The index of a file that is a video; `None` for other files. The first bytes decide.
///
/// # Errors
/// [`ReadError`] if the file cannot be read.
pub fn index(source: &Source) -> Result<Option<Result<VideoIndex, VideoFault>>, ReadError> {
    let mut start = [0; Container::SNIFF_BYTES];
    let have = usize::try_from(source.len()).unwrap_or(usize::MAX).min(start.len());
    let start = &mut start[..have];
    source.read_exact_at(0, start)?;
    if Container::sniff(start).is_none() {
        return Ok(None);
    }
    let index = VideoIndex::open(&VideoSource(source), &Limits::default());
    let location = source.location().clone();
    Ok(Some(index.map_err(|source| VideoFault { location, source })))
}
