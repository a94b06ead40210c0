//! Options of files of tokens.

use std::ffi::OsString;
use std::num::NonZeroU32;

use clap::ValueEnum;
use tbl_io::{ReadError, SampleSource, Stores};
use tl_tokens::{
    DocumentRows, Fill, Long, PackedRows, Packing, Sequences, TokenOptions, TokenType, Windows,
};

const TOKENS: &str = "Tokens";

/// Files of tokens, and the samples that are made of them.
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
    /// documents. All tokens are read once
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        requires = "tokens",
        value_parser = end_token,
        allow_negative_numbers = true,
        help_heading = TOKENS
    )]
    // Text, for `tl tokenize` has an option of this name that takes names of tokens too.
    end_token: Option<String>,

    /// With --tokens: the column of MDS and Parquet files that has the tokens (default: the only one
    /// of integers)
    #[arg(long, global = true, value_name = "COLUMN", requires = "tokens", help_heading = TOKENS)]
    token_column: Option<String>,

    /// With --tokens: take windows in the order that Megatron-LM cached: the path of its three files
    /// up to -document_index.npy
    #[arg(long, global = true, value_name = "PREFIX", requires = "tokens", help_heading = TOKENS)]
    megatron_order: Option<OsString>,
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

/// A token by its number.
fn end_token(number: &str) -> Result<String, String> {
    let checked = number.parse::<i64>().map(|_| number.to_owned());
    checked.map_err(|_| "expected the number of a token".to_owned())
}

/// The tokens of a sample unless others are asked for.
const LENGTH: NonZeroU32 = NonZeroU32::new(2048).expect("not zero");

impl TokenArgs {
    /// True if data sets are files of tokens.
    pub(crate) fn is_given(&self) -> bool {
        self.tokens.is_some()
    }

    /// Opens files of tokens; `None` where data sets are not.
    pub(crate) fn open<L: AsRef<std::ffi::OsStr>>(
        &self,
        stores: &Stores,
        locations: &[L],
    ) -> Option<Result<Vec<Box<dyn SampleSource>>, ReadError>> {
        let Stated(number) = self.tokens?;
        let options = TokenOptions {
            number,
            column: self.token_column.clone(),
            // The parser has checked it.
            end_token: self.end_token.as_ref().and_then(|token| token.parse().ok()),
            order: self.megatron_order.clone(),
            ..TokenOptions::default()
        };
        Some(tl_pipeline::open_tokens(stores, locations, &options, self.sequences()))
    }

    fn sequences(&self) -> Sequences {
        let length = self.sequence_length.unwrap_or(LENGTH);
        let long = Long::Split;
        let packed =
            |strategy| Sequences::Packed(PackedRows { strategy, long, ..PackedRows::new(length) });
        match self.documents {
            None => Windows::new(length).into(),
            Some(DocumentChoice::Pad) => {
                let fill = Fill::default();
                Sequences::Documents(DocumentRows { length, targets: true, long, fill })
            }
            Some(DocumentChoice::BestFit) => packed(Packing::BestFit),
            Some(DocumentChoice::FirstFit) => packed(Packing::FirstFit),
            Some(DocumentChoice::Split) => packed(Packing::Split),
        }
    }
}
