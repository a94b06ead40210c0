//! Data sets of tokens.

use std::ffi::OsStr;

use sha2::{Digest, Sha256};
use tbl_io::{ReadError, SampleSource, Stores};
use tl_tokens::{Fill, Long, Packing, Sequences, TokenFile, TokenOptions, TokenSource, TokenType};

use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::table::from_little_endian;

/// Tokens at each end of a file that its fingerprint has.
const HASHED_TOKENS: u64 = 4096;

/// Opens files of tokens as sources of their sequences, as [`Dataset::open_tokens`] does.
///
/// # Errors
/// Those of [`tl_tokens::open_all_in`].
pub fn open_tokens<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    options: &TokenOptions,
    sequences: Sequences,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    #[cfg(feature = "arrow")]
    let other = tl_arrow::open_tokens;
    #[cfg(not(feature = "arrow"))]
    let other = |_: &_, _: &_| Ok(None);
    tl_tokens::open_all_in(stores, locations, options, sequences, other)
}

impl Dataset {
    /// Opens files of tokens, whose sequences are the samples: those of one file after those of another.
    /// Locations are as for [`open_in`](Self::open_in); every one is a file, or an `index.json` of
    /// LitData or MDS or its folder.
    ///
    /// # Errors
    /// The first location that cannot be opened, and those of
    /// [`from_sources`](Self::from_sources).
    pub fn open_tokens<L: AsRef<OsStr>>(
        stores: &Stores,
        locations: &[L],
        options: &TokenOptions,
        sequences: Sequences,
    ) -> Result<Self, PipelineError> {
        Self::from_sources(open_tokens(stores, locations, options, sequences)?)
    }

    /// The sequences that are its samples, if it has tokens.
    #[must_use]
    pub fn sequences(&self) -> Option<&Sequences> {
        Some(self.token_sources().next()?.sequences())
    }

    /// The files of tokens, in order; none where the sources have other samples.
    pub(crate) fn token_sources(&self) -> impl Iterator<Item = &TokenSource> {
        self.shards().iter().filter_map(|shard| TokenSource::of(&**shard))
    }

    /// Feeds `hash` with the tokens, if the data set has tokens, and returns whether it has: their
    /// number, the first and the last of every file, and the windows. The type that they are stored
    /// in does not matter.
    pub(crate) fn hash_tokens(&self, hash: &mut Sha256) -> Result<bool, ReadError> {
        let mut has_tokens = false;
        for source in self.token_sources() {
            has_tokens = true;
            hash.update("turboloader tokens 1\n");
            hash_sequences(source, hash);
            let file = source.file();
            hash.update(file.len().to_le_bytes());
            let count = file.len().min(HASHED_TOKENS);
            for first in [0, file.len() - count] {
                hash_range(file, first, count, hash)?;
            }
        }
        Ok(has_tokens)
    }
}

/// Feeds `hash` with what the samples of a file are.
fn hash_sequences(source: &TokenSource, hash: &mut Sha256) {
    let mut number = |number: u64| hash.update(number.to_le_bytes());
    let sequences = source.sequences();
    number(source.sample_count());
    number(source.packing_id());
    number(sequences.length().into());
    number(sequences.targets().into());
    number(sequences.offsets().into());
    match sequences {
        Sequences::Windows(windows) => [0, windows.stride().into(), 0].map(number),
        Sequences::Documents(rows) => [1, long(rows.long), 0].map(number),
        Sequences::Packed(rows) => {
            let strategy = match rows.strategy {
                Packing::FirstFit => 0,
                Packing::BestFit => 1,
                Packing::Split | _ => 2,
            };
            number(rows.window.get().into());
            [2, long(rows.long), strategy].map(number)
        }
        _ => [3, 0, 0].map(number),
    };
    if let Some(Fill { pad, ignore }) = sequences.fill() {
        hash.update(pad.to_le_bytes());
        hash.update(ignore.to_le_bytes());
    }
}

fn long(long: Long) -> u64 {
    match long {
        Long::Truncate => 0,
        Long::Split => 1,
        Long::Error | _ => 2,
    }
}

/// Feeds `hash` with tokens as numbers of 64 bits.
fn hash_range(
    file: &TokenFile,
    first: u64,
    count: u64,
    hash: &mut Sha256,
) -> Result<(), ReadError> {
    let stored = file.read(first, count, &mut Vec::new(), <[u8]>::to_vec)?;
    let number = file.number();
    let mut wide = vec![0; stored.len() / number.bytes() * size_of::<i64>()];
    match number.convert(&stored, TokenType::I64, &mut wide) {
        Ok(()) => {
            from_little_endian(&mut wide, size_of::<i64>());
            hash.update(wide);
        }
        // Numbers above 2^63 are stored in 64 bits.
        Err(_) => hash.update(stored),
    }
    Ok(())
}
