//! Names that several samples have.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use super::Oddity;
use crate::sample::SampleSource;

/// Names reported; a file without distinct names would repeat itself.
const MAX_REPORTED: usize = 100;

/// Each name that occurs more than once in all sources, in the order of its first sample. 8 bytes
/// per sample.
pub(super) fn find(sources: &[Box<dyn SampleSource>]) -> Vec<Oddity> {
    let hasher = RandomState::new();
    let keys = || sources.iter().flat_map(|source| keys_of(&**source));
    let mut hashes: Vec<u64> = keys().map(|key| hasher.hash_one(&key)).collect();
    hashes.sort_unstable();
    // Two names with one hash are distinguished below.
    let mut repeated: Vec<u64> =
        hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    drop(hashes);
    repeated.dedup();
    if repeated.is_empty() {
        return Vec::new();
    }
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
    for key in keys().filter(|key| repeated.binary_search(&hasher.hash_one(key)).is_ok()) {
        if let Some(&at) = counts.get(&*key) {
            found[at].1 += 1;
        } else if found.len() < MAX_REPORTED {
            counts.insert(key.to_vec(), found.len());
            found.push((key.into_owned(), 1));
        }
    }
    found
        .into_iter()
        .filter(|&(_, samples)| samples > 1)
        .map(|(key, samples)| Oddity::DuplicateKey { key, samples })
        .collect()
}

fn keys_of(source: &dyn SampleSource) -> impl Iterator<Item = Cow<'_, [u8]>> {
    (0..source.sample_count()).filter_map(|index| source.entry(index).ok()?.key)
}
