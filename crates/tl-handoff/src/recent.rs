//! A few values that threads build on demand and share, each built by one of them.

use std::convert::Infallible;

use crate::sync::{Arc, Mutex, lock};

/// Numbered items, of which the cache keeps the `count` whose first request is the most recent.
/// An item that has left the cache is built again.
#[derive(Debug)]
pub struct RecentCache<T> {
    count: usize,
    kept: Mutex<Vec<(u64, Pending<T>)>>,
}

/// An item that one thread builds while others wait for it.
type Pending<T> = Arc<Mutex<Option<Arc<T>>>>;

impl<T> RecentCache<T> {
    /// An empty cache of up to `count` items, and of one at least.
    pub fn new(count: usize) -> Self {
        Self { count: count.max(1), kept: Mutex::default() }
    }

    /// Returns item `number`, building it on first use. Callers that ask for other items do not
    /// block; after a failure the next caller tries again. `make` must not ask for the same item: it
    /// would wait for itself.
    pub fn get<E>(&self, number: u64, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let pending = self.pending(number);
        let mut made = lock(&pending);
        if let Some(made) = &*made {
            return Ok(Arc::clone(made));
        }
        Ok(Arc::clone(made.insert(Arc::new(make()?))))
    }

    /// As [`get`](Self::get), for items that can always be built.
    pub fn get_or_make(&self, number: u64, make: impl FnOnce() -> T) -> Arc<T> {
        match self.get(number, || Ok::<_, Infallible>(make())) {
            Ok(item) => item,
        }
    }

    fn pending(&self, number: u64) -> Pending<T> {
        let mut kept = lock(&self.kept);
        if let Some((_, pending)) = kept.iter().find(|(known, _)| *known == number) {
            return Arc::clone(pending);
        }
        if kept.len() == self.count {
            kept.remove(0);
        }
        let pending = Pending::default();
        kept.push((number, Arc::clone(&pending)));
        pending
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn each_is_made_once_while_it_is_among_the_latest() {
        let latest = RecentCache::new(3);
        let mut made = Vec::new();
        for number in [5, 6, 5, 7, 6, 8, 7, 6, 5] {
            let make = || {
                made.push(number);
                Ok::<_, ()>(number)
            };
            assert_eq!(latest.get(number, make).map(|number| *number), Ok(number));
        }
        assert_eq!(made, [5, 6, 7, 8, 5]);
    }

    /// With one lock for all this would never end.
    #[test]
    fn another_is_there_while_one_is_made() {
        let latest = RecentCache::new(3);
        let get = |number, made| latest.get(number, || Ok::<_, ()>(made)).map(|made| *made);
        assert_eq!(latest.get(1, || Ok::<_, ()>(get(0, 3)? + 4)).map(|made| *made), Ok(7));
        assert_eq!(get(0, 9), Ok(3));
    }

    #[test]
    fn a_cache_of_nothing_keeps_one() {
        let latest = RecentCache::new(0);
        for number in [1, 1, 2] {
            assert_eq!(
                latest.get(number, || Ok::<_, ()>(number)).map(|number| *number),
                Ok(number)
            );
        }
    }

    #[test]
    fn what_could_not_be_made_is_made_when_it_is_asked_for_again() {
        let latest = RecentCache::new(3);
        assert_eq!(latest.get(4, || Err::<u8, _>("not now")), Err("not now"));
        assert_eq!(latest.get(4, || Ok::<_, ()>(5)).map(|made| *made), Ok(5));
    }
}
