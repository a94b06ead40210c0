//! The pages and dictionaries that a thread decoded last.
//!
//! Samples that follow each other in a file are in one page, and others need the same dictionaries. Each
//! thread keeps a few of both, whatever the number of its files is, so that workers wait for no lock.

use std::cell::RefCell;
use std::rc::Rc;

use crate::nested::Entries;
use crate::page::Page;
use crate::values::Values;

/// The pages of a thread, and the parts of columns of lists.
const PAGES: usize = 8;

/// The dictionaries of a thread.
const DICTIONARIES: usize = 8;

/// The buffers of a thread, of which a row of an Arrow file needs a few for each column.
const BUFFERS: usize = 64;

/// The least bytes of a large buffer: 1 MiB.
const LARGE: usize = 1 << 20;

/// The most memory of each kind. The last value is kept whatever its size, because the samples of a page
/// are often read in sequence.
const BYTES: usize = 64 << 20;

/// The name of a page in all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) file: u64,
    pub(crate) group: usize,
    pub(crate) leaf: usize,
    pub(crate) page: usize,
}

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::NONE) };
}

struct Kept {
    pages: Recent<Page>,
    dictionaries: Recent<Values>,
    entries: Recent<Entries>,
    /// Buffers of Arrow files, apart from large ones.
    buffers: Recent<Vec<u8>>,
    /// Large buffers of Arrow files: those of images.
    large: Recent<Vec<u8>>,
    /// The buffer of a dropped page, for the next one: fresh memory costs as much as
    /// decompressing.
    spare: Vec<u8>,
}

impl Kept {
    const NONE: Self = Self {
        pages: Recent::new(PAGES),
        dictionaries: Recent::new(DICTIONARIES),
        entries: Recent::new(PAGES),
        buffers: Recent::new(BUFFERS),
        large: Recent::new(PAGES),
        spare: Vec::new(),
    };
}

/// Values in the order of their last use.
struct Recent<T> {
    items: Vec<(Key, Rc<T>, usize)>,
    most: usize,
}

impl<T> Recent<T> {
    const fn new(most: usize) -> Self {
        Self { items: Vec::new(), most }
    }

    fn get(&mut self, key: Key) -> Option<Rc<T>> {
        let place = self.items.iter().position(|(found, _, _)| *found == key)?;
        self.items.get_mut(..=place)?.rotate_right(1);
        self.items.first().map(|(_, item, _)| Rc::clone(item))
    }

    /// Returns the items that are dropped.
    fn keep(
        &mut self,
        key: Key,
        item: &Rc<T>,
        bytes: usize,
    ) -> impl Iterator<Item = Rc<T>> + use<T> {
        self.items.insert(0, (key, Rc::clone(item), bytes));
        let mut total = 0_usize;
        let within = self.items.iter().position(|&(_, _, bytes)| {
            let is_first = total == 0;
            total = total.saturating_add(bytes);
            !is_first && total > BYTES
        });
        let kept = within.unwrap_or(self.items.len()).min(self.most);
        let others = self.items.split_off(kept.min(self.items.len()));
        others.into_iter().map(|(_, item, _)| item)
    }
}

pub(crate) fn page(key: Key) -> Option<Rc<Page>> {
    KEPT.with_borrow_mut(|kept| kept.pages.get(key))
}

pub(crate) fn keep_page(key: Key, page: &Rc<Page>) {
    KEPT.with_borrow_mut(|kept| {
        for old in kept.pages.keep(key, page, page.memory()) {
            let buffer = Rc::into_inner(old).and_then(Page::into_buffer);
            kept.spare = buffer.filter(|buffer| buffer.capacity() <= BYTES).unwrap_or_default();
        }
    });
}

/// A buffer with any bytes.
pub(crate) fn spare() -> Vec<u8> {
    KEPT.with_borrow_mut(|kept| std::mem::take(&mut kept.spare))
}

pub(crate) fn entries(key: Key) -> Option<Rc<Entries>> {
    KEPT.with_borrow_mut(|kept| kept.entries.get(key))
}

pub(crate) fn keep_entries(key: Key, entries: &Rc<Entries>) {
    KEPT.with_borrow_mut(|kept| drop(kept.entries.keep(key, entries, entries.memory())));
}

pub(crate) fn buffer(key: Key) -> Option<Rc<Vec<u8>>> {
    KEPT.with_borrow_mut(|kept| kept.buffers.get(key).or_else(|| kept.large.get(key)))
}

pub(crate) fn keep_buffer(key: Key, buffer: &Rc<Vec<u8>>) {
    KEPT.with_borrow_mut(|kept| {
        if buffer.len() < LARGE {
            drop(kept.buffers.keep(key, buffer, buffer.len()));
            return;
        }
        for old in kept.large.keep(key, buffer, buffer.len()) {
            let buffer = Rc::into_inner(old);
            kept.spare = buffer.filter(|buffer| buffer.capacity() <= BYTES).unwrap_or_default();
        }
    });
}

pub(crate) fn dictionary(key: Key) -> Option<Rc<Values>> {
    KEPT.with_borrow_mut(|kept| kept.dictionaries.get(key))
}

pub(crate) fn keep_dictionary(key: Key, dictionary: &Rc<Values>) {
    KEPT.with_borrow_mut(|kept| drop(kept.dictionaries.keep(key, dictionary, dictionary.memory())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(page: usize) -> Key {
        Key { file: 1, group: 0, leaf: 0, page }
    }

    fn kept(recent: &mut Recent<u8>) -> Vec<usize> {
        recent.items.iter().map(|(key, _, _)| key.page).collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut recent = Recent::new(3);
        for page in 0..3 {
            drop(recent.keep(key(page), &Rc::new(0), 1));
        }
        assert_eq!(kept(&mut recent), [2, 1, 0]);
        assert_eq!(recent.get(key(0)).as_deref(), Some(&0));
        assert_eq!(recent.get(key(9)), None);
        let old: Vec<Rc<u8>> = recent.keep(key(3), &Rc::new(3), 1).collect();
        assert_eq!(old, [Rc::new(0)]);
        assert_eq!(kept(&mut recent), [3, 0, 2]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::new(8);
        drop(recent.keep(key(0), &Rc::new(0), 10));
        drop(recent.keep(key(1), &Rc::new(0), BYTES - 5));
        assert_eq!(kept(&mut recent), [1]);
        drop(recent.keep(key(2), &Rc::new(0), 5));
        assert_eq!(kept(&mut recent), [2, 1]);
        drop(recent.keep(key(3), &Rc::new(0), BYTES + 1));
        assert_eq!(kept(&mut recent), [3]);
        drop(recent.keep(key(4), &Rc::new(0), 5));
        assert_eq!(kept(&mut recent), [4]);
    }
}
