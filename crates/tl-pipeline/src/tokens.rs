//! Tokens in batches: their type, and the sources that they come from.

use tbl_io::SampleSource;
use tl_handoff::sync::Arc;
use tl_tokens::{TokenSource, TokenType};

use crate::error::PipelineError;
use crate::table::ColumnType;

/// The tokens of batches.
///
/// ```no_run
/// use std::num::NonZeroU32;
///
/// use tbl_io::Stores;
/// use tl_pipeline::{Dataset, Loader, LoaderConfig, TokenWork, Work};
/// use tl_tokens::{TokenOptions, TokenType, Windows};
///
/// let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
/// let windows = Windows::new(NonZeroU32::new(2048).unwrap());
/// let dataset = Dataset::open_tokens(&Stores::new(), &["corpus.bin"], &options, windows.into())?;
/// let loader = Loader::new(dataset, LoaderConfig::new(Work::Tokens(TokenWork::default())))?;
/// for batch in loader.epoch(0) {
///     let batch = batch?;
///     let row = batch.token_row::<i64>(0).unwrap();
///     assert_eq!(row.tokens[1..], row.targets[..2047]);
/// }
/// # Ok::<(), tl_pipeline::PipelineError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TokenWork {
    /// The type of tokens in batches.
    pub number: TokenNumber,
}

/// The type of tokens in batches. A token that does not fit is the fault of its sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenNumber {
    /// That of the files, which must all have the same.
    Stored,
    /// 32 bits.
    I32,
    /// 64 bits, which embeddings of PyTorch take.
    #[default]
    I64,
}

/// The tokens of one row, and the next token of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenRow<'a, N> {
    /// The tokens.
    pub tokens: &'a [N],
    /// The token after each of them; none if the sequences have no targets.
    pub targets: &'a [N],
}

impl From<TokenType> for ColumnType {
    fn from(number: TokenType) -> Self {
        match number {
            TokenType::U8 => Self::U8,
            TokenType::I8 => Self::I8,
            TokenType::U16 => Self::U16,
            TokenType::I16 => Self::I16,
            TokenType::U32 => Self::U32,
            TokenType::I32 => Self::I32,
            TokenType::U64 => Self::U64,
            TokenType::I64 => Self::I64,
        }
    }
}

/// Checks that sources of tokens are not mixed with others, and have the same windows.
pub(crate) fn check_sources(shards: &[Arc<dyn SampleSource>]) -> Result<(), PipelineError> {
    let Some(first) = shards.iter().find_map(|shard| TokenSource::of(&**shard)) else {
        return Ok(());
    };
    for shard in shards {
        let unusable = |what, expected| {
            let text = format!("{}: {what} {}{expected}", shard.location(), first.location());
            Err(PipelineError::Unusable(text))
        };
        match TokenSource::of(&**shard) {
            None => return unusable("samples without tokens cannot be joined with those of", ""),
            Some(source) if source.sequences() != first.sequences() => {
                return unusable(
                    "the sequences differ from those of",
                    ", expected the same length, targets and documents",
                );
            }
            Some(_) => {}
        }
    }
    Ok(())
}
