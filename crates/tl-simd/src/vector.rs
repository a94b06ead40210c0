//! The operations that kernels need from a vector unit, and the dispatch over [`Level`](crate::Level).
//!
//! [`Simd`] has one implementation per vector level; the files below this one are the only ones
//! with unsafe code.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;

/// Source rows that the horizontal pass treats together, and taps of a vertical step.
pub(crate) const ROWS: usize = 4;

/// Part of a table of constants, aligned for every level.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u32; WORDS]);

/// Words of a [`Line`].
pub(crate) const WORDS: usize = 16;

/// Rows of one length in one buffer, checked to be there when they are put together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    data: &'a [u8],
    /// Where the rows begin; no row leaves `data`.
    offsets: &'a [[usize; ROWS]],
    len: usize,
}

impl<'a> Rows<'a> {
    /// Groups of rows of `len` bytes that begin at `offsets` in `data`.
    pub(crate) fn new(data: &'a [u8], offsets: &'a [[usize; ROWS]], len: usize) -> Self {
        let last = data.len().checked_sub(len).expect("a row fits into the data");
        assert!(offsets.as_flattened().iter().all(|&offset| offset <= last), "every row fits");
        Self { data, offsets, len }
    }
}

/// A vector level: its token, the shape of its registers and the operations of the kernels.
///
/// Sums of products are exact modulo 2^32 at every level, whatever way a level takes a coefficient
/// of 24 bits apart: into three signed bytes, two halves or not at all.
pub(crate) trait Simd: Copy {
    /// The level's name in reports.
    const NAME: &'static str;
    /// Output bytes that one step of the horizontal pass works on, per row.
    const LANES: usize;
    /// Lanes that share one window of source bytes.
    const GROUP: usize;
    /// Bytes of a window.
    const WINDOW: usize;
    /// Taps of one horizontal step.
    const TAPS: usize;
    /// Words per lane that [`Simd::split`] makes from `TAPS` coefficients.
    const PARTS: usize;
    /// Bytes that one step of the vertical pass works on.
    const COLUMNS: usize;

    /// Calls `f` with the level's instructions enabled.
    fn vectorize<R>(self, f: impl FnOnce() -> R) -> R;

    /// Takes four coefficients apart the way the level multiplies.
    fn split(weights: [i32; ROWS]) -> [u32; ROWS];

    /// The shuffle word that picks a lane's taps, the first at byte `first` of its window and the
    /// next ones `channels` bytes further each.
    fn positions(first: usize, channels: usize) -> u32;

    /// Running sums of [`ROWS`] rows of `LANES` outputs.
    type RowSums: Copy;

    /// Sums of nothing.
    fn row_sums(self) -> Self::RowSums;

    /// Adds a step: the groups' `windows` of each row, by the positions and coefficients in `step`.
    fn add_rows(
        self,
        sums: Self::RowSums,
        rows: [&[u8]; ROWS],
        windows: [u32; 2],
        step: &[Line],
    ) -> Self::RowSums;

    /// Rounds and clips the sums, and stores each row's groups at `at`.
    fn store_rows(self, sums: Self::RowSums, out: &mut [&mut [u8]; ROWS], at: [u32; 2]);

    /// Running sums of `COLUMNS` columns.
    type ColumnSums: Copy;

    /// Sums of nothing.
    fn column_sums(self) -> Self::ColumnSums;

    /// Adds the columns from `start` on of group `group` of the rows, each row times its coefficient.
    fn add_columns(
        self,
        sums: Self::ColumnSums,
        rows: &Rows<'_>,
        group: usize,
        start: usize,
        weights: &[u32; ROWS],
    ) -> Self::ColumnSums;

    /// Rounds and clips the sums into `COLUMNS` bytes.
    fn store_columns(self, sums: Self::ColumnSums, out: &mut [u8]);
}

/// Evaluates `$definition` at the scalar level, and `$kernel` with the level's token otherwise.
macro_rules! dispatch {
    ($level:expr, scalar => $definition:expr, $simd:ident => $kernel:expr $(,)?) => {
        match $level {
            $crate::Level::Scalar => $definition,
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx2($simd) => $crate::vector::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $kernel,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::Level::Avx512($simd) => $crate::vector::Simd::vectorize(
                $simd,
                #[inline(always)]
                || $kernel,
            ),
        }
    };
}
pub(crate) use dispatch;
