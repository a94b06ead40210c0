//! The output of `tl info` for an IDV file.

use std::fmt;
use std::os::unix::ffi::OsStrExt;

use idv_format::{ColumnEntry, Compression, Storage};
use serde::Serialize;

use crate::failure::{DamagedParts, Failure};
use crate::info::counts::row;
use crate::table::IdvTable;
use crate::text::{json_text, one_line, printable};

/// Everything known of an IDV file without reading its blocks.
#[derive(Debug, Serialize)]
pub(super) struct IdvFacts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    version: String,
    /// The version a reader needs to know.
    compatible_version: String,
    rows: u64,
    file_bytes: u64,
    /// Bytes after the signature at the end, outside the table.
    trailing_bytes: u64,
    columns: Vec<ColumnFacts>,
}

#[derive(Debug, Serialize)]
struct ColumnFacts {
    name: String,
    /// `null` for a codec that is not known.
    r#type: Option<String>,
    #[serde(flatten)]
    storage: StorageFacts,
    rows_per_block: u64,
    /// These three are `null` where the column's lookup table is damaged.
    blocks: Option<u64>,
    stored_bytes: Option<u64>,
    bytes: Option<u64>,
    metadata: Vec<MetadataFacts>,
    /// The reason why the values cannot be read; `null` when they can.
    dead: Option<String>,
    /// The defect of the lookup table or the table of metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The storage of values, as the file names it.
#[derive(Debug, Serialize)]
struct StorageFacts {
    codec: String,
    /// A name, or the number of a compression that is not known.
    compression: String,
}

#[derive(Debug, Serialize)]
struct MetadataFacts {
    kind: String,
    r#type: Option<String>,
    #[serde(flatten)]
    storage: StorageFacts,
    stored_bytes: u64,
}

impl StorageFacts {
    fn new(storage: &Storage) -> Self {
        let compression = match storage.compression {
            Ok(Compression::None) => "none".to_owned(),
            Ok(Compression::Deflate) => "deflate".to_owned(),
            Ok(Compression::Zlib) => "zlib".to_owned(),
            Err(code) => code.to_string(),
        };
        Self { codec: storage.codec.name.clone(), compression }
    }
}

fn type_of(storage: &Storage) -> Option<String> {
    storage.codec.codec.as_ref().ok().map(ToString::to_string)
}

impl IdvFacts {
    /// Looks at every lookup table and table of metadata once.
    pub(super) fn collect(table: &IdvTable) -> Result<(Self, DamagedParts), Failure> {
        let file = table.file();
        let mut damaged = DamagedParts::default();
        let mut columns = Vec::with_capacity(file.columns().len());
        for (index, entry) in file.columns().iter().enumerate() {
            columns.push(ColumnFacts::collect(table, index, entry, &mut damaged)?);
        }
        let header = file.header();
        let file_bytes = table.file_bytes();
        let facts = Self {
            schema: "tl.info.idv/1",
            path: json_text(table.path().as_os_str().as_bytes()).into_owned(),
            kind: "idv",
            version: header.version.to_string(),
            compatible_version: header.compatible_version.to_string(),
            rows: file.row_count(),
            file_bytes,
            trailing_bytes: file_bytes.saturating_sub(header.end()),
            columns,
        };
        Ok((facts, damaged))
    }

    /// How many columns there are.
    pub(super) fn columns(&self) -> u64 {
        self.columns.len() as u64
    }
}

impl ColumnFacts {
    fn collect(
        table: &IdvTable,
        index: usize,
        entry: &ColumnEntry,
        damaged: &mut DamagedParts,
    ) -> Result<Self, Failure> {
        let blocks = table.blocks(index);
        let metadata = table.file().metadata(index);
        let mut facts = Self {
            name: entry.name.clone(),
            r#type: type_of(&entry.storage),
            storage: StorageFacts::new(&entry.storage),
            rows_per_block: entry.rows_per_block,
            blocks: None,
            stored_bytes: None,
            bytes: None,
            metadata: Vec::new(),
            dead: table.dead(index).map(|dead| dead.to_string()),
            error: None,
        };
        match &blocks {
            Ok(blocks) => {
                facts.blocks = Some(blocks.len() as u64);
                facts.stored_bytes =
                    Some(blocks.iter().map(|block| u64::from(block.stored_bytes)).sum());
                facts.bytes = Some(blocks.iter().map(|block| u64::from(block.bytes)).sum());
            }
            Err(error) => facts.error = Some(one_line(error)),
        }
        match &metadata {
            Ok(entries) => {
                let entries = entries.iter().map(|entry| MetadataFacts {
                    kind: entry.kind.clone(),
                    r#type: type_of(&entry.storage),
                    storage: StorageFacts::new(&entry.storage),
                    stored_bytes: entry.stored_bytes,
                });
                facts.metadata = entries.collect();
            }
            Err(error) => {
                facts.error.get_or_insert_with(|| one_line(error));
            }
        }
        if let Some(error) = blocks.err().or(metadata.err()) {
            damaged.count_if_damage(table.failure(error))?;
        }
        Ok(facts)
    }

    /// The column's line.
    fn cells(&self) -> [String; 8] {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
        let kinds: Vec<&str> = self.metadata.iter().map(|entry| entry.kind.as_str()).collect();
        let mut notes = kinds.join(", ");
        for (word, reason) in [("dead", &self.dead), ("DAMAGED", &self.error)] {
            if let Some(reason) = reason {
                let comma = if notes.is_empty() { "" } else { "; " };
                notes.push_str(&format!("{comma}{word}: {reason}"));
            }
        }
        [
            printable(self.name.as_bytes()).into_owned(),
            self.r#type.clone().unwrap_or_else(|| "-".to_owned()),
            self.storage.codec.clone(),
            self.storage.compression.clone(),
            number(self.blocks),
            number(self.stored_bytes),
            number(self.bytes),
            printable(notes.as_bytes()).into_owned(),
        ]
    }
}

impl fmt::Display for IdvFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        row(f, "kind", self.kind)?;
        row(f, "version", &self.version)?;
        if self.compatible_version != self.version {
            write!(f, " (readers need {})", self.compatible_version)?;
        }
        row(f, "rows", self.rows)?;
        row(f, "columns", self.columns.len())?;
        let dead = self.columns.iter().filter(|column| column.dead.is_some()).count();
        if dead > 0 {
            write!(f, " ({dead} dead)")?;
        }
        row(f, "file", self.file_bytes)?;
        if self.trailing_bytes > 0 {
            write!(f, " ({} after the table)", self.trailing_bytes)?;
        }
        if self.columns.is_empty() {
            return Ok(());
        }
        let heading =
            ["column", "type", "codec", "compression", "blocks", "stored", "bytes", "metadata"];
        let mut lines = vec![heading.map(str::to_owned)];
        lines.extend(self.columns.iter().map(ColumnFacts::cells));
        f.write_str("\n")?;
        aligned(f, &lines, [false, false, false, false, true, true, true, false])
    }
}

/// Writes lines of as many cells each below one another; numbers stand at the right.
pub(super) fn aligned<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    lines: &[[String; N]],
    is_right: [bool; N],
) -> fmt::Result {
    let mut widths = [0; N];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    for line in lines {
        let mut text = String::new();
        for ((cell, width), is_right) in line.iter().zip(widths).zip(is_right) {
            text.push_str(&if is_right {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:<width$}  ")
            });
        }
        write!(f, "\n{}", text.trim_end())?;
    }
    Ok(())
}
