//! The tokenizer of a `tokenizer.json`.

use std::fmt;

use tbl_io::{Location, ReadError, Source, TokensDefect};

use crate::mix::mix;

/// The largest `tokenizer.json` that is read: those of today's models have up to 35 MB.
const MAX_FILE_BYTES: u64 = 1 << 28;

/// A tokenizer that the library `tokenizers` of Hugging Face has saved, usually as `tokenizer.json`.
///
/// The tokens of a text are those of the library, whole: truncation and padding, which some files have
/// for inference, are switched off.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
    location: Location,
    vocabulary: u64,
    id: u64,
}

impl Tokenizer {
    /// Reads a tokenizer.
    ///
    /// # Errors
    /// [`TokensDefect::Tokenizer`] for another file, [`ReadError::Limit`] for one of more than 256 MiB,
    /// and those of reading.
    pub fn open(source: &Source) -> Result<Self, ReadError> {
        if source.len() > MAX_FILE_BYTES {
            let location = source.location().clone();
            let what = "bytes of a tokenizer";
            let need = source.len();
            return Err(ReadError::Limit { location, what, limit: MAX_FILE_BYTES, need });
        }
        let mut bytes = Vec::new();
        source.read_range_into(0, source.len(), &mut bytes)?;
        let damaged = |error: &dyn fmt::Display| {
            let reason = error.to_string().replace(char::is_control, " ");
            let location = source.location().clone();
            let source = TokensDefect::Tokenizer { reason };
            ReadError::Tokens { location, offset: 0, source }
        };
        let mut inner =
            tokenizers::Tokenizer::from_bytes(&bytes).map_err(|error| damaged(&error))?;
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|error| damaged(&error))?;
        let vocabulary = inner.get_vocab(true).into_values().max();
        let vocabulary = vocabulary.map_or(0, |most| u64::from(most) + 1);
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let id = words.fold(mix(0, bytes.len() as u64), mix);
        let location = source.location().clone();
        Ok(Self { inner, location, vocabulary, id })
    }

    /// The size of the vocabulary: all tokens are below it.
    #[must_use]
    pub fn vocabulary(&self) -> u64 {
        self.vocabulary
    }

    /// The token that has this number, or else is called `name`: digits are tokens of most tokenizers,
    /// and end no document.
    ///
    /// # Errors
    /// [`TokensDefect::NoToken`].
    pub fn token(&self, name: &str) -> Result<u32, ReadError> {
        let found = match name.parse() {
            Ok(number) => Some(number).filter(|&id| u64::from(id) < self.vocabulary),
            Err(_) => self.inner.token_to_id(name),
        };
        found.ok_or_else(|| {
            let location = self.location.clone();
            let source = TokensDefect::NoToken { name: name.to_owned() };
            ReadError::Tokens { location, offset: 0, source }
        })
    }

    /// A number that tells the tokenizer from others, for saved states.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Appends the tokens of `text` to `tokens`; with `special`, those that the tokenizer puts around a
    /// text as well.
    ///
    /// # Errors
    /// The tokenizer's reason.
    pub(crate) fn encode(
        &self,
        text: &str,
        special: bool,
        tokens: &mut Vec<u32>,
    ) -> Result<(), TokensDefect> {
        let encoding = self.inner.encode_fast(text, special).map_err(|error| {
            let reason = error.to_string().replace(char::is_control, " ");
            TokensDefect::Encode { reason }
        })?;
        tokens.extend_from_slice(encoding.get_ids());
        Ok(())
    }
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Tokenizer {}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}
