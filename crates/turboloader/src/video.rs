//! Videos as files and as samples: their indexes, checks of all of their frames, and errors that name
//! the file.

use std::error::Error;
use std::io;

use tbl_format::FormatError;
use tbl_format::extension::RowIndexes;
use tbl_io::{ErrorKind, ErrorPlace, Location, ReadError, SampleSource, Source, StoredBytes};
use tl_decode::{Image, Orientation};
use tl_pipeline::Fault;
use tl_video::{Container, FrameDecoder, Limits, Parity, ReadAt, Region, VideoError, VideoIndex};

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
        } else if matches!(
            self.source,
            VideoError::LimitExceeded { .. } | VideoError::TooManyPictures { .. }
        ) {
            ErrorKind::Limit
        } else {
            ErrorKind::Data
        }
    }

    fn place(&self) -> ErrorPlace {
        ErrorPlace::at(self.location.clone())
    }
}

/// The bytes of a video where they are stored, which readers of videos read by position.
#[derive(Clone, Debug)]
pub struct VideoBytes(StoredBytes);

impl VideoBytes {
    /// A whole file.
    #[must_use]
    pub fn of_file(source: &Source) -> Self {
        Self(StoredBytes { source: source.clone(), offset: 0, len: source.len() })
    }

    /// The stored bytes of sample `index`, if they are its bytes as they are.
    ///
    /// # Errors
    /// As for [`StoredSamples::stored`](tbl_io::StoredSamples::stored).
    pub fn of_sample(source: &dyn SampleSource, index: u64) -> Result<Option<Self>, ReadError> {
        let facts = source.facts(index)?;
        if facts.stored_bytes != facts.bytes {
            return Ok(None);
        }
        let stored = source.stored_samples().map_or(Ok(None), |samples| samples.stored(index))?;
        Ok(stored.filter(|stored| stored.len == facts.bytes).map(Self))
    }

    /// Whether the first bytes are those of a video.
    ///
    /// # Errors
    /// [`ReadError`] if they cannot be read.
    pub fn is_video(&self) -> Result<bool, ReadError> {
        let mut start = [0; Container::SNIFF_BYTES];
        let have = usize::try_from(self.0.len).unwrap_or(usize::MAX).min(start.len());
        self.0.source.read_exact_at(self.0.offset, &mut start[..have])?;
        Ok(is_video(&start[..have]))
    }

    /// The index of the video.
    ///
    /// # Errors
    /// [`VideoFault`].
    pub fn index(&self) -> Result<VideoIndex, VideoFault> {
        VideoIndex::open(self, &Limits::default()).map_err(|error| self.fault(error))
    }

    /// The fault of the file that has the video.
    #[must_use]
    pub fn fault(&self, source: VideoError) -> VideoFault {
        VideoFault { location: self.0.source.location().clone(), source }
    }
}

impl ReadAt for VideoBytes {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let place = self.0.offset.checked_add(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0.source.read_exact_at(place, bytes).map_err(io::Error::other)
    }
}

/// Decodes frames of a video to upright RGB images with FFmpeg's colours, and passes each to `show` with
/// its number, in the order in which they are decoded.
///
/// # Errors
/// [`VideoError`], also for a codec that is not decoded here.
pub fn show_frames(
    index: &VideoIndex,
    video: &(impl ReadAt + ?Sized),
    frames: &[u64],
    show: &mut dyn FnMut(u64, &Image),
) -> Result<(), VideoError> {
    let mut decoder = FrameDecoder::new(index, &Limits::default())?;
    let plan = index.cost(frames)?;
    let orientation = Orientation::of_rotation(index.info().rotation);
    let mut pixels = Vec::new();
    let mut image = Image { channels: 3, ..Image::new() };
    let mut converted = Ok(());
    decoder.decode(index, &plan, video, &mut |frame, picture| {
        if converted.is_err() {
            return;
        }
        let size = (picture.width as usize, picture.height as usize);
        pixels.resize(size.0 * size.1 * 3, 0);
        converted = picture.rgb(Region::whole(&picture), Parity::Ffmpeg, &mut pixels);
        if converted.is_ok() {
            orientation.turn(&pixels, size, 3, &mut image.data);
            (image.width, image.height) = orientation.shown_size((picture.width, picture.height));
            show(frame, &image);
        }
    })?;
    converted
}

/// Decodes the frame in the middle of a sample that is a video.
///
/// # Errors
/// As for [`show_frames`].
pub fn middle_frame(bytes: &[u8], image: &mut Image) -> Result<(), VideoError> {
    let index = VideoIndex::open(bytes, &Limits::default())?;
    let middle = index.frame_count() / 2;
    show_frames(&index, bytes, &[middle], &mut |_, frame| image.clone_from(frame))
}

/// Whether the bytes of a sample are a video.
#[must_use]
pub fn is_video(bytes: &[u8]) -> bool {
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
    let limits = Limits { max_pictures: u64::MAX, ..Limits::default() };
    let index = VideoIndex::open(bytes, &limits)?;
    let mut decoder = match FrameDecoder::new(&index, &limits) {
        Err(VideoError::NoDecoder { .. }) => return Ok(()),
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
