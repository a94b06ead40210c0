//! Epochs without a batch: no samples, none selected, or too few.

use std::fmt;

use tbl_io::{Escaped, Location, SourceKind};

/// The reason why epochs would have no batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum EmptyError {
    /// A data set without samples.
    #[error("{}", Missing(first.as_ref(), *others))]
    NoSamples {
        /// The first source, and its kind; `None` without any source.
        first: Option<(Location, SourceKind)>,
        others: usize,
    },
    /// Samples none of which is an image, where images are decoded.
    #[error(
        "{}: none of {sample_count} samples is an image, the first is {}; expected files such as \
         NAME.jpg, .png or .webp; samples that are not images can be loaded as bytes",
        location,
        key.as_ref().map_or("sample 0".to_owned(), |key| Escaped(key).to_string())
    )]
    NoImages {
        location: Location,
        /// The name of its first sample, if it has one.
        key: Option<Vec<u8>>,
        sample_count: u64,
    },
    /// A folder of files that hold samples, where images are decoded.
    #[error(
        "{location}: this folder has no images but {count} {}: pass '{pattern}'",
        shards(extension, *count)
    )]
    Shards {
        location: Location,
        count: u64,
        /// That of the files: `tar`, `tbl` or `tlidx`.
        extension: &'static str,
        /// The pattern of the files, or the only one.
        pattern: Location,
    },
    /// A sampler that selects no sample.
    #[error("the sampler selects none of {sample_count} samples")]
    NothingSelected { sample_count: u64 },
    /// Too few samples for one batch, where incomplete batches are dropped.
    #[error(
        "{positions} samples do not fill one global batch of {global_batch}, and drop leaves an \
        incomplete one out: lower batch_size, or set tail to pad or uneven"
    )]
    NoBatch { positions: u64, global_batch: u64 },
}

fn shards(extension: &str, count: u64) -> &'static str {
    match (extension, count) {
        ("tlidx", 1) => "shard index",
        ("tlidx", _) => "shard indexes",
        ("tbl", 1) => "TBL file",
        ("tbl", _) => "TBL files",
        (_, 1) => "TAR archive",
        _ => "TAR archives",
    }
}

/// The expected contents of the first source, and the number of other sources.
struct Missing<'a>(Option<&'a (Location, SourceKind)>, usize);

impl fmt::Display for Missing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Self(Some((location, kind)), others) = self else {
            return f.write_str("the data set has no source: name at least one file or folder");
        };
        write!(f, "{location}: ")?;
        f.write_str(match kind {
            SourceKind::Folder => {
                "no images found in this folder or the folders in it, expected files such as \
                 CLASS/NAME.jpg, .png or .webp"
            }
            SourceKind::Tar => "the archive has no samples, expected members such as NAME.jpg",
            SourceKind::Tbl1 | SourceKind::Tbl2 => "the TBL file has no samples",
            SourceKind::Parquet => "the Parquet file has no rows",
            SourceKind::Arrow => "the Arrow file has no rows",
            SourceKind::Images => "the file has no images",
            SourceKind::Manifest => "the list has no rows, expected one for each sample",
            SourceKind::Table => "the table has no rows",
            SourceKind::Tokens => "the tokens do not fill one window",
            SourceKind::Files | _ => "no samples",
        })?;
        match others {
            0 => Ok(()),
            1 => f.write_str("; one other source has none either"),
            others => write!(f, "; {others} other sources have none either"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_for_is_said() {
        let text = |kind, others| {
            EmptyError::NoSamples { first: Some(("a\nb".into(), kind)), others }.to_string()
        };
        let folder = text(SourceKind::Folder, 0);
        assert!(folder.starts_with("a\\x0ab: no images found in this folder"), "{folder}");
        assert!(text(SourceKind::Tar, 1).ends_with("; one other source has none either"));
        assert!(text(SourceKind::Tbl2, 2).ends_with("; 2 other sources have none either"));
        assert_eq!(text(SourceKind::Table, 0), "a\\x0ab: the table has no rows");
        let none = EmptyError::NoSamples { first: None, others: 0 }.to_string();
        assert!(none.starts_with("the data set has no source"), "{none}");
    }
}
