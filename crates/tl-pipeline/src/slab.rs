//! Slabs: the memory of one batch, filled row by row from several threads, then read by everyone.
//!
//! This is the only unsafe code of the crate. It lets threads write different rows of one
//! allocation without a lock, and hands out shared views afterwards. A slab goes through three
//! states, and each one's accesses exclude the others':
//!
//! 1. *Filling.* [`Slab::claim`] gives out each row at most once: the row's `claimed` flag goes from
//!    false to true exactly once per filling, whoever asks. A [`RowMut`] touches the bytes of its row
//!    only.
//! 2. *Complete.* [`RowMut::finish`] consumes the row and counts it. The call that counts the last
//!    row gets the [`Complete`], which touches the whole slab. Every row has been given out and
//!    given back then, so no `RowMut` exists, and none can be made while the flags stand.
//! 3. *Published.* [`Complete::publish`] consumes the exclusive access and sets `published`; only
//!    behind that flag are there shared views.
//!
//! [`Slab::reset`] takes `&mut self`, so no view, row or thread has a reference to the slab, and
//! starts over. Memory comes zeroed from the system once, and is reused as it is.
#![expect(unsafe_code, reason = "disjoint rows of one allocation; docs/safety.md")]

use std::cell::UnsafeCell;
use std::ops::Range;

use zerocopy::{FromBytes, FromZeros, KnownLayout};

use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Where every field of a slab starts: a cache line, and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

#[derive(FromZeros, KnownLayout)]
#[repr(C, align(64))]
struct Line(UnsafeCell<[u8; ALIGNMENT]>);

const _: () = assert!(size_of::<Line>() == ALIGNMENT && align_of::<Line>() == ALIGNMENT);

/// The sizes of a slab: `rows` images of `row_bytes` bytes, a label and an index each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    rows: usize,
    row_bytes: usize,
    labels: usize,
    indices: usize,
    bytes: usize,
}

impl Shape {
    /// `None` when the sizes leave the address space.
    pub(crate) fn new(rows: usize, row_bytes: usize) -> Option<Self> {
        let labels = rows.checked_mul(row_bytes)?.checked_next_multiple_of(ALIGNMENT)?;
        let numbers = rows.checked_mul(size_of::<u64>())?.checked_next_multiple_of(ALIGNMENT)?;
        let indices = labels.checked_add(numbers)?;
        let bytes = indices.checked_add(numbers)?;
        (bytes <= isize::MAX.unsigned_abs()).then_some(Self {
            rows,
            row_bytes,
            labels,
            indices,
            bytes,
        })
    }

    /// Bytes of memory a slab takes, besides what its rows' extras own.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn images(&self, rows: Range<usize>) -> Range<usize> {
        rows.start * self.row_bytes..rows.end * self.row_bytes
    }

    fn labels(&self, rows: Range<usize>) -> Range<usize> {
        self.labels + rows.start * size_of::<i64>()..self.labels + rows.end * size_of::<i64>()
    }

    fn indices(&self, rows: Range<usize>) -> Range<usize> {
        self.indices + rows.start * size_of::<u64>()..self.indices + rows.end * size_of::<u64>()
    }
}

/// The memory of one batch. `T` is what a row has besides its bytes.
pub(crate) struct Slab<T> {
    lines: Box<[Line]>,
    rows: Box<[Row<T>]>,
    shape: Shape,
    /// Rows of this filling: the last batch of an epoch may have fewer than the slab.
    in_use: usize,
    finished: AtomicUsize,
    published: AtomicBool,
}

struct Row<T> {
    claimed: AtomicBool,
    extra: UnsafeCell<T>,
}

// SAFETY: threads reach `lines` and `extra` through a shared slab only by `RowMut` (one per row),
// `Complete` (alone) and the published views (shared, nobody writes), as the module says. All of
// them may hold a `T` or `&T`, which the bounds allow. The other fields are `Sync` themselves.
unsafe impl<T: Send + Sync> Sync for Slab<T> {}

impl<T: Default> Slab<T> {
    /// A zeroed slab, or `None` when there is no memory for it.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        let lines = <[Line]>::new_box_zeroed_with_elems(shape.bytes / ALIGNMENT).ok()?;
        let row = || Row { claimed: AtomicBool::new(false), extra: UnsafeCell::default() };
        let rows = std::iter::repeat_with(row).take(shape.rows).collect();
        let (finished, published) = (AtomicUsize::new(0), AtomicBool::new(false));
        Some(Self { lines, rows, shape, in_use: 0, finished, published })
    }
}

impl<T> Slab<T> {
    /// Starts a filling of `rows` rows.
    ///
    /// # Panics
    /// When the slab has fewer rows.
    pub(crate) fn reset(&mut self, rows: usize) {
        assert!(rows <= self.shape.rows, "{rows} rows in a slab of {}", self.shape.rows);
        for row in &mut self.rows {
            row.claimed = AtomicBool::new(false);
        }
        self.in_use = rows;
        self.finished = AtomicUsize::new(0);
        self.published = AtomicBool::new(false);
    }

    /// Takes row `row` to write it; `None` when there is no such row or somebody has it already.
    pub(crate) fn claim(&self, row: usize) -> Option<RowMut<'_, T>> {
        let rows = &self.rows[..self.in_use];
        // Only the flag's own value matters here; the row's bytes were handed over with the slab.
        let taken = rows.get(row)?.claimed.swap(true, Ordering::Relaxed);
        (!taken).then_some(RowMut { slab: self, row })
    }

    /// The first `rows` images of a published slab.
    pub(crate) fn images(&self, rows: usize) -> &[u8] {
        self.published_bytes(rows, Shape::images)
    }

    /// The first `rows` labels of a published slab.
    pub(crate) fn labels(&self, rows: usize) -> &[i64] {
        let bytes = self.published_bytes(rows, Shape::labels);
        <[i64]>::ref_from_bytes(bytes).expect("a field is aligned and holds whole numbers")
    }

    /// The first `rows` sample indices of a published slab.
    pub(crate) fn indices(&self, rows: usize) -> &[u64] {
        let bytes = self.published_bytes(rows, Shape::indices);
        <[u64]>::ref_from_bytes(bytes).expect("a field is aligned and holds whole numbers")
    }

    /// What row `row` of a published slab has besides its bytes.
    pub(crate) fn extra(&self, row: usize) -> &T {
        self.check_published();
        // SAFETY: the slab is published, checked above, so nobody has a mutable reference.
        unsafe { &*self.rows[row].extra.get() }
    }

    fn published_bytes(
        &self,
        rows: usize,
        field: impl FnOnce(&Shape, Range<usize>) -> Range<usize>,
    ) -> &[u8] {
        self.check_published();
        assert!(rows <= self.in_use, "{rows} rows of a filling of {}", self.in_use);
        let range = field(&self.shape, 0..rows);
        // SAFETY: the slab is published, checked above, so nobody writes.
        unsafe { self.shared(range) }
    }

    fn check_published(&self) {
        assert!(self.published.load(Ordering::Acquire), "views are of published slabs");
    }

    /// # Safety
    /// Nobody may have or make a mutable reference into `range` while the result lives.
    unsafe fn shared(&self, range: Range<usize>) -> &[u8] {
        let start = self.start_of(&range);
        // SAFETY: `start_of` checked that the range lies in `lines`, whose bytes are initialised
        // and inside `UnsafeCell`; the caller vouches for the absence of writers.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }

    /// # Safety
    /// Nobody else may have or make a reference into `range` while the result lives.
    #[expect(
        clippy::mut_from_ref,
        reason = "the lines are cells; the caller is alone in the range"
    )]
    unsafe fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        let start = self.start_of(&range);
        // SAFETY: as in `shared`; the caller vouches for being alone.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }

    /// The address of the range's first byte, with leave to touch the whole range.
    fn start_of(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.lines.len() * ALIGNMENT);
        let base = self.lines.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: the offset is within the allocation, checked above.
        unsafe { base.add(range.start) }
    }
}

/// One row, to be written by the thread that claimed it.
pub(crate) struct RowMut<'a, T> {
    slab: &'a Slab<T>,
    row: usize,
}

impl<'a, T> RowMut<'a, T> {
    /// The row's image and what else belongs to it.
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut T) {
        let range = self.slab.shape.images(self.row..self.row + 1);
        // SAFETY: this `RowMut` is the only one of its row (`claimed`), rows do not overlap, and
        // there is neither a `Complete` nor a published view before `finish` consumed it.
        let image = unsafe { self.slab.exclusive(range) };
        // SAFETY: the same reasons hold for the row's extra.
        let extra = unsafe { &mut *self.slab.rows[self.row].extra.get() };
        (image, extra)
    }

    /// Writes the row's label and the index of its sample.
    pub(crate) fn identify(&mut self, label: i64, index: u64) {
        let row = self.row..self.row + 1;
        for (range, bytes) in [
            (self.slab.shape.labels(row.clone()), label.to_ne_bytes()),
            (self.slab.shape.indices(row), index.to_ne_bytes()),
        ] {
            // SAFETY: the number is this row's own, and alone as in `parts`.
            unsafe { self.slab.exclusive(range) }.copy_from_slice(&bytes);
        }
    }

    /// Gives the row back. The last one to do so gets the whole slab.
    pub(crate) fn finish(self) -> Option<Complete<'a, T>> {
        let slab = self.slab;
        // Release passes this row's writes on to the last finisher, acquire lets it see the others'.
        let finished = slab.finished.fetch_add(1, Ordering::AcqRel) + 1;
        (finished == slab.in_use).then_some(Complete { slab })
    }
}

/// The whole slab, after every row was given back and before anybody reads.
pub(crate) struct Complete<'a, T> {
    slab: &'a Slab<T>,
}

impl<T> Complete<'_, T> {
    /// How many rows were filled.
    pub(crate) fn rows(&self) -> usize {
        self.slab.in_use
    }

    /// What row `row` has besides its bytes.
    pub(crate) fn extra(&mut self, row: usize) -> &mut T {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        // SAFETY: all rows are given back and nothing is published, so this `Complete` is alone,
        // and it is borrowed mutably for as long as the result lives.
        unsafe { &mut *self.slab.rows[row].extra.get() }
    }

    /// The first `rows` images.
    pub(crate) fn images(&mut self, rows: usize) -> &mut [u8] {
        assert!(rows <= self.rows(), "{rows} rows of a filling of {}", self.rows());
        // SAFETY: alone as in `extra`, and borrowed mutably for as long as the result lives.
        unsafe { self.slab.exclusive(self.slab.shape.images(0..rows)) }
    }

    /// Moves row `from` to `to`: bytes and numbers are copied, the extras change places.
    pub(crate) fn move_row(&mut self, from: usize, to: usize) {
        assert!(to <= from && from < self.rows(), "row {from} to {to} of {}", self.rows());
        if from == to {
            return;
        }
        // SAFETY: alone as in `extra`.
        let bytes = unsafe { self.slab.exclusive(0..self.slab.shape.bytes) };
        let shape = &self.slab.shape;
        for field in [Shape::images, Shape::labels, Shape::indices] {
            bytes.copy_within(field(shape, from..from + 1), field(shape, to..to + 1).start);
        }
        // SAFETY: alone as in `extra`; the two rows differ, checked above.
        let source = unsafe { &mut *self.slab.rows[from].extra.get() };
        // SAFETY: as above.
        let target = unsafe { &mut *self.slab.rows[to].extra.get() };
        std::mem::swap(source, target);
    }

    /// Opens the slab to readers.
    pub(crate) fn publish(self) {
        self.slab.published.store(true, Ordering::Release);
    }
}

impl<T> std::fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slab").field("shape", &self.shape).field("in_use", &self.in_use).finish()
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests;
