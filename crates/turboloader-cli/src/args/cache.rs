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

    /// The form in which samples are kept; decoded images need a recipe that decodes exactly, and
    /// blocks are for the folder alone
    #[arg(
        long = "cache", value_enum, value_name = "KIND", default_value_t = KindChoice::Encoded,
        requires_if("blocks", "cache_folder")
    )]
    kind: KindChoice,
}

/// The form in which a cache keeps samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindChoice {
    /// The stored bytes
    Encoded,
    /// The pixels of the whole image
    Decoded,
    /// On disk, the stored bytes of what is read from a store, with its neighbours in one file;
    /// in memory, the stored bytes
    Blocks,
}

impl CacheArgs {
    /// The loader's configuration of caches.
    pub(crate) fn config(&self) -> CacheConfig {
        let kind = match self.kind {
            KindChoice::Encoded | KindChoice::Blocks => CacheKind::Encoded,
            KindChoice::Decoded => CacheKind::Decoded,
        };
        let on_disk = if self.kind == KindChoice::Blocks { CacheKind::Blocks } else { kind };
        let folder = self.cache_folder.as_ref().zip(self.cache_disk);
        CacheConfig {
            memory: self.cache_memory.map(|bytes| MemoryCache { kind, bytes }),
            disk: folder.map(|(folder, bytes)| DiskCache {
                kind: on_disk,
                folder: folder.clone(),
                bytes,
            }),
        }
    }
}

const NUMBER: &str = "expected bytes: a number such as 500000, 64G, 1.5G or 512 MiB";
const UNIT: &str = "expected K, M, G or T after the number, as in 1.5G, 2GB or 512 MiB";
const LARGE: &str = "larger than 16 EiB";

/// A number of bytes, as Python takes it: digits, with or without a fraction, and K, M, G or T. As in
/// coreutils, `2G` and `2GiB` are powers of 1024, `2GB` of 1000. Parts of a byte do not count.
pub(super) fn size(text: &str) -> Result<u64, &'static str> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, unit) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("0", rest),
    };
    if whole.is_empty() || fraction.is_empty() {
        return Err(NUMBER);
    }
    let unit = u128::from(bytes_of(unit.strip_prefix(' ').unwrap_or(unit)).ok_or(UNIT)?);
    let whole: u64 = whole.parse().map_err(|_| LARGE)?;
    // A unit has 13 digits, so the others are parts of a byte.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts: u128 = fraction.parse().map_err(|_| NUMBER)?;
    let scale = fraction.bytes().fold(1_u128, |scale, _| scale * 10);
    u64::try_from(u128::from(whole) * unit + parts * unit / scale).map_err(|_| LARGE)
}

/// The bytes of a unit; `None` for what is none.
fn bytes_of(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let Some(letter) = unit.chars().next().filter(|letter| *letter != 'b') else {
        return matches!(&*unit, "" | "b").then_some(1);
    };
    let power = 1 + u32::try_from("kmgt".find(letter)?).ok()?;
    match &unit[letter.len_utf8()..] {
        "" | "i" | "ib" => Some(1024_u64.pow(power)),
        "b" => Some(1000_u64.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_units() {
        let expected = [
            ("0", Ok(0)),
            ("4096", Ok(4_096)),
            ("12B", Ok(12)),
            ("3k", Ok(3_072)),
            ("3Ki", Ok(3_072)),
            ("64M", Ok(67_108_864)),
            ("2GiB", Ok(2_147_483_648)),
            ("2 gib", Ok(2_147_483_648)),
            ("1TB", Ok(1_000_000_000_000)),
            ("3kb", Ok(3_000)),
            ("1T", Ok(1_099_511_627_776)),
            ("1.5G", Ok(1_610_612_736)),
            ("0.25 KiB", Ok(256)),
            ("1.1kB", Ok(1_100)),
            ("0.0009kB", Ok(0)),
            ("1.9", Ok(1)),
            ("0.9999999999999999999999999T", Ok(1_099_511_627_775)),
            ("16777215T", Ok(18_446_742_974_197_923_840)),
            ("9007199254740993", Ok(9_007_199_254_740_993)),
            ("16777216T", Err(LARGE)),
            ("99999999999999999999", Err(LARGE)),
            ("", Err(NUMBER)),
            ("G", Err(NUMBER)),
            ("-1", Err(NUMBER)),
            ("1.G", Err(NUMBER)),
            (".5G", Err(NUMBER)),
            ("1,5G", Err(UNIT)),
            ("1.5.2G", Err(UNIT)),
            ("5  G", Err(UNIT)),
            ("2iB", Err(UNIT)),
            ("2P", Err(UNIT)),
            ("2GiBi", Err(UNIT)),
        ];
        for (text, expected) in expected {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
