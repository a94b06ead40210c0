//! The pool that slabs come from and return to, so that their pages are faulted in only once.

use std::fmt;
use std::ops::Deref;

use crate::permits::Permit;
use crate::slab::{Backing, Slab, SlabLayout};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Weak, lock, process_id};

/// The source of slabs' memory, for a number of bytes; none for memory of the system.
pub type Backings = Box<dyn Fn(usize) -> Option<Box<dyn Backing>> + Send + Sync>;

/// Slabs, each of which has the shape of its present filling.
pub struct Pool<T> {
    free: Mutex<Vec<Slab<T>>>,
    backings: Option<Backings>,
    /// Free slabs beyond this number are returned to the system.
    keep: usize,
    allocated: AtomicU64,
    in_use: AtomicU64,
    /// Bytes of the largest slab so far.
    slab_bytes: AtomicU64,
    /// The process that the pool is used in.
    process: u32,
}

impl<T: Default> Pool<T> {
    /// A pool that keeps up to `keep` free slabs.
    pub fn new(keep: usize) -> Self {
        let [allocated, in_use, slab_bytes] = std::array::from_fn(|_| AtomicU64::new(0));
        let free = Mutex::default();
        let process = process_id();
        Self { free, backings: None, keep, allocated, in_use, slab_bytes, process }
    }

    /// The same with slabs in memory from this source.
    #[must_use]
    pub fn with_backings(self, backings: Backings) -> Self {
        Self { backings: Some(backings), ..self }
    }

    /// A slab for a filling of `rows` rows of `shape`, or `None` if memory is exhausted.
    ///
    /// It is the smallest free one that is large enough. If none is, a new one replaces the
    /// smallest, with an eighth to spare, so that with varying shapes all slabs soon have the size
    /// of the largest filling.
    pub fn take(self: &Arc<Self>, shape: &SlabLayout, rows: usize) -> Option<Lease<T>> {
        let mut slab = match self.recycled(shape) {
            Ok(slab) => slab,
            Err(Crowded { free }) => {
                let slack = if free { shape.bytes() / 8 } else { 0 };
                let backing = |bytes| self.backings.as_ref().and_then(|backings| backings(bytes));
                let slab = Slab::backed_by(shape, shape.bytes().saturating_add(slack), backing)?;
                self.allocated.fetch_add(1, Ordering::Relaxed);
                self.slab_bytes.fetch_max(slab.bytes() as u64, Ordering::Relaxed);
                slab
            }
        };
        slab.reset(shape, rows);
        self.in_use.fetch_add(1, Ordering::Relaxed);
        Some(Lease { slab: Some(slab), pool: Arc::downgrade(self), permit: None })
    }

    fn recycled(&self, shape: &SlabLayout) -> Result<Slab<T>, Crowded> {
        let mut free = lock(&self.free);
        let smallest = |fits: bool| {
            let slabs = free.iter().enumerate().filter(|(_, slab)| !fits || slab.fits(shape));
            slabs.min_by_key(|(_, slab)| slab.bytes()).map(|(place, _)| place)
        };
        if let Some(place) = smallest(true) {
            return Ok(free.swap_remove(place));
        }
        let place = smallest(false);
        // Let go of before the larger one is made, and outside the lock.
        let outgrown = place.map(|place| free.swap_remove(place));
        drop(free);
        Err(Crowded { free: outgrown.is_some() })
    }

    /// The number of slabs allocated so far.
    pub fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    /// The number of slabs in use.
    pub fn in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Bytes of the largest of them.
    pub fn slab_bytes(&self) -> u64 {
        self.slab_bytes.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_backed = self.backings.is_some();
        f.debug_struct("Pool").field("is_backed", &is_backed).finish_non_exhaustive()
    }
}

/// No free slab has room.
struct Crowded {
    /// True if a free slab was reused.
    free: bool,
}

/// A slab in use. Dropping it returns the slab to its pool, if that still exists.
#[derive(Debug)]
pub struct Lease<T> {
    /// `None` only inside `drop`.
    slab: Option<Slab<T>>,
    pool: Weak<Pool<T>>,
    /// The permit for this slab, returned after the slab. A batch that is made again has it too.
    permit: Option<Arc<Permit>>,
}

impl<T> Lease<T> {
    /// Attaches the permit for the batch, which is released together with the slab.
    pub fn with_permit(mut self, permit: Arc<Permit>) -> Self {
        self.permit = Some(permit);
        self
    }

    /// The permit that [`with_permit`](Self::with_permit) added.
    pub fn permit(&self) -> Option<&Arc<Permit>> {
        self.permit.as_ref()
    }

    /// The values that rows have besides their bytes, before they are filled.
    pub fn extras_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slab.iter_mut().flat_map(Slab::extras_mut)
    }
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
        if pool.process != process_id() {
            // A fork, where a worker may have held the lock and is not there to release it.
            return;
        }
        pool.in_use.fetch_sub(1, Ordering::Relaxed);
        let mut free = lock(&pool.free);
        if free.len() < pool.keep {
            free.push(slab);
        }
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests {
    use super::*;
    use crate::slab::RowBytes;

    fn address(lease: &Lease<()>) -> usize {
        let complete = lease.claim(0).and_then(crate::slab::RowMut::finish);
        complete.expect("a slab of one row").publish();
        lease.images(1).as_ptr().addr()
    }

    fn shape(bytes: usize) -> SlabLayout {
        SlabLayout::new(1, RowBytes { images: bytes, masks: 0 }).unwrap()
    }

    #[test]
    fn slabs_come_back_with_their_last_view_and_not_before() {
        let pool = Arc::new(Pool::new(2));
        let first = Arc::new(pool.take(&shape(4_096), 1).unwrap());
        let place = address(&first);
        let view = Arc::clone(&first);
        drop(first);
        let second = pool.take(&shape(4_096), 1).unwrap();
        assert_ne!(address(&second), place);
        drop(view);
        let third = pool.take(&shape(4_096), 1).unwrap();
        assert_eq!((address(&third), pool.allocated()), (place, 2));
    }

    #[test]
    fn a_pool_keeps_only_so_many() {
        let pool: Arc<Pool<()>> = Arc::new(Pool::new(1));
        let leases = [pool.take(&shape(1), 1), pool.take(&shape(1), 1)];
        drop(leases);
        assert_eq!(lock(&pool.free).len(), 1);
    }

    #[test]
    fn the_smallest_slab_with_room_is_used_and_grows_when_there_is_none() {
        let pool: Arc<Pool<()>> = Arc::new(Pool::new(2));
        let used = |bytes| pool.take(&shape(bytes), 1).unwrap().bytes();
        let pair = [pool.take(&shape(64_000), 1), pool.take(&shape(6_400), 1)];
        drop(pair);
        // 64 bytes for each of the five numbers of a row.
        let large = 64_000 + 320;
        let small = 6_400 + 320;
        assert_eq!(
            (used(64), used(6_401), used(6_400), pool.allocated()),
            (small, large, small, 2)
        );
        let grown = used(128_000);
        assert_eq!((grown, pool.allocated()), (144_384, 3), "an eighth more, in lines");
        assert_eq!((used(140_000), used(64), pool.allocated()), (grown, large, 3));
        assert_eq!(pool.slab_bytes(), grown as u64);
    }

    #[test]
    fn a_view_outlives_the_pool() {
        let pool = Arc::new(Pool::new(1));
        let lease = pool.take(&shape(1), 1).unwrap();
        drop(pool);
        address(&lease);
        assert_eq!(lease.images(1), [0]);
    }
}
