//! Arguments of a loader's caches of samples.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use tl_pipeline::{CacheConfig, CacheKind, DiskCache, MemoryCache};

/// The kind, place and size of the caches.
#[derive(Clone, Debug, Args)]
pub(crate) struct CacheArgs {
    /// Keep samples in memory, in up to SIZE bytes (2G and 2GiB are powers of 1024, 2GB of
    /// 1000)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    cache_memory: Option<u64>,

    /// Keep samples in this folder, which runs can share and later runs find
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "cache_disk")]
    cache_folder: Option<PathBuf>,

    /// The largest size of the folder of --cache-folder
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "cache_folder")]
    cache_disk: Option<u64>,

    /// The form in which samples are kept; decoded images need a recipe that decodes exactly
    #[arg(long = "cache", value_enum, value_name = "KIND", default_value_t = KindChoice::Encoded)]
    kind: KindChoice,
}

/// The form in which a cache keeps samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    /// The stored bytes
    Encoded,
    /// The pixels of the whole image
    Decoded,
}

impl CacheArgs {
    /// The loader's configuration of caches.
    pub(crate) fn config(&self) -> CacheConfig {
        let kind = match self.kind {
            KindChoice::Encoded => CacheKind::Encoded,
            KindChoice::Decoded => CacheKind::Decoded,
        };
        let folder = self.cache_folder.as_ref().zip(self.cache_disk);
        CacheConfig {
            memory: self.cache_memory.map(|bytes| MemoryCache { kind, bytes }),
            disk: folder.map(|(folder, bytes)| DiskCache { kind, folder: folder.clone(), bytes }),
        }
    }
}

/// A number of bytes: digits, and K, M, G or T. As in coreutils, `2G` and `2GiB` are powers of 1024,
/// `2GB` of 1000.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "expected a number of bytes, as 500000 or 64G")?;
    let letters = unit.to_ascii_uppercase();
    let (letter, base): (&str, u64) = match letters.strip_suffix("IB") {
        Some(letter) => (letter, 1024),
        None => letters.strip_suffix('B').map_or((&*letters, 1024), |letter| (letter, 1000)),
    };
    let power = match letter {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err("expected K, M, G or T after the number"),
    };
    number.checked_mul(base.pow(power)).ok_or("larger than 16 EiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_units() {
        const NUMBER: &str = "expected a number of bytes, as 500000 or 64G";
        const UNIT: &str = "expected K, M, G or T after the number";
        let expected = [
            ("0", Ok(0)),
            ("4096", Ok(4_096)),
            ("12B", Ok(12)),
            ("3k", Ok(3_072)),
            ("64M", Ok(67_108_864)),
            ("2GiB", Ok(2_147_483_648)),
            ("1TB", Ok(1_000_000_000_000)),
            ("3kb", Ok(3_000)),
            ("1T", Ok(1_099_511_627_776)),
            ("16777215T", Ok(18_446_742_974_197_923_840)),
            ("16777216T", Err("larger than 16 EiB")),
            ("", Err(NUMBER)),
            ("G", Err(NUMBER)),
            ("-1", Err(NUMBER)),
            ("1.5G", Err(UNIT)),
            ("5 G", Err(UNIT)),
        ];
        for (text, expected) in expected {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
