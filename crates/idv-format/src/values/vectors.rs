//! Many vectors as one array of items, with what is needed to find each vector's own.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::values::Values;
use crate::values::ValuesError;

/// A vector per row: dense, or sparse with the items that are not zero.
#[derive(Clone, Debug)]
pub struct Vectors<'a> {
    shape: Shape<'a>,
    items: Box<Values<'a>>,
}

#[derive(Clone, Debug)]
enum Shape<'a> {
    /// All vectors are dense and of one length, so the items are a matrix.
    Dense { length: u32, rows: usize },
    /// Each vector by itself.
    Rows(Rows<'a>),
}

/// Lengths of vectors, and where their items and indices lie.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'a> {
    lengths: Cow<'a, [u32]>,
    /// One more than there are vectors.
    item_offsets: Cow<'a, [usize]>,
    /// One more than there are vectors. Dense vectors have no indices.
    index_offsets: Cow<'a, [usize]>,
    indices: Cow<'a, [u32]>,
}

impl Rows<'_> {
    pub(crate) fn with_capacity(rows: usize, indices: usize) -> Self {
        let offsets = || {
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(0);
            Cow::Owned(offsets)
        };
        Self {
            lengths: Vec::with_capacity(rows).into(),
            item_offsets: offsets(),
            index_offsets: offsets(),
            indices: Vec::with_capacity(indices).into(),
        }
    }

    /// Adds the index of an item of the vector that comes next.
    pub(crate) fn push_index(&mut self, index: u32) {
        self.indices.to_mut().push(index);
    }

    /// Ends a vector, whose items end at `item_end` and whose indices are all here.
    pub(crate) fn push(&mut self, length: u32, item_end: usize) {
        self.lengths.to_mut().push(length);
        self.item_offsets.to_mut().push(item_end);
        let index_end = self.indices.len();
        self.index_offsets.to_mut().push(index_end);
    }
}

/// One vector of [`Vectors`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorRow<'a> {
    length: u32,
    items: Range<usize>,
    indices: Option<&'a [u32]>,
}

impl<'a> VectorRow<'a> {
    /// How many slots it has.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The range of its items in [`Vectors::items`].
    pub fn items(&self) -> Range<usize> {
        self.items.clone()
    }

    /// The slots of its items, increasing, `None` when every slot has one. The other slots of a
    /// sparse vector are zero, false or empty.
    pub fn indices(&self) -> Option<&'a [u32]> {
        self.indices
    }
}

impl<'a> Vectors<'a> {
    /// `rows` dense vectors of `length` items each.
    ///
    /// # Panics
    /// When the number of items is another one.
    pub fn dense(length: u32, rows: usize, items: Values<'a>) -> Self {
        assert_eq!(Some(items.len()), rows.checked_mul(length as usize), "items of the vectors");
        Self { shape: Shape::Dense { length, rows }, items: Box::new(items) }
    }

    pub(crate) fn from_rows(rows: Rows<'a>, items: Values<'a>) -> Self {
        Self { shape: Shape::Rows(rows), items: Box::new(items) }
    }

    /// No vectors, to have some [pushed](Self::push); `items` says of what kind, and has none.
    ///
    /// # Panics
    /// When there are items.
    pub fn empty(items: Values<'a>) -> Self {
        assert!(items.is_empty(), "no vectors have no items");
        Self::from_rows(Rows::with_capacity(0, 0), items)
    }

    /// Adds a vector: its length, its items, and their slots when not every slot has one.
    ///
    /// # Errors
    /// [`ValuesError`] when the items are of another kind or not as many as the slots named; when
    /// a slot is not above the one before it, or not below the length.
    pub fn push(
        &mut self,
        length: u32,
        indices: Option<&[u32]>,
        items: &Values<'_>,
    ) -> Result<(), ValuesError> {
        let expected = indices.map_or(length as usize, <[u32]>::len);
        let increasing = indices.unwrap_or_default().is_sorted_by(|a, b| a < b);
        let inside = indices.and_then(<[u32]>::last).is_none_or(|&last| last < length);
        if items.len() != expected || !increasing || !inside {
            let vector = self.len();
            let items = items.len();
            return Err(ValuesError::VectorItems { vector, length, items });
        }
        self.append_items(items)?;
        let item_end = self.items.len();
        let rows = self.rows_mut();
        // A vector with an item in every slot is a dense one.
        let sparse = indices.filter(|indices| indices.len() < length as usize);
        rows.indices.to_mut().extend_from_slice(sparse.unwrap_or_default());
        rows.push(length, item_end);
        Ok(())
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        match &self.shape {
            Shape::Dense { rows, .. } => *rows,
            Shape::Rows(rows) => rows.lengths.len(),
        }
    }

    /// Whether the column has no vectors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of every vector, when all are known to be dense and of one length: the
    /// [`items`](Self::items) are then a matrix with a row for each.
    pub fn dense_length(&self) -> Option<u32> {
        match self.shape {
            Shape::Dense { length, .. } => Some(length),
            Shape::Rows(_) => None,
        }
    }

    /// The items of all vectors.
    pub fn items(&self) -> Values<'_> {
        self.items.slice(self.item_range())
    }

    /// How many items are in sparse vectors.
    #[cfg(feature = "std")]
    pub(crate) fn index_count(&self) -> u64 {
        match &self.shape {
            Shape::Dense { .. } => 0,
            Shape::Rows(rows) => {
                let bounds = rows.index_offsets.first().zip(rows.index_offsets.last());
                bounds.map_or(0, |(start, end)| (end - start) as u64)
            }
        }
    }

    /// The range of these vectors' items: a slice has those of the others around them.
    fn item_range(&self) -> Range<usize> {
        match &self.shape {
            Shape::Dense { .. } => 0..self.items.len(),
            Shape::Rows(rows) => {
                let offsets = &rows.item_offsets;
                offsets.first().copied().unwrap_or(0)..offsets.last().copied().unwrap_or(0)
            }
        }
    }

    /// The vector of number `index`, `None` when it is out of range.
    pub fn row(&self, index: usize) -> Option<VectorRow<'_>> {
        match &self.shape {
            Shape::Dense { length, rows } => (index < *rows).then(|| {
                let start = index * *length as usize;
                let items = start..start + *length as usize;
                VectorRow { length: *length, items, indices: None }
            }),
            Shape::Rows(rows) => {
                let length = *rows.lengths.get(index)?;
                let first = *rows.item_offsets.first()?;
                let item_ends = rows.item_offsets.get(index..)?.first_chunk::<2>()?;
                let index_ends = rows.index_offsets.get(index..)?.first_chunk::<2>()?;
                let items = item_ends[0] - first..item_ends[1] - first;
                // Sparse vectors have fewer items than slots.
                let is_sparse = items.len() < length as usize;
                let indices = rows.indices.get(index_ends[0]..index_ends[1]);
                let indices = is_sparse.then(|| indices.unwrap_or_default());
                Some(VectorRow { length, items, indices })
            }
        }
    }

    /// All vectors in order.
    pub fn rows(&self) -> impl Iterator<Item = VectorRow<'_>> {
        (0..self.len()).filter_map(|index| self.row(index))
    }

    pub(super) fn slice(&self, range: Range<usize>) -> Vectors<'_> {
        match &self.shape {
            Shape::Dense { length, rows } => {
                assert!(range.start <= range.end && range.end <= *rows, "range of vectors");
                let row_items = *length as usize;
                let items = self.items.slice(range.start * row_items..range.end * row_items);
                Vectors::dense(*length, range.len(), items)
            }
            Shape::Rows(rows) => {
                let rows = Rows {
                    lengths: Cow::Borrowed(&rows.lengths[range.clone()]),
                    item_offsets: Cow::Borrowed(&rows.item_offsets[range.start..=range.end]),
                    index_offsets: Cow::Borrowed(&rows.index_offsets[range.start..=range.end]),
                    indices: Cow::Borrowed(&rows.indices),
                };
                Vectors::from_rows(rows, self.items.slice(0..self.items.len()))
            }
        }
    }

    pub(super) fn into_owned(self) -> Vectors<'static> {
        let items = self.items.into_owned();
        match self.shape {
            Shape::Dense { length, rows } => Vectors::dense(length, rows, items),
            Shape::Rows(rows) => {
                let rows = Rows {
                    lengths: Cow::Owned(rows.lengths.into_owned()),
                    item_offsets: Cow::Owned(rows.item_offsets.into_owned()),
                    index_offsets: Cow::Owned(rows.index_offsets.into_owned()),
                    indices: Cow::Owned(rows.indices.into_owned()),
                };
                Vectors::from_rows(rows, items)
            }
        }
    }

    pub(super) fn append(&mut self, more: &Vectors<'_>) -> Result<(), ValuesError> {
        if let Shape::Dense { length: more_length, rows: more_rows } = more.shape {
            if self.is_empty() {
                self.shape = Shape::Dense { length: more_length, rows: 0 };
            }
            if let Shape::Dense { length, rows } = &mut self.shape
                && *length == more_length
            {
                self.items.append(&more.items)?;
                *rows += more_rows;
                return Ok(());
            }
        }
        self.append_items(&more.items())?;
        let rows = self.rows_mut();
        let mut item_end = rows.item_offsets.last().copied().unwrap_or(0);
        for row in more.rows() {
            item_end += row.items().len();
            rows.indices.to_mut().extend_from_slice(row.indices().unwrap_or_default());
            rows.push(row.length(), item_end);
        }
        Ok(())
    }

    /// Items of vectors that are not vectors.
    fn append_items(&mut self, items: &Values<'_>) -> Result<(), ValuesError> {
        if matches!(items, Values::Vector(_)) {
            return Err(ValuesError::NestedVectors);
        }
        self.items.append(items)
    }

    /// The vectors one by one, from a matrix if need be.
    fn rows_mut(&mut self) -> &mut Rows<'a> {
        if let Shape::Dense { length, rows } = self.shape {
            let mut each = Rows::with_capacity(rows, 0);
            (1..=rows).for_each(|row| each.push(length, row * length as usize));
            self.shape = Shape::Rows(each);
        }
        match &mut self.shape {
            Shape::Rows(rows) => rows,
            Shape::Dense { .. } => unreachable!("replaced above"),
        }
    }
}
