//! The footer of a Parquet file: schema, row groups and the places of their columns.

use tbl_io::RowsDefect;

use crate::codec::Codec;
use crate::features;
use crate::own;
use crate::schema::{Element, Schema};
use crate::thrift::{Flaw, Kind, Thrift};

/// The content of a footer.
#[derive(Debug)]
pub(crate) struct Footer {
    pub(crate) schema: Schema,
    pub(crate) row_count: u64,
    pub(crate) groups: Vec<RowGroup>,
    pub(crate) metadata: Metadata,
}

/// The metadata of a file that says how its columns are used.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// The features of `datasets`.
    pub(crate) features: Option<Vec<u8>>,
    /// The uses that the writer of this crate states.
    pub(crate) own: Option<Vec<u8>>,
    /// The schema of Arrow, in base 64.
    pub(crate) arrow: Option<Vec<u8>>,
}

/// Rows that are stored together, column by column.
#[derive(Debug)]
pub(crate) struct RowGroup {
    pub(crate) rows: u64,
    /// By leaf of the schema.
    pub(crate) chunks: Vec<Chunk>,
}

/// A column of a row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) codec: Result<Codec, i64>,
    pub(crate) values: u64,
    /// The offset of its first page.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Bytes of its decompressed pages, as far as the writer states them.
    pub(crate) decompressed: u64,
    /// The number of nulls, if the writer states it.
    pub(crate) nulls: Option<u64>,
    /// The place of its offset index.
    pub(crate) index: Option<IndexPlace>,
    pub(crate) is_encrypted: bool,
}

/// A range of the file with an offset index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexPlace {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

const WHAT: &str = "footer";

/// Reads the footer of a file, which has `file_bytes` bytes and the footer at `start`.
///
/// Every range that it states is inside the file, and every row group has a chunk for every leaf.
pub(crate) fn parse(bytes: &[u8], start: u64, file_bytes: u64) -> Result<Footer, Flaw> {
    let mut thrift = Thrift::new(bytes, start, WHAT);
    let mut last = 0;
    let mut schema = None;
    let mut row_count = None;
    let mut groups = Vec::new();
    let mut metadata = Metadata::default();
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            2 => {
                let len = thrift.list(field, Kind::Struct)?;
                let elements: Vec<Element<'_>> =
                    (0..len).map(|_| element(&mut thrift)).collect::<Result<_, _>>()?;
                schema = Some(Schema::new(&elements).map_err(|defect| thrift.flaw(defect))?);
            }
            3 => row_count = Some(thrift.count(field, "number of rows")?),
            4 => {
                let Some(schema) = &schema else { return Err(thrift.missing("schema")) };
                let leaves = schema.leaves().len();
                let len = thrift.list(field, Kind::Struct)?;
                for _ in 0..len {
                    groups.push(row_group(&mut thrift, leaves, file_bytes)?);
                }
            }
            5 => read_metadata(&mut thrift, field, &mut metadata)?,
            8 => return Err(thrift.flaw(RowsDefect::Encrypted)),
            _ => thrift.skip(field)?,
        }
    }
    let schema = schema.ok_or_else(|| thrift.missing("schema"))?;
    let row_count = row_count.ok_or_else(|| thrift.missing("number of rows"))?;
    let in_groups = groups.iter().try_fold(0_u64, |sum, group| sum.checked_add(group.rows));
    if in_groups != Some(row_count) {
        let found = in_groups.unwrap_or(u64::MAX);
        let what = "number of rows in row groups";
        return Err(thrift.flaw(RowsDefect::Count { what, found, expected: row_count }));
    }
    Ok(Footer { schema, row_count, groups, metadata })
}

fn element<'a>(thrift: &mut Thrift<'a>) -> Result<Element<'a>, Flaw> {
    let mut last = 0;
    let mut element = Element::default();
    let mut has_name = false;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => element.physical = Some(thrift.integer(field)?),
            2 => element.type_bytes = thrift.size(field, "length of a type")?,
            3 => element.repetition = thrift.integer(field)?,
            4 => {
                element.name = thrift.binary(field)?;
                has_name = true;
            }
            5 => element.children = thrift.size(field, "number of children")?,
            6 => element.converted = Some(thrift.integer(field)?),
            7 => element.scale = thrift.integer(field)?,
            10 => {
                thrift.structure(field)?;
                logical(thrift, &mut element)?;
            }
            _ => thrift.skip(field)?,
        }
    }
    if has_name { Ok(element) } else { Err(thrift.missing("name of a column")) }
}

/// Reads the union of logical types: the number of its only field, and whether integers have a sign.
fn logical(thrift: &mut Thrift<'_>, element: &mut Element<'_>) -> Result<(), Flaw> {
    const INTEGER: i16 = 10;
    let mut last = 0;
    while let Some(field) = thrift.field(&mut last)? {
        element.logical = Some(field.id);
        if field.id != INTEGER {
            thrift.skip(field)?;
            continue;
        }
        thrift.structure(field)?;
        let mut last = 0;
        while let Some(field) = thrift.field(&mut last)? {
            match field.id {
                1 => element.bits = thrift.integer(field)?,
                2 => element.is_unsigned = !thrift.boolean(field)?,
                _ => thrift.skip(field)?,
            }
        }
    }
    Ok(())
}

fn row_group(thrift: &mut Thrift<'_>, leaves: usize, file_bytes: u64) -> Result<RowGroup, Flaw> {
    let mut last = 0;
    let mut rows = None;
    let mut chunks = Vec::new();
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => {
                let len = thrift.list(field, Kind::Struct)?;
                if len != leaves {
                    let what = "number of columns in a row group";
                    let found = len as u64;
                    let expected = leaves as u64;
                    return Err(thrift.flaw(RowsDefect::Count { what, found, expected }));
                }
                chunks = (0..len)
                    .map(|_| column_chunk(thrift, file_bytes))
                    .collect::<Result<Vec<_>, _>>()?;
            }
            3 => rows = Some(thrift.count(field, "number of rows in a row group")?),
            _ => thrift.skip(field)?,
        }
    }
    let rows = rows.ok_or_else(|| thrift.missing("number of rows in a row group"))?;
    if chunks.len() != leaves {
        return Err(thrift.missing("columns of a row group"));
    }
    Ok(RowGroup { rows, chunks })
}

fn column_chunk(thrift: &mut Thrift<'_>, file_bytes: u64) -> Result<Chunk, Flaw> {
    let mut last = 0;
    let mut chunk = None;
    let mut index_offset = None;
    let mut index_bytes = None;
    let mut is_encrypted = false;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            1 => {
                let path = thrift.binary(field)?;
                if !path.is_empty() {
                    return Err(thrift.flaw(RowsDefect::OtherFile { path: path.to_vec() }));
                }
            }
            3 => {
                thrift.structure(field)?;
                chunk = Some(chunk_metadata(thrift, file_bytes)?);
            }
            4 => index_offset = Some(thrift.count(field, "offset of an offset index")?),
            5 => index_bytes = Some(thrift.size(field, "length of an offset index")?),
            8 => {
                is_encrypted = true;
                thrift.skip(field)?;
            }
            _ => thrift.skip(field)?,
        }
    }
    let Some(chunk) = chunk else {
        // Columns encrypted by keys of their own have their metadata elsewhere.
        if is_encrypted {
            return Ok(Chunk::ENCRYPTED);
        }
        return Err(thrift.missing("metadata of a column"));
    };
    let index = index_offset.zip(index_bytes);
    let index = index.map(|(offset, bytes)| IndexPlace { offset, bytes: bytes.into() });
    if let Some(IndexPlace { offset, bytes }) = index {
        check_range(thrift, "offset index", offset, bytes, file_bytes)?;
    }
    Ok(Chunk { index, is_encrypted, ..chunk })
}

impl Chunk {
    const ENCRYPTED: Self = Self {
        codec: Err(-1),
        values: 0,
        start: 0,
        bytes: 0,
        decompressed: 0,
        nulls: None,
        index: None,
        is_encrypted: true,
    };
}

fn chunk_metadata(thrift: &mut Thrift<'_>, file_bytes: u64) -> Result<Chunk, Flaw> {
    let mut last = 0;
    let mut codec = None;
    let mut values = None;
    let mut bytes = None;
    let mut data = None;
    let mut dictionary = None;
    let mut decompressed = 0;
    let mut nulls = None;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            4 => codec = Some(thrift.integer(field)?),
            5 => values = Some(thrift.count(field, "number of values of a column")?),
            6 => decompressed = thrift.count(field, "decompressed bytes of a column")?,
            7 => bytes = Some(thrift.count(field, "bytes of a column")?),
            9 => data = Some(thrift.count(field, "offset of a column")?),
            11 => dictionary = Some(thrift.count(field, "offset of a dictionary")?),
            12 => {
                thrift.structure(field)?;
                nulls = null_count(thrift)?;
            }
            _ => thrift.skip(field)?,
        }
    }
    let codec = codec.ok_or_else(|| thrift.missing("codec of a column"))?;
    let values = values.ok_or_else(|| thrift.missing("number of values of a column"))?;
    let bytes = bytes.ok_or_else(|| thrift.missing("bytes of a column"))?;
    let data = data.ok_or_else(|| thrift.missing("offset of a column"))?;
    // Some writers state 0 for none, which is the file's magic.
    let dictionary = dictionary.filter(|&offset| offset > 0 && offset < data);
    let start = dictionary.unwrap_or(data);
    check_range(thrift, "column", start, bytes, file_bytes)?;
    Ok(Chunk {
        codec: Codec::of(codec).ok_or(codec),
        values,
        start,
        bytes,
        decompressed,
        nulls,
        index: None,
        is_encrypted: false,
    })
}

/// Reads the statistics of a column, as far as they are needed.
fn null_count(thrift: &mut Thrift<'_>) -> Result<Option<u64>, Flaw> {
    let mut last = 0;
    let mut nulls = None;
    while let Some(field) = thrift.field(&mut last)? {
        match field.id {
            3 => nulls = Some(thrift.count(field, "number of nulls of a column")?),
            _ => thrift.skip(field)?,
        }
    }
    Ok(nulls)
}

fn check_range(
    thrift: &Thrift<'_>,
    what: &'static str,
    offset: u64,
    bytes: u64,
    file_bytes: u64,
) -> Result<(), Flaw> {
    if offset.checked_add(bytes).is_some_and(|end| end <= file_bytes) {
        return Ok(());
    }
    Err(thrift.flaw(RowsDefect::OutsideFile { what, offset, bytes, file_bytes }))
}

/// Reads those pairs of key and value that say how columns are used.
fn read_metadata(
    thrift: &mut Thrift<'_>,
    field: crate::thrift::Field,
    metadata: &mut Metadata,
) -> Result<(), Flaw> {
    let len = thrift.list(field, Kind::Struct)?;
    for _ in 0..len {
        let mut last = 0;
        let mut key: &[u8] = b"";
        let mut value = None;
        while let Some(field) = thrift.field(&mut last)? {
            match field.id {
                1 => key = thrift.binary(field)?,
                2 => value = Some(thrift.binary(field)?),
                _ => thrift.skip(field)?,
            }
        }
        let place = if key == features::KEY.as_bytes() {
            &mut metadata.features
        } else if key == own::KEY.as_bytes() {
            &mut metadata.own
        } else if key == b"ARROW:schema" {
            &mut metadata.arrow
        } else {
            continue;
        };
        *place = value.map(<[u8]>::to_vec);
    }
    Ok(())
}
