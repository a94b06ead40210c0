//! The state that a loader, its epochs and their workers have in common.

use std::mem;

use tl_handoff::pool::Pool;
use tl_handoff::sync::{Arc, Mutex, lock, process_id};

use crate::cache::Caches;
use crate::config::{BoundRecipes, LoaderConfig};
use crate::dataset::Dataset;
use crate::delivered::Delivered;
use crate::error::PipelineError;
use crate::fields::FieldReaders;
use crate::fingerprint::Fingerprint;
use crate::layout::BatchLayout;
use crate::memory::SampleLimits;
use crate::memory_limits::MemoryLimits;
use crate::note::LoaderNote;
use crate::order::{Order, Sequence};
use crate::row::RowExtras;
use crate::schedule::Schedule;
use crate::scratch::Scratch;
use crate::state::{self, LoaderState};
use crate::stats::Counters;
use crate::table::Gatherer;
use crate::token_gather::TokenGatherer;
use crate::trace::Trace;
use crate::videos::VideoIndexes;

/// The state that a loader, its epochs and their workers have in common.
pub(crate) struct Shared {
    /// Counted, because batches of views keep it.
    pub(crate) dataset: Arc<Dataset>,
    pub(crate) config: LoaderConfig,
    pub(crate) sequence: Sequence,
    pub(crate) schedule: Schedule,
    /// The layout of every batch that is not padded.
    pub(crate) layout: BatchLayout,
    pub(crate) user_transforms: BoundRecipes,
    /// The readers of fields, which every worker copies.
    pub(crate) fields: FieldReaders,
    /// The gatherer of rows, for tables.
    pub(crate) gatherer: Option<Gatherer>,
    /// The gatherer of tokens.
    pub(crate) tokens: Option<TokenGatherer>,
    pub(crate) pool: Arc<Pool<RowExtras>>,
    pub(crate) delivered: Delivered,
    /// The indexes of videos that were opened, for clips.
    pub(crate) videos: VideoIndexes,
    pub(crate) memory: MemoryLimits,
    /// Workers' memory between runs.
    pub(crate) scratch: Mutex<Vec<Scratch>>,
    pub(crate) caches: Caches,
    pub(crate) counters: Counters,
    pub(crate) trace: Option<Arc<Trace>>,
    pub(crate) notes: Mutex<Vec<LoaderNote>>,
    /// Made when it is first asked for.
    pub(crate) fingerprint: Mutex<Option<Fingerprint>>,
    /// The process that made the loader: threads and locks are of no use in a fork of it.
    pub(crate) process: u32,
}

impl Shared {
    pub(crate) fn order(&self, epoch: u32) -> Order {
        self.sequence.order(self.config.seed, epoch)
    }

    /// Adds a note, if it is the first of its kind.
    pub(crate) fn note(&self, note: LoaderNote) {
        let mut notes = lock(&self.notes);
        let is_known = |known: &LoaderNote| match (known, &note) {
            (LoaderNote::Device { wanted, .. }, LoaderNote::Device { wanted: new, .. }) => {
                wanted == new
            }
            _ => mem::discriminant(known) == mem::discriminant(&note),
        };
        if !notes.iter().any(is_known) {
            notes.push(note);
        }
    }

    /// True if this process is a fork of the one that created the loader.
    pub(crate) fn is_forked(&self) -> bool {
        process_id() != self.process
    }

    /// The state in which `received` batches of `epoch` have been received.
    pub(crate) fn state(&self, epoch: u32, received: u64) -> Result<LoaderState, PipelineError> {
        if self.is_forked() {
            return Err(PipelineError::Forked);
        }
        let global_batch = self.schedule.global_batch();
        Ok(LoaderState {
            version: LoaderState::VERSION,
            dataset: self.fingerprint()?,
            recipe: state::of_work(&self.config),
            order: self.sequence.fingerprint(),
            seed: self.config.seed,
            epoch,
            global_batch,
            mixing_group: state::mixing_group(&self.config),
            replacement_group: state::replacement_group(&self.config),
            tail: self.schedule.tail(),
            consumed: received * global_batch,
        })
    }

    fn fingerprint(&self) -> Result<Fingerprint, PipelineError> {
        let mut known = lock(&self.fingerprint);
        let fingerprint = known.map_or_else(|| self.dataset.fingerprint(), Ok)?;
        *known = Some(fingerprint);
        Ok(fingerprint)
    }

    /// Memory for a worker.
    pub(crate) fn new_scratch(&self) -> Scratch {
        self.scratch_within(*self.memory.usual())
    }

    /// Memory for samples within `limits`.
    pub(crate) fn scratch_within(&self, limits: SampleLimits) -> Scratch {
        let config = self.delivered.rendering.as_ref().unwrap_or(&self.config);
        let device = self.delivered.work(&self.config);
        Scratch::new(config, &self.user_transforms, &self.fields, limits, device)
    }
}
