//! The Zstandard dictionary of a file: trained on some of its samples, if it makes the file smaller.

use super::metadata::tbl_file;
use super::selection::Located;
use super::{Prepare, Selection};
use crate::codec::ZstdEncoding;
use crate::error::ReadError;
use crate::writer::ZstdLevel;

/// Samples looked at: half of them for training, the others to see if the dictionary pays.
const MAX_SAMPLES: u64 = 2048;

/// Larger samples have enough repetitions of their own.
const MAX_SAMPLE_BYTES: usize = 32 << 10;

/// Bytes of samples looked at.
const MAX_BYTES: usize = 4 << 20;

/// Training needs some samples, and more of them than the dictionary holds.
const MIN_SAMPLES: usize = 16;

/// The largest dictionary, which is the library's own choice too.
const MAX_DICTIONARY_BYTES: usize = 110 << 10;

/// The part of the samples looked at that the dictionary may be as large as.
const BYTES_PER_DICTIONARY_BYTE: usize = 8;

/// The dictionary that all sources with one have in common.
pub(super) fn of_sources<'a>(selection: &Selection<'a>) -> Result<Option<&'a [u8]>, ReadError> {
    let mut common = None;
    for file in selection.sources().iter().filter_map(|source| tbl_file(&**source)) {
        match (file.dictionary()?.map(|dictionary| dictionary.bytes()), common) {
            (Some(found), None) => common = Some(found),
            (Some(found), Some(first)) if found != first => return Ok(None),
            (Some(_), Some(_)) | (None, _) => {}
        }
    }
    Ok(common)
}

/// A dictionary for the prepared samples of `selection`, if it saves more bytes than it has.
///
/// Samples that cannot be read or prepared are passed over: the conversion reports them.
pub(super) fn train<P: Prepare>(
    selection: &Selection<'_>,
    new_prepare: impl Fn() -> P,
    level: ZstdLevel,
) -> Option<Vec<u8>> {
    let samples = some_samples(selection, new_prepare);
    if samples.len() < MIN_SAMPLES {
        return None;
    }
    let (training, trial): (Vec<_>, Vec<_>) =
        samples.iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let sizes: Vec<usize> = training.iter().map(|(_, sample)| sample.len()).collect();
    let content: Vec<u8> = training.into_iter().flat_map(|(_, sample)| sample).copied().collect();
    let most = (content.len() / BYTES_PER_DICTIONARY_BYTE).min(MAX_DICTIONARY_BYTES);
    let dictionary = zstd::dict::from_continuous(&content, &sizes, most).ok()?;
    let plain = ZstdEncoding::new(level, None)?;
    let trained = ZstdEncoding::new(level, Some(&dictionary))?;
    let stored = |encoding: &ZstdEncoding, sample: &[u8]| {
        encoding.compress(sample).map_or(sample.len(), |frame| frame.len()) as u64
    };
    let of_trial = |encoding| trial.iter().map(|(_, sample)| stored(encoding, sample)).sum::<u64>();
    let saved = of_trial(&plain).saturating_sub(of_trial(&trained));
    let count = selection.sample_count();
    let saved_in_all = saved.saturating_mul(count) / trial.len() as u64;
    // Twice, since a dictionary also has to be read and prepared.
    (saved_in_all > 2 * dictionary.len() as u64).then_some(dictionary)
}

/// Small samples, evenly spread over the selection.
fn some_samples<P: Prepare>(
    selection: &Selection<'_>,
    new_prepare: impl Fn() -> P,
) -> Vec<Vec<u8>> {
    let count = selection.sample_count();
    let step = count.div_ceil(MAX_SAMPLES).max(1);
    let mut prepare = new_prepare();
    let mut samples = Vec::new();
    let mut bytes = 0;
    let numbers = (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX));
    for (looked_at, number) in numbers.enumerate() {
        // Sets of larger samples are not read for a few small ones.
        if bytes >= MAX_BYTES || looked_at > 4 * samples.len() + MIN_SAMPLES {
            break;
        }
        let Some(sample) = small_sample(selection, number, &mut prepare) else { continue };
        bytes += sample.len();
        samples.push(sample);
    }
    samples
}

fn small_sample<P: Prepare>(
    selection: &Selection<'_>,
    number: u64,
    prepare: &mut P,
) -> Option<Vec<u8>> {
    let Located { source, index, .. } = selection.locate(number);
    let entry = source.entry(index).ok()?;
    if entry.bytes > MAX_SAMPLE_BYTES as u64 {
        return None;
    }
    let mut bytes = Vec::new();
    source.read_into(index, &mut bytes).ok()?;
    prepare.prepare(&entry, &mut bytes).ok()?;
    (1..=MAX_SAMPLE_BYTES).contains(&bytes.len()).then_some(bytes)
}
