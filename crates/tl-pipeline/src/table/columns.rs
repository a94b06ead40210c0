//! The columns of a table's batches.

use sha2::{Digest, Sha256};

use crate::table::ColumnType;

/// The columns of a table's batches, and their types.
///
/// ```
/// use tl_pipeline::{ColumnRequest, ColumnType, Columns};
///
/// // One matrix of floats, the label, and a column as it is stored.
/// let columns = Columns {
///     features: vec!["age".into(), "hours-per-week".into()],
///     label: Some("Label".into()),
///     columns: Some(vec!["weight".into()]),
///     ..Columns::default()
/// };
/// // Every column as it is stored but one, which becomes `f32`.
/// let embedding = ColumnRequest { number: Some(ColumnType::F32), ..ColumnRequest::new("embedding") };
/// # let _ = (columns, embedding);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Columns that become separate arrays, in this order. Default `None`: all columns of numbers
    /// that are neither features nor the label.
    pub columns: Option<Vec<ColumnRequest>>,
    /// Columns of numbers that become one matrix of `f32`, the column `features`: a single number
    /// takes one place of a row, a vector as many as it has. Default none.
    pub features: Vec<String>,
    /// The column that [`Batch::labels`](crate::Batch::labels) has: whole numbers as they are, keys
    /// counted from 0, and -1 where the label is missing. Default none.
    pub label: Option<String>,
    /// Neighbours that are drawn for every row of a graph. Default none.
    pub neighbors: Option<Neighbors>,
    /// Bytes of decoded blocks that are kept, of columns that are not read where they lie: compressed
    /// ones, booleans, sparse vectors. 0, the default, means 1 GiB, or a quarter of
    /// `memory_budget` if that is less. Full shuffles want all their columns to fit in.
    pub block_bytes: u64,
}

/// A column that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRequest {
    /// The name of the column.
    pub name: String,
    /// The type that its numbers are to have: as stored, the default, or `f32`.
    pub number: Option<ColumnType>,
}

impl ColumnRequest {
    /// The column called `name`, as it is stored.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), number: None }
    }
}

impl<S: Into<String>> From<S> for ColumnRequest {
    fn from(name: S) -> Self {
        Self::new(name)
    }
}

/// Neighbours that are drawn for every row of a graph, hop by hop.
///
/// A batch has the columns `neighbors_1`, `neighbors_2` and so on, of `i64`: the samples' numbers
/// in the data set, -1 for a missing neighbour. With fanouts 5 and 3 the first has 5 numbers a row,
/// the second 5 x 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbors {
    /// The number of neighbours drawn for every node of the previous hop, starting with the row
    /// itself.
    ///
    /// They are drawn without replacement: a node with at most this many edges gets all of them, in
    /// their order.
    pub fanouts: Vec<u32>,
    /// The direction of the edges to neighbours.
    pub direction: Direction,
    /// Columns of the neighbours that batches have too, such as `neighbors_1_embedding`; zeros for
    /// a missing neighbour. Default none.
    pub columns: Vec<ColumnRequest>,
}

/// The direction of a node's edges to its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Direction {
    /// Those that leave it.
    #[default]
    Outgoing,
    /// Those that reach it, which a file has by node only with a reverse index. Messages that are
    /// passed along the edges come from these neighbours.
    Incoming,
}

impl Columns {
    /// Feeds a state's fingerprint with what decides the content of batches.
    pub(crate) fn hash(&self, hash: &mut Sha256) {
        let Self { columns, features, label, neighbors, block_bytes: _ } = self;
        let number = |hash: &mut Sha256, number: usize| hash.update((number as u64).to_le_bytes());
        let name = |hash: &mut Sha256, name: &str| {
            number(hash, name.len());
            hash.update(name);
        };
        let requests = |hash: &mut Sha256, requests: &[ColumnRequest]| {
            number(hash, requests.len());
            for request in requests {
                name(hash, &request.name);
                name(hash, request.number.map_or("", ColumnType::name));
            }
        };
        hash.update([u8::from(columns.is_some())]);
        requests(hash, columns.as_deref().unwrap_or_default());
        number(hash, features.len());
        features.iter().for_each(|feature| name(hash, feature));
        hash.update([u8::from(label.is_some())]);
        name(hash, label.as_deref().unwrap_or_default());
        let none = Neighbors::default();
        let Neighbors { fanouts, direction, columns } = neighbors.as_ref().unwrap_or(&none);
        number(hash, fanouts.len());
        fanouts.iter().for_each(|fanout| hash.update(fanout.to_le_bytes()));
        requests(hash, columns);
        if *direction == Direction::Incoming {
            hash.update(b"incoming");
        }
    }
}
