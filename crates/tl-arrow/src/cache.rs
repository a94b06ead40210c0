//! The values that were decoded last, of all files: pages, dictionaries, lists, and buffers of Arrow
//! files, shared by the threads of the process.
//!
//! Samples that follow each other in a file are in one page, and others need the same dictionaries.
//! A value is decoded by one thread, while others that need it wait.

mod recent;

use std::any::Any;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tbl_io::BlockMemory;

use crate::nested::Entries;
use crate::page::Page;
use crate::segments::Segments;
use crate::values::Values;
use recent::{AnyValue, LastUse, Recent};

/// The most bytes of values while nothing is reserved.
const BYTES: u64 = 64 << 20;

/// The longest buffer that a thread keeps for its next page.
const SPARE_BYTES: usize = 64 << 20;

/// Values that a thread finds without a lock.
const NEAR: usize = 256;

/// The name of a value in all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) file: u64,
    /// The row group, or the batch.
    pub(crate) group: usize,
    /// The leaf, or the buffer.
    pub(crate) leaf: usize,
    pub(crate) part: Part,
}

/// The part of a column in a row group or in a batch that a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Part {
    Page(usize),
    Dictionary,
    /// The entries of a page of a list.
    Entries(usize),
    /// The entries of a row group.
    AllEntries,
    /// A buffer of a record batch.
    RowBuffer,
    /// A buffer of the values of a dictionary.
    DictionaryBuffer,
}

impl Part {
    /// The first in order.
    const FIRST: Self = Self::Page(0);
}

/// A value that is kept.
pub(crate) trait Decoded: Any + Send + Sync {
    /// Bytes in memory.
    fn memory(&self) -> usize;
}

impl Decoded for Page {
    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Decoded for Entries {
    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Decoded for Values {
    fn memory(&self) -> usize {
        self.memory()
    }
}

impl Decoded for Vec<u8> {
    fn memory(&self) -> usize {
        self.capacity()
    }
}

/// The decoded values of a process.
#[derive(Debug)]
pub(crate) struct PageCache {
    /// Those of the process that made it, and of a forked one. A thread that does not exist there
    /// may have held the locks of the first.
    kept: [OnceLock<Kept>; 2],
}

#[derive(Debug)]
struct Kept {
    process: u32,
    values: Recent,
}

impl Kept {
    fn new() -> Self {
        Self { process: std::process::id(), values: Recent::new(BYTES) }
    }
}

static CACHE: PageCache = PageCache { kept: [const { OnceLock::new() }; 2] };

impl PageCache {
    /// The cache of this process, whatever the number of its files is.
    pub(crate) fn of_process() -> &'static Self {
        &CACHE
    }

    /// The value of `key`, decoded by `make` if it is not kept.
    pub(crate) fn get<T: Decoded, E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(found) = near(key) {
            return Ok(of_type(found));
        }
        let Some(kept) = self.kept() else { return make().map(Arc::new) };
        let make = || {
            let made = make()?;
            let bytes = made.memory() as u64;
            Ok::<_, E>((Arc::new(made) as AnyValue, bytes))
        };
        let mut old = Vec::new();
        let found = kept.values.get(key, make, &mut old);
        old.into_iter().for_each(recycle);
        let (value, last_use) = found?;
        keep_near(key, &value, last_use);
        Ok(of_type(value))
    }

    /// Drops the values of a file that is closed.
    fn forget(&self, file: u64) {
        if let Some(kept) = self.kept() {
            kept.values.forget(file);
        }
    }

    /// The values of this process; `None` in a process forked from a forked one.
    fn kept(&self) -> Option<&Kept> {
        let process = std::process::id();
        let is_own = |kept: &&Kept| kept.process == process;
        let first = self.kept[0].get_or_init(Kept::new);
        let own = Some(first).filter(is_own);
        own.or_else(|| Some(self.kept[1].get_or_init(Kept::new)).filter(is_own))
    }
}

impl BlockMemory for PageCache {
    fn usual_bytes(&self) -> u64 {
        BYTES
    }

    fn used_bytes(&self) -> u64 {
        self.kept().map_or(0, |kept| kept.values.bytes())
    }

    fn reserve(&self, bytes: u64) -> Box<dyn Any + Send + Sync> {
        if let Some(kept) = self.kept() {
            kept.values.reserve(bytes);
        }
        Box::new(Reserved { process: std::process::id(), bytes })
    }
}

/// Memory that a reader has reserved.
struct Reserved {
    process: u32,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(kept) = CACHE.kept().filter(|kept| kept.process == self.process) {
            kept.values.release(self.bytes);
        }
    }
}

/// The number of an open file, whose values are dropped with it.
#[derive(Debug)]
pub(crate) struct FileNumber(u64);

impl FileNumber {
    /// A number that no other file has.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn get(&self) -> u64 {
        self.0
    }
}

impl Drop for FileNumber {
    fn drop(&mut self) {
        CACHE.forget(self.0);
    }
}

fn of_type<T: Decoded>(value: AnyValue) -> Arc<T> {
    value.downcast().expect("a part of a file has one type")
}

/// A value that the cache has, as far as a thread knows.
struct Near {
    key: Key,
    value: Weak<dyn Any + Send + Sync>,
    last_use: LastUse,
}

thread_local! {
    /// By hash, the values that this thread has found.
    static FOUND: RefCell<Vec<Option<Near>>> = const { RefCell::new(Vec::new()) };
    /// The buffer of a dropped page, for the next one of this thread: fresh memory costs as much as
    /// decompressing.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SEGMENTS: RefCell<Segments> = RefCell::new(Segments::default());
}

fn near(key: Key) -> Option<AnyValue> {
    FOUND.with_borrow(|found| {
        let near = found.get(place(key))?.as_ref().filter(|near| near.key == key)?;
        let value = near.value.upgrade()?;
        near.last_use.renew();
        Some(value)
    })
}

fn keep_near(key: Key, value: &AnyValue, last_use: LastUse) {
    FOUND.with_borrow_mut(|found| {
        if found.is_empty() {
            found.resize_with(NEAR, || None);
        }
        found[place(key)] = Some(Near { key, value: Arc::downgrade(value), last_use });
    });
}

/// A place below [`NEAR`].
fn place(key: Key) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let Key { file, group, leaf, part } = key;
    let (kind, number) = match part {
        Part::Page(number) => (0, number),
        Part::Dictionary => (1, 0),
        Part::Entries(number) => (2, number),
        Part::AllEntries => (3, 0),
        Part::RowBuffer => (4, 0),
        Part::DictionaryBuffer => (5, 0),
    };
    let numbers: [u64; 5] = [file, group as u64, leaf as u64, kind, number as u64];
    let mix = |hash: u64, number: u64| (hash ^ number).wrapping_mul(ODD).rotate_left(29);
    let [.., last] = numbers.into_iter().fold(0_u64, mix).to_le_bytes();
    usize::from(last) % NEAR
}

/// Keeps the buffer of a value that was dropped.
fn recycle(old: AnyValue) {
    let buffer: Option<Vec<u8>> = match old.downcast::<Page>() {
        Ok(page) => Arc::into_inner(page).and_then(Page::into_buffer),
        Err(old) => old.downcast::<Vec<u8>>().ok().and_then(Arc::into_inner),
    };
    let buffer = buffer.filter(|buffer| buffer.capacity() <= SPARE_BYTES);
    let buffer = buffer.unwrap_or_default();
    SPARE.with_borrow_mut(|spare| {
        if buffer.capacity() > spare.capacity() {
            *spare = buffer;
        }
    });
}

/// A buffer with any bytes, which may be too short for `len` of them and is not much longer.
pub(crate) fn spare(len: usize) -> Vec<u8> {
    SPARE.with_borrow_mut(|spare| {
        let fits = spare.capacity() <= len.saturating_add(len / 4);
        if fits { std::mem::take(spare) } else { Vec::new() }
    })
}

/// Calls `read` with segments of any page, whose memory is used again.
pub(crate) fn with_segments<R>(read: impl FnOnce(&mut Segments) -> R) -> R {
    SEGMENTS.with_borrow_mut(read)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn key(file: &FileNumber, leaf: usize) -> Key {
        Key { file: file.get(), group: 0, leaf, part: Part::RowBuffer }
    }

    /// Asks for a buffer, and returns whether it was made.
    fn get(cache: &PageCache, key: Key, bytes: usize) -> bool {
        let mut is_made = false;
        let make = || {
            is_made = true;
            Ok::<_, Infallible>(vec![7; bytes])
        };
        assert_eq!(cache.get(key, make), Ok(Arc::new(vec![7; bytes])));
        is_made
    }

    #[test]
    fn a_value_is_made_once_for_all_threads() {
        let file = FileNumber::next();
        assert!(get(&CACHE, key(&file, 0), 5));
        assert!(!get(&CACHE, key(&file, 0), 5));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!get(&CACHE, key(&file, 0), 5)));
        });
    }

    #[test]
    fn a_closed_file_leaves_nothing() {
        let file = FileNumber::next();
        let key = key(&file, 0);
        assert!(get(&CACHE, key, 5));
        drop(file);
        assert!(get(&CACHE, key, 5));
        CACHE.forget(key.file);
    }

    #[test]
    fn a_value_that_was_dropped_is_not_found_near() {
        let cache = PageCache { kept: [const { OnceLock::new() }; 2] };
        let file = FileNumber::next();
        let reserved = 100;
        cache.kept().unwrap().values.reserve(reserved);
        for leaf in [0, 1, 2, 1] {
            get(&cache, key(&file, leaf), 40);
        }
        assert!(get(&cache, key(&file, 0), 40));
        assert!(!get(&cache, key(&file, 1), 40), "it was found near, which counts as a use");
    }

    #[test]
    fn a_forked_process_has_values_of_its_own() {
        let cache = PageCache { kept: [const { OnceLock::new() }; 2] };
        let process = std::process::id();
        assert_eq!(cache.kept().map(|kept| kept.process), Some(process));
        let other = Kept { process: process + 1, ..Kept::new() };
        let cache = PageCache { kept: [OnceLock::from(other), OnceLock::new()] };
        assert_eq!(cache.kept().map(|kept| kept.process), Some(process));
        assert!(cache.kept[1].get().is_some());
    }
}
