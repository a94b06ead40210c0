//! The tokens of a file, wherever in it they lie.

use std::fmt;

use tbl_io::{Location, Mapped, ReadError, Source, Stores, TokensDefect};

use crate::documents::Documents;
use crate::format;
use crate::number::TokenType;

/// The format of a file of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenFormat {
    /// Tokens and nothing else, as nanoGPT writes them.
    Raw,
    /// 256 numbers of 32 bits before the tokens.
    LlmC,
    /// The `.bin` of Megatron-LM, with the `.idx` next to it.
    Megatron,
    /// An array of NumPy with one dimension.
    Npy,
    /// A tensor of a safetensors file.
    Safetensors,
    /// Texts, whose tokens are made when they are read.
    Text,
}

impl TokenFormat {
    /// Its name, such as `megatron`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw tokens",
            Self::LlmC => "llm.c",
            Self::Megatron => "megatron",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Text => "texts",
        }
    }
}

impl fmt::Display for TokenFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The facts about a file that it does not state itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenOptions {
    /// The type of raw tokens. A file that states its type must agree.
    pub number: Option<TokenType>,
    /// The tensor of a safetensors file. Default: the only one of one dimension of integers.
    pub tensor: Option<String>,
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
    source: Source,
    /// The bytes of all tokens, if they can be mapped.
    mapped: Option<Mapped>,
    format: TokenFormat,
    number: TokenType,
    /// The offset of the first token in the file.
    offset: u64,
    len: u64,
    documents: Option<Documents>,
    #[cfg(feature = "text")]
    text: Option<crate::text::TextDocuments>,
}

/// The place of the tokens in a file, as its header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) format: TokenFormat,
    pub(crate) number: TokenType,
    pub(crate) offset: u64,
    /// The bytes of all tokens.
    pub(crate) bytes: u64,
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
    fn of_text(text: crate::text::TextDocuments) -> Result<Self, ReadError> {
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
        let len = bytes / item;
        #[cfg(feature = "text")]
        let text = None;
        Ok(Self {
            source,
            mapped,
            format,
            number,
            offset,
            len,
            documents,
            #[cfg(feature = "text")]
            text,
        })
    }

    /// The file.
    #[must_use]
    pub fn location(&self) -> &Location {
        self.source.location()
    }

    /// The file as bytes.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
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
        self.mapped.is_none()
    }

    /// The documents, if the file has an index of them.
    #[must_use]
    pub fn documents(&self) -> Option<&Documents> {
        self.documents.as_ref()
    }

    /// Offset and length in bytes of `count` tokens from `first` on.
    ///
    /// # Errors
    /// [`TokensDefect::OutOfRange`].
    pub fn range(&self, first: u64, count: u64) -> Result<(u64, u64), ReadError> {
        let end = first.checked_add(count).filter(|&end| end <= self.len);
        if end.is_none() {
            let number = first.max(self.len);
            let defect = TokensDefect::OutOfRange { what: "token", number, count: self.len };
            return Err(self.defect(self.offset, defect));
        }
        // All tokens lie in the file, so their bytes can be counted.
        let item = self.number.bytes() as u64;
        Ok((self.offset + first * item, count * item))
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
        if let Some(mapped) = &self.mapped {
            return mapped.with(offset, len, read);
        }
        self.source.read_range_into(offset, len, buffer)?;
        Ok(read(buffer))
    }

    /// Tells the processor that tokens will be read within microseconds, as [`Mapped::prefetch`].
    /// Does nothing for tokens that are not mapped or not there.
    pub fn prefetch(&self, first: u64, count: u64) {
        if let Some(mapped) = &self.mapped
            && let Ok((offset, len)) = self.range(first, count)
        {
            mapped.prefetch(offset, len);
        }
    }

    /// The bytes of a [range](Self::range) where they lie in the mapping, if there is one.
    pub(crate) fn view(&self, offset: u64, len: u64) -> Result<Option<&[u8]>, ReadError> {
        self.mapped.as_ref().map(|mapped| mapped.slice(offset, len)).transpose()
    }

    /// The error of a token of `wanted`, number `token` of the file, that has the value `value`.
    #[must_use]
    pub fn misfit(&self, token: u64, value: i128, wanted: TokenType) -> ReadError {
        let offset = self.offset.saturating_add(token.saturating_mul(self.number.bytes() as u64));
        self.defect(offset, TokensDefect::Value { value: value.to_string(), wanted: wanted.name() })
    }

    pub(crate) fn defect(&self, offset: u64, source: TokensDefect) -> ReadError {
        defect(&self.source, offset, source)
    }
}

/// The error of a defect at `offset` of a file.
pub(crate) fn defect(source: &Source, offset: u64, defect: TokensDefect) -> ReadError {
    ReadError::Tokens { location: source.location().clone(), offset, source: defect }
}
