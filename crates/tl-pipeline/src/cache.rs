//! Caches of samples: what was read or decoded once is kept, in memory, on disk or in both.
//!
//! A cache changes no byte of any batch. What cannot be decoded whole and without damage is not
//! kept, so that it fails, or passes, where it would have done so without a cache.

mod background;
mod blocks;
mod disk;
mod entry;
mod errands;
mod fault;
mod folder;
mod key;
mod ledger;
mod memory;
mod planner;
mod stats;
mod users;

use std::path::PathBuf;

use tbl_format::SampleFormat;
use tbl_io::Facts;
use tl_decode::{DecodeOptions, Decoders};
use tl_handoff::sync::Arc;

pub use self::fault::CacheFault;
pub use self::key::CacheKind;
pub use self::stats::{CacheStats, LevelStats};

pub(crate) use self::blocks::{Assembly, Begun, BlockSettings, Blocks, Layout, Member};
use self::disk::{Disk, NewEntry};
use self::key::{Key, Namer};
pub(crate) use self::memory::PayloadForm;
use self::memory::{Block, Memory};
pub(crate) use self::planner::NextUse;
use crate::dataset::Dataset;
use crate::note::LoaderNote;
use crate::panics::catch_panic;

/// The caches of a loader. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheConfig {
    /// The cache in memory, which lives as long as the loader.
    pub memory: Option<MemoryCache>,
    /// The cache on disk, which stays, and which any number of processes may share.
    pub disk: Option<DiskCache>,
}

/// A cache in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryCache {
    /// The kind of content.
    pub kind: CacheKind,
    /// Bytes it may take, with all that goes with its entries.
    pub bytes: u64,
}

/// A cache on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskCache {
    /// The kind of content.
    pub kind: CacheKind,
    /// The folder in which it creates its own folder. Loaders of the same data share the entries.
    pub folder: PathBuf,
    /// Bytes all entries in the folder may take, each rounded up to blocks of 4 KiB.
    pub bytes: u64,
}

impl CacheConfig {
    /// True if a cache of this kind exists.
    pub(crate) fn has(&self, kind: CacheKind) -> bool {
        self.memory.is_some_and(|memory| memory.kind == kind)
            || self.disk.as_ref().is_some_and(|disk| disk.kind == kind)
    }
}

/// The caches of a loader.
#[derive(Debug, Default)]
pub(crate) struct Caches {
    memory: Option<(CacheKind, Memory)>,
    disk: Option<DiskLevel>,
    blocks: Option<Blocks>,
}

#[derive(Debug)]
struct DiskLevel {
    kind: CacheKind,
    namer: Namer,
    disk: Arc<Disk>,
}

impl Drop for DiskLevel {
    fn drop(&mut self) {
        self.disk.leave();
    }
}

impl DiskLevel {
    /// The name of a sample. A sample without one, or with a defect, is not on disk.
    fn name(&self, dataset: &Dataset, sample: u64, scratch: &mut Vec<u8>) -> Option<Key> {
        let facts = dataset.facts(sample).ok()?;
        self.namer.name(dataset, sample, &facts, scratch).ok()?
    }
}

/// A sample that is wanted now, and when it is wanted next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) sample: u64,
    /// The next use in this process.
    pub(crate) next_here: NextUse,
    /// The next use in any process of this run.
    pub(crate) next_anywhere: NextUse,
}

/// The name of a sample on disk; empty without a cache there. It is found before the sample is read:
/// a file that changes in between is kept under what it was, which it never is again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name(Option<Key>);

impl Caches {
    pub(crate) fn open(
        config: &CacheConfig,
        decode: &DecodeOptions,
        decoders: &Decoders,
        blocks: &BlockSettings<'_>,
    ) -> Self {
        let CacheConfig { memory, disk } = config;
        let memory = memory.map(|memory| (memory.kind, Memory::new(memory.bytes)));
        let of_blocks = |disk: &&DiskCache| disk.kind == CacheKind::Blocks;
        let of_blocks_alone = disk.as_ref().filter(of_blocks);
        let blocks = of_blocks_alone.map(|disk| Blocks::open(disk, decode, blocks));
        let disk = disk.as_ref().filter(|disk| !of_blocks(disk)).map(|disk| DiskLevel {
            kind: disk.kind,
            namer: Namer::new(disk.kind, decode, decoders),
            disk: Disk::open(&disk.folder, disk.bytes),
        });
        Self { memory, disk, blocks }
    }

    /// Notes on the cache on disk.
    pub(crate) fn notes(&self, dataset: &Dataset) -> Vec<LoaderNote> {
        let of_samples = self.disk.as_ref().map(|level| level.disk.folder());
        let folder = of_samples.or(self.blocks.as_ref().map(Blocks::folder));
        let folder = folder.filter(|folder| folder.is_open() && dataset.has_secrets());
        let open = folder.map(|folder| LoaderNote::OpenCache { folder: folder.path().to_owned() });
        let large = self.blocks.as_ref().and_then(Blocks::note);
        large.into_iter().chain(open).collect()
    }

    /// The cache of blocks.
    pub(crate) fn blocks(&self) -> Option<&Blocks> {
        self.blocks.as_ref()
    }

    /// True if a cache of this kind exists.
    pub(crate) fn has(&self, kind: CacheKind) -> bool {
        self.memory(kind).is_some() || self.disk(kind).is_some()
    }

    /// True if the sample's bytes will most likely come from the cache. `scratch` is temporary
    /// memory.
    ///
    /// An unknown sample is looked up on disk by its name: another process may have stored it,
    /// before this one started or since.
    pub(crate) fn expects(&self, dataset: &Dataset, sample: u64, scratch: &mut Vec<u8>) -> bool {
        self.memory.as_ref().is_some_and(|(_, memory)| memory.contains(sample))
            || self.disk.as_ref().is_some_and(|level| {
                level.disk.has_met(sample)
                    || level
                        .name(dataset, sample, scratch)
                        .is_some_and(|key| level.disk.contains(key))
            })
            || self.blocks.as_ref().is_some_and(|blocks| blocks.has(sample))
    }

    /// The block in memory, if any.
    pub(crate) fn held(&self, kind: CacheKind, wanted: Wanted<'_>) -> Option<Arc<Block>> {
        self.memory(kind)?.get(wanted.sample, wanted.next_here)
    }

    /// Replaces `bytes` by what is on disk, of at most `limit` bytes, and returns the size of its
    /// image; the name otherwise, to keep it by. What is found is also taken into memory.
    pub(crate) fn read(
        &self,
        kind: CacheKind,
        wanted: Wanted<'_>,
        facts: &Facts,
        limit: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(u32, u32), Name> {
        let Wanted { dataset, sample, next_anywhere, .. } = wanted;
        let Some(level) = self.disk(kind) else { return Err(Name(None)) };
        // Reading the sample reports its defect.
        let key = level.namer.name(dataset, sample, facts, bytes).ok().flatten();
        let Some(key) = key else { return Err(Name(None)) };
        let size = level.disk.get(sample, key, limit, next_anywhere, bytes);
        let size = size.ok_or(Name(Some(key)))?;
        if let Some(memory) = self.memory(kind) {
            let format =
                if kind == CacheKind::Decoded { SampleFormat::RawU8 } else { facts.format };
            memory.insert(sample, bytes, (format, size), wanted.next_here);
        }
        Ok(size)
    }

    /// True if keeping the sample has a chance; then more of it may be decoded than is needed now.
    pub(crate) fn may_keep(&self, kind: CacheKind, wanted: Wanted<'_>, Name(key): Name) -> bool {
        self.memory(kind).is_some_and(|memory| memory.may_take(wanted.next_here))
            || self
                .disk(kind)
                .is_some_and(|level| key.is_some() && level.disk.may_take(wanted.next_anywhere))
    }

    /// Keeps the bytes of a sample that was not found.
    pub(crate) fn keep(
        &self,
        kind: CacheKind,
        wanted: Wanted<'_>,
        Name(key): Name,
        payload: &[u8],
        form: PayloadForm,
    ) {
        let Wanted { dataset, sample, next_here, next_anywhere } = wanted;
        if let Some(memory) = self.memory(kind) {
            memory.insert(sample, payload, form, next_here);
        }
        if let (Some(level), Some(key)) = (self.disk(kind), key) {
            let entry = NewEntry { sample, key, payload, size: form.1, next: next_anywhere };
            // The panic of another sample is not a fault of this one.
            let name = |sample| catch_panic(|| level.name(dataset, sample, &mut Vec::new()));
            level.disk.insert(entry, |sample| name(sample).ok().flatten());
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let mut stats = CacheStats::default();
        if let Some((_, memory)) = &self.memory {
            stats.memory = memory.stats();
        }
        if let Some(level) = &self.disk {
            level.disk.add_stats(&mut stats);
        }
        if let Some(blocks) = &self.blocks {
            blocks.add_stats(&mut stats);
        }
        stats
    }

    fn memory(&self, kind: CacheKind) -> Option<&Memory> {
        self.memory.as_ref().filter(|(of, _)| *of == kind).map(|(_, memory)| memory)
    }

    fn disk(&self, kind: CacheKind) -> Option<&DiskLevel> {
        self.disk.as_ref().filter(|level| level.kind == kind)
    }
}
