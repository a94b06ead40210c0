//! What threads make when they get there and then share: the latest few, each made by one of them.

use crate::sync::{Arc, Mutex, lock};

/// What is in use, what comes next and is looked into already, and what somebody may still be at.
const KEPT: usize = 3;

/// Numbered things, of which the three that were asked for first most recently are kept. Whoever
/// needs another makes it again.
pub(crate) struct Latest<T> {
    kept: Mutex<Vec<(u64, Pending<T>)>>,
}

/// Something that somebody makes while others wait for it.
type Pending<T> = Arc<Mutex<Option<Arc<T>>>>;

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { kept: Mutex::default() }
    }
}

impl<T> Latest<T> {
    /// Number `number`, made by the first to ask for it. Who asks for another does not wait.
    pub(crate) fn get(&self, number: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let pending = self.pending(number);
        let mut made = lock(&pending);
        Arc::clone(made.get_or_insert_with(|| Arc::new(make())))
    }

    fn pending(&self, number: u64) -> Pending<T> {
        let mut kept = lock(&self.kept);
        if let Some((_, pending)) = kept.iter().find(|(known, _)| *known == number) {
            return Arc::clone(pending);
        }
        if kept.len() == KEPT {
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
        let latest = Latest::default();
        let mut made = Vec::new();
        for number in [5, 6, 5, 7, 6, 8, 7, 6, 5] {
            assert_eq!(
                *latest.get(number, || {
                    made.push(number);
                    number
                }),
                number
            );
        }
        assert_eq!(made, [5, 6, 7, 8, 5]);
    }

    /// With one lock for all this would never end.
    #[test]
    fn another_is_there_while_one_is_made() {
        let latest = Latest::default();
        assert_eq!(*latest.get(1, || *latest.get(0, || 3) + 4), 7);
        assert_eq!(*latest.get(0, || 9), 3);
    }
}
