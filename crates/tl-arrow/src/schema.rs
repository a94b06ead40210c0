//! The columns of a Parquet file: a tree, whose leaves are stored.

use std::ops::Range;

use tbl_io::RowsDefect;

/// An element of the schema as the footer has it, in depth-first order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Element<'a> {
    pub(crate) physical: Option<i64>,
    pub(crate) type_bytes: u32,
    pub(crate) repetition: i64,
    pub(crate) name: &'a [u8],
    pub(crate) children: u32,
    pub(crate) converted: Option<i64>,
    pub(crate) scale: i64,
    pub(crate) logical: Option<i16>,
    pub(crate) is_unsigned: bool,
    /// Bits of an integer; 0 where the physical type says it.
    pub(crate) bits: i64,
}

/// The type of the values that a leaf stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Physical {
    Boolean,
    Int32,
    Int64,
    /// A time of 96 bits, which writers no longer use.
    Int96,
    Float,
    Double,
    Bytes,
    /// As many bytes each.
    Fixed(u32),
    /// A type of Arrow whose values are not read.
    Other,
}

/// The meaning of the values of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// As the physical type says.
    Plain,
    /// UTF-8.
    Text,
    /// JSON.
    Json,
    /// Integers without a sign.
    Unsigned,
    /// Integers with so many digits after the point.
    Decimal(i64),
    /// Floats of 16 bits.
    Half,
}

/// The number of values that a node may have in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repetition {
    Required,
    Optional,
    Repeated,
}

/// A stored column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) physical: Physical,
    pub(crate) meaning: Meaning,
    /// Bits of an integer that has fewer than its physical type; otherwise 0.
    pub(crate) bits: u8,
    /// The level of a value that is not null.
    pub(crate) max_definition: u8,
    /// The number of lists that it is in.
    pub(crate) max_repetition: u8,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) repetition: Repetition,
    /// The levels of the node.
    pub(crate) definition: u8,
    pub(crate) level: u8,
    /// True for the outer group of a list, and of a map.
    pub(crate) is_list: bool,
    pub(crate) children: Vec<Self>,
    /// The leaves below it, or its own.
    pub(crate) leaves: Range<usize>,
}

impl Node {
    /// The child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}

/// The columns of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    columns: Vec<Node>,
    leaves: Vec<Leaf>,
}

/// Groups within groups; each takes a level of recursion.
const MAX_DEPTH: u8 = 32;

impl Schema {
    /// # Errors
    /// The first element that cannot be.
    pub(crate) fn new(elements: &[Element<'_>]) -> Result<Self, RowsDefect> {
        let (root, mut rest) =
            elements.split_first().ok_or(RowsDefect::Schema { reason: "it is empty" })?;
        let mut builder = Builder { leaves: Vec::new() };
        let mut columns = Vec::new();
        for _ in 0..root.children {
            columns.push(builder.node(&mut rest, Levels::default())?);
        }
        if !rest.is_empty() {
            return Err(RowsDefect::Schema { reason: "it has elements after its end" });
        }
        Ok(Self { columns, leaves: builder.leaves })
    }

    /// The columns with these leaves, which are theirs in order.
    pub(crate) fn of_nodes(columns: Vec<Node>, leaves: Vec<Leaf>) -> Self {
        Self { columns, leaves }
    }

    /// The same stored columns, of which rows have those that the first name of each pair names, under
    /// the second.
    pub(crate) fn select(&self, names: &[(String, String)]) -> Result<Self, RowsDefect> {
        let selected = names.iter().map(|(stored, name)| {
            let missing = || RowsDefect::NoColumn {
                column: stored.clone(),
                columns: self.columns.iter().map(|column| column.name.clone()).collect(),
            };
            let found = self.column(stored).ok_or_else(missing)?;
            Ok(Node { name: name.clone(), ..found.clone() })
        });
        Ok(Self { columns: selected.collect::<Result<_, _>>()?, leaves: self.leaves.clone() })
    }

    /// The columns of rows.
    pub(crate) fn columns(&self) -> &[Node] {
        &self.columns
    }

    /// The stored columns.
    pub(crate) fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// Stored column `leaf`, which exists.
    pub(crate) fn leaf(&self, leaf: usize) -> &Leaf {
        &self.leaves[leaf]
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&Node> {
        self.columns.iter().find(|column| column.name == name)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Levels {
    definition: u8,
    repetition: u8,
    depth: u8,
}

struct Builder {
    leaves: Vec<Leaf>,
}

impl Builder {
    fn node(&mut self, rest: &mut &[Element<'_>], parent: Levels) -> Result<Node, RowsDefect> {
        let (element, after) =
            rest.split_first().ok_or(RowsDefect::Schema { reason: "it ends early" })?;
        *rest = after;
        if parent.depth >= MAX_DEPTH {
            return Err(RowsDefect::Schema { reason: "its groups nest more than 32 deep" });
        }
        let repetition = match element.repetition {
            0 => Repetition::Required,
            1 => Repetition::Optional,
            2 => Repetition::Repeated,
            value => {
                let what = "repetition of a column";
                let expected = "0, 1 or 2";
                return Err(RowsDefect::Value { what, value, expected });
            }
        };
        let levels = Levels {
            definition: parent.definition + u8::from(repetition != Repetition::Required),
            repetition: parent.repetition + u8::from(repetition == Repetition::Repeated),
            depth: parent.depth + 1,
        };
        let first = self.leaves.len();
        let mut children = Vec::new();
        if element.children == 0 {
            self.leaves.push(leaf(element, levels)?);
        }
        for _ in 0..element.children {
            children.push(self.node(rest, levels)?);
        }
        Ok(Node {
            name: String::from_utf8_lossy(element.name).into_owned(),
            repetition,
            definition: levels.definition,
            level: levels.repetition,
            is_list: is_list(element),
            children,
            leaves: first..self.leaves.len(),
        })
    }
}

fn is_list(element: &Element<'_>) -> bool {
    // MAP, MAP_KEY_VALUE and LIST of either kind of type.
    matches!(element.converted, Some(1..=3)) || matches!(element.logical, Some(2 | 3))
}

fn leaf(element: &Element<'_>, levels: Levels) -> Result<Leaf, RowsDefect> {
    let physical = match element.physical {
        Some(0) => Physical::Boolean,
        Some(1) => Physical::Int32,
        Some(2) => Physical::Int64,
        Some(3) => Physical::Int96,
        Some(4) => Physical::Float,
        Some(5) => Physical::Double,
        Some(6) => Physical::Bytes,
        Some(7) => Physical::Fixed(element.type_bytes),
        Some(value) => {
            let what = "type of a column";
            let expected = "0 to 7";
            return Err(RowsDefect::Value { what, value, expected });
        }
        None => return Err(RowsDefect::Schema { reason: "a column has no type" }),
    };
    if physical == Physical::Fixed(0) {
        return Err(RowsDefect::Schema { reason: "a column has values of 0 bytes" });
    }
    let meaning = match (element.logical, element.converted) {
        (Some(1 | 4), _) | (_, Some(0 | 4)) => Meaning::Text,
        (Some(12), _) | (_, Some(19)) => Meaning::Json,
        (Some(5), _) | (_, Some(5)) => Meaning::Decimal(element.scale),
        (_, Some(11..=14)) => Meaning::Unsigned,
        (Some(15), _) if physical == Physical::Fixed(2) => Meaning::Half,
        _ if element.is_unsigned => Meaning::Unsigned,
        _ => Meaning::Plain,
    };
    let bits = match (element.converted, element.bits) {
        (Some(11 | 15), _) | (_, 8) => 8,
        (Some(12 | 16), _) | (_, 16) => 16,
        _ => 0,
    };
    Ok(Leaf {
        physical,
        meaning,
        bits: if physical == Physical::Int32 { bits } else { 0 },
        max_definition: levels.definition,
        max_repetition: levels.repetition,
    })
}
