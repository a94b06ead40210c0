//! What threads make when they get there and then share: the latest few, each made by one of them.

use crate::sync::{Arc, Mutex, lock};

/// Numbered things, of which so many are kept: those that were asked for first most recently.
/// Whoever needs another makes it again.
pub(crate) struct Latest<T> {
    count: usize,
    kept: Mutex<Vec<(u64, Pending<T>)>>,
}

/// Something that somebody makes while others wait for it.
type Pending<T> = Arc<Mutex<Option<Arc<T>>>>;

impl<T> Latest<T> {
    /// None yet, and `count` at most.
    pub(crate) fn new(count: usize) -> Self {
        Self { count, kept: Mutex::default() }
    }

    /// Number `number`, made by the first to ask for it. Who asks for another does not wait. Where it
    /// cannot be made, the next to ask tries again.
    pub(crate) fn get<E>(
        &self,
        number: u64,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let pending = self.pending(number);
        let mut made = lock(&pending);
        if let Some(made) = &*made {
            return Ok(Arc::clone(made));
        }
        Ok(Arc::clone(made.insert(Arc::new(make()?))))
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
#[cfg(not(any(shuttle, loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_is_made_once_while_it_is_among_the_latest() {
        let latest = Latest::new(3);
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
        let latest = Latest::new(3);
        let get = |number, made| latest.get(number, || Ok::<_, ()>(made)).map(|made| *made);
        assert_eq!(latest.get(1, || Ok::<_, ()>(get(0, 3)? + 4)).map(|made| *made), Ok(7));
        assert_eq!(get(0, 9), Ok(3));
    }

    #[test]
    fn what_could_not_be_made_is_made_when_it_is_asked_for_again() {
        let latest = Latest::new(3);
        assert_eq!(latest.get(4, || Err::<u8, _>("not now")), Err("not now"));
        assert_eq!(latest.get(4, || Ok::<_, ()>(5)).map(|made| *made), Ok(5));
    }
}
