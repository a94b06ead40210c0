//! Texts: their tokens by a tokenizer of Hugging Face.

mod blocks;
mod documents;
mod draft;
mod files;
mod line;
mod lines;
mod target;
mod tokenize;
mod tokenizer;

pub(crate) use documents::TextDocuments;
pub use documents::TextInput;
pub(crate) use files::TextKind;
pub(crate) use lines::TextLines;
pub use lines::index_texts_in;
pub use target::TokenTarget;
pub use tokenize::{OnBadText, Tokenize, TokenizeEvent, TokenizeSummary};
pub use tokenizer::Tokenizer;

use std::borrow::Cow;

use tbl_io::{ListDefect, ListPlace, Location, ReadError, SampleSource, TokensDefect};

/// The most tokens of a document: what 32 bits with a sign count, as in an index of Megatron-LM.
const MAX_TOKENS: usize = i32::MAX as usize;

/// The texts in files, and the tokens around each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextOptions {
    /// The key in JSON Lines, or the column of a table.
    pub field: String,
    /// True to have the tokens that the tokenizer puts around each text.
    pub special_tokens: bool,
    /// The token after each document that has others.
    pub end_token: Option<u32>,
    /// The most bytes of a text; in JSON Lines, of its line.
    pub document_bytes: u64,
}

impl TextOptions {
    /// The default limit of a text: 64 MiB.
    pub const DOCUMENT_BYTES: u64 = 64 << 20;

    /// Appends the tokens of a document.
    fn encode(
        &self,
        tokenizer: &Tokenizer,
        text: &str,
        tokens: &mut Vec<u32>,
    ) -> Result<(), TokensDefect> {
        let start = tokens.len();
        tokenizer.encode(text, self.special_tokens, tokens)?;
        if tokens.len() > start {
            tokens.extend(self.end_token);
        }
        if tokens.len() - start > MAX_TOKENS {
            let reason = format!("{} tokens, expected at most {MAX_TOKENS}", tokens.len() - start);
            return Err(TokensDefect::Encode { reason });
        }
        Ok(())
    }

    /// The text of a whole file.
    fn text_of<'b>(&self, location: &Location, bytes: &'b [u8]) -> Result<Cow<'b, str>, ReadError> {
        // Editors of Windows put a byte order mark in front.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        str::from_utf8(text).map(Cow::Borrowed).map_err(|error| {
            let offset = (bytes.len() - text.len() + error.valid_up_to()) as u64;
            bad_text(location, None, None, offset, "not UTF-8".to_owned(), "a text")
        })
    }

    /// The text of a row. `bytes` is memory for it.
    fn row<'b>(
        &self,
        source: &dyn SampleSource,
        row: u64,
        bytes: &'b mut Vec<u8>,
    ) -> Result<Cow<'b, str>, ReadError> {
        source.read_into(row, bytes).map_err(|error| error.for_sample(row, None))?;
        let location = source.location();
        if bytes.len() as u64 > self.document_bytes {
            let error = too_long(location, None, 0, self.document_bytes);
            return Err(error.for_sample(row, None));
        }
        let bytes: &'b [u8] = bytes;
        str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
            let reason = format!("not UTF-8 at byte {} of the text", error.valid_up_to());
            self.defect(location, TokensDefect::Encode { reason }).for_sample(row, None)
        })
    }

    /// The error of a text that fills a file.
    fn defect(&self, location: &Location, source: TokensDefect) -> ReadError {
        ReadError::Tokens { location: location.clone(), offset: 0, source }
    }
}

impl Default for TextOptions {
    /// The key `text`, without further tokens.
    fn default() -> Self {
        let document_bytes = Self::DOCUMENT_BYTES;
        Self { field: "text".to_owned(), special_tokens: false, end_token: None, document_bytes }
    }
}

/// The error of a text, at a line and a byte of its file.
fn bad_text(
    location: &Location,
    line: Option<u64>,
    column: Option<&str>,
    offset: u64,
    reason: String,
    expected: &'static str,
) -> ReadError {
    let mut place = ListPlace::default();
    place.line = line;
    place.column = column.map(str::to_owned);
    place.offset = Some(offset);
    let source = ListDefect::Json { reason, expected };
    ReadError::List { location: location.clone(), place: Box::new(place), source }
}

fn too_long(location: &Location, line: Option<u64>, offset: u64, most: u64) -> ReadError {
    let reason = format!("the text has more than {most} bytes");
    bad_text(location, line, None, offset, reason, "a shorter one, or a larger limit")
}
