//! Sequences of tokens as samples.

use std::any::Any;

use tbl_format::SampleFormat;
use tbl_io::{
    BlockMemory, Entry, Facts, Location, ReadError, SampleSource, Source, SourceKind, StoredBytes,
    StoredSamples, TokensDefect,
};

use crate::file::TokenFile;
use crate::order::MegatronOrder;
use crate::rows::{PackedWindows, Piece, Rows, Split, whole_document};
use crate::sequences::{DocumentRows, Long, Packing, Sequences};
use crate::windows::EpochOffset;

/// A file of tokens as a source of samples, which are its [sequences](Sequences).
///
/// The bytes of a sample are its tokens as they are stored, little-endian, without padding; those of a
/// window are the ones at the offset 0.
///
/// ```
/// use std::num::NonZeroU32;
/// use tbl_io::{SampleSource, Source, Stores};
/// use tl_tokens::{TokenFile, TokenOptions, TokenSource, TokenType, Windows};
///
/// let source = Source::from_bytes("corpus.bin", (0..11).collect());
/// let options = TokenOptions { number: Some(TokenType::U8), ..TokenOptions::default() };
/// let file = TokenFile::open(&Stores::new(), source, &options)?;
/// let windows = TokenSource::new(file, Windows::new(NonZeroU32::new(4).unwrap()).into())?;
/// let mut bytes = Vec::new();
/// windows.read_into(1, &mut bytes)?;
/// assert_eq!((windows.sample_count(), &bytes[..]), (2, &[4, 5, 6, 7, 8][..]));
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Debug)]
pub struct TokenSource {
    file: TokenFile,
    sequences: Sequences,
    rows: Option<Rows>,
    count: u64,
}

impl TokenSource {
    /// The sequences of `file` as samples. Packing reads the lengths of all documents; 100 million of
    /// them take 4 bytes of memory each, and some seconds. Other sequences take none.
    ///
    /// # Errors
    /// [`TokensDefect::NoDocuments`] where documents are asked for and the file has none; when packing,
    /// [`TokensDefect::Long`], [`TokensDefect::Document`], and those of reading.
    pub fn new(file: TokenFile, sequences: Sequences) -> Result<Self, ReadError> {
        #[cfg(feature = "text")]
        if let Some(text) = file.text() {
            let is_one_row =
                matches!(&sequences, Sequences::Documents(rows) if rows.long != Long::Split);
            if !is_one_row {
                return Err(file.defect(0, TokensDefect::TextRows));
            }
            let count = text.len();
            return Ok(Self { file, sequences, rows: None, count });
        }
        let documents = || {
            let none = || file.defect(0, TokensDefect::NoDocuments);
            file.documents().ok_or_else(none)
        };
        let (rows, count) = match &sequences {
            Sequences::Windows(windows) => (None, windows.count(&file)),
            Sequences::Documents(rows) if rows.long != Long::Split => {
                (Some(Rows::Documents), documents()?.len())
            }
            Sequences::Documents(rows) => {
                let packed = PackedWindows::new(documents()?, &rows.alone(), false)?;
                let count = packed.count();
                (Some(Rows::Packed(packed)), count)
            }
            Sequences::Packed(rows) if rows.strategy == Packing::Split => {
                let split = Split::new(documents()?)?;
                let count = split.count(rows.length.get());
                (Some(Rows::Split(split)), count)
            }
            Sequences::Packed(rows) => {
                let packed = PackedWindows::new(documents()?, rows, true)?;
                let count = packed.count();
                (Some(Rows::Packed(packed)), count)
            }
        };
        Ok(Self { file, sequences, rows, count })
    }

    /// The windows of `file` in an order of Megatron-LM, over documents of the file: window `i` is the
    /// sample that is used as the `i`th there.
    pub(crate) fn ordered(
        file: TokenFile,
        sequences: Sequences,
        order: MegatronOrder,
    ) -> Result<Self, ReadError> {
        let found = match sequences {
            _ if file.documents().is_none() => Some("which is missing"),
            Sequences::Documents(_) | Sequences::Packed(_) => Some("not with documents in rows"),
            Sequences::Windows(windows) => {
                let is_other = windows.stride.is_some() || windows.offset != EpochOffset::None;
                is_other.then_some("without stride and offset")
            }
        };
        if let Some(found) = found {
            return Err(file.defect(0, TokensDefect::OrderOf { found }));
        }
        let count = order.count();
        Ok(Self { file, sequences, rows: Some(Rows::Ordered(Box::new(order))), count })
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

    /// The sequences that are its samples.
    #[must_use]
    pub fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    /// A number that tells the lengths of packed documents from others, for saved states; 0 for
    /// windows and for one document per row.
    #[must_use]
    pub fn packing_id(&self) -> u64 {
        #[cfg(feature = "text")]
        if let Some(text) = self.file.text() {
            return text.id();
        }
        self.rows.as_ref().map_or(0, Rows::id)
    }

    /// Replaces `tokens` with those of sample `index`, as they are stored in files, where they are made
    /// of a text, and returns the piece of them that is the row. `None` for the tokens of a file, which
    /// [`pieces`](Self::pieces) finds.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`]; those of texts, [`TokensDefect::Long`], and those of reading.
    #[cfg(feature = "text")]
    pub fn read_text(&self, index: u64, tokens: &mut Vec<u8>) -> Result<Option<Piece>, ReadError> {
        let (Some(text), Sequences::Documents(rows)) = (self.file.text(), &self.sequences) else {
            return Ok(None);
        };
        self.check(index)?;
        text.read(index, tokens)?;
        let length = tokens.len() as u64 / self.file.number().bytes() as u64;
        let count = length.min(rows.length.get().into());
        if count < length && rows.long == Long::Error {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let most = rows.length.get();
            let (offset, _) = text.range(index);
            let long = TokensDefect::Long { document: index, length, most };
            return Err(self.file.defect(offset, long));
        }
        Ok(Some(Piece { first: 0, count, continues: count < length }))
    }

    /// `None`: without the feature `text` no tokens are made.
    ///
    /// # Errors
    /// None.
    #[cfg(not(feature = "text"))]
    pub fn read_text(&self, _: u64, _: &mut Vec<u8>) -> Result<Option<Piece>, ReadError> {
        Ok(None)
    }

    fn check(&self, index: u64) -> Result<(), ReadError> {
        if index < self.count {
            return Ok(());
        }
        let location = self.file.location().clone();
        Err(ReadError::SampleOutOfRange { location, index, sample_count: self.count })
    }

    /// Replaces `pieces` with those of sample `index` in an epoch with this offset, in the order of the
    /// row: a window is one piece, with its further token for targets.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`]; [`TokensDefect::Document`] and [`TokensDefect::Long`] for
    /// documents; those of reading.
    ///
    /// # Panics
    /// If `offset` is not below [`Sequences::offsets`].
    pub fn pieces(
        &self,
        index: u64,
        offset: u32,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ReadError> {
        assert!(offset < self.sequences.offsets(), "offset {offset} of {:?}", self.sequences);
        pieces.clear();
        self.check(index)?;
        let (documents, rows) = match (&self.sequences, &self.rows, self.file.documents()) {
            (Sequences::Windows(windows), Some(Rows::Ordered(order)), Some(documents)) => {
                let span = windows.tokens();
                return order.pieces(documents, index, span, windows.targets, pieces);
            }
            (Sequences::Windows(windows), ..) => {
                pieces.push(windows.piece(index, offset));
                return Ok(());
            }
            (_, Some(rows), Some(documents)) => (documents, rows),
            (_, None, _) | (_, _, None) => return Ok(()),
        };
        let capacity = self.sequences.length();
        match (rows, &self.sequences) {
            (Rows::Documents, Sequences::Documents(DocumentRows { long, .. })) => {
                pieces.push(whole_document(documents, index, capacity, *long)?);
                Ok(())
            }
            (Rows::Split(split), _) => split.pieces(documents, capacity, index, pieces),
            (Rows::Packed(packed), Sequences::Packed(rows)) => {
                packed.pieces(documents, rows, index, pieces)
            }
            (Rows::Packed(packed), Sequences::Documents(rows)) => {
                packed.pieces(documents, &rows.alone(), index, pieces)
            }
            (Rows::Documents | Rows::Packed(_) | Rows::Ordered(_), _) => Ok(()),
        }
    }

    /// The pieces of sample `index` at the offset 0.
    fn pieces_of(&self, index: u64) -> Result<Vec<Piece>, ReadError> {
        let mut pieces = Vec::new();
        self.pieces(index, 0, &mut pieces)?;
        Ok(pieces)
    }

    /// Place and length in bytes of a window, at the offset 0; `None` for documents, and for windows
    /// that are not in one place.
    fn window(&self, index: u64) -> Result<Option<(u64, u64)>, ReadError> {
        let Sequences::Windows(windows) = &self.sequences else { return Ok(None) };
        if self.rows.is_some() || self.file.source().is_none() {
            return Ok(None);
        }
        if index >= self.count {
            return self.pieces_of(index).map(|_| None);
        }
        let Piece { first, count, .. } = windows.piece(index, 0);
        self.file.range(first, count).map(Some)
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

    fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        self.file.block_memory()
    }

    /// The offset is that of the first token.
    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        #[cfg(feature = "text")]
        if let Some(text) = self.file.text() {
            self.check(index)?;
            let (offset, bytes) = text.range(index);
            let format = SampleFormat::Unknown;
            return Ok(Facts { format, width: 0, height: 0, offset, stored_bytes: bytes, bytes });
        }
        let (offset, bytes) = match self.window(index)? {
            Some(range) => range,
            None => {
                let pieces = self.pieces_of(index)?;
                let count = pieces.iter().map(|piece| piece.count).sum::<u64>();
                let first = pieces.first().map_or(0, |piece| piece.first);
                let (offset, _) = self.file.range(first, 0)?;
                (offset, count * self.file.number().bytes() as u64)
            }
        };
        let format = SampleFormat::Unknown;
        Ok(Facts { format, width: 0, height: 0, offset, stored_bytes: bytes, bytes })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let mut read = || {
            if let Some((offset, len)) = self.window(index)? {
                let source = self.file.source();
                return source.map_or(Ok(()), |source| source.read_range_into(offset, len, bytes));
            }
            bytes.clear();
            if let Some(piece) = self.read_text(index, bytes)? {
                let count = usize::try_from(piece.count).unwrap_or(usize::MAX);
                bytes.truncate(count.saturating_mul(self.file.number().bytes()));
                return Ok(());
            }
            let mut buffer = Vec::new();
            for Piece { first, count, .. } in self.pieces_of(index)? {
                let append = |stored: &[u8]| bytes.extend_from_slice(stored);
                self.file.read(first, count, &mut buffer, append)?;
            }
            Ok(())
        };
        read().map_err(|error| error.for_sample(index, None))
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }
}

impl StoredSamples for TokenSource {
    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        let range = self.window(index)?;
        let source = self.file.source();
        let stored = |(source, (offset, len)): (&Source, (u64, u64))| StoredBytes {
            source: source.clone(),
            offset,
            len,
        };
        Ok(source.zip(range).map(stored))
    }

    fn source(&self) -> Option<&Source> {
        self.file.source().filter(|_| !self.sequences.has_documents() && self.rows.is_none())
    }

    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let Some((offset, len)) = self.window(index)? else { return Ok(None) };
        self.file.view(offset, len)
    }
}
