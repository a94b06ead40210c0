//! The pages and dictionaries that were decoded last, shared by the threads that read a data set.
//!
//! Samples that follow each other in a file are in one page, and others need the same dictionaries.
//! A page is decoded by one thread, while others that need it wait.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::nested::Entries;
use crate::page::Page;
use crate::segments::Segments;
use crate::values::Values;

/// The most memory of each kind, unless a shuffle needs more.
const BYTES: u64 = 64 << 20;

/// Values that are kept whatever their size: threads that read in sequence need the page before a
/// border and the one after it.
const LEAST: usize = 2;

/// The longest buffer that a thread keeps for its next page.
const SPARE_BYTES: usize = 64 << 20;

/// The name of a page in all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) file: u64,
    pub(crate) group: usize,
    pub(crate) leaf: usize,
    pub(crate) page: usize,
}

/// The decoded pages of the files of a data set.
#[derive(Debug)]
pub(crate) struct PageCache {
    /// Those of the process that made it, and of a forked one. A thread that does not exist there
    /// may have held the locks of the first.
    kept: [OnceLock<Kept>; 2],
    /// The most bytes of pages.
    most: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    process: u32,
    pages: Recent<Page>,
    dictionaries: Recent<Values>,
    entries: Recent<Entries>,
}

impl Default for PageCache {
    fn default() -> Self {
        let kept = [OnceLock::from(Kept::new()), OnceLock::new()];
        Self { kept, most: AtomicU64::new(BYTES) }
    }
}

impl Kept {
    fn new() -> Self {
        let process = std::process::id();
        let pages = Recent::default();
        Self { process, pages, dictionaries: Recent::default(), entries: Recent::default() }
    }
}

impl PageCache {
    /// The cache of the tables and tokens of this process, whatever the number of their files.
    pub(crate) fn of_process() -> Arc<Self> {
        static CACHE: OnceLock<Arc<PageCache>> = OnceLock::new();
        Arc::clone(CACHE.get_or_init(Arc::default))
    }

    /// Makes room for this many bytes of pages, if that is more than there is.
    pub(crate) fn keep(&self, bytes: u64) {
        self.most.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The page, decoded by `make` if it is not kept.
    pub(crate) fn page<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Page, E>,
    ) -> Result<Arc<Page>, E> {
        let Some(kept) = self.kept() else { return make().map(Arc::new) };
        let most = self.most.load(Ordering::Relaxed);
        let dropped = |old: Arc<Page>| {
            keep_spare(Arc::into_inner(old).and_then(Page::into_buffer));
        };
        kept.pages.get(key, most, Page::memory, make, dropped)
    }

    /// The entries of a page of a list, as [`page`](Self::page).
    pub(crate) fn entries<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Entries, E>,
    ) -> Result<Arc<Entries>, E> {
        let Some(kept) = self.kept() else { return make().map(Arc::new) };
        kept.entries.get(key, BYTES, Entries::memory, make, drop)
    }

    /// The dictionary, as [`page`](Self::page).
    pub(crate) fn dictionary<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<Values, E>,
    ) -> Result<Arc<Values>, E> {
        let Some(kept) = self.kept() else { return make().map(Arc::new) };
        kept.dictionaries.get(key, BYTES, Values::memory, make, drop)
    }

    /// The values of this process; `None` in a process forked from a forked one.
    fn kept(&self) -> Option<&Kept> {
        let process = std::process::id();
        let is_own = |kept: &&Kept| kept.process == process;
        let own = self.kept[0].get().filter(is_own);
        own.or_else(|| Some(self.kept[1].get_or_init(Kept::new)).filter(is_own))
    }
}

thread_local! {
    /// The buffer of a dropped page, for the next one of this thread: fresh memory costs as much as
    /// decompressing.
    static SPARE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static SEGMENTS: RefCell<Segments> = RefCell::new(Segments::default());
}

/// Keeps a buffer for the next page of this thread, if it is not too long.
pub(crate) fn keep_spare(buffer: Option<Vec<u8>>) {
    let buffer = buffer.filter(|buffer| buffer.capacity() <= SPARE_BYTES);
    SPARE.with_borrow_mut(|spare| *spare = buffer.unwrap_or_default());
}

/// A buffer with any bytes.
pub(crate) fn spare() -> Vec<u8> {
    SPARE.take()
}

/// Calls `read` with segments of any page, whose memory is used again.
pub(crate) fn with_segments<R>(read: impl FnOnce(&mut Segments) -> R) -> R {
    SEGMENTS.with_borrow_mut(read)
}

/// A value that one thread makes while others wait for it.
type Pending<T> = Arc<Mutex<Option<Arc<T>>>>;

/// Values of which the least recently used are dropped.
#[derive(Debug)]
struct Recent<T>(Mutex<Items<T>>);

#[derive(Debug)]
struct Items<T> {
    items: HashMap<Key, Item<T>>,
    bytes: u64,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct Item<T> {
    value: Pending<T>,
    last_use: u64,
    /// 0 until the value is made.
    bytes: u64,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::new(Items { items: HashMap::new(), bytes: 0, clock: 0 }))
    }
}

impl<T> Recent<T> {
    /// The value of `key`, made if it is not kept. Values beyond `most` bytes go to `dropped`.
    fn get<E>(
        &self,
        key: Key,
        most: u64,
        memory: impl FnOnce(&T) -> usize,
        make: impl FnOnce() -> Result<T, E>,
        dropped: impl FnMut(Arc<T>),
    ) -> Result<Arc<T>, E> {
        let pending = lock(&self.0).pending(key);
        let mut value = lock(&pending);
        if let Some(value) = &*value {
            return Ok(Arc::clone(value));
        }
        let made = Arc::new(make().inspect_err(|_| lock(&self.0).forget(key, &pending))?);
        *value = Some(Arc::clone(&made));
        drop(value);
        let old = lock(&self.0).made(key, &pending, memory(&made) as u64, most);
        let values = old.into_iter().filter_map(Arc::into_inner).filter_map(into_value);
        values.for_each(dropped);
        Ok(made)
    }
}

impl<T> Items<T> {
    fn pending(&mut self, key: Key) -> Pending<T> {
        self.clock += 1;
        let new = || Item { value: Arc::default(), last_use: 0, bytes: 0 };
        let item = self.items.entry(key).or_insert_with(new);
        item.last_use = self.clock;
        Arc::clone(&item.value)
    }

    /// Forgets a value that could not be made.
    fn forget(&mut self, key: Key, value: &Pending<T>) {
        if self.items.get(&key).is_some_and(|item| Arc::ptr_eq(&item.value, value)) {
            self.items.remove(&key);
        }
    }

    /// Counts the bytes of a value, and returns those that are dropped for it.
    fn made(&mut self, key: Key, value: &Pending<T>, bytes: u64, most: u64) -> Vec<Pending<T>> {
        // It may have been dropped while it was made, and another thread may make it again.
        let own = self.items.get_mut(&key).filter(|item| Arc::ptr_eq(&item.value, value));
        if let Some(item) = own {
            item.bytes = bytes.max(1);
            self.bytes += item.bytes;
        }
        let mut old = Vec::new();
        while self.bytes > most && self.items.len() > LEAST {
            let made = self.items.iter().filter(|&(&found, item)| item.bytes > 0 && found != key);
            let oldest = made.min_by_key(|(_, item)| item.last_use).map(|(key, _)| *key);
            let Some(item) = oldest.and_then(|key| self.items.remove(&key)) else { break };
            self.bytes -= item.bytes;
            old.push(item.value);
        }
        old
    }
}

fn into_value<T>(value: Mutex<Option<Arc<T>>>) -> Option<Arc<T>> {
    value.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A value is there as a whole or not at all.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn key(page: usize) -> Key {
        Key { file: 1, group: 0, leaf: 0, page }
    }

    fn get(recent: &Recent<usize>, page: usize, bytes: usize, made: &mut Vec<usize>) {
        let make = || {
            made.push(page);
            Ok::<_, Infallible>(page)
        };
        let value = recent.get(key(page), 100, |_| bytes, make, drop);
        assert_eq!(value.as_deref(), Ok(&page));
    }

    #[test]
    fn the_least_recently_used_are_made_again() {
        let recent = Recent::default();
        let mut made = Vec::new();
        for page in [0, 1, 2, 0, 3, 0, 1, 3] {
            get(&recent, page, 33, &mut made);
        }
        assert_eq!(made, [0, 1, 2, 3, 1]);
    }

    #[test]
    fn the_last_two_are_kept_whatever_their_size() {
        let recent = Recent::default();
        let mut made = Vec::new();
        for page in [0, 1, 0, 1, 2, 1, 2, 0] {
            get(&recent, page, 1000, &mut made);
        }
        assert_eq!(made, [0, 1, 2, 0]);
    }

    #[test]
    fn what_could_not_be_made_is_asked_for_again() {
        let recent = Recent::default();
        let fail = || Err::<usize, _>("damaged");
        assert_eq!(recent.get(key(4), 100, |_| 1, fail, drop), Err("damaged"));
        get(&recent, 4, 1, &mut Vec::new());
    }

    #[test]
    fn threads_that_need_a_value_wait_for_the_one_that_makes_it() {
        let recent = Recent::default();
        let made = AtomicU64::new(0);
        let make = || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            Ok::<_, Infallible>(made.fetch_add(1, Ordering::Relaxed))
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| recent.get(key(0), 100, |_| 1, make, drop));
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn a_forked_process_has_values_of_its_own() {
        let cache = PageCache::default();
        let process = std::process::id();
        assert_eq!(cache.kept().map(|kept| kept.process), Some(process));
        let other = Kept { process: process + 1, ..Kept::new() };
        let cache = PageCache { kept: [OnceLock::from(other), OnceLock::new()], ..cache };
        assert_eq!(cache.kept().map(|kept| kept.process), Some(process));
        assert!(cache.kept[1].get().is_some());
    }
}
