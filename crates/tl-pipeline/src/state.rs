//! The state of a training run: where in which epoch of which order the consumer is.

use serde::{Deserialize, Serialize};
use tl_video::Parity;

use crate::batching::{Batching, Buckets};
use crate::clips::ClipWork;
use crate::config::LoaderConfig;
use crate::error::PipelineError;
use crate::fingerprint::Fingerprint;
use crate::policy::OnError;
use crate::schedule::Tail;
use crate::tokens::{TokenNumber, TokenWork};
use crate::work::Work;

/// The position of a consumer, and the settings that must be the same to resume from it.
///
/// Workers and prefetch are not part of it: any loader whose ranks together have the same global
/// batch continues with the same bytes, or refuses if those depend on the number of ranks. Batches
/// that were prepared and not received are not counted. It serialises as a small table, with
/// fingerprints as hexadecimal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    /// The version of this table, [`LoaderState::VERSION`].
    pub version: u32,
    /// [`Dataset::fingerprint`](crate::Dataset::fingerprint) of the data set.
    pub dataset: Fingerprint,
    /// The recipe and what is decoded of an image that EXIF data turn; for stored bytes that fact, for a
    /// table which columns batches have. Where
    /// images are grouped by size, also how.
    pub recipe: Fingerprint,
    /// The fingerprint of the samples of an epoch and their order.
    pub order: Fingerprint,
    /// The seed of order and augmentation.
    pub seed: u64,
    /// The number of the epoch.
    pub epoch: u32,
    /// Rows of a batch, all ranks together.
    pub global_batch: u64,
    /// Rows whose images are mixed with each other, as by `MixUp`; 0 where none are.
    pub mixing_group: u64,
    /// Rows among which a bad sample's replacement is found, where those are one rank's batch, as for
    /// [`OnError::Replace`](crate::OnError::Replace) in padded batches; 0 elsewhere. With another
    /// policy for bad samples on either side this does not count.
    #[serde(default)]
    pub replacement_group: u64,
    /// The handling of the last global batch if its samples do not suffice. Loaders with
    /// [`Tail::Pad`] resume states with [`Tail::Uneven`] and the reverse, and handle the last
    /// global batch by their own setting.
    pub tail: Tail,
    /// Rows of the epoch that all ranks together have received.
    pub consumed: u64,
}

impl LoaderState {
    /// The version that is written and read.
    pub const VERSION: u32 = 1;

    /// Checks that a loader whose state at the end of an epoch is `own` continues this one's epoch,
    /// and returns the number of the next batch.
    pub(crate) fn next_batch(&self, own: &Self) -> Result<u64, PipelineError> {
        let Self { version, dataset, recipe, order, seed, .. } = self;
        let Self { global_batch, mixing_group, replacement_group: group, .. } = self;
        let mismatch = |what, state: String, loader: String| {
            if state == loader {
                return Ok(());
            }
            Err(PipelineError::StateMismatch { what, state, loader })
        };
        mismatch("version", version.to_string(), own.version.to_string())?;
        mismatch("data set", dataset.to_string(), own.dataset.to_string())?;
        mismatch("recipe", recipe.to_string(), own.recipe.to_string())?;
        mismatch("order", order.to_string(), own.order.to_string())?;
        mismatch("seed", seed.to_string(), own.seed.to_string())?;
        mismatch("global batch", global_batch.to_string(), own.global_batch.to_string())?;
        mismatch("mixing group", mixing_group.to_string(), own.mixing_group.to_string())?;
        if *group != 0 && own.replacement_group != 0 {
            let own = own.replacement_group.to_string();
            mismatch("replacement group", group.to_string(), own)?;
        }
        // Whole global batches are equal under `Pad` and `Uneven`, and a state is taken after a whole
        // one or at the end of the epoch.
        if self.tail.serves_all() != own.tail.serves_all() {
            mismatch("tail", self.tail.to_string(), own.tail.to_string())?;
        }
        if self.consumed > own.consumed {
            let consumed = self.consumed;
            let rows = own.consumed;
            return Err(PipelineError::StateBeyondEpoch { consumed, rows });
        }
        if !self.consumed.is_multiple_of(self.global_batch) {
            let Self { consumed, global_batch, .. } = *self;
            return Err(PipelineError::StateWithinBatch { consumed, global_batch });
        }
        Ok(self.consumed / self.global_batch)
    }
}

/// The fingerprint of the work on every sample. The handling of bad samples is not part of it, so
/// that a run that met one can resume with another policy.
pub(crate) fn of_work(config: &LoaderConfig) -> Fingerprint {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    match &config.work {
        Work::Bytes | Work::Views => hash.update(b"bytes"),
        Work::Images(recipe) => {
            hash.update(b"images");
            hash.update(recipe.hash().0);
            hash.update([u8::from(config.decode.exif == tl_decode::Exif::Apply)]);
            config.fields.hash_images(&mut hash);
            if !config.decoders.is_empty() {
                hash.update(b"decoders");
                hash.update(config.decoders.identity());
            }
        }
        Work::Clips(ClipWork { recipe, sampling, parity, columns }) => {
            hash.update(b"clips");
            hash.update(recipe.hash().0);
            sampling.hash(&mut hash);
            hash.update([u8::from(*parity == Parity::Exact)]);
            columns.hash(&mut hash);
        }
        Work::Columns(columns) => {
            hash.update(b"columns");
            columns.hash(&mut hash);
        }
        Work::Tokens(TokenWork { number }) => {
            hash.update(b"tokens");
            hash.update(match number {
                TokenNumber::Stored => "stored",
                TokenNumber::I32 => "i32",
                TokenNumber::I64 => "i64",
            });
        }
    }
    if let Batching::Buckets(Buckets { window, multiple }) = config.batching {
        hash.update(b"buckets");
        hash.update(window.to_le_bytes());
        hash.update(multiple.to_le_bytes());
        // An image beyond the limit has no size to be grouped by.
        hash.update(config.decode.limits.max_decoded_bytes.to_le_bytes());
    }
    Fingerprint(hash.finalize().into())
}

/// Rows whose images are mixed with each other; 0 where none are.
pub(crate) fn mixing_group(config: &LoaderConfig) -> u64 {
    match &config.work {
        Work::Images(recipe) if !recipe.batch_ops().is_empty() => config.mixing_group as u64,
        Work::Images(_)
        | Work::Clips(_)
        | Work::Bytes
        | Work::Views
        | Work::Columns(_)
        | Work::Tokens(_) => 0,
    }
}

/// Rows among which a bad sample's replacement is found; 0 where that is the whole epoch or none is
/// looked for.
pub(crate) fn replacement_group(config: &LoaderConfig) -> u64 {
    let is_of_batch = config.on_error == OnError::Replace && config.batching.pads();
    if is_of_batch { config.batch_size as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: LoaderState = LoaderState {
        version: LoaderState::VERSION,
        dataset: Fingerprint([1; 32]),
        recipe: Fingerprint([2; 32]),
        order: Fingerprint([3; 32]),
        seed: 42,
        epoch: 0,
        global_batch: 12,
        mixing_group: 4,
        replacement_group: 6,
        tail: Tail::Pad,
        consumed: 36,
    };

    #[test]
    fn a_state_is_small_text_and_comes_back() {
        let state = LoaderState { epoch: 7, consumed: 24, seed: u64::MAX, ..OWN };
        let text = serde_json::to_string(&state).unwrap();
        assert!(text.contains(&format!("\"dataset\":\"{}\"", "01".repeat(32))), "{text}");
        assert_eq!(serde_json::from_str::<LoaderState>(&text).unwrap(), state);
        // Further fields of a later version are refused because of the version.
        let later = text.replace("\"version\":1", "\"version\":2,\"more\":0");
        assert_eq!(serde_json::from_str::<LoaderState>(&later).unwrap().version, 2);
        for broken in [text.replace("01", "0"), text.replace("01", "0g"), text.replace("01", "")] {
            assert!(serde_json::from_str::<LoaderState>(&broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        let check = |state: LoaderState, expected: &str| {
            let error = state.next_batch(&OWN).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        assert_eq!(LoaderState { epoch: 9, consumed: 24, ..OWN }.next_batch(&OWN).unwrap(), 2);
        check(LoaderState { version: 2, ..OWN }, "version");
        check(LoaderState { dataset: Fingerprint([0; 32]), ..OWN }, "data set");
        check(LoaderState { recipe: Fingerprint([0; 32]), ..OWN }, "recipe");
        check(LoaderState { order: Fingerprint([0; 32]), ..OWN }, "order");
        check(LoaderState { seed: 43, ..OWN }, "seed is 43, this loader's is 42");
        check(LoaderState { global_batch: 6, ..OWN }, "global batch");
        check(LoaderState { mixing_group: 6, ..OWN }, "mixing group");
        check(LoaderState { replacement_group: 12, ..OWN }, "replacement group is 12");
        assert!(LoaderState { replacement_group: 0, ..OWN }.next_batch(&OWN).is_ok());
        assert!(OWN.next_batch(&LoaderState { replacement_group: 0, ..OWN }).is_ok());
        check(LoaderState { tail: Tail::Drop, ..OWN }, "tail is drop, this loader's is pad");
        let uneven = LoaderState { tail: Tail::Uneven, consumed: 24, ..OWN };
        assert_eq!(uneven.next_batch(&OWN).unwrap(), 2);
        assert_eq!(OWN.next_batch(&LoaderState { consumed: 36, ..uneven }).unwrap(), 3);
        check(LoaderState { consumed: 13, ..OWN }, "13 consumed rows");
        check(
            LoaderState { consumed: 48, ..OWN },
            "48 consumed rows exceed the 36 rows of an epoch",
        );
    }
}
