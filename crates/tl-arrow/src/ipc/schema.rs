//! The columns of an Arrow file, with the buffers that each has in a record batch.

use tbl_io::RowsDefect;

use crate::ipc::flat::Table;
use crate::schema::{Leaf, Meaning, Node, Physical, Repetition, Schema};
use crate::thrift::Flaw;

/// A column, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) children: Vec<Self>,
    pub(crate) dictionary: Option<Dictionary>,
    /// Its first node and buffer: those of a column in its record batch, of another field in its parent.
    pub(crate) start: Cursor,
}

/// A dictionary that has the values of a field, which are numbers in record batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dictionary {
    pub(crate) id: i64,
    pub(crate) index_bytes: u8,
}

/// The layout of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All are null.
    Null,
    Boolean,
    /// Integers, dates and times.
    Integer {
        bytes: u8,
        is_signed: bool,
    },
    /// Numbers of 2, 4 or 8 bytes.
    Float {
        bytes: u8,
    },
    Decimal {
        bytes: u8,
        scale: i32,
    },
    /// Offsets of these bytes, and values.
    Bytes {
        offset_bytes: u8,
        is_text: bool,
    },
    /// Values that are short, or places of them.
    View {
        is_text: bool,
    },
    Fixed {
        bytes: u32,
    },
    /// Lists and maps, with offsets of these bytes.
    List {
        offset_bytes: u8,
    },
    /// Lists with offsets and sizes of these bytes.
    ListView {
        offset_bytes: u8,
    },
    /// Lists of the same length.
    FixedList {
        len: u32,
    },
    Struct,
    /// A layout that is not read, with its number of buffers.
    Other {
        what: &'static str,
        buffers: u8,
    },
}

/// Nodes and buffers in front of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) nodes: usize,
    /// Without those that only views have.
    pub(crate) buffers: usize,
    /// Fields of views, which have further buffers.
    pub(crate) views: usize,
}

impl Cursor {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            buffers: self.buffers + other.buffers,
            views: self.views + other.views,
        }
    }
}

/// The columns of a file.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) fields: Vec<Field>,
    /// The nodes and buffers of all of them in a record batch.
    pub(crate) total: Cursor,
    /// The value of the key `huggingface`: the features of `datasets`.
    pub(crate) features: Option<Vec<u8>>,
}

/// Fields within fields; each takes a level of recursion.
const MAX_DEPTH: u8 = 32;

/// The least bytes of a field in a schema: a table with its name, and the offset that leads to it.
const MIN_FIELD_BYTES: usize = 16;

impl Columns {
    /// Parses a table of type `Schema`.
    pub(crate) fn parse(schema: Table<'_>) -> Result<Self, Flaw> {
        if schema.i16(0, 0)? != 0 {
            let reason = "its values are big-endian, expected little-endian";
            return Err(schema.error(RowsDefect::Schema { reason }));
        }
        // Tables can be shared, so that a few bytes could state any number of fields.
        let mut left = schema.buffer_bytes() / MIN_FIELD_BYTES + 1;
        let mut fields = Vec::new();
        let mut total = Cursor::default();
        for table in schema.tables(1)?.iter() {
            let field = field(table?, total, 0, &mut left)?;
            total = total.plus(field.in_batch());
            fields.push(field);
        }
        let mut features = None;
        for pair in schema.tables(2)?.iter() {
            let pair = pair?;
            if pair.text(0)? == Some(b"huggingface") {
                features = pair.text(1)?.map(<[u8]>::to_vec);
            }
        }
        Ok(Self { fields, total, features })
    }

    /// The columns as readers of rows take them, and by leaf the way to it: numbers of fields from the
    /// column on.
    pub(crate) fn to_schema(&self) -> (Schema, Vec<Vec<usize>>) {
        let mut leaves = Vec::new();
        let mut paths = Vec::new();
        let nodes = self.fields.iter().enumerate();
        let nodes = nodes.map(|(number, field)| field.node(&[number], 0, &mut leaves, &mut paths));
        let nodes = nodes.collect();
        (Schema::of_nodes(nodes, leaves), paths)
    }
}

fn field(table: Table<'_>, start: Cursor, depth: u8, left: &mut usize) -> Result<Field, Flaw> {
    if depth >= MAX_DEPTH {
        let reason = "its fields nest more than 32 deep";
        return Err(table.error(RowsDefect::Schema { reason }));
    }
    *left = left.checked_sub(1).ok_or_else(|| {
        table.error(RowsDefect::Schema { reason: "it has more fields than its bytes" })
    })?;
    let name = String::from_utf8_lossy(table.text(0)?.unwrap_or_default()).into_owned();
    let kind = kind(table)?;
    let dictionary = table.table(4)?.map(dictionary).transpose()?;
    let mut children = Vec::new();
    let mut at = kind.own();
    for child in table.tables(5)?.iter() {
        let child = field(child?, at, depth + 1, left)?;
        at = at.plus(child.in_batch());
        children.push(child);
    }
    let is_list =
        matches!(kind, Kind::List { .. } | Kind::ListView { .. } | Kind::FixedList { .. });
    if is_list && children.len() != 1 {
        return Err(table.error(RowsDefect::Schema { reason: "a list has not one child" }));
    }
    Ok(Field { name, kind, children, dictionary, start })
}

fn dictionary(table: Table<'_>) -> Result<Dictionary, Flaw> {
    let index_bytes = match table.table(1)? {
        Some(index) => integer_bytes(index)?,
        None => 4,
    };
    Ok(Dictionary { id: table.i64(0)?, index_bytes })
}

fn integer_bytes(table: Table<'_>) -> Result<u8, Flaw> {
    match table.i32(0, 0)? {
        8 => Ok(1),
        16 => Ok(2),
        32 => Ok(4),
        64 => Ok(8),
        value => {
            let what = "width of an integer";
            let expected = "8, 16, 32 or 64 bits";
            Err(table.error(RowsDefect::Value { what, value: value.into(), expected }))
        }
    }
}

fn kind(table: Table<'_>) -> Result<Kind, Flaw> {
    let number = table.byte(2)?;
    let detail = || table.required(3, "type of a field");
    let size = |value: i32, what| {
        let expected = "at least 0";
        let value_64 = i64::from(value);
        u32::try_from(value)
            .map_err(|_| table.error(RowsDefect::Value { what, value: value_64, expected }))
    };
    let integer = |bytes| Kind::Integer { bytes, is_signed: true };
    Ok(match number {
        1 => Kind::Null,
        2 => {
            let detail = detail()?;
            Kind::Integer { bytes: integer_bytes(detail)?, is_signed: detail.byte(1)? != 0 }
        }
        3 => match detail()?.i16(0, 0)? {
            0 => Kind::Float { bytes: 2 },
            1 => Kind::Float { bytes: 4 },
            2 => Kind::Float { bytes: 8 },
            value => {
                let what = "precision of a float";
                let expected = "0, 1 or 2";
                let value = value.into();
                return Err(table.error(RowsDefect::Value { what, value, expected }));
            }
        },
        4 => Kind::Bytes { offset_bytes: 4, is_text: false },
        5 => Kind::Bytes { offset_bytes: 4, is_text: true },
        6 => Kind::Boolean,
        7 => {
            let detail = detail()?;
            let scale = detail.i32(1, 0)?;
            match detail.i32(2, 128)? {
                32 => Kind::Decimal { bytes: 4, scale },
                64 => Kind::Decimal { bytes: 8, scale },
                128 => Kind::Decimal { bytes: 16, scale },
                _ => Kind::Other { what: "decimals of 256 bits", buffers: 2 },
            }
        }
        // Days are of 4 bytes, milliseconds of 8.
        8 => integer(if detail()?.i16(0, 1)? == 0 { 4 } else { 8 }),
        9 => integer(if detail()?.i32(1, 32)? == 32 { 4 } else { 8 }),
        10 | 18 => integer(8),
        11 => Kind::Other { what: "intervals", buffers: 2 },
        12 | 17 => Kind::List { offset_bytes: 4 },
        13 => Kind::Struct,
        // Unions have the types of their values, and places where these are stored densely.
        14 => {
            let is_sparse = detail()?.i16(0, 0)? == 0;
            Kind::Other { what: "unions", buffers: if is_sparse { 1 } else { 2 } }
        }
        15 => Kind::Fixed { bytes: size(detail()?.i32(0, 0)?, "bytes of a value")? },
        16 => Kind::FixedList { len: size(detail()?.i32(0, 0)?, "length of a list")? },
        19 => Kind::Bytes { offset_bytes: 8, is_text: false },
        20 => Kind::Bytes { offset_bytes: 8, is_text: true },
        21 => Kind::List { offset_bytes: 8 },
        22 => Kind::Other { what: "run-end encoded values", buffers: 0 },
        23 => Kind::View { is_text: false },
        24 => Kind::View { is_text: true },
        25 => Kind::ListView { offset_bytes: 4 },
        26 => Kind::ListView { offset_bytes: 8 },
        number => {
            let what = "type of a field";
            let value = number.into();
            let expected = "1 to 26";
            return Err(table.error(RowsDefect::Value { what, value, expected }));
        }
    })
}

impl Kind {
    /// The nodes and buffers of values in a record batch, without those of children.
    fn own(self) -> Cursor {
        let buffers = match self {
            Self::Null => 0,
            Self::Struct | Self::FixedList { .. } => 1,
            Self::Boolean
            | Self::Integer { .. }
            | Self::Float { .. }
            | Self::Decimal { .. }
            | Self::Fixed { .. }
            | Self::View { .. }
            | Self::List { .. } => 2,
            Self::Bytes { .. } | Self::ListView { .. } => 3,
            Self::Other { buffers, .. } => buffers.into(),
        };
        Cursor { nodes: 1, buffers, views: usize::from(matches!(self, Self::View { .. })) }
    }

    /// The bytes of each value, where all have as many.
    pub(crate) fn width(self) -> Option<u64> {
        match self {
            Self::Integer { bytes, .. } | Self::Float { bytes } | Self::Decimal { bytes, .. } => {
                Some(bytes.into())
            }
            Self::Fixed { bytes } => Some(bytes.into()),
            Self::Null
            | Self::Boolean
            | Self::Bytes { .. }
            | Self::View { .. }
            | Self::List { .. }
            | Self::ListView { .. }
            | Self::FixedList { .. }
            | Self::Struct
            | Self::Other { .. } => None,
        }
    }

    /// The type of a value, for what reads rows of any file.
    pub(crate) fn leaf(self) -> Leaf {
        let plain = |physical| (physical, Meaning::Plain);
        let bytes = |is_text| match is_text {
            true => (Physical::Bytes, Meaning::Text),
            false => plain(Physical::Bytes),
        };
        let (physical, meaning) = match self {
            Self::Boolean => plain(Physical::Boolean),
            Self::Integer { bytes: 8, is_signed: true } => plain(Physical::Int64),
            Self::Integer { bytes: 8, is_signed: false } => (Physical::Int64, Meaning::Unsigned),
            // Nulls as writers of Parquet files have them.
            Self::Integer { is_signed: true, .. } | Self::Null => plain(Physical::Int32),
            Self::Integer { is_signed: false, .. } => (Physical::Int32, Meaning::Unsigned),
            Self::Float { bytes: 8 } => plain(Physical::Double),
            Self::Float { bytes: 2 } => (Physical::Fixed(2), Meaning::Half),
            Self::Float { .. } => plain(Physical::Float),
            Self::Decimal { bytes, scale } => {
                (Physical::Fixed(bytes.into()), Meaning::Decimal(scale.into()))
            }
            Self::Bytes { is_text, .. } | Self::View { is_text } => bytes(is_text),
            Self::Fixed { bytes } => plain(Physical::Fixed(bytes)),
            Self::List { .. }
            | Self::ListView { .. }
            | Self::FixedList { .. }
            | Self::Struct
            | Self::Other { .. } => plain(Physical::Other),
        };
        let bits = if let Self::Integer { bytes: bytes @ ..4, .. } = self { 8 * bytes } else { 0 };
        Leaf { physical, meaning, bits, max_definition: 0, max_repetition: 0 }
    }
}

impl Field {
    /// The nodes and buffers of the field in a record batch.
    fn in_batch(&self) -> Cursor {
        if self.dictionary.is_some() {
            return Cursor { nodes: 1, buffers: 2, views: 0 };
        }
        self.values()
    }

    /// The number of its buffers, without those of children.
    pub(crate) fn own_buffers(&self) -> usize {
        self.kind.own().buffers
    }

    /// The first node and buffer after those of the field, which is a column.
    pub(crate) fn end(&self) -> Cursor {
        self.start.plus(self.in_batch())
    }

    /// The nodes and buffers of its values, which are in a dictionary if the field has one.
    pub(crate) fn values(&self) -> Cursor {
        let children = self.children.iter().map(Self::in_batch);
        children.fold(self.kind.own(), Cursor::plus)
    }

    fn node(
        &self,
        path: &[usize],
        lists: u8,
        leaves: &mut Vec<Leaf>,
        paths: &mut Vec<Vec<usize>>,
    ) -> Node {
        let first = leaves.len();
        let is_list =
            matches!(self.kind, Kind::List { .. } | Kind::ListView { .. } | Kind::FixedList { .. });
        let has_children = is_list || (self.kind == Kind::Struct && !self.children.is_empty());
        let mut children = Vec::new();
        if has_children {
            let lists = lists + u8::from(is_list);
            for (number, child) in self.children.iter().enumerate() {
                children.push(child.node(&[path, &[number]].concat(), lists, leaves, paths));
            }
        } else {
            leaves.push(Leaf { max_repetition: lists, ..self.kind.leaf() });
            paths.push(path.to_vec());
        }
        Node {
            name: self.name.clone(),
            repetition: Repetition::Optional,
            definition: 0,
            level: lists,
            is_list,
            children,
            leaves: first..leaves.len(),
        }
    }
}
