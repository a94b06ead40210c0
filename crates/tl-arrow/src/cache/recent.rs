//! A cache that drops the values that were not used for longest.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Key, Part};

/// Large values that are kept whatever their size: threads that read in sequence need the page before
/// a border and the one after it.
const LARGE_VALUES: usize = 2;

/// A value of any type.
pub(super) type AnyValue = Arc<dyn Any + Send + Sync>;

/// A value that one thread makes while others wait for it.
type Pending = Arc<Mutex<Option<AnyValue>>>;

/// The time of the last use of a value.
#[derive(Clone, Debug)]
pub(super) struct LastUse(Arc<AtomicU64>);

/// Counts the uses that were found under the lock, in steps of 2. Uses without it are in between.
static CLOCK: AtomicU64 = AtomicU64::new(0);

impl LastUse {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(0)))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, time: u64) {
        // Many threads use the same value, and none has to wait for the others.
        if self.get() != time {
            self.0.store(time, Ordering::Relaxed);
        }
    }

    /// Counts a use under the lock.
    fn count(&self) {
        self.set(CLOCK.fetch_add(2, Ordering::Relaxed) + 2);
    }

    /// Sets it to a time after the last one that was counted.
    pub(super) fn renew(&self) {
        self.set(CLOCK.load(Ordering::Relaxed) + 1);
    }
}

/// The values, and the memory that they may take.
#[derive(Debug)]
pub(super) struct Recent(Mutex<Items>);

#[derive(Debug)]
struct Items {
    items: BTreeMap<Key, Item>,
    /// A lower bound of the last use of each value that is not large.
    queue: BinaryHeap<Reverse<(u64, Key)>>,
    /// The bytes of these values.
    bytes: u64,
    /// Those that take more than half of the memory, and are counted by their number.
    large: Vec<Key>,
    /// The most bytes without a reservation.
    usual: u64,
    reserved: u64,
    reservations: u64,
}

#[derive(Debug)]
struct Item {
    value: Pending,
    last_use: LastUse,
    /// 0 until the value is made.
    bytes: u64,
}

impl Recent {
    /// Without values, of which there may be `usual` bytes while nothing is reserved.
    pub(super) fn new(usual: u64) -> Self {
        Self(Mutex::new(Items {
            items: BTreeMap::new(),
            queue: BinaryHeap::new(),
            bytes: 0,
            large: Vec::new(),
            usual,
            reserved: 0,
            reservations: 0,
        }))
    }

    /// The value of `key`, made with its bytes if it is not kept. The values that are dropped for it go
    /// to `old`.
    pub(super) fn get<E>(
        &self,
        key: Key,
        make: impl FnOnce() -> Result<(AnyValue, u64), E>,
        old: &mut Vec<AnyValue>,
    ) -> Result<(AnyValue, LastUse), E> {
        let item = lock(&self.0).pending(key);
        let mut value = lock(&item.value);
        if let Some(value) = &*value {
            return Ok((Arc::clone(value), item.last_use.clone()));
        }
        let (made, bytes) = make().inspect_err(|_| lock(&self.0).not_made(key, &item.value))?;
        *value = Some(Arc::clone(&made));
        drop(value);
        lock(&self.0).made(key, &item.value, bytes, old);
        Ok((made, item.last_use))
    }

    /// Makes room for so many bytes. The first reservation replaces the usual memory.
    pub(super) fn reserve(&self, bytes: u64) {
        self.resize(|items| {
            items.reserved = items.reserved.saturating_add(bytes);
            items.reservations += 1;
        });
    }

    /// Ends a reservation.
    pub(super) fn release(&self, bytes: u64) {
        self.resize(|items| {
            items.reserved = items.reserved.saturating_sub(bytes);
            items.reservations = items.reservations.saturating_sub(1);
        });
    }

    fn resize(&self, change: impl FnOnce(&mut Items)) {
        let mut old = Vec::new();
        let mut items = lock(&self.0);
        change(&mut items);
        items.make_room(None, &mut old);
        drop(items);
    }

    /// Drops the values of a file.
    pub(super) fn forget(&self, file: u64) {
        let mut old = Vec::new();
        let mut items = lock(&self.0);
        let from = Key { file, group: 0, leaf: 0, part: Part::FIRST };
        let of_file = items.items.range(from..).map(|(&key, _)| key);
        let keys: Vec<Key> = of_file.take_while(|key| key.file == file).collect();
        keys.into_iter().for_each(|key| items.remove(key, &mut old));
        items.queue.retain(|Reverse((_, key))| key.file != file);
        // The memory is freed without the lock.
        drop(items);
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.0).items.values().map(|item| item.bytes).sum()
    }
}

impl Items {
    fn most(&self) -> u64 {
        if self.reservations == 0 { self.usual } else { self.reserved }
    }

    fn pending(&mut self, key: Key) -> Item {
        let new = || Item { value: Arc::default(), last_use: LastUse::new(), bytes: 0 };
        let Item { value, last_use, bytes } = self.items.entry(key).or_insert_with(new);
        last_use.count();
        Item { value: Arc::clone(value), last_use: last_use.clone(), bytes: *bytes }
    }

    /// Forgets a value that could not be made.
    fn not_made(&mut self, key: Key, value: &Pending) {
        if self.items.get(&key).is_some_and(|item| Arc::ptr_eq(&item.value, value)) {
            self.items.remove(&key);
        }
    }

    /// Counts the bytes of a value.
    fn made(&mut self, key: Key, value: &Pending, bytes: u64, old: &mut Vec<AnyValue>) {
        let most = self.most();
        // Its file may have been closed while it was made.
        let own = self.items.get_mut(&key).filter(|item| Arc::ptr_eq(&item.value, value));
        if let Some(item) = own {
            item.bytes = bytes.max(1);
            // Others were used while it was made.
            item.last_use.count();
            if item.bytes > most / 2 {
                self.large.push(key);
            } else {
                self.bytes += item.bytes;
                self.queue.push(Reverse((item.last_use.get(), key)));
            }
        }
        self.make_room(Some(key), old);
    }

    /// Drops values until the others are within their memory. A large one that is `new` stays.
    fn make_room(&mut self, new: Option<Key>, old: &mut Vec<AnyValue>) {
        let most = self.most();
        while self.bytes > most {
            let Some(Reverse((time, key))) = self.queue.pop() else { break };
            if !self.items.contains_key(&key) {
                continue;
            }
            let last_use = self.last_use(key);
            if last_use > time {
                self.queue.push(Reverse((last_use, key)));
            } else {
                self.remove(key, old);
            }
        }
        while self.large.len() > LARGE_VALUES {
            let others = self.large.iter().filter(|&&key| Some(key) != new);
            let Some(&oldest) = others.min_by_key(|&&key| self.last_use(key)) else { break };
            self.remove(oldest, old);
        }
    }

    /// The last use of a value; that of a dictionary may be one of a page that shares it.
    fn last_use(&self, key: Key) -> u64 {
        let keys = std::iter::once(key).chain(self.sharing(key));
        let uses = keys.filter_map(|key| self.items.get(&key)).map(|item| item.last_use.get());
        uses.max().unwrap_or(0)
    }

    /// The values that share this one, if it is a dictionary: all others of its column in a row group.
    fn sharing(&self, key: Key) -> Vec<Key> {
        if key.part != Part::Dictionary {
            return Vec::new();
        }
        let is_of_column = |found: &Key| Key { part: key.part, ..*found } == key;
        let from = Key { part: Part::FIRST, ..key };
        let of_column = self.items.range(from..).map(|(&found, _)| found).take_while(is_of_column);
        of_column.filter(|&found| found != key).collect()
    }

    /// Removes a value, and with a dictionary all that share it, as its memory is theirs.
    fn remove(&mut self, key: Key, old: &mut Vec<AnyValue>) {
        for key in std::iter::once(key).chain(self.sharing(key)) {
            let Some(item) = self.items.remove(&key) else { continue };
            match self.large.iter().position(|&found| found == key) {
                Some(place) => drop(self.large.swap_remove(place)),
                None => self.bytes -= item.bytes,
            }
            let value = Arc::into_inner(item.value).map(Mutex::into_inner);
            old.extend(value.and_then(|value| value.unwrap_or_else(PoisonError::into_inner)));
        }
    }
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
        Key { file: 1, group: 0, leaf: 0, part: Part::Page(page) }
    }

    /// Asks for pages of `bytes` bytes, and returns those that were made.
    fn made(recent: &Recent, pages: &[usize], bytes: u64) -> Vec<usize> {
        let mut made = Vec::new();
        for &page in pages {
            let make = || {
                made.push(page);
                Ok::<_, Infallible>((Arc::new(page) as AnyValue, bytes))
            };
            let Ok((value, _)) = recent.get(key(page), make, &mut Vec::new());
            assert_eq!(value.downcast_ref(), Some(&page));
        }
        made
    }

    #[test]
    fn the_least_recently_used_are_made_again() {
        let recent = Recent::new(100);
        assert_eq!(made(&recent, &[0, 1, 2, 0, 3, 0, 1, 3], 33), [0, 1, 2, 3, 1]);
        assert_eq!(recent.bytes(), 99);
    }

    #[test]
    fn two_large_ones_are_kept_beside_the_others() {
        let recent = Recent::new(100);
        assert_eq!(made(&recent, &[10, 11, 12], 20), [10, 11, 12]);
        assert_eq!(made(&recent, &[0, 1, 0, 1, 2, 1, 2, 0], 1000), [0, 1, 2, 0]);
        assert!(made(&recent, &[10, 11, 12], 20).is_empty());
        assert_eq!(recent.bytes(), 2060);
    }

    #[test]
    fn memory_is_what_readers_reserve_together() {
        let recent = Recent::new(100);
        recent.reserve(200);
        recent.reserve(50);
        let pages: Vec<usize> = (0..30).collect();
        assert_eq!(made(&recent, &pages, 10).len(), 30);
        assert_eq!(recent.bytes(), 250);
        recent.release(200);
        assert_eq!(recent.bytes(), 50);
        recent.release(50);
        assert!(made(&recent, &pages[25..], 10).is_empty());
        assert_eq!(made(&recent, &pages, 10).len(), 30);
        assert_eq!(recent.bytes(), 100);
    }

    #[test]
    fn a_dictionary_stays_as_long_as_its_pages_are_used() {
        let recent = Recent::new(100);
        let get = |key, bytes, made: &mut u32| {
            let make = || {
                *made += 1;
                Ok::<_, Infallible>((Arc::new(()) as AnyValue, bytes))
            };
            drop(recent.get(key, make, &mut Vec::new()));
        };
        let page = |leaf| Key { leaf, ..key(0) };
        let dictionary = |leaf| Key { part: Part::Dictionary, ..page(leaf) };
        let mut made = 0;
        for leaf in [0, 1] {
            get(dictionary(leaf), 60, &mut made);
            get(page(leaf), 10, &mut made);
        }
        get(page(0), 10, &mut made);
        get(dictionary(2), 60, &mut made);
        assert_eq!((made, recent.bytes()), (5, 60 + 10 + 60), "without a column's both values");
        get(dictionary(0), 60, &mut made);
        get(page(0), 10, &mut made);
        assert_eq!(made, 5);
        get(page(1), 10, &mut made);
        assert_eq!(made, 6);
    }

    #[test]
    fn the_values_of_a_file_are_forgotten() {
        let recent = Recent::new(100);
        made(&recent, &[0, 1], 10);
        made(&recent, &[2], 100);
        recent.forget(2);
        assert_eq!(recent.bytes(), 120);
        recent.forget(1);
        assert_eq!(recent.bytes(), 0);
        assert_eq!(made(&recent, &[0, 1, 2], 10), [0, 1, 2]);
        assert_eq!(recent.bytes(), 30);
    }

    #[test]
    fn what_could_not_be_made_is_asked_for_again() {
        let recent = Recent::new(100);
        let fail = || Err("damaged");
        assert!(recent.get(key(4), fail, &mut Vec::new()).is_err());
        assert_eq!(made(&recent, &[4], 1), [4]);
    }

    #[test]
    fn threads_that_need_a_value_wait_for_the_one_that_makes_it() {
        let recent = Recent::new(100);
        let made = AtomicU64::new(0);
        let make = || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>((Arc::new(()) as AnyValue, 1))
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| drop(recent.get(key(0), make, &mut Vec::new())));
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
