//! Parquet files of samples, as `datasets` writes them.
//!
//! Images are plain and uncompressed, in pages of about 1 MiB with an offset index, so that a reader
//! gets each with one read. All other columns are plain too, in smaller pages.

mod column;
mod footer;
mod plan;
mod thrift;

use std::io::{self, Write};
use std::path::PathBuf;

use tbl_format::SampleFormat;
use tbl_format::path::RelativePath;
use tbl_io::{
    ConvertError, ConvertOptions, Draft, EncodeError, Field, NewSample, SampleWriter, Selection,
    Target, TargetFormat, Unstored, WriteError, WriteSummary,
};

use crate::file::MAGIC;
use crate::own::Own;
use column::{Column, FIELD_PAGE, IMAGE_PAGE, PAGE_LIMIT};
use footer::{Chunk, Feature, Group, RowColumn, Shape};
use plan::{FieldKind, Plan};

/// Parquet files, as a target of conversions.
///
/// ```no_run
/// use std::ops::ControlFlow;
/// use tbl_io::{AsStored, ConvertOptions, Labels, Selection};
///
/// let sources = [tbl_io::open("train.tbl")?];
/// let labels = Labels::resolve(&sources)?;
/// let selection = Selection::all(&sources, &labels)?;
/// let options = ConvertOptions::new(tl_arrow::PARQUET);
/// let path = std::path::Path::new("train.parquet");
/// let on_event = &mut |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
/// tbl_io::convert(&selection, path, &options, AsStored::default, on_event)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub const PARQUET: Target = Target::Other(&ParquetTarget);

/// Bytes after which a row group ends, those of `datasets`: 100 MB.
const GROUP_BYTES: u64 = 100_000_000;

/// The most bytes of a row group in memory, where all columns except that of images wait for its end.
const HELD_BYTES: usize = 32 << 20;

#[derive(Debug)]
struct ParquetTarget;

impl TargetFormat for ParquetTarget {
    fn name(&self) -> &'static str {
        "a Parquet file"
    }

    fn create(
        &self,
        selection: &Selection<'_>,
        draft: Draft,
        _: &ConvertOptions,
    ) -> Result<Box<dyn SampleWriter>, ConvertError> {
        Ok(Box::new(ParquetWriter::create(selection, draft)?))
    }
}

/// A Parquet file under construction.
struct ParquetWriter {
    output: Output,
    image: ImageColumns,
    label: Option<LabelColumn>,
    fields: Vec<FieldColumn>,
    /// The complete row groups.
    groups: Vec<Group>,
    /// Rows of the row group under construction, and its first byte in the file.
    rows: u32,
    start: u64,
    class_names: Vec<String>,
    box_class_names: Vec<String>,
    summary: WriteSummary,
}

/// The column of samples.
struct ImageColumns {
    name: String,
    bytes: Column,
    path: Column,
    is_every_image: bool,
}

struct LabelColumn {
    name: String,
    values: Column,
    /// The greatest label.
    greatest: i64,
}

struct FieldColumn {
    name: String,
    kind: FieldKind,
    values: Column,
    /// The paths in a column of images: all are null.
    path: Option<Column>,
    is_every_text: bool,
    /// The last row that has a value.
    last: Option<u64>,
}

/// The file, with the number of bytes written.
struct Output {
    draft: Draft,
    bytes: u64,
}

impl Output {
    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.draft.write_all(bytes).map_err(|source| self.error(source))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.draft.target().to_owned()
    }

    fn error(&self, source: io::Error) -> WriteError {
        WriteError::Io { path: self.path(), source }
    }
}

impl ParquetWriter {
    fn create(selection: &Selection<'_>, draft: Draft) -> Result<Self, ConvertError> {
        let mut output = Output { draft, bytes: 0 };
        output.write(&MAGIC)?;
        let plan = Plan::of(selection);
        let image = ImageColumns {
            name: plan.free_name(["image", "sample"]),
            bytes: Column::new(2, IMAGE_PAGE),
            path: Column::new(2, FIELD_PAGE),
            is_every_image: true,
        };
        let label = plan.has_labels.then(|| LabelColumn {
            name: plan.free_name(["label", "class"]),
            values: Column::new(1, FIELD_PAGE),
            greatest: -1,
        });
        let unstored = Unstored {
            box_class_names: selection.unlisted_box_classes().len() as u64,
            ..Unstored::default()
        };
        let box_class_names = if unstored.box_class_names == 0 {
            selection.box_class_names().to_vec()
        } else {
            Vec::new()
        };
        Ok(Self {
            start: output.bytes,
            output,
            image,
            label,
            fields: plan.fields.into_iter().map(FieldColumn::new).collect(),
            groups: Vec::new(),
            rows: 0,
            class_names: selection.class_names().to_vec(),
            box_class_names,
            summary: WriteSummary { unstored, ..WriteSummary::default() },
        })
    }

    /// The stored columns, in the order of the schema.
    fn columns(&mut self) -> impl Iterator<Item = &mut Column> {
        let label = self.label.iter_mut().map(|label| &mut label.values);
        let fields =
            self.fields.iter_mut().flat_map(|field| [Some(&mut field.values), field.path.as_mut()]);
        [&mut self.image.bytes, &mut self.image.path]
            .into_iter()
            .chain(label)
            .chain(fields.flatten())
    }

    fn push_path(&mut self, key: Option<&[u8]>) {
        let text = key.and_then(|key| str::from_utf8(key).ok()).filter(|key| !key.is_empty());
        let unstored = &mut self.summary.unstored;
        match text {
            Some(path) => {
                unstored.renamed += u64::from(RelativePath::new(path.as_bytes()).is_err());
                self.image.path.push_bytes(path.as_bytes());
            }
            None => {
                unstored.keys += u64::from(key.is_some());
                self.image.path.push_null(1);
            }
        }
    }

    fn push_fields(&mut self, fields: &[Field]) -> Result<(), EncodeError> {
        let row = self.summary.samples;
        for Field { extension, bytes } in fields {
            let named = |column: &&mut FieldColumn| column.name.as_bytes() == extension;
            let column = self.fields.iter_mut().find(named);
            // A sample may have a field twice, and names need not be UTF-8.
            match column.filter(|column| column.last != Some(row)) {
                Some(column) => column.push(row, bytes)?,
                None => self.summary.unstored.fields += 1,
            }
        }
        for column in self.fields.iter_mut().filter(|column| column.last != Some(row)) {
            column.push_null();
        }
        Ok(())
    }

    /// Writes the complete pages of images, and the rest of the row group if it is full.
    fn flush(&mut self) -> Result<(), WriteError> {
        let pages = &mut self.image.bytes.pages;
        if !pages.is_empty() {
            self.output.write(pages)?;
            pages.clear();
        }
        let bytes: u64 = self.columns().map(|column| column.bytes()).sum();
        let held: usize = self.columns().map(|column| column.held()).sum();
        let held = held - self.image.bytes.held();
        if bytes >= GROUP_BYTES || held >= HELD_BYTES || self.rows == u32::MAX {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), WriteError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut chunks = Vec::new();
        let mut pages = Vec::new();
        let mut start = self.start;
        for column in self.columns() {
            let complete = column.end_group();
            let end = start + complete.bytes;
            chunks.push(Chunk { start, pages: complete });
            pages.push(std::mem::take(&mut column.pages));
            start = end;
        }
        pages.iter().try_for_each(|pages| self.output.write(pages))?;
        debug_assert_eq!(self.output.bytes, start);
        self.groups.push(Group { rows: std::mem::take(&mut self.rows), chunks });
        self.start = start;
        Ok(())
    }

    fn row_columns(&self) -> Vec<RowColumn> {
        let image = RowColumn { name: self.image.name.clone(), shape: Shape::Image };
        let label = self.label.iter();
        let label =
            label.map(|label| RowColumn { name: label.name.clone(), shape: Shape::Integer });
        let fields = self.fields.iter();
        let fields =
            fields.map(|field| RowColumn { name: field.name.clone(), shape: field.shape() });
        [image].into_iter().chain(label).chain(fields).collect()
    }

    /// Whether the features can list the class names: `datasets` refuses labels without a name, and
    /// names that occur twice.
    fn declares_classes(&self) -> bool {
        let mut names: Vec<&String> = self.class_names.iter().collect();
        names.sort_unstable();
        names.dedup();
        let greatest = self.label.as_ref().map_or(-1, |label| label.greatest);
        let is_named = usize::try_from(greatest).map_or(true, |label| label < names.len());
        !names.is_empty() && names.len() == self.class_names.len() && is_named
    }

    fn metadata(&self, columns: &[RowColumn]) -> [(&'static str, String); 2] {
        let is_declared = self.declares_classes();
        let label = self.label.as_ref().map(|label| label.name.clone());
        let feature = |column: &RowColumn| match column.shape {
            Shape::Image if column.name != self.image.name || self.image.is_every_image => {
                Feature::Image
            }
            Shape::Image => Feature::File,
            Shape::Bytes => Feature::Value("binary"),
            Shape::Text => Feature::Value("string"),
            Shape::Integer if is_declared && label.as_ref() == Some(&column.name) => {
                Feature::Class(&self.class_names)
            }
            Shape::Integer => Feature::Value("int64"),
            Shape::Double => Feature::Value("float64"),
        };
        let features = columns.iter().map(|column| (&*column.name, feature(column)));
        let features = footer::features(features);
        let own = Own {
            image: self.image.name.clone(),
            class_names: if is_declared && label.is_some() {
                Vec::new()
            } else {
                self.class_names.clone()
            },
            label,
            box_class_names: self.box_class_names.clone(),
        };
        footer::metadata(features, &own)
    }
}

impl FieldColumn {
    fn new(field: plan::PlannedField) -> Self {
        let is_image = field.kind == FieldKind::Image;
        let max_definition = if is_image { 2 } else { 1 };
        let page_bytes = if is_image { IMAGE_PAGE } else { FIELD_PAGE };
        Self {
            name: field.name,
            kind: field.kind,
            values: Column::new(max_definition, page_bytes),
            path: is_image.then(|| Column::new(max_definition, FIELD_PAGE)),
            is_every_text: true,
            last: None,
        }
    }

    fn shape(&self) -> Shape {
        match self.kind {
            FieldKind::Integer => Shape::Integer,
            FieldKind::Double => Shape::Double,
            FieldKind::Image => Shape::Image,
            FieldKind::Bytes if self.is_every_text => Shape::Text,
            FieldKind::Bytes => Shape::Bytes,
        }
    }

    fn push(&mut self, row: u64, bytes: &[u8]) -> Result<(), EncodeError> {
        let field = || self.name.clone();
        match self.kind {
            FieldKind::Integer | FieldKind::Double => {
                let number = self.kind.number(bytes);
                let number = number.ok_or_else(|| EncodeError::FieldChanged { field: field() })?;
                self.values.push_number(number);
            }
            FieldKind::Image | FieldKind::Bytes => {
                if bytes.len() as u64 > PAGE_LIMIT {
                    let limit = PAGE_LIMIT;
                    let bytes = bytes.len() as u64;
                    return Err(EncodeError::FieldTooLarge { field: field(), bytes, limit });
                }
                self.is_every_text &= str::from_utf8(bytes).is_ok();
                self.values.push_bytes(bytes);
                if let Some(path) = &mut self.path {
                    path.push_null(1);
                }
            }
        }
        self.last = Some(row);
        Ok(())
    }

    fn push_null(&mut self) {
        self.values.push_null(0);
        if let Some(path) = &mut self.path {
            path.push_null(0);
        }
    }
}

impl SampleWriter for ParquetWriter {
    fn write(&mut self, sample: &NewSample<'_>) -> Result<(), ConvertError> {
        let path = self.output.path();
        let index = self.summary.samples;
        let refused = |source| WriteError::Sample { path, index, source };
        let bytes = sample.bytes.len() as u64;
        if bytes > PAGE_LIMIT {
            return Err(refused(EncodeError::TooLarge { bytes, limit: PAGE_LIMIT }).into());
        }
        let is_image =
            sample.format.is_image() || SampleFormat::from_magic(sample.bytes).is_image();
        self.image.is_every_image &= is_image;
        self.image.bytes.push_bytes(sample.bytes);
        self.push_path(sample.key);
        if let Some(column) = &mut self.label {
            match sample.label {
                Some(label) => {
                    column.greatest = column.greatest.max(label);
                    column.values.push_number(label.to_le_bytes());
                }
                None => column.values.push_null(0),
            }
        }
        self.push_fields(sample.fields).map_err(refused)?;
        self.rows += 1;
        self.summary.samples += 1;
        self.summary.sample_bytes += bytes;
        Ok(self.flush()?)
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ConvertError> {
        self.end_group()?;
        let columns = self.row_columns();
        let metadata = self.metadata(&columns);
        let footer = footer::footer(self.output.bytes, &columns, &self.groups, &metadata);
        self.output.write(&footer)?;
        let Output { draft, bytes } = self.output;
        let path = draft.target().to_owned();
        draft.commit().map_err(|source| WriteError::Io { path, source })?;
        let stored_bytes = self.summary.sample_bytes;
        Ok(WriteSummary { bytes, stored_bytes, ..self.summary })
    }
}
