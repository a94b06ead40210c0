//! The buffers of Arrow files that a thread decoded or read last.
//!
//! Each thread keeps a few, whatever the number of its files is, so that workers wait for no lock.

use std::cell::RefCell;
use std::rc::Rc;

use crate::cache::{self, Key};

/// The buffers of a thread, of which a row needs a few for each column.
const BUFFERS: usize = 64;

/// Large buffers of a thread: those of images.
const LARGE_BUFFERS: usize = 8;

/// The least bytes of a large buffer: 1 MiB.
const LARGE: usize = 1 << 20;

/// The most memory of each kind. The last buffer is kept whatever its size, because the samples of one
/// are often read in sequence.
const BYTES: usize = 64 << 20;

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept::NONE) };
}

struct Kept {
    small: Recent,
    large: Recent,
}

impl Kept {
    const NONE: Self = Self { small: Recent::new(BUFFERS), large: Recent::new(LARGE_BUFFERS) };
}

/// Buffers in the order of their last use.
struct Recent {
    items: Vec<(Key, Rc<Vec<u8>>)>,
    most: usize,
}

impl Recent {
    const fn new(most: usize) -> Self {
        Self { items: Vec::new(), most }
    }

    fn get(&mut self, key: Key) -> Option<Rc<Vec<u8>>> {
        let place = self.items.iter().position(|(found, _)| *found == key)?;
        self.items.get_mut(..=place)?.rotate_right(1);
        self.items.first().map(|(_, item)| Rc::clone(item))
    }

    /// Returns the buffers that are dropped.
    fn keep(&mut self, key: Key, buffer: &Rc<Vec<u8>>) -> Vec<(Key, Rc<Vec<u8>>)> {
        self.items.insert(0, (key, Rc::clone(buffer)));
        let mut total = 0_usize;
        let within = self.items.iter().position(|(_, buffer)| {
            let is_first = total == 0;
            total = total.saturating_add(buffer.len());
            !is_first && total > BYTES
        });
        let kept = within.unwrap_or(self.items.len()).min(self.most);
        self.items.split_off(kept.min(self.items.len()))
    }
}

pub(super) fn buffer(key: Key) -> Option<Rc<Vec<u8>>> {
    KEPT.with_borrow_mut(|kept| kept.small.get(key).or_else(|| kept.large.get(key)))
}

pub(super) fn keep_buffer(key: Key, buffer: &Rc<Vec<u8>>) {
    KEPT.with_borrow_mut(|kept| {
        if buffer.len() < LARGE {
            drop(kept.small.keep(key, buffer));
            return;
        }
        for (_, old) in kept.large.keep(key, buffer) {
            cache::keep_spare(Rc::into_inner(old));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(page: usize) -> Key {
        Key { file: 1, group: 0, leaf: 0, page }
    }

    fn kept(recent: &Recent) -> Vec<usize> {
        recent.items.iter().map(|(key, _)| key.page).collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut recent = Recent::new(3);
        for page in 0..3 {
            drop(recent.keep(key(page), &Rc::default()));
        }
        assert_eq!(kept(&recent), [2, 1, 0]);
        assert_eq!(recent.get(key(0)), Some(Rc::default()));
        assert_eq!(recent.get(key(9)), None);
        assert_eq!(recent.keep(key(3), &Rc::default()), [(key(1), Rc::default())]);
        assert_eq!(kept(&recent), [3, 0, 2]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::new(8);
        let of = |len| Rc::new(vec![0; len]);
        drop(recent.keep(key(0), &of(10)));
        drop(recent.keep(key(1), &of(BYTES - 5)));
        assert_eq!(kept(&recent), [1]);
        drop(recent.keep(key(2), &of(5)));
        assert_eq!(kept(&recent), [2, 1]);
        drop(recent.keep(key(3), &of(BYTES + 1)));
        assert_eq!(kept(&recent), [3]);
    }
}
