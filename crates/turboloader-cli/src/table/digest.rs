//! Digests of tables: one for each column over its values, and one over those.

use idv_format::{FormatError, ReadError, Scratch, Values};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tbf_format::{Columns, Region, Segment};

use crate::args::GlobalArgs;
use crate::digest::Args;
use crate::failure::{DamagedParts, Failure, Verdict};
use crate::output::{Progress, Stdout};
use crate::table::{IdvTable, RowTable, SegmentFile, Table, dtype_name, read_key};
use crate::text::{Hex, one_line, printable};

/// Slots of a block's vectors that are hashed: a sparse one of twelve bytes can have two billion.
const MAX_SLOTS: u64 = 1 << 32;

/// One column as `tl digest --columns --json` prints it.
#[derive(Debug, Serialize)]
struct ColumnDigest {
    name: String,
    codec: String,
    /// `null` for a codec that is not known.
    r#type: Option<String>,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Sha256(Hex),
    /// The reason why the values cannot be read.
    Dead(String),
    /// The defect of the values.
    Error(String),
}

/// Prints the digest, or one for each column. What is hashed is in the command's help.
pub(crate) fn run(table: &Table, args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut damaged = DamagedParts::default();
    let (rows, columns) = match table {
        Table::Idv(table) => idv_columns(table, global, &mut damaged)?,
        Table::Segment(file) => segment_columns(file, args)?,
        Table::Rows(table) => row_columns(table, global, &mut damaged)?,
    };
    let count = columns.len() as u64;
    if args.columns {
        let mut stdout = Stdout::open()?;
        for column in &columns {
            if args.json {
                stdout.json_line(column)?;
            } else {
                stdout.line(&column.sentence())?;
            }
        }
        stdout.finish()?;
        return damaged.verdict(count, "columns");
    }
    if let Table::Idv(table) = table {
        // The hash of what is left would pass for that of the whole.
        let dead = (0..columns.len()).find_map(|index| table.dead(index).zip(columns.get(index)));
        if let Some((dead, column)) = dead {
            return Err(table.failure(ReadError::Dead { name: column.name.clone(), dead }));
        }
    }
    if let Table::Rows(table) = table {
        // Nor would two files be told apart by such a column. Asking for its rows says why it is one.
        for column in 0..table.column_count() {
            if table.unreadable(column).is_some() {
                table.rows(&[column])?;
            }
        }
    }
    let verdict = damaged.verdict(count, "columns")?;
    let mut stdout = Stdout::open()?;
    stdout.line(&whole(rows, &columns))?;
    stdout.finish()?;
    Ok(verdict)
}

/// The digest of a table whose columns all have one.
fn whole(rows: u64, columns: &[ColumnDigest]) -> Hex {
    let mut hash = Sha256::new();
    hash.update(rows.to_le_bytes());
    for column in columns {
        for text in [column.name.as_str(), column.r#type.as_deref().unwrap_or_default()] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        if let Outcome::Sha256(Hex(digest)) = column.outcome {
            hash.update(digest);
        }
    }
    Hex(hash.finalize().into())
}

impl ColumnDigest {
    /// The column as a line of text.
    fn sentence(&self) -> String {
        let name = printable(self.name.as_bytes());
        match &self.outcome {
            Outcome::Sha256(digest) => format!("{digest}  {name}"),
            Outcome::Dead(reason) => format!("{:<64}  {name}: {reason}", "dead"),
            Outcome::Error(reason) => format!("{:<64}  {name}: {reason}", "DAMAGED"),
        }
    }
}

fn row_columns(
    table: &RowTable,
    global: &GlobalArgs,
    damaged: &mut DamagedParts,
) -> Result<(u64, Vec<ColumnDigest>), Failure> {
    let rows = table.row_count();
    let columns = table.column_count();
    let mut progress = Progress::new(global, rows.saturating_mul(columns as u64));
    let mut digests = Vec::with_capacity(columns);
    for column in 0..columns {
        let done = rows.saturating_mul(column as u64);
        let outcome = if let Some(reason) = table.unreadable(column) {
            Outcome::Dead(reason.to_owned())
        } else {
            match table.hash(column, &mut |row| progress.set(done + row)) {
                Ok(digest) => Outcome::Sha256(digest),
                Err(failure) => {
                    let message = one_line(&failure);
                    damaged.count_if_damage(failure)?;
                    Outcome::Error(message)
                }
            }
        };
        let name = table.name(column).to_owned();
        let codec = table.content(column);
        digests.push(ColumnDigest { name, r#type: Some(codec.clone()), codec, outcome });
    }
    Ok((rows, digests))
}

fn idv_columns(
    table: &IdvTable,
    global: &GlobalArgs,
    damaged: &mut DamagedParts,
) -> Result<(u64, Vec<ColumnDigest>), Failure> {
    let file = table.file();
    let rows = file.row_count();
    let blocks = file.columns().iter().map(|column| column.block_count(rows)).sum();
    let mut progress = Progress::new(global, blocks);
    let mut done = 0;
    let mut digests = Vec::with_capacity(file.columns().len());
    for (index, entry) in file.columns().iter().enumerate() {
        let outcome = match hash_column(table, index, |block| progress.set(done + block)) {
            Ok(digest) => Outcome::Sha256(digest),
            Err(ReadError::Dead { dead, .. }) => Outcome::Dead(dead.to_string()),
            Err(error) => {
                let message = one_line(&error);
                damaged.count_if_damage(table.failure(error))?;
                Outcome::Error(message)
            }
        };
        done += entry.block_count(rows);
        let codec = &entry.storage.codec;
        let r#type = codec.codec.as_ref().ok().map(ToString::to_string);
        let name = entry.name.clone();
        let codec = codec.name.clone();
        digests.push(ColumnDigest { name, codec, r#type, outcome });
    }
    Ok((rows, digests))
}

fn hash_column(
    table: &IdvTable,
    index: usize,
    mut on_block: impl FnMut(u64),
) -> Result<Hex, ReadError> {
    let column = table.file().column(index)?;
    let mut hash = Sha256::new();
    let mut scratch = Scratch::new();
    for (block, place) in (0..).zip(column.blocks()) {
        on_block(block);
        let values = column.read_block(block, &mut scratch)?;
        if let Values::Vector(vectors) = &values
            && vectors.slots() > MAX_SLOTS
        {
            let what = "slots of the vectors";
            let need = vectors.slots();
            let limit = MAX_SLOTS;
            let column = column.entry().name.clone();
            let offset = place.offset;
            let source = FormatError::Limit { what, need, limit };
            return Err(ReadError::Block { column, block, offset, source });
        }
        values.canonical(&mut |bytes| hash.update(bytes));
    }
    Ok(Hex(hash.finalize().into()))
}

fn segment_columns(file: &SegmentFile, args: &Args) -> Result<(u64, Vec<ColumnDigest>), Failure> {
    let key = read_key(args.key.key_file.as_deref())?;
    let mut segment = file.segment()?;
    let regions = [Region::Nodes, Region::Embeddings, Region::Edges, Region::Strings];
    file.unpack(&mut segment, &regions, key.as_ref())?;
    let digests = hash_segment(&segment).map_err(|error| file.failure(error))?;
    file.check_unchanged()?;
    Ok((segment.node_count(), digests))
}

fn hash_segment(segment: &Segment<'_>) -> Result<Vec<ColumnDigest>, tbf_format::FormatError> {
    let digest = |name: &str, codec: &str, r#type: String, hash: Sha256| ColumnDigest {
        name: name.to_owned(),
        codec: codec.to_owned(),
        r#type: Some(r#type),
        outcome: Outcome::Sha256(Hex(hash.finalize().into())),
    };
    let columns = segment.columns()?;
    let stored = [
        ("uuid", columns.ids().as_bytes()),
        ("u64", columns.timestamps().as_bytes()),
        ("u64", columns.context_hashes().as_bytes()),
        ("f32", columns.confidences().as_bytes()),
        ("u8", columns.outcomes()),
    ];
    let hash = |bytes: &[u8]| Sha256::new().chain_update(bytes);
    let mut digests: Vec<_> = Columns::NAMES
        .into_iter()
        .zip(stored)
        .map(|(name, (codec, bytes))| digest(name, codec, codec.to_owned(), hash(bytes)))
        .collect();
    if segment.has(Region::Embeddings) {
        let vectors = segment.embeddings()?;
        let mut hash = Sha256::new();
        (0..vectors.len())
            .filter_map(|row| vectors.vector_bytes(row))
            .for_each(|bytes| hash.update(bytes));
        let codec = dtype_name(vectors.dtype());
        digests.push(digest("embedding", codec, format!("{codec} x {}", vectors.dim()), hash));
    }
    let edges = segment.outgoing()?;
    let mut hash = Sha256::new();
    for row in 0..edges.rows() {
        for edge in edges.row(row)? {
            hash.update((row as u64).to_le_bytes());
            hash.update(edge.target().to_le_bytes());
            hash.update([edge.relation().code()]);
            hash.update(edge.weight().to_le_bytes());
        }
    }
    digests.push(digest("edges", "csr", "edges".to_owned(), hash));
    if segment.has(Region::Strings) {
        let texts = segment.strings()?;
        let mut hash = Sha256::new();
        for row in 0..texts.len() {
            let text = texts.row(row)?;
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        digests.push(digest("text", "utf-8", "text".to_owned(), hash));
    }
    Ok(digests)
}
