//! Texts as documents, whose tokens are made when they are read.

use std::borrow::Cow;
use std::sync::Arc;

use tbl_io::{ReadError, SampleSource, Source, Stores, TokensDefect};

use super::blocks::open_rows;
use super::files::TextKind;
use super::line::Line;
use super::lines::{TextLines, content_id, plain};
use super::target::TokenTarget;
use super::tokenizer::Tokenizer;
use super::{TextOptions, too_long};
use crate::mix::mix;
use crate::number::TokenType;

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
    Lines(Box<TextLines>),
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
        let (source, texts) = match TextKind::of(&source)? {
            TextKind::Lines => return Ok(Self::of_lines(TextLines::find(&source)?, input)),
            TextKind::Whole => (plain(&source)?, Texts::Whole),
            TextKind::Rows => {
                let rows = open_rows(stores, source.location(), &input.options.field)?;
                (source, Texts::Rows(rows))
            }
        };
        let id = id_of(input, content_id(&source)?);
        Ok(Self { input: input.clone(), source, texts, id })
    }

    /// The texts of lines.
    pub(crate) fn of_lines(lines: TextLines, input: &TextInput) -> Self {
        let id = id_of(input, lines.id());
        let source = lines.source().clone();
        Self { input: input.clone(), source, texts: Texts::Lines(Box::new(lines)), id }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// The number of documents.
    pub(crate) fn len(&self) -> u64 {
        match &self.texts {
            Texts::Lines(lines) => lines.sample_count(),
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
            Texts::Lines(lines) => lines.range(document),
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
            Texts::Lines(lines) => {
                let (offset, length) = lines.range(document);
                let number = (!lines.has_blanks()).then_some(document + 1);
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

/// A number that tells texts, tokenizer and options from others.
fn id_of(input: &TextInput, content_id: u64) -> u64 {
    let TextOptions { field, special_tokens, end_token, document_bytes } = &input.options;
    let mut id = mix(0, input.tokenizer.id());
    for number in [u64::from(*special_tokens), end_token.map_or(0, |id| 1 + u64::from(id))] {
        id = mix(id, number);
    }
    id = field.bytes().fold(id, |id, byte| mix(id, byte.into()));
    mix(mix(id, *document_bytes), content_id)
}
