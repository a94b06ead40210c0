//! The rows of documents in a file, found when it is opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tbl_io::{ReadError, TokensDefect};

use crate::documents::Documents;
use crate::mix::mix;
use crate::order::MegatronOrder;
use crate::packing::{Bins, alone, best_fit, first_fit};
use crate::sequences::{Long, PackedRows, Packing};

/// Documents whose lengths are summed for one entry of the table of [`Split`].
const BLOCK: usize = 64;

/// Blocks that are read at once.
const READ_AT_ONCE: usize = 64;

/// The most threads that pack.
const MAX_THREADS: usize = 8;

/// The most rows and documents of one window, which bounds the memory of a file whose lengths are
/// damaged.
const MOST_ITEMS: u64 = 1 << 28;

/// Marks a row with a whole piece of a long document: the number of the piece follows.
const WHOLE: u32 = 1 << 31;

/// A piece of a document: successive tokens of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// The first token in the file.
    pub first: u64,
    /// The number of tokens.
    pub count: u64,
    /// True if the document continues after the piece, so that its last token has a target.
    pub continues: bool,
}

/// The rows of a file.
#[derive(Debug)]
pub(crate) enum Rows {
    /// Row `i` has document `i`.
    Documents,
    Packed(PackedWindows),
    Split(Split),
    /// Windows in an order of Megatron-LM, whatever the documents.
    Ordered(Box<MegatronOrder>),
}

impl Rows {
    /// A number that tells the lengths of documents that rows were found by, or the order of windows,
    /// from others; 0 where rows are documents.
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Documents => 0,
            Self::Packed(packed) => packed.id,
            Self::Split(split) => split.id,
            Self::Ordered(order) => order.id,
        }
    }
}

/// The rows of each window of documents.
#[derive(Debug)]
pub(crate) struct PackedWindows {
    window: u64,
    bins: Vec<Bins>,
    /// The number of the first row of each window, and that of all rows.
    first_rows: Vec<u64>,
    id: u64,
}

impl PackedWindows {
    /// Packs all windows, on several threads.
    pub(crate) fn new(
        documents: &Documents,
        rows: &PackedRows,
        is_packed: bool,
    ) -> Result<Self, ReadError> {
        let window = u64::from(rows.window.get().min(WHOLE));
        let count = documents.len().div_ceil(window);
        let next = AtomicU64::new(0);
        let work = || {
            let mut packed = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(packed);
                }
                let packing = pack(documents, number * window, rows, is_packed);
                let (bins, id) = packing.inspect_err(|_| {
                    // No thread starts another window.
                    next.store(count, Ordering::Relaxed);
                })?;
                packed.push((number, bins, id));
            }
        };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let threads = threads.min(usize::try_from(count).unwrap_or(usize::MAX)).max(1);
        let packed = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others =
                others.into_iter().map(|thread| thread.join().expect("packing panics not"));
            [own].into_iter().chain(others).collect::<Result<Vec<_>, ReadError>>()
        });
        let mut packed: Vec<(u64, Bins, u64)> = packed?.into_iter().flatten().collect();
        packed.sort_unstable_by_key(|(number, ..)| *number);
        let id = packed.iter().fold(0, |id, (.., of_window)| mix(id, *of_window));
        let bins: Vec<Bins> = packed.into_iter().map(|(_, bins, _)| bins).collect();
        let mut first_rows = vec![0];
        for bins in &bins {
            first_rows.push(first_rows[first_rows.len() - 1] + bins.len() as u64);
        }
        Ok(Self { window, bins, first_rows, id })
    }

    pub(crate) fn count(&self) -> u64 {
        self.first_rows[self.first_rows.len() - 1]
    }

    /// Adds the pieces of row `row`, which exists.
    pub(crate) fn pieces(
        &self,
        documents: &Documents,
        rows: &PackedRows,
        row: u64,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ReadError> {
        let window = self.first_rows.partition_point(|&first| first <= row) - 1;
        let local = usize::try_from(row - self.first_rows[window]).ok();
        let items = self.bins.get(window).zip(local).and_then(|(bins, row)| bins.get(row));
        let first = window as u64 * self.window;
        let document = |item: u32| first + u64::from(item & !WHOLE);
        match items.unwrap_or_default() {
            &[item, number] if item & WHOLE > 0 => {
                pieces.push(piece(documents, document(item), Some(number.into()), rows)?);
            }
            items => {
                for &item in items {
                    pieces.push(piece(documents, document(item), None, rows)?);
                }
            }
        }
        Ok(())
    }
}

/// The rows of the window of documents from `first` on, and a number that tells the documents' lengths
/// from others.
fn pack(
    documents: &Documents,
    first: u64,
    rows: &PackedRows,
    is_packed: bool,
) -> Result<(Bins, u64), ReadError> {
    let capacity = rows.length.get();
    let count = (documents.len() - first).min(rows.window.get().into());
    let mut stored = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
    documents.read_lengths(first, &mut stored)?;
    let id = stored.iter().fold(0, |id, &length| mix(id, length.into()));
    let mut items = Vec::with_capacity(stored.len());
    let mut whole: Vec<[u32; 2]> = Vec::new();
    for (place, length) in (0u32..).zip(stored) {
        let fits = length <= capacity;
        if !fits && rows.long == Long::Error {
            return Err(too_long(documents, first + u64::from(place), length, capacity));
        }
        if !fits && rows.long == Long::Split {
            let pieces = (length - 1) / capacity;
            let need = (whole.len() + items.len()) as u64 + u64::from(pieces);
            if need > MOST_ITEMS {
                return Err(documents.limit("rows of a window", MOST_ITEMS, need));
            }
            whole.extend((0..pieces).map(|piece| [place | WHOLE, piece]));
            items.push((place, length - pieces * capacity));
        } else if length > 0 {
            items.push((place, length.min(capacity)));
        }
    }
    let bins = match rows.strategy {
        _ if !is_packed => alone(&items),
        Packing::FirstFit => first_fit(&items, capacity),
        Packing::BestFit | Packing::Split => best_fit(&items, capacity),
    };
    Ok((with_whole(bins, &whole), id))
}

/// The rows with those of whole pieces after them.
fn with_whole(bins: Bins, whole: &[[u32; 2]]) -> Bins {
    if whole.is_empty() {
        return bins;
    }
    let Bins { starts, items } = bins;
    let mut starts = starts.into_vec();
    let mut items = items.into_vec();
    if starts.is_empty() {
        starts.push(0);
    }
    for piece in whole {
        items.extend(piece);
        starts.push(u32::try_from(items.len()).expect("bounded by `MOST_ITEMS`"));
    }
    Bins { starts: starts.into(), items: items.into() }
}

/// Piece `number` of a document, or its last one.
fn piece(
    documents: &Documents,
    document: u64,
    number: Option<u64>,
    rows: &PackedRows,
) -> Result<Piece, ReadError> {
    let (first, length) = documents.place(document)?;
    let capacity = u64::from(rows.length.get());
    let last = match rows.long {
        Long::Split => length.saturating_sub(1) / capacity,
        Long::Truncate | Long::Error => 0,
    };
    // The index may have changed since: a piece never leaves its document.
    let start = (number.unwrap_or(last) * capacity).min(length);
    let count = (length - start).min(capacity);
    Ok(Piece { first: first + start, count, continues: start + count < length })
}

/// The piece of document `document` that a row of its own has.
pub(crate) fn whole_document(
    documents: &Documents,
    document: u64,
    capacity: u32,
    long: Long,
) -> Result<Piece, ReadError> {
    let (first, length) = documents.place(document)?;
    let count = length.min(capacity.into());
    if count < length && long == Long::Error {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        return Err(too_long(documents, document, length, capacity));
    }
    Ok(Piece { first, count, continues: count < length })
}

fn too_long(documents: &Documents, document: u64, length: u32, most: u32) -> ReadError {
    documents.defect(document, TokensDefect::Long { document, length, most })
}

/// All documents one after the other, cut into rows.
#[derive(Debug)]
pub(crate) struct Split {
    /// The tokens before each block of documents, and those of all.
    sums: Vec<u64>,
    id: u64,
}

impl Split {
    pub(crate) fn new(documents: &Documents) -> Result<Self, ReadError> {
        let mut sums = vec![0u64];
        let mut lengths = [0; READ_AT_ONCE * BLOCK];
        let mut id = 0;
        let mut first = 0;
        while first < documents.len() {
            let rest = usize::try_from(documents.len() - first).unwrap_or(usize::MAX);
            let lengths = &mut lengths[..rest.min(READ_AT_ONCE * BLOCK)];
            documents.read_lengths(first, lengths)?;
            id = lengths.iter().fold(id, |id, &length| mix(id, length.into()));
            for block in lengths.chunks(BLOCK) {
                let sum = block.iter().map(|&length| u64::from(length)).sum::<u64>();
                sums.push(sums[sums.len() - 1].saturating_add(sum));
            }
            first += lengths.len() as u64;
        }
        Ok(Self { sums, id })
    }

    /// The number of rows of `capacity` tokens; the last one may be shorter.
    pub(crate) fn count(&self, capacity: u32) -> u64 {
        self.sums[self.sums.len() - 1].div_ceil(capacity.into())
    }

    /// Adds the pieces of row `row`, which exists.
    pub(crate) fn pieces(
        &self,
        documents: &Documents,
        capacity: u32,
        row: u64,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ReadError> {
        let start = row * u64::from(capacity);
        let mut left = u64::from(capacity).min(self.sums[self.sums.len() - 1] - start);
        let block = self.sums.partition_point(|&sum| sum <= start) - 1;
        let mut skipped = start - self.sums[block];
        let mut document = block as u64 * BLOCK as u64;
        let mut lengths = [0; BLOCK];
        while left > 0 && document < documents.len() {
            let rest = usize::try_from(documents.len() - document).unwrap_or(usize::MAX);
            let lengths = &mut lengths[..rest.min(BLOCK)];
            documents.read_lengths(document, lengths)?;
            for length in lengths.iter().map(|&length| u64::from(length)) {
                if skipped < length && left > 0 {
                    let (first, length) = documents.place(document)?;
                    let count = length.saturating_sub(skipped).min(left);
                    let continues = skipped + count < length;
                    pieces.push(Piece { first: first + skipped, count, continues });
                    left -= count;
                }
                skipped = skipped.saturating_sub(length);
                document += 1;
            }
        }
        Ok(())
    }
}
