//! The pool that slabs come from and return to, so that their pages are faulted in only once.

use std::ops::Deref;

use crate::slab::{Shape, Slab};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Weak, lock};

/// Slabs of one shape.
pub(crate) struct Pool<T> {
    shape: Shape,
    free: Mutex<Vec<Slab<T>>>,
    /// More free slabs than this are given back to the system.
    keep: usize,
    allocated: AtomicU64,
}

impl<T: Default> Pool<T> {
    pub(crate) fn new(shape: Shape, keep: usize) -> Self {
        Self { shape, free: Mutex::default(), keep, allocated: AtomicU64::new(0) }
    }

    /// A slab ready for a filling of `rows` rows, or `None` when there is no memory for another.
    pub(crate) fn take(self: &Arc<Self>, rows: usize) -> Option<Lease<T>> {
        let recycled = lock(&self.free).pop();
        let mut slab = match recycled {
            Some(slab) => slab,
            None => {
                self.allocated.fetch_add(1, Ordering::Relaxed);
                Slab::new(self.shape)?
            }
        };
        slab.reset(rows);
        Some(Lease { slab: Some(slab), pool: Arc::downgrade(self) })
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// How many slabs were ever made.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }
}

/// A slab in use. Dropping it returns the slab to its pool, if that still exists.
pub(crate) struct Lease<T> {
    /// `None` only inside `drop`.
    slab: Option<Slab<T>>,
    pool: Weak<Pool<T>>,
}

impl<T> Deref for Lease<T> {
    type Target = Slab<T>;

    fn deref(&self) -> &Slab<T> {
        self.slab.as_ref().expect("a lease has its slab until it is dropped")
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        let (Some(slab), Some(pool)) = (self.slab.take(), self.pool.upgrade()) else { return };
        let mut free = lock(&pool.free);
        if free.len() < pool.keep {
            free.push(slab);
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;

    fn address(lease: &Lease<()>) -> usize {
        let complete = lease.claim(0).and_then(crate::slab::RowMut::finish);
        complete.expect("a slab of one row").publish();
        lease.images(1).as_ptr().addr()
    }

    #[test]
    fn slabs_come_back_with_their_last_view_and_not_before() {
        let pool = Arc::new(Pool::new(Shape::new(1, 4_096).unwrap(), 2));
        let first = Arc::new(pool.take(1).unwrap());
        let place = address(&first);
        let view = Arc::clone(&first);
        drop(first);
        let second = pool.take(1).unwrap();
        assert_ne!(address(&second), place);
        drop(view);
        let third = pool.take(1).unwrap();
        assert_eq!((address(&third), pool.allocated()), (place, 2));
    }

    #[test]
    fn a_pool_keeps_only_so_many() {
        let pool: Arc<Pool<()>> = Arc::new(Pool::new(Shape::new(1, 1).unwrap(), 1));
        let leases = [pool.take(1), pool.take(1)];
        drop(leases);
        assert_eq!(lock(&pool.free).len(), 1);
    }

    #[test]
    fn a_view_outlives_the_pool() {
        let pool = Arc::new(Pool::new(Shape::new(1, 1).unwrap(), 1));
        let lease = pool.take(1).unwrap();
        drop(pool);
        address(&lease);
        assert_eq!(lease.images(1), [0]);
    }
}
