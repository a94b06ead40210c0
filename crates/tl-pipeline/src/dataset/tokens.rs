//! Data sets of tokens.

use std::ffi::OsStr;

use sha2::{Digest, Sha256};
use tbl_io::{FileKind, Opened, ReadError, SampleSource, Stores};
use tl_tokens::{EpochOffset, TokenFile, TokenOptions, TokenSource, TokenType, Windows};

use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::table::from_little_endian;

/// Tokens at each end of a file that its fingerprint has.
const HASHED_TOKENS: u64 = 4096;

impl Dataset {
    /// Opens files of tokens, whose windows are the samples: those of one file after those of another.
    /// Locations are as for [`open_in`](Self::open_in); every one is a file.
    ///
    /// # Errors
    /// The first location that cannot be opened, and those of
    /// [`from_sources`](Self::from_sources).
    pub fn open_tokens<L: AsRef<OsStr>>(
        stores: &Stores,
        locations: &[L],
        options: &TokenOptions,
        windows: Windows,
    ) -> Result<Self, PipelineError> {
        let open = |opened| match opened {
            Opened::Folder(folder) => {
                let location = folder.location().clone();
                Err(ReadError::NotAFile { location, found: FileKind::Directory }.into())
            }
            Opened::File(source) => {
                let file = TokenFile::open(stores, source, options)?;
                Ok::<Box<dyn SampleSource>, PipelineError>(Box::new(TokenSource::new(
                    file, windows,
                )))
            }
        };
        Self::from_sources(tbl_io::open_each(stores, locations, open)?)
    }

    /// The windows that are its samples, if it has tokens.
    #[must_use]
    pub fn windows(&self) -> Option<&Windows> {
        Some(self.token_sources().next()?.windows())
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
            let Windows { length, targets, offset, .. } = *source.windows();
            for number in [length.get(), source.windows().stride()] {
                hash.update(number.to_le_bytes());
            }
            hash.update([u8::from(targets), u8::from(offset == EpochOffset::Random)]);
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
