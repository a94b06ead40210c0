//! Videos as files and as samples: their indexes, checks of all of their frames, and errors that name
//! the file.

use std::error::Error;
use std::io;

use tbl_format::FormatError;
use tbl_format::extension::RowIndexes;
use tbl_io::{ErrorKind, ErrorPlace, Location, ReadError, Source};
use tl_pipeline::Fault;
use tl_video::{Container, FrameDecoder, Limits, ReadAt, VideoError, VideoIndex};

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

/// Whether the bytes of a sample are a video.
pub(crate) fn is_video(bytes: &[u8]) -> bool {
    Container::sniff(bytes).is_some()
}

/// The index of a sample that is a video, as TBL files store it.
pub(crate) fn index_bytes(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let length = bytes.len() as u64;
    let made = VideoIndex::open(bytes, &Limits::default())?.to_bytes(length);
    let limit = RowIndexes::MAX_ROW_INDEX_BYTES;
    if made.len() > limit {
        let what = "video index";
        let bytes = made.len() as u64;
        return Err(FormatError::TooLarge { what, bytes, limit: limit as u64 }.into());
    }
    Ok(made)
}

/// Decodes all frames of a sample that is a video, if its codec is decoded here, and forgets them.
pub(crate) fn decode_all(bytes: &[u8]) -> Result<(), VideoError> {
    let limits = Limits::default();
    let index = VideoIndex::open(bytes, &limits)?;
    let mut decoder = match FrameDecoder::new(&index, &limits) {
        Err(VideoError::Unsupported { .. }) => return Ok(()),
        other => other?,
    };
    let frames: Vec<u64> = (0..index.frame_count()).collect();
    let plan = index.cost(&frames)?;
    let mut decoded = 0;
    decoder.decode(&index, &plan, bytes, &mut |_, _| decoded += 1)?;
    let count = index.frame_count();
    if decoded < count {
        Err(VideoError::NoFrame { frame: decoded, count: decoded })
    } else {
        Ok(())
    }
}
