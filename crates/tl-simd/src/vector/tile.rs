//! A macroblock's part of a plane, and the samples around it, checked once to be there.

#![expect(unsafe_code, reason = "rows of a rectangle that was checked as a whole")]

use std::marker::PhantomData;

/// Rows above a tile, and columns to the left of it, that can be used as well.
const MARGIN: usize = 4;

/// Rows and columns of tiles that can be counted in samples.
const MOST: usize = 1 << 24;

/// `SIDE` rows of `SIDE` bytes of a plane, to read and write, with what is around them.
#[derive(Debug)]
pub(crate) struct Tile<'a, const SIDE: usize> {
    first: *mut u8,
    stride: usize,
    plane: PhantomData<&'a mut [u8]>,
    has_left: bool,
    has_above: bool,
}

impl<'a, const SIDE: usize> Tile<'a, SIDE> {
    /// The tile in a row and a column of tiles, with rows of samples `stride` bytes apart.
    #[inline(always)]
    pub(crate) fn new(plane: &'a mut [u8], stride: usize, row: usize, column: usize) -> Self {
        const { assert!(SIDE >= MARGIN && SIDE < 64, "a margin is not wider than a tile") };
        assert!(row < MOST && column < MOST, "a tile of an image");
        let end = (SIDE * row + SIDE - 1)
            .checked_mul(stride)
            .and_then(|last_row| last_row.checked_add(SIDE * (column + 1)));
        assert!(end.is_some_and(|end| end <= plane.len()), "the tile is in the plane");
        // SAFETY: the first row does not begin after the last, which is in the plane; no product
        // overflows, as that of the last row did not.
        let first = unsafe { plane.as_mut_ptr().add(SIDE * row * stride + SIDE * column) };
        Self { first, stride, plane: PhantomData, has_left: column > 0, has_above: row > 0 }
    }

    /// The bytes of a row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &[u8; SIDE] {
        let bytes = self.at(row);
        // SAFETY: the bytes are part of the plane (by `at`), which is borrowed for `'a`; writing
        // needs `&mut self`.
        unsafe { &*bytes }
    }

    /// The same to write.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [u8; SIDE] {
        let bytes = self.at(row);
        // SAFETY: the bytes are part of the plane (by `at`), which is borrowed mutably for `'a`; no
        // other reference to them exists, as `self` is borrowed mutably.
        unsafe { &mut *bytes }
    }

    /// The first four bytes of a row.
    #[inline(always)]
    pub(crate) fn start_mut(&mut self, row: usize) -> &mut [u8; MARGIN] {
        let (start, _) = self.row_mut(row).split_first_chunk_mut().expect("not less than a margin");
        start
    }

    /// The four bytes before a row.
    #[inline(always)]
    pub(crate) fn left_mut(&mut self, row: usize) -> &mut [u8; MARGIN] {
        assert!(self.has_left, "a column to the left");
        let bytes: *mut u8 = self.at(row).cast();
        // SAFETY: a column of tiles is to the left (by the assertion), not narrower than the margin
        // (by `new`), and row 0 begins not before its own tile.
        let left: *mut [u8; MARGIN] = unsafe { bytes.sub(MARGIN) }.cast();
        // SAFETY: as in `row_mut`.
        unsafe { &mut *left }
    }

    /// A row above, the first of four being 0.
    #[inline(always)]
    pub(crate) fn above_mut(&mut self, row: usize) -> &mut [u8; SIDE] {
        assert!(self.has_above && row < MARGIN, "a row of tiles above");
        // SAFETY: a row of tiles is above (by the assertion), not lower than the margin (by `new`).
        let bytes: *mut [u8; SIDE] = unsafe { self.first.sub((MARGIN - row) * self.stride) }.cast();
        // SAFETY: as in `row_mut`.
        unsafe { &mut *bytes }
    }

    #[inline(always)]
    fn at(&self, row: usize) -> *mut [u8; SIDE] {
        assert!(row < SIDE, "a row of the tile");
        // SAFETY: the last row ends in the plane (by `new`), and this one does not begin after it.
        unsafe { self.first.add(row * self.stride) }.cast()
    }
}
