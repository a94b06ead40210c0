//! Slabs: the memory of one batch, filled row by row from several threads, then read by everyone.
//!
//! This is the only unsafe code of the crate. It lets threads write different rows of one
//! allocation without a lock, and hands out shared views afterwards. A slab goes through three
//! states, and each one's accesses exclude the others':
//!
//! 1. *Filling.* [`Slab::claim`] gives out each row at most once: the row's `claimed` flag goes
//!    from false to true exactly once per filling, for any caller. A [`RowMut`] touches the bytes
//!    of its row only.
//! 2. *Complete.* [`RowMut::finish`] consumes the row and counts it. The call that counts the last
//!    row gets the [`Complete`], which touches the whole slab. By then every row was claimed and
//!    finished, so no `RowMut` exists, and none can be created while the flags are set.
//! 3. *Published.* [`Complete::publish`] consumes the exclusive access and sets `published`; shared
//!    views exist only after that.
//!
//! [`Slab::reset`] takes `&mut self`, so no view, row or thread has a reference to the slab, and
//! starts over. Memory comes initialised, from the system or a [`Backing`], and is reused without
//! clearing.
#![expect(unsafe_code, reason = "disjoint rows of one allocation; docs/safety.md")]

mod layout;
mod memory;

use std::cell::UnsafeCell;
use std::ops::Range;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, TryFromBytes};

use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use layout::{Area, Field};
pub use layout::{RowBytes, SlabLayout};
pub use memory::Backing;
use memory::Memory;

/// The alignment of every field in a slab, in bytes: a cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// The numbers that belong to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Class of the sample.
    pub label: i64,
    /// Number of the sample in its data set.
    pub index: u64,
    /// Height and width in pixels.
    pub size: [u32; 2],
    /// False for a row that only pads the last batch.
    pub valid: bool,
}

/// Pointers to the fields of a batch, each aligned to 64 bytes, for code that passes them to
/// another language without copying.
///
/// They are valid for the lengths of the batch's views, while the batch or a clone of it exists and
/// is not moved, as in an `Arc`. The holder of the batch may write there; the loader does not read
/// it again. No view from the batch's methods may exist during a write.
#[derive(Clone, Debug)]
pub struct FieldPointers {
    /// The images in row order; empty if each image has its own size.
    pub images: *mut u8,
    /// The masks in row order; empty without masks.
    pub masks: *mut u8,
    /// Height and width of each image.
    pub sizes: *mut [u32; 2],
    /// One label a row.
    pub labels: *mut i64,
    /// The number of each row's sample.
    pub indices: *mut u64,
    /// The labels in 32 bits.
    pub labels_i32: *mut i32,
    /// 1 for a row with a sample, 0 for padding.
    pub valid: *mut u8,
    /// The columns of a table, in the order of the batch's columns.
    pub columns: Vec<*mut u8>,
}

/// The memory of one batch. `T` is what a row has besides its bytes.
pub struct Slab<T> {
    memory: Memory,
    /// Bytes of `memory` before the first aligned one, which are not used.
    skipped: usize,
    rows: Box<[Row<T>]>,
    shape: SlabLayout,
    /// Rows of this filling: the last batch of an epoch may have fewer than the slab.
    in_use: usize,
    finished: AtomicUsize,
    published: AtomicBool,
}

struct Row<T> {
    claimed: AtomicBool,
    extra: UnsafeCell<T>,
}

// SAFETY: threads reach `memory` and `extra` through a shared slab only by `RowMut` (one per row),
// `Complete` (alone) and the published views (shared, nobody writes), as the module says. All of
// them may hold a `T` or `&T`, which the bounds allow. The other fields are `Sync` themselves.
unsafe impl<T: Send + Sync> Sync for Slab<T> {}

impl<T: Default> Slab<T> {
    /// A zeroed slab for fillings of `shape` and of up to `bytes` bytes, or `None` if memory is
    /// exhausted.
    pub fn new(shape: &SlabLayout, bytes: usize) -> Option<Self> {
        Self::backed_by(shape, bytes, |_| None)
    }

    /// The same in the memory that `backing` returns for a number of bytes, or of the system if it
    /// returns none, or less.
    pub fn backed_by(
        shape: &SlabLayout,
        bytes: usize,
        backing: impl FnOnce(usize) -> Option<Box<dyn Backing>>,
    ) -> Option<Self> {
        let bytes = bytes.max(shape.bytes()).checked_next_multiple_of(ALIGNMENT)?;
        let bytes_and_excess = bytes.checked_add(ALIGNMENT - 1)?;
        let backed = backing(bytes_and_excess).map(Memory::Backed);
        let memory = match backed.filter(|memory| memory.bytes() >= bytes_and_excess) {
            Some(memory) => memory,
            // Asked for with an alignment, the memory would be zeroed by hand, all of it and at once,
            // instead of by the system when a page is first written.
            None => {
                Memory::Own(<[UnsafeCell<u8>]>::new_box_zeroed_with_elems(bytes_and_excess).ok()?)
            }
        };
        let skipped = memory.start().addr().wrapping_neg() % ALIGNMENT;
        let row = || Row { claimed: AtomicBool::new(false), extra: UnsafeCell::default() };
        let mut rows = Vec::new();
        rows.try_reserve_exact(shape.rows).ok()?;
        rows.resize_with(shape.rows, row);
        let rows = rows.into_boxed_slice();
        let finished = AtomicUsize::new(0);
        let published = AtomicBool::new(false);
        Some(Self { memory, skipped, rows, shape: shape.clone(), in_use: 0, finished, published })
    }
}

impl<T> Slab<T> {
    /// Bytes of memory, besides what the rows' extras own.
    pub fn bytes(&self) -> usize {
        self.memory.bytes() - (ALIGNMENT - 1)
    }

    /// Whether the memory is that of a [`Backing`].
    pub fn is_backed(&self) -> bool {
        matches!(self.memory, Memory::Backed(_))
    }

    /// True if a filling of `shape` fits.
    pub fn fits(&self, shape: &SlabLayout) -> bool {
        shape.rows <= self.rows.len() && shape.bytes() <= self.bytes()
    }

    /// Starts a filling of `rows` rows of `shape`.
    ///
    /// # Panics
    /// When the shape has fewer rows, or the slab no room for it.
    pub fn reset(&mut self, shape: &SlabLayout, rows: usize) {
        assert!(rows <= shape.rows, "{rows} rows in a shape of {}", shape.rows);
        assert!(self.fits(shape), "{shape:?} in {} bytes", self.bytes());
        for row in &mut self.rows {
            row.claimed = AtomicBool::new(false);
        }
        self.shape.clone_from(shape);
        self.in_use = rows;
        self.finished = AtomicUsize::new(0);
        self.published = AtomicBool::new(false);
    }

    /// The values that rows have besides their bytes.
    pub fn extras_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut().map(|row| row.extra.get_mut())
    }

    /// Claims row `row` for writing; `None` if it does not exist or is claimed already.
    #[inline]
    pub fn claim(&self, row: usize) -> Option<RowMut<'_, T>> {
        let rows = &self.rows[..self.in_use];
        // Only the flag's own value matters here; the row's bytes were handed over with the slab.
        let taken = rows.get(row)?.claimed.swap(true, Ordering::Relaxed);
        (!taken).then_some(RowMut { slab: self, row })
    }

    /// All fields and columns of a published slab, those of rows that are not in use too.
    ///
    /// # Panics
    /// If the slab is not published.
    pub fn contents(&self) -> &[u8] {
        self.check_published();
        // SAFETY: the slab is published, checked above, so nobody writes.
        unsafe { self.shared(0..self.shape.bytes()) }
    }

    /// The first `rows` images of a published slab.
    ///
    /// # Panics
    /// This view and the others panic if the slab is not published, or its filling has fewer rows.
    pub fn images(&self, rows: usize) -> &[u8] {
        self.published_bytes(rows, Field::Images)
    }

    /// The first `rows` masks of a published slab.
    pub fn masks(&self, rows: usize) -> &[u8] {
        self.published_bytes(rows, Field::Masks)
    }

    /// Height and width of the first `rows` images of a published slab.
    pub fn sizes(&self, rows: usize) -> &[[u32; 2]] {
        self.published_numbers(rows, Field::Sizes)
    }

    /// The first `rows` labels of a published slab.
    pub fn labels(&self, rows: usize) -> &[i64] {
        self.published_numbers(rows, Field::Labels)
    }

    /// The same in 32 bits; a label that does not fit is `i32::MIN`.
    pub fn short_labels(&self, rows: usize) -> &[i32] {
        self.published_numbers(rows, Field::ShortLabels)
    }

    /// The first `rows` sample indices of a published slab.
    pub fn indices(&self, rows: usize) -> &[u64] {
        self.published_numbers(rows, Field::Indices)
    }

    /// Column `column` of the first `rows` rows of a published slab.
    pub fn column(&self, rows: usize, column: usize) -> &[u8] {
        self.published_area(rows, self.shape.columns[column])
    }

    /// The `valid` flags of the first `rows` rows of a published slab.
    ///
    /// # Panics
    /// As other views do, and if one of the rows was finished without [`RowMut::identify`]: the
    /// byte is then that of an earlier filling.
    pub fn valid(&self, rows: usize) -> &[bool] {
        let bytes = self.published_bytes(rows, Field::Valid);
        <[bool]>::try_ref_from_bytes(bytes).expect("`identify` wrote nothing but 0 and 1")
    }

    /// The values that row `row` of a published slab has besides its bytes.
    pub fn extra(&self, row: usize) -> &T {
        self.check_published();
        // SAFETY: the slab is published, checked above, so nobody has a mutable reference.
        unsafe { &*self.rows[row].extra.get() }
    }

    /// Pointers to the fields of a published slab. From then on only the views that callers request
    /// read them; a caller that writes there must hold no view meanwhile.
    pub fn pointers(&self) -> FieldPointers {
        self.check_published();
        let start = |field| self.start_of(&self.shape.range(field, 0..self.in_use));
        let columns = self.shape.columns.iter();
        FieldPointers {
            images: start(Field::Images),
            masks: start(Field::Masks),
            sizes: start(Field::Sizes).cast(),
            labels: start(Field::Labels).cast(),
            labels_i32: start(Field::ShortLabels).cast(),
            indices: start(Field::Indices).cast(),
            valid: start(Field::Valid),
            columns: columns.map(|area| self.start_of(&area.range(0..self.in_use))).collect(),
        }
    }

    fn published_numbers<N: FromBytes + Immutable>(&self, rows: usize, field: Field) -> &[N] {
        let bytes = self.published_bytes(rows, field);
        <[N]>::ref_from_bytes(bytes).expect("a field is aligned and holds whole numbers")
    }

    fn published_bytes(&self, rows: usize, field: Field) -> &[u8] {
        self.published_area(rows, self.shape.fields[field as usize])
    }

    fn published_area(&self, rows: usize, area: Area) -> &[u8] {
        self.check_published();
        assert!(rows <= self.in_use, "{rows} rows of a filling of {}", self.in_use);
        // SAFETY: the slab is published, checked above, so nobody writes.
        unsafe { self.shared(area.range(0..rows)) }
    }

    fn check_published(&self) {
        assert!(self.published.load(Ordering::Acquire), "views are of published slabs");
    }

    /// # Safety
    /// Nobody may have or make a mutable reference into `range` while the result lives.
    unsafe fn shared(&self, range: Range<usize>) -> &[u8] {
        let start = self.start_of(&range);
        // SAFETY: `start_of` checked that the range lies in `memory`, whose bytes are initialised
        // and inside `UnsafeCell`; the caller vouches for the absence of writers.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }

    /// # Safety
    /// Nobody else may have or make a reference into `range` while the result lives.
    #[expect(
        clippy::mut_from_ref,
        reason = "the bytes are cells; the caller is alone in the range"
    )]
    unsafe fn exclusive(&self, range: Range<usize>) -> &mut [u8] {
        let start = self.start_of(&range);
        // SAFETY: as in `shared`; the caller vouches for being alone.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }

    /// The address of the range's first byte, with leave to touch the whole range.
    fn start_of(&self, range: &Range<usize>) -> *mut u8 {
        assert!(range.start <= range.end && range.end <= self.bytes());
        // SAFETY: `skipped` is less than the alignment, whose excess the memory has over `bytes`, so
        // the offset is within the allocation.
        unsafe { self.memory.start().add(self.skipped + range.start) }
    }
}

/// One row, to be written by the thread that claimed it.
#[derive(Debug)]
pub struct RowMut<'a, T> {
    slab: &'a Slab<T>,
    row: usize,
}

/// The parts of a row.
#[derive(Debug)]
pub struct Parts<'r, T> {
    /// Bytes of the image.
    pub image: &'r mut [u8],
    /// Bytes of the mask.
    pub mask: &'r mut [u8],
    /// Columns of a table.
    pub columns: ColumnsMut<'r, T>,
    /// The value that the row has in addition to its bytes.
    pub extra: &'r mut T,
}

impl<T> Parts<'_, T> {
    /// The same for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> Parts<'_, T> {
        let columns = ColumnsMut { slab: self.columns.slab, row: self.columns.row };
        Parts { image: self.image, mask: self.mask, columns, extra: self.extra }
    }
}

/// The columns of one row. At most one is usable at a time: it cannot be cloned, and it borrows its
/// [`RowMut`], or the value that it was created from, mutably.
#[derive(Debug)]
pub struct ColumnsMut<'r, T> {
    slab: &'r Slab<T>,
    row: usize,
}

impl<T> ColumnsMut<'_, T> {
    /// Bytes of the row in column `column`.
    #[inline]
    pub fn get(&mut self, column: usize) -> &mut [u8] {
        let range = self.slab.shape.columns[column].range(self.row..self.row + 1);
        // SAFETY: alone in the row's columns as `RowMut::parts` is in the row, and borrowed mutably
        // for as long as the result lives; columns overlap neither each other nor a field.
        unsafe { self.slab.exclusive(range) }
    }

    /// Zeros in all columns.
    pub fn clear(&mut self) {
        (0..self.slab.shape.columns.len()).for_each(|column| self.get(column).fill(0));
    }
}

impl<'a, T> RowMut<'a, T> {
    /// The row's image, its mask and what else belongs to it.
    #[inline]
    pub fn parts(&mut self) -> Parts<'_, T> {
        let row = self.row..self.row + 1;
        let shape = &self.slab.shape;
        // SAFETY: this `RowMut` is the only one of its row (`claimed`), rows do not overlap, and
        // neither a `Complete` nor a published view exists before `finish` consumed it.
        let image = unsafe { self.slab.exclusive(shape.range(Field::Images, row.clone())) };
        // SAFETY: the same reasons hold for the row's mask, and fields do not overlap.
        let mask = unsafe { self.slab.exclusive(shape.range(Field::Masks, row)) };
        // SAFETY: the same reasons hold for the row's extra.
        let extra = unsafe { &mut *self.slab.rows[self.row].extra.get() };
        let columns = ColumnsMut { slab: self.slab, row: self.row };
        Parts { image, mask, columns, extra }
    }

    /// Writes the row's numbers.
    #[inline]
    pub fn identify(&mut self, identity: Identity) {
        let Identity { label, index, size, valid } = identity;
        let short = i32::try_from(label).unwrap_or(i32::MIN);
        let shape = &self.slab.shape;
        for (field, bytes) in [
            (Field::Sizes, size.as_bytes()),
            (Field::Labels, label.as_bytes()),
            (Field::ShortLabels, short.as_bytes()),
            (Field::Indices, index.as_bytes()),
            (Field::Valid, valid.as_bytes()),
        ] {
            let range = shape.range(field, self.row..self.row + 1);
            // SAFETY: the number is this row's own, and alone as in `parts`.
            unsafe { self.slab.exclusive(range) }.copy_from_slice(bytes);
        }
    }

    /// Gives the row back. The last one to do so gets the whole slab.
    #[inline]
    pub fn finish(self) -> Option<Complete<'a, T>> {
        let slab = self.slab;
        // Release passes this row's writes on to the last finisher, acquire lets it see the others'.
        let finished = slab.finished.fetch_add(1, Ordering::AcqRel) + 1;
        (finished == slab.in_use).then_some(Complete { slab })
    }
}

/// Exclusive access to the whole slab, after every row is finished and before it is published.
#[derive(Debug)]
pub struct Complete<'a, T> {
    slab: &'a Slab<T>,
}

impl<T> Complete<'_, T> {
    /// The number of rows that were filled.
    #[inline]
    pub fn rows(&self) -> usize {
        self.slab.in_use
    }

    /// The values that row `row` has besides its bytes.
    pub fn extra(&mut self, row: usize) -> &mut T {
        assert!(row < self.rows(), "row {row} of {}", self.rows());
        // SAFETY: all rows are finished and nothing is published, so this `Complete` has exclusive
        // access, and it is borrowed mutably for as long as the result lives.
        unsafe { &mut *self.slab.rows[row].extra.get() }
    }

    /// The images of `rows`.
    pub fn images(&mut self, rows: Range<usize>) -> &mut [u8] {
        assert!(rows.end <= self.rows(), "rows {rows:?} of a filling of {}", self.rows());
        // SAFETY: alone as in `extra`, and borrowed mutably for as long as the result lives.
        unsafe { self.slab.exclusive(self.slab.shape.range(Field::Images, rows)) }
    }

    /// Moves row `from` to `to`: bytes and numbers are copied, the extras change places.
    pub fn move_row(&mut self, from: usize, to: usize) {
        assert!(to <= from && from < self.rows(), "row {from} to {to} of {}", self.rows());
        if from == to {
            return;
        }
        // SAFETY: alone as in `extra`.
        let bytes = unsafe { self.slab.exclusive(0..self.slab.shape.bytes()) };
        let shape = &self.slab.shape;
        for area in shape.fields.iter().chain(shape.columns.iter()) {
            bytes.copy_within(area.range(from..from + 1), area.range(to..to).start);
        }
        // SAFETY: alone as in `extra`; the two rows differ, checked above.
        let source = unsafe { &mut *self.slab.rows[from].extra.get() };
        // SAFETY: as above.
        let target = unsafe { &mut *self.slab.rows[to].extra.get() };
        std::mem::swap(source, target);
    }

    /// Opens the slab to readers.
    pub fn publish(self) {
        self.slab.published.store(true, Ordering::Release);
    }
}

impl<T> std::fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slab").field("shape", &self.shape).field("in_use", &self.in_use).finish()
    }
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests;

#[cfg(test)]
#[cfg(feature = "loom")]
mod orderings;
