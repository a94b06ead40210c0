//! Rows of a batch, filled with tokens.

use tbl_io::{ReadError, SampleSource};
use tl_handoff::slab::Parts;
use tl_tokens::{EpochOffset, TokenSource, TokenType, Windows};
use tl_transform::Draw;
use tl_transform::rng::{EPOCH_STREAM, Rng};

use crate::cache::{CacheConfig, CacheKind};
use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::fields::Fields;
use crate::readers::Readers;
use crate::row::RowExtras;
use crate::table::ColumnSpec;
use crate::tokens::TokenNumber;
use crate::work::Work;

/// The name of the column of tokens.
const TOKENS: &str = "tokens";

/// The operation in whose stream of an epoch the offset of windows is drawn.
const OFFSET_STREAM: u8 = 3;

/// Writes the tokens of samples into their rows.
#[derive(Debug)]
pub(crate) struct TokenGatherer {
    windows: Windows,
    number: TokenType,
    spec: ColumnSpec,
    seed: u64,
    /// True if the bytes of samples come from readers or caches.
    is_read_elsewhere: bool,
}

impl TokenGatherer {
    /// For work on tokens, which this data set must have; `None` for other work, which it must not
    /// have tokens for.
    pub(crate) fn new(
        dataset: &Dataset,
        config: &LoaderConfig,
    ) -> Result<Option<Self>, PipelineError> {
        let unusable = |text| Err(PipelineError::Unusable(text));
        let first = dataset.token_sources().next();
        let (work, source) = match (&config.work, first) {
            (Work::Tokens(work), Some(source)) => (*work, source),
            (Work::Tokens(_), None) => {
                let first = dataset.shards().first().map(|shard| shard.location().clone());
                let location = first.unwrap_or_default();
                return unusable(format!("{location}: not a file of tokens, so it has no windows"));
            }
            (Work::Images(_) | Work::Columns(_), Some(source)) => {
                let what = "tokens are neither images nor columns of a table";
                return unusable(format!("{}: {what}", source.location()));
            }
            (Work::Bytes | Work::Views | Work::Images(_) | Work::Columns(_), _) => return Ok(None),
        };
        if config.fields != Fields::default() {
            return unusable("fields go with samples of files; tokens have none".to_owned());
        }
        let is_read_elsewhere =
            config.readers != Readers::Workers || config.cache != CacheConfig::default();
        let windows = *source.windows();
        if is_read_elsewhere && windows.offset != EpochOffset::None {
            return unusable(
                "windows that start elsewhere in every epoch are read by workers: readers and \
                caches need windows that stay"
                    .to_owned(),
            );
        }
        if config.cache.has(CacheKind::Decoded) {
            return unusable("a cache of decoded images has no tokens".to_owned());
        }
        let number = match work.number {
            TokenNumber::I32 => TokenType::I32,
            TokenNumber::I64 => TokenType::I64,
            TokenNumber::Stored => source.file().number(),
        };
        let other = dataset.token_sources().find(|other| other.file().number() != number);
        if let Some(other) = other.filter(|_| work.number == TokenNumber::Stored) {
            let stored = other.file().number().name();
            let first = source.location();
            return unusable(format!(
                "{}: tokens are {stored}, those of {first} {}: set the type of batches",
                other.location(),
                number.name()
            ));
        }
        let tokens = usize::try_from(windows.tokens()).unwrap_or(usize::MAX);
        let spec =
            ColumnSpec { name: TOKENS.to_owned(), number: number.into(), shape: vec![tokens] };
        let seed = config.seed;
        Ok(Some(Self { windows, number, spec, seed, is_read_elsewhere }))
    }

    /// The column of batches.
    pub(crate) fn spec(&self) -> &ColumnSpec {
        &self.spec
    }

    /// True if each row has a further token for its targets.
    pub(crate) fn has_targets(&self) -> bool {
        self.windows.targets
    }

    /// The offset of windows in `epoch`.
    fn offset(&self, epoch: u32) -> u32 {
        match self.windows.offsets() {
            1 => 0,
            offsets => Rng::new(self.seed, epoch, EPOCH_STREAM, OFFSET_STREAM).below(offsets),
        }
    }

    /// True if the bytes of samples come from readers or caches, for [`convert`](Self::convert).
    pub(crate) fn is_read_elsewhere(&self) -> bool {
        self.is_read_elsewhere
    }

    /// Writes the tokens of a sample into its row, and returns how many bytes they had. `buffer` is
    /// used where they are not mapped.
    pub(crate) fn gather(
        &self,
        dataset: &Dataset,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, ReadError> {
        let place = self.place(dataset, draw)?;
        let out = parts.columns.get(0);
        let convert = |stored: &[u8]| self.convert_into(&place, stored, out);
        place.source.file().read(place.first, place.count, buffer, convert).flatten()
    }

    /// As [`gather`](Self::gather), from the stored bytes of the sample.
    pub(crate) fn convert(
        &self,
        dataset: &Dataset,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        stored: &[u8],
    ) -> Result<(), ReadError> {
        let place = self.place(dataset, draw)?;
        let file = place.source.file();
        let (offset, expected) = file.range(place.first, place.count)?;
        if stored.len() as u64 != expected {
            let location = file.location().clone();
            return Err(ReadError::ChangedWhileOpen { location, offset, expected });
        }
        self.convert_into(&place, stored, parts.columns.get(0)).map(drop)
    }

    fn place<'d>(&self, dataset: &'d Dataset, draw: Draw) -> Result<Place<'d>, ReadError> {
        let (source, local) = dataset.locate(draw.sample)?;
        // `check_sources` saw that all of them are.
        let source = TokenSource::of(source).expect("sources of tokens are not mixed with others");
        let (first, count) = source.place(local, self.offset(draw.epoch))?;
        Ok(Place { source, first, count })
    }

    fn convert_into(
        &self,
        Place { source, first, .. }: &Place<'_>,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<usize, ReadError> {
        let file = source.file();
        let converted = file.number().convert(stored, self.number, out);
        converted
            .map(|()| stored.len())
            .map_err(|(place, value)| file.misfit(first + place as u64, value, self.number))
    }
}

/// The tokens of a sample in an epoch.
struct Place<'d> {
    source: &'d TokenSource,
    first: u64,
    count: u64,
}
