//! Texts as documents, whose tokens are made when they are read.

use std::borrow::Cow;
use std::sync::Arc;

use tbl_io::{ReadError, SampleSource, Source, Stores, TokensDefect};

use super::blocks::open_rows;
use super::files::TextKind;
use super::line::Line;
use super::target::TokenTarget;
use super::tokenizer::Tokenizer;
use super::{TextOptions, too_long};
use crate::mix::mix;
use crate::number::TokenType;

/// The most lines of a file: 8 bytes of memory each.
const MAX_LINES: u64 = 1 << 28;

/// Bytes that are searched for ends of lines at a time.
const SEARCHED_BYTES: usize = 1 << 20;

/// Bytes at each end of a file that its fingerprint has.
const HASHED_BYTES: u64 = 64 << 10;

/// The tokenizer of texts that are documents, and the place of the texts in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextInput {
    /// The tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// The texts in the files, and the tokens around each.
    pub options: TextOptions,
}

/// The texts of a file as documents.
#[derive(Debug)]
pub(crate) struct TextDocuments {
    input: TextInput,
    source: Source,
    texts: Texts,
    id: u64,
}

#[derive(Debug)]
enum Texts {
    /// Lines of an uncompressed file that start here.
    Lines { starts: Vec<u64>, has_blanks: bool },
    /// One text.
    Whole,
    /// A column of a table.
    Rows(Arc<dyn SampleSource>),
}

impl TextDocuments {
    /// Finds the texts of a file: one pass over JSON Lines, and headers alone of others.
    pub(crate) fn open(
        stores: &Stores,
        source: Source,
        input: &TextInput,
    ) -> Result<Self, ReadError> {
        let TextOptions { field, special_tokens, end_token, document_bytes } = &input.options;
        let mut id = mix(0, input.tokenizer.id());
        for number in [u64::from(*special_tokens), end_token.map_or(0, |id| 1 + u64::from(id))] {
            id = mix(id, number);
        }
        id = field.bytes().fold(id, |id, byte| mix(id, byte.into()));
        let texts = match TextKind::of(&source)? {
            TextKind::Lines => lines(&source)?,
            TextKind::Whole => Texts::Whole,
            TextKind::Rows => Texts::Rows(open_rows(stores, source.location(), field)?),
        };
        id = mix(mix(id, *document_bytes), source.len());
        let ends = source.len().min(HASHED_BYTES);
        let mut bytes = Vec::new();
        for first in [0, source.len() - ends] {
            source.read_range_into(first, ends, &mut bytes)?;
            id = bytes.iter().fold(id, |id, &byte| mix(id, byte.into()));
        }
        Ok(Self { input: input.clone(), source, texts, id })
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> u64 {
        match &self.texts {
            Texts::Lines { starts, .. } => starts.len() as u64,
            Texts::Whole => 1,
            Texts::Rows(source) => source.sample_count(),
        }
    }

    /// A number that tells texts, tokenizer and options from others, for saved states.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The type of the tokens: that of the files that [`Tokenize`](super::Tokenize) writes.
    pub(crate) fn number(&self) -> TokenType {
        TokenTarget::Megatron.number(self.input.tokenizer.vocabulary())
    }

    /// Offset and length in bytes of the text of document `document`, which exists: of the row's line or
    /// file, and of a table as a whole.
    pub(crate) fn range(&self, document: u64) -> (u64, u64) {
        match &self.texts {
            Texts::Lines { starts, .. } => {
                let place = usize::try_from(document).unwrap_or(usize::MAX);
                let start = starts.get(place).copied().unwrap_or(self.source.len());
                let end = starts.get(place + 1).copied().unwrap_or(self.source.len());
                (start, end - start)
            }
            Texts::Whole | Texts::Rows(_) => (0, self.source.len()),
        }
    }

    /// Replaces `tokens` with those of document `document`, which exists.
    pub(crate) fn read(&self, document: u64, tokens: &mut Vec<u8>) -> Result<(), ReadError> {
        let TextInput { tokenizer, options } = &self.input;
        let location = self.source.location();
        let mut bytes = Vec::new();
        let mut ids = Vec::new();
        let encode = |text: Cow<'_, str>, ids: &mut Vec<u32>| options.encode(tokenizer, &text, ids);
        match &self.texts {
            Texts::Lines { has_blanks, .. } => {
                let (offset, length) = self.range(document);
                let number = (!has_blanks).then_some(document + 1);
                if length > options.document_bytes {
                    return Err(too_long(location, number, offset, options.document_bytes));
                }
                self.source.read_range_into(offset, length, &mut bytes)?;
                let line = Line { location, number, offset, bytes: &bytes };
                if let Some(text) = line.text(options)? {
                    encode(text, &mut ids).map_err(|defect| line.defect(&defect))?;
                }
            }
            Texts::Whole => {
                if self.source.len() > options.document_bytes {
                    return Err(too_long(location, None, 0, options.document_bytes));
                }
                self.source.read_range_into(0, self.source.len(), &mut bytes)?;
                let text = options.text_of(location, &bytes)?;
                encode(text, &mut ids).map_err(|source| options.defect(location, source))?;
            }
            Texts::Rows(source) => {
                let text = options.row(&**source, document, &mut bytes)?;
                encode(text, &mut ids).map_err(|source| options.defect(location, source))?;
            }
        }
        let number = self.number();
        tokens.clear();
        tokens.resize(ids.len() * number.bytes(), 0);
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        TokenType::U32.convert(&ids, number, tokens).map_err(|(_, value)| {
            let value = value.to_string();
            options.defect(location, TokensDefect::Value { value, wanted: number.name() })
        })
    }
}

/// The lines of a file that have texts: those that are not only spaces.
fn lines(source: &Source) -> Result<Texts, ReadError> {
    let mut front = [0; 4];
    if source.len() >= front.len() as u64 {
        source.read_exact_at(0, &mut front)?;
    }
    if front.starts_with(&[0x1f, 0x8b]) || front == [0x28, 0xb5, 0x2f, 0xfd] {
        let location = source.location().clone();
        let source = TokensDefect::CompressedText;
        return Err(ReadError::Tokens { location, offset: 0, source });
    }
    let mut starts = Vec::new();
    let mut has_blanks = false;
    let mut start = 0;
    let mut is_blank = true;
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let length = (source.len() - at).min(SEARCHED_BYTES as u64);
        source.read_range_into(at, length, &mut bytes)?;
        let mut rest = &bytes[..];
        if at == 0 {
            // A line with nothing but the mark of UTF-8 is blank.
            rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr(b'\n', rest) {
            is_blank &= rest[..end].trim_ascii().is_empty();
            if is_blank {
                has_blanks = true;
            } else {
                starts.push(start);
            }
            rest = &rest[end + 1..];
            start = at + length - rest.len() as u64;
            is_blank = true;
        }
        is_blank &= rest.trim_ascii().is_empty();
        at += length;
        if starts.len() as u64 > MAX_LINES {
            let location = source.location().clone();
            let need = starts.len() as u64;
            return Err(ReadError::Limit { location, what: "lines", limit: MAX_LINES, need });
        }
    }
    if !is_blank {
        starts.push(start);
    }
    Ok(Texts::Lines { starts, has_blanks })
}
