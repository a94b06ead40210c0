//! The tokens of a file, wherever in it they lie.

use std::ffi::OsString;

use tbl_io::{BlockMemory, Location, Mapped, ReadError, Source, Stores, TokensDefect};

use crate::documents::Documents;
use crate::ends;
use crate::format;
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;
use crate::records::TokenRecords;
use crate::starts::Starts;

/// The facts about a file that it does not state itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenOptions {
    /// The type of raw tokens. A file that states its type must agree.
    pub number: Option<TokenType>,
    /// The tensor of a safetensors file. Default: the only one of one dimension of integers.
    pub tensor: Option<String>,
    /// The column of MDS and Parquet files. Default: the only one that can have tokens.
    pub column: Option<String>,
    /// The token that ends documents, of files without an index of documents. Opening then reads all
    /// tokens once, on several threads.
    pub end_token: Option<i64>,
    /// An order of windows that Megatron-LM cached: the path of its three files without
    /// `-document_index.npy` and so on.
    pub order: Option<OsString>,
    /// The tokenizer, for files of texts.
    #[cfg(feature = "text")]
    #[cfg_attr(docsrs, doc(cfg(feature = "text")))]
    pub text: Option<crate::text::TextInput>,
}

/// Successive tokens of a file: the one sequence that sequences for training are cut from.
///
/// Opening reads the header and checks the file's length, so it takes as long for a terabyte as for
/// a page. Local files are mapped; objects of a store are read by position.
///
/// ```
/// use tbl_io::{Source, Stores};
/// use tl_tokens::{TokenFile, TokenOptions, TokenType};
///
/// let source = Source::from_bytes("corpus.bin", vec![1, 0, 2, 0, 3, 1]);
/// let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
/// let file = TokenFile::open(&Stores::new(), source, &options)?;
/// assert_eq!(file.len(), 3);
/// assert_eq!(file.read(1, 2, &mut Vec::new(), <[u8]>::to_vec)?, [2, 0, 3, 1]);
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
#[derive(Debug)]
pub struct TokenFile {
    tokens: Tokens,
    format: TokenFormat,
    number: TokenType,
    len: u64,
    documents: Option<Documents>,
    #[cfg(feature = "text")]
    text: Option<crate::text::TextDocuments>,
}

/// The tokens of a file.
#[derive(Debug)]
enum Tokens {
    /// One after the other.
    Successive {
        source: Source,
        /// The bytes of all tokens, if they can be mapped.
        mapped: Option<Mapped>,
        /// The offset of the first token in the file.
        offset: u64,
    },
    /// In records, which are the documents in memory.
    Records(Box<dyn TokenRecords>),
}

impl TokenFile {
    /// Opens a file by its content. The `.bin` and the `.idx` of Megatron-LM lead to each other by
    /// their names, in `stores`.
    ///
    /// # Errors
    /// [`ReadError::Tokens`] with the reason why the file does not have tokens, and those of
    /// reading.
    pub fn open(
        stores: &Stores,
        source: Source,
        options: &TokenOptions,
    ) -> Result<Self, ReadError> {
        #[cfg(feature = "text")]
        if let Some(input) = &options.text {
            return Self::of_text(crate::text::TextDocuments::open(stores, source, input)?);
        }
        format::open(stores, source, options)
    }

    /// Texts as a file whose number of tokens is not known.
    #[cfg(feature = "text")]
    pub(crate) fn of_text(text: crate::text::TextDocuments) -> Result<Self, ReadError> {
        let number = text.number();
        let layout = Layout { format: TokenFormat::Text, number, offset: 0, bytes: 0 };
        let file = Self::new(text.source().clone(), layout, None)?;
        Ok(Self { text: Some(text), ..file })
    }

    /// The texts that its tokens are made of, if it has texts.
    #[cfg(feature = "text")]
    pub(crate) fn text(&self) -> Option<&crate::text::TextDocuments> {
        self.text.as_ref()
    }

    /// Opens the two files of Megatron-LM.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_megatron(tokens: Source, index: &Source) -> Result<Self, ReadError> {
        let (layout, documents) = format::megatron(&tokens, index)?;
        Self::new(tokens, layout, Some(documents))
    }

    pub(crate) fn new(
        source: Source,
        layout: Layout,
        documents: Option<Documents>,
    ) -> Result<Self, ReadError> {
        let Layout { format, number, offset, bytes } = layout;
        let item = number.bytes() as u64;
        if !bytes.is_multiple_of(item) {
            let partial = TokensDefect::Partial { bytes, number: number.name() };
            return Err(defect(&source, offset + bytes / item * item, partial));
        }
        let mapped = match Mapped::new(&source, offset, bytes) {
            Ok(mapped) => Some(mapped),
            // An object of a store, or more files than can be mapped: both are read by position.
            Err(ReadError::NotMapped { .. } | ReadError::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        let tokens = Tokens::Successive { source, mapped, offset };
        Ok(Self {
            tokens,
            format,
            number,
            len: bytes / item,
            documents,
            #[cfg(feature = "text")]
            text: None,
        })
    }

    /// The tokens of all records, one after the other; each record is a document. This asks for the
    /// lengths of all records, of which 4 bytes each are kept.
    ///
    /// # Errors
    /// Those of [`TokenRecords::lengths`]; [`ReadError::Limit`] for 2^63 tokens or more.
    pub fn from_records(records: Box<dyn TokenRecords>) -> Result<Self, ReadError> {
        let location = records.location().clone();
        let mut starts = Starts::new();
        let limit = || {
            let location = location.clone();
            ReadError::Limit { location, what: "tokens", limit: (1 << 63) - 1, need: 1 << 63 }
        };
        records.lengths(&mut |length| if starts.push(length) { Ok(()) } else { Err(limit()) })?;
        Ok(Self {
            format: records.format(),
            number: records.number(),
            len: starts.end(),
            documents: Some(Documents::from_starts(starts, location)),
            tokens: Tokens::Records(records),
            #[cfg(feature = "text")]
            text: None,
        })
    }

    /// The same tokens with the documents that `end` ends: each reaches to a token `end`, and
    /// includes it; tokens after the last one are a document too. This reads all tokens on up to 8
    /// threads, and keeps 4 bytes for each document.
    ///
    /// # Errors
    /// [`TokensDefect::Ends`] for tokens in records, which are documents; [`TokensDefect::Value`] for a
    /// token that the tokens' type cannot have; those of reading.
    pub fn with_ends(self, end: i64) -> Result<Self, ReadError> {
        if self.source().is_none() {
            return Err(self.defect(0, TokensDefect::Ends));
        }
        let starts = ends::find(&self, end)?;
        let documents = Some(Documents::from_starts(starts, self.location().clone()));
        Ok(Self { documents, ..self })
    }

    /// The file.
    #[must_use]
    pub fn location(&self) -> &Location {
        match &self.tokens {
            Tokens::Successive { source, .. } => source.location(),
            Tokens::Records(records) => records.location(),
        }
    }

    /// The file as bytes, if its tokens follow each other in them.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        match &self.tokens {
            Tokens::Successive { source, .. } => Some(source),
            Tokens::Records(_) => None,
        }
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> TokenFormat {
        self.format
    }

    /// The type of the tokens.
    #[must_use]
    pub fn number(&self) -> TokenType {
        self.number
    }

    /// The number of tokens; 0 for texts, whose tokens are not known before they are read.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if the tokens are not mapped: those of an object in a store.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.tokens, Tokens::Successive { mapped: None, .. })
    }

    /// The documents, if the file has an index of them.
    #[must_use]
    pub fn documents(&self) -> Option<&Documents> {
        self.documents.as_ref()
    }

    /// The memory for what reading tokens unpacks, if records share it.
    pub(crate) fn block_memory(&self) -> Option<&'static dyn BlockMemory> {
        match &self.tokens {
            Tokens::Successive { .. } => None,
            Tokens::Records(records) => records.block_memory(),
        }
    }

    /// Offset and length in bytes of `count` tokens from `first` on. The offset of tokens in records is
    /// that of a record.
    ///
    /// # Errors
    /// [`TokensDefect::OutOfRange`].
    pub fn range(&self, first: u64, count: u64) -> Result<(u64, u64), ReadError> {
        let end = first.checked_add(count).filter(|&end| end <= self.len);
        if end.is_none() {
            let number = first.max(self.len);
            let defect = TokensDefect::OutOfRange { what: "token", number, count: self.len };
            return Err(self.defect(self.byte_of(0), defect));
        }
        // All tokens lie in the file, so their bytes can be counted.
        let item = self.number.bytes() as u64;
        Ok((self.byte_of(first), count * item))
    }

    /// Calls `read` with the bytes of `count` tokens from `first` on, little-endian, and returns its
    /// result. They are those of a mapping, or `buffer`, whose capacity is reused.
    ///
    /// # Errors
    /// [`TokensDefect::OutOfRange`], [`ReadError::ChangedWhileOpen`] if the file was cut short, and
    /// those of reading.
    pub fn read<R>(
        &self,
        first: u64,
        count: u64,
        buffer: &mut Vec<u8>,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, ReadError> {
        let (offset, len) = self.range(first, count)?;
        match &self.tokens {
            Tokens::Successive { mapped: Some(mapped), .. } => {
                return mapped.with(offset, len, read);
            }
            Tokens::Successive { source, .. } => source.read_range_into(offset, len, buffer)?,
            Tokens::Records(records) => self.read_records(&**records, first, count, buffer)?,
        }
        Ok(read(buffer))
    }

    /// Fills `buffer` with tokens that may be in several records.
    fn read_records(
        &self,
        records: &dyn TokenRecords,
        mut first: u64,
        mut count: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        buffer.clear();
        let starts = self.documents().and_then(Documents::starts);
        let mut record = starts.map_or(0, |starts| starts.document_of(first));
        while let Some((start, length)) = starts.and_then(|starts| starts.place(record))
            && count > 0
        {
            let before = first - start;
            let piece = count.min(length - before);
            if piece > 0 {
                records.read(record, before, piece, buffer)?;
            }
            first += piece;
            count -= piece;
            record += 1;
        }
        Ok(())
    }

    /// Tells the processor that tokens will be read within microseconds, as [`Mapped::prefetch`].
    /// Does nothing for tokens that are not mapped or not there.
    pub fn prefetch(&self, first: u64, count: u64) {
        if let Tokens::Successive { mapped: Some(mapped), .. } = &self.tokens
            && let Ok((offset, len)) = self.range(first, count)
        {
            mapped.prefetch(offset, len);
        }
    }

    /// The bytes of a [range](Self::range) where they lie in the mapping, if there is one.
    pub(crate) fn view(&self, offset: u64, len: u64) -> Result<Option<&[u8]>, ReadError> {
        match &self.tokens {
            Tokens::Successive { mapped: Some(mapped), .. } => mapped.slice(offset, len).map(Some),
            Tokens::Successive { .. } | Tokens::Records(_) => Ok(None),
        }
    }

    /// The error of a token of `wanted`, number `token` of the file, that has the value `value`.
    #[must_use]
    pub fn misfit(&self, token: u64, value: i128, wanted: TokenType) -> ReadError {
        self.defect(
            self.byte_of(token),
            TokensDefect::Value { value: value.to_string(), wanted: wanted.name() },
        )
    }

    pub(crate) fn defect(&self, offset: u64, source: TokensDefect) -> ReadError {
        ReadError::Tokens { location: self.location().clone(), offset, source }
    }

    /// The offset of token `token`, or of the record that it is in.
    fn byte_of(&self, token: u64) -> u64 {
        match &self.tokens {
            Tokens::Successive { offset, .. } => {
                offset.saturating_add(token.saturating_mul(self.number.bytes() as u64))
            }
            Tokens::Records(records) => {
                let starts = self.documents().and_then(Documents::starts);
                records.offset(starts.map_or(0, |starts| starts.document_of(token)))
            }
        }
    }
}
