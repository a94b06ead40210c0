//! Options of files of tokens.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroU32;
#[cfg(feature = "text")]
use std::path::{Path, PathBuf};
#[cfg(feature = "text")]
use std::sync::Arc;

use clap::ValueEnum;
#[cfg(feature = "text")]
use tbl_io::Source;
use tbl_io::{Location, ReadError, SampleSource, Stores, TokensDefect};
use tl_tokens::{
    DocumentRows, Fill, Long, PackedRows, Packing, Sequences, TokenOptions, TokenType, Windows,
};
#[cfg(feature = "text")]
use tl_tokens::{TextInput, TextOptions, Tokenizer};

const TOKENS: &str = "Tokens";

/// Files of tokens, or of texts with a tokenizer, and the samples that are made of them.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TokenArgs {
    /// Read the files as tokens of this type, such as u16; auto for files that state it: llm.c,
    /// Megatron-LM, .npy, .safetensors, LitData, MDS, Parquet. Samples are windows of tokens, and one more for targets
    #[arg(long, global = true, value_name = "TYPE", value_parser = token_type, help_heading = TOKENS)]
    tokens: Option<Stated>,

    /// With --tokens: the tokens of a sample (default: 2048)
    #[arg(long, global = true, value_name = "TOKENS", requires = "tokens", help_heading = TOKENS)]
    sequence_length: Option<NonZeroU32>,

    /// With --tokens: take the documents of the files, packed like this; those that are
    /// longer than a sample are split
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "PACKING",
        requires = "tokens",
        help_heading = TOKENS
    )]
    documents: Option<DocumentChoice>,

    /// With --tokens: the token that ends each document, such as 50256, of files without an index of
    /// documents. All tokens are read once. With --tokenizer: the token to put after each document, by
    /// its name or number
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        requires = "tokens",
        allow_negative_numbers = true,
        help_heading = TOKENS
    )]
    end_token: Option<String>,

    /// With --tokens: the column of MDS and Parquet files that has the tokens (default: the only one
    /// of integers)
    #[arg(long, global = true, value_name = "COLUMN", requires = "tokens", help_heading = TOKENS)]
    token_column: Option<String>,

    /// With --tokens: take windows in the order that Megatron-LM cached: the path of its three files
    /// up to -document_index.npy
    #[arg(long, global = true, value_name = "PREFIX", requires = "tokens", help_heading = TOKENS)]
    megatron_order: Option<OsString>,

    /// With --tokens auto: the tokenizer.json for files of texts, which are JSON Lines, columns of
    /// Parquet files, or whole files. Each document is a sample, of at most --sequence-length tokens
    #[cfg(feature = "text")]
    #[arg(long, global = true, value_name = "FILE", requires = "tokens", help_heading = TOKENS)]
    tokenizer: Option<PathBuf>,

    /// With --tokenizer: the key of the text in JSON Lines, or its column (default: text)
    #[cfg(feature = "text")]
    #[arg(long, global = true, value_name = "NAME", requires = "tokenizer", help_heading = TOKENS)]
    text_field: Option<String>,
}

/// The type of tokens, or that files state it.
#[derive(Clone, Copy, Debug)]
struct Stated(Option<TokenType>);

fn token_type(name: &str) -> Result<Stated, String> {
    match TokenType::named(name) {
        None if name == "auto" => Ok(Stated(None)),
        None => {
            let known: Vec<&str> = TokenType::ALL.into_iter().map(TokenType::name).collect();
            Err(format!("expected auto or one of {}", known.join(", ")))
        }
        number => Ok(Stated(number)),
    }
}

/// The rows of documents.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DocumentChoice {
    /// One document a row
    Pad,
    /// The longest first, each into the fullest row with room for it
    BestFit,
    /// Each into the first row with room for it
    FirstFit,
    /// One after the other, cut where a row is full
    Split,
}

/// The tokens of a sample unless others are asked for.
const LENGTH: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");

impl TokenArgs {
    /// True if data sets are files of tokens.
    pub(crate) fn is_given(&self) -> bool {
        self.tokens.is_some()
    }

    /// Opens files of tokens; `None` where data sets are not.
    pub(crate) fn open<L: AsRef<OsStr>>(
        &self,
        stores: &Stores,
        locations: &[L],
    ) -> Option<Result<Vec<Box<dyn SampleSource>>, ReadError>> {
        let Stated(number) = self.tokens?;
        let options = match self.options(number, locations.first()) {
            Ok(options) => options,
            Err(error) => return Some(Err(error)),
        };
        Some(tl_pipeline::open_tokens(stores, locations, &options, self.sequences()))
    }

    fn options(
        &self,
        number: Option<TokenType>,
        first: Option<&impl AsRef<OsStr>>,
    ) -> Result<TokenOptions, ReadError> {
        let options = TokenOptions {
            number,
            column: self.token_column.clone(),
            order: self.megatron_order.clone(),
            ..TokenOptions::default()
        };
        #[cfg(feature = "text")]
        if let Some(tokenizer) = &self.tokenizer {
            return Ok(TokenOptions { text: Some(self.text(tokenizer)?), ..options });
        }
        let end_token = self.end_token.as_ref().map(|token| {
            token.parse().map_err(|_| {
                let location = first.map(Location::new).unwrap_or_default();
                let source = TokensDefect::NamedEnd { name: token.clone() };
                ReadError::Tokens { location, offset: 0, source }
            })
        });
        Ok(TokenOptions { end_token: end_token.transpose()?, ..options })
    }

    #[cfg(feature = "text")]
    fn text(&self, tokenizer: &Path) -> Result<TextInput, ReadError> {
        let tokenizer = Tokenizer::open(&Source::open(tokenizer)?)?;
        let end_token = self.end_token.as_ref().map(|name| tokenizer.token(name)).transpose()?;
        let mut options = TextOptions { end_token, ..TextOptions::default() };
        if let Some(field) = &self.text_field {
            options.field.clone_from(field);
        }
        Ok(TextInput { tokenizer: Arc::new(tokenizer), options })
    }

    /// True if the tokens are made of texts.
    fn has_texts(&self) -> bool {
        #[cfg(feature = "text")]
        return self.tokenizer.is_some();
        #[cfg(not(feature = "text"))]
        false
    }

    fn sequences(&self) -> Sequences {
        let length = self.sequence_length.unwrap_or(LENGTH);
        // The number of rows is that of the texts.
        let long = if self.has_texts() { Long::Truncate } else { Long::Split };
        let packed =
            |strategy| Sequences::Packed(PackedRows { strategy, long, ..PackedRows::new(length) });
        match self.documents {
            None if !self.has_texts() => Windows::new(length).into(),
            None | Some(DocumentChoice::Pad) => {
                let fill = Fill::default();
                Sequences::Documents(DocumentRows { length, targets: true, long, fill })
            }
            Some(DocumentChoice::BestFit) => packed(Packing::BestFit),
            Some(DocumentChoice::FirstFit) => packed(Packing::FirstFit),
            Some(DocumentChoice::Split) => packed(Packing::Split),
        }
    }
}
