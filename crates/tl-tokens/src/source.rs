//! Sequences of tokens as samples.

use std::any::Any;

use tbl_format::SampleFormat;
use tbl_io::{
    Entry, Facts, Location, ReadError, SampleSource, Source, SourceKind, StoredBytes, StoredSamples,
};

use crate::file::TokenFile;
use crate::windows::{EpochOffset, Windows};

/// A file of tokens as a source of samples, which are its [windows](Windows).
///
/// The bytes of a sample are its tokens as they are stored, little-endian, at the offset 0.
///
/// ```
/// use std::num::NonZeroU32;
/// use tbl_io::{SampleSource, Source, Stores};
/// use tl_tokens::{TokenFile, TokenOptions, TokenSource, TokenType, Windows};
///
/// let source = Source::from_bytes("corpus.bin", (0..11).collect());
/// let options = TokenOptions { number: Some(TokenType::U8), ..TokenOptions::default() };
/// let file = TokenFile::open(&Stores::new(), source, &options)?;
/// let windows = TokenSource::new(file, Windows::new(NonZeroU32::new(4).unwrap()));
/// let mut bytes = Vec::new();
/// windows.read_into(1, &mut bytes)?;
/// assert_eq!((windows.sample_count(), &bytes[..]), (2, &[4, 5, 6, 7, 8][..]));
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Debug)]
pub struct TokenSource {
    file: TokenFile,
    windows: Windows,
    count: u64,
}

impl TokenSource {
    /// The windows of `file` as samples.
    #[must_use]
    pub fn new(file: TokenFile, windows: Windows) -> Self {
        let count = windows.count(&file);
        Self { file, windows, count }
    }

    /// The token source that `source` is, if it is one.
    #[must_use]
    pub fn of(source: &dyn SampleSource) -> Option<&Self> {
        (source as &dyn Any).downcast_ref()
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &TokenFile {
        &self.file
    }

    /// The windows that are its samples.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The first token of sample `index` in an epoch with this offset, and how many there are.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`].
    ///
    /// # Panics
    /// If `offset` is not below [`Windows::offsets`].
    pub fn place(&self, index: u64, offset: u32) -> Result<(u64, u64), ReadError> {
        assert!(offset < self.windows.offsets(), "offset {offset} of {:?}", self.windows);
        if index >= self.count {
            let location = self.file.location().clone();
            return Err(ReadError::SampleOutOfRange { location, index, sample_count: self.count });
        }
        Ok((self.windows.start(index, offset), self.windows.tokens()))
    }

    /// The offset in the file and the length of sample `index`, at the offset 0.
    fn range(&self, index: u64) -> Result<(u64, u64), ReadError> {
        let (first, count) = self.place(index, 0)?;
        self.file.range(first, count)
    }
}

impl SampleSource for TokenSource {
    fn location(&self) -> &Location {
        self.file.location()
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Tokens
    }

    fn sample_count(&self) -> u64 {
        self.count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let Facts { format, width, height, offset, stored_bytes, bytes } = self.facts(index)?;
        Ok(Entry { key: None, label: None, format, width, height, offset, stored_bytes, bytes })
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let (offset, bytes) = self.range(index)?;
        let format = SampleFormat::Unknown;
        Ok(Facts { format, width: 0, height: 0, offset, stored_bytes: bytes, bytes })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let read = self
            .range(index)
            .and_then(|(offset, len)| self.file.source().read_range_into(offset, len, bytes));
        read.map_err(|error| error.for_sample(index, None))
    }

    fn will_need(&self, index: u64) {
        // A file that is mapped is read ahead by the system, and asking for each window would cost
        // as much as copying it.
        if self.windows.offset == EpochOffset::None
            && self.file.is_remote()
            && let Ok((first, count)) = self.place(index, 0)
        {
            self.file.will_need(first, count);
        }
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }
}

impl StoredSamples for TokenSource {
    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let (offset, len) = self.range(index)?;
        Ok(Some(StoredBytes { source: self.file.source().clone(), offset, len }))
    }

    fn source(&self) -> Option<&Source> {
        Some(self.file.source())
    }

    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let (first, count) = self.place(index, 0)?;
        self.file.view(first, count)
    }
}
