//! A cache on disk of blocks: samples of an object in a store that lie side by side, in one entry.
//!
//! The blocks of a data set are the same in every epoch and for every rank, so what one process
//! fetches serves all that share the folder. A block is fetched whole when its first sample is
//! needed, unless the cache is full. Nothing waits for the disk: a block that it cannot take in time
//! is dropped.

mod assembly;
mod claims;
mod entries;
mod layout;
mod shelf;

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use tl_decode::DecodeOptions;
use tl_handoff::sync::{Arc, Mutex, lock, process_id, thread};

use self::entries::Entries;
use self::layout::Layouts;
use self::shelf::Shelf;
use crate::cache::disk::Disk;
use crate::cache::folder::Folder;
use crate::cache::key::Key;
use crate::cache::{CacheStats, DiskCache};
use crate::dataset::Dataset;
use crate::note::LoaderNote;
use crate::order::Sequence;

pub(crate) use self::assembly::Assembly;
pub(crate) use self::layout::{Layout, Member};
pub(crate) use self::shelf::Begun;

/// The first pause of a worker that waits for another process, and the longest.
const PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The samples that blocks are made of, and the memory for them.
pub(crate) struct BlockSettings<'a> {
    pub(crate) dataset: &'a Arc<Dataset>,
    pub(crate) sequence: &'a Sequence,
    /// The most bytes of blocks in memory until they are written.
    pub(crate) buffer_bytes: u64,
}

/// The blocks of a data set.
#[derive(Debug)]
pub(crate) struct Blocks {
    layouts: Layouts,
    shelf: Arc<Shelf>,
    entries: Entries,
    /// The names of blocks, `None` for those that have none.
    keys: Mutex<HashMap<u64, Option<Key>>>,
    /// The process that has the thread.
    process: u32,
}

impl Blocks {
    pub(crate) fn open(
        cache: &DiskCache,
        decode: &DecodeOptions,
        settings: &BlockSettings,
    ) -> Self {
        let BlockSettings { dataset, sequence, buffer_bytes } = settings;
        let disk = Disk::open(&cache.folder, cache.bytes);
        Self {
            layouts: Layouts::new(dataset, sequence, decode),
            shelf: Arc::new(Shelf::new(disk, *buffer_bytes)),
            entries: Entries::new(),
            keys: Mutex::default(),
            process: process_id(),
        }
    }

    /// The folder of entries.
    pub(crate) fn folder(&self) -> &Folder {
        self.shelf.disk.folder()
    }

    /// The note on blocks that are too large to be kept.
    pub(crate) fn note(&self) -> Option<LoaderNote> {
        let bytes = self.layouts.usual_bytes();
        let most = self.shelf.budget();
        (bytes > most).then_some(LoaderNote::LargeBlocks { bytes, most })
    }

    /// True if the block of a sample is on disk, as far as a look at the folder tells.
    fn expects(&self, sample: u64) -> bool {
        let Some(number) = self.layouts.number(sample) else { return false };
        self.shelf.disk.has_met(number)
            || self.key(sample, number).is_some_and(|key| self.shelf.disk.contains(key))
    }

    /// True if the block of a sample is on disk, or this process is fetching it.
    pub(crate) fn has(&self, sample: u64) -> bool {
        let number = self.layouts.number(sample);
        number.is_some_and(|number| self.shelf.pending(number).is_some()) || self.expects(sample)
    }

    /// True if another process is fetching the block of a sample, and is worth waiting for.
    pub(crate) fn awaits(&self, sample: u64) -> bool {
        let Some(number) = self.layouts.number(sample) else { return false };
        self.key(sample, number).is_some_and(|key| self.shelf.claims.awaits(number, key))
    }

    /// True if two samples are in one block.
    pub(crate) fn are_together(&self, sample: u64, other: u64) -> bool {
        let number = self.layouts.number(sample);
        number.is_some() && number == self.layouts.number(other)
    }

    /// The part of an object in which the block of a sample is.
    pub(crate) fn bounds(&self, sample: u64) -> Option<Range<u64>> {
        self.layouts.bounds(sample)
    }

    /// True if a block of usual size would be kept, as far as this loader knows.
    pub(crate) fn may_take(&self) -> bool {
        self.shelf.takes(self.layouts.usual_bytes())
    }

    /// The samples of the block that a sample is in; `None` if it cannot be kept.
    pub(crate) fn layout(&self, sample: u64) -> Option<Layout> {
        let layout = self.layouts.layout(sample);
        if let Some(number) = self.layouts.number(sample) {
            let key = layout.as_ref().map(|layout| layout.key);
            lock(&self.keys).insert(number, key);
        }
        layout
    }

    /// Begins to collect a block. Of its bytes, `extra` are fetched for the cache alone; it may wait
    /// for earlier ones to arrive, never for the disk.
    pub(crate) fn begin(&self, layout: &Layout, extra: u64, is_over: &dyn Fn() -> bool) -> Begun {
        Shelf::begin(&self.shelf, layout, extra, is_over)
    }

    /// Replaces `bytes` by the stored bytes of a sample. False where they have to be fetched. `fetch`
    /// requests the block, and returns false where it is not kept: nobody has requested it, or a process
    /// that did has died.
    pub(crate) fn read(
        &self,
        sample: u64,
        bytes: &mut Vec<u8>,
        is_over: &dyn Fn() -> bool,
        fetch: &dyn Fn() -> bool,
    ) -> bool {
        let Some(number) = self.layouts.number(sample) else { return false };
        let mut pause = PAUSE;
        let mut is_fetched = false;
        loop {
            if let Some(block) = self.shelf.pending(number)
                && let Some(part) = block.wait_for(self.layouts.place(number, sample), is_over)
            {
                bytes.clear();
                bytes.extend_from_slice(&part);
                self.shelf.count_hit(part.len());
                return true;
            }
            let Some(key) = self.key(sample, number) else { return false };
            // Before the look at the disk: an entry is there before it is released.
            let is_awaited = self.shelf.claims.is_awaited(number, key);
            if self.read_entry(sample, number, key, bytes) {
                self.shelf.claims.forget(number);
                return true;
            }
            if is_over() {
                return false;
            }
            if !is_awaited {
                self.shelf.claims.note_left(number, key);
                if is_fetched || !fetch() {
                    return false;
                }
                is_fetched = true;
                continue;
            }
            // A process that dies meanwhile leaves the block to this one.
            is_fetched = false;
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Notes that a block is not kept: its samples come alone.
    pub(crate) fn refuse(&self, number: u64) {
        self.shelf.refuse(number);
    }

    /// As [`refuse`](Self::refuse), by one of its samples.
    pub(crate) fn refuse_block_of(&self, sample: u64) {
        if let Some(number) = self.layouts.number(sample) {
            self.refuse(number);
        }
    }

    /// True if a block was not kept in this epoch.
    pub(crate) fn has_failed(&self, number: u64) -> bool {
        self.shelf.has_failed(number)
    }

    /// Tries all blocks again.
    pub(crate) fn forgive(&self) {
        self.shelf.forgive();
    }

    /// Counts a sample that had to be fetched.
    pub(crate) fn missed(&self) {
        self.shelf.disk.missed();
    }

    pub(crate) fn add_stats(&self, stats: &mut CacheStats) {
        self.shelf.add_stats(stats);
    }

    fn read_entry(&self, sample: u64, number: u64, key: Key, bytes: &mut Vec<u8>) -> bool {
        let disk = &self.shelf.disk;
        let samples = || self.layouts.samples_of(sample);
        let Some(entry) = self.entries.get(disk, number, key, samples) else { return false };
        let place = self.layouts.place(number, sample);
        let len = self.layouts.stored_bytes(sample);
        match entry.read(place, len, bytes) {
            Ok(true) => {
                self.shelf.count_hit(bytes.len());
                return true;
            }
            Ok(false) => disk.discard(number, key, &entry.file),
            Err(error) => disk.not_read(number, key, Some(&entry.file), error),
        }
        self.entries.close(number);
        false
    }

    /// The name of the block with this number, in which `sample` is.
    fn key(&self, sample: u64, number: u64) -> Option<Key> {
        if let Some(known) = lock(&self.keys).get(&number) {
            return *known;
        }
        let key = self.layouts.layout(sample).map(|layout| layout.key);
        *lock(&self.keys).entry(number).or_insert(key)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // In a fork the thread is the parent's, and a lock may have been held.
        if process_id() == self.process {
            self.shelf.close();
        }
    }
}

#[cfg(test)]
#[cfg(feature = "shuttle")]
mod schedules;
