//! The use of each column: images, labels, fields.

use std::ops::ControlFlow;

use tbl_format::SampleFormat;
use tbl_io::{ReadError, RowsDefect};

use crate::features::{Classes, Features};
use crate::options::RowOptions;
use crate::own::Own;
use crate::rows::RowFile;
use crate::schema::{Meaning, Node, Physical};
use crate::thrift::Flaw;
use crate::values::Value;

/// The columns of samples.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) image: ImageColumn,
    pub(crate) label: Option<LabelColumn>,
    /// Columns of labels of which none is chosen.
    pub(crate) other_labels: Vec<String>,
    pub(crate) fields: Vec<FieldColumn>,
    /// The names of the classes of boxes, which only files of this crate's writer have.
    pub(crate) box_class_names: Vec<String>,
}

/// A column of bytes, or of a structure with bytes and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageColumn {
    pub(crate) bytes: usize,
    pub(crate) path: Option<usize>,
}

/// A column of labels.
#[derive(Debug)]
pub(crate) struct LabelColumn {
    pub(crate) leaf: usize,
    /// The names that the file declares; empty for none.
    pub(crate) names: Vec<String>,
}

/// A column whose values are fields.
#[derive(Debug)]
pub(crate) struct FieldColumn {
    pub(crate) name: String,
    pub(crate) values: FieldValues,
}

/// The values of a field.
#[derive(Debug)]
pub(crate) enum FieldValues {
    /// Bytes, or single values.
    Single(ImageColumn),
    /// Structures or lists, which become JSON.
    Nested(Node),
}

/// The label column without an option and without features.
const LABEL: &str = "label";

impl Roles {
    /// Finds the columns that `options` name, or that the features and the first values give.
    pub(crate) fn find(file: &dyn RowFile, options: &RowOptions) -> Result<Self, ReadError> {
        let setting = |defect| file.error(Flaw::new(0, defect));
        let given = options.features.as_deref().map(str::as_bytes);
        let features = match given.or(file.features()) {
            Some(text) => Features::parse(text).map_err(setting)?,
            None => Features::default(),
        };
        let own = file.own().map(Own::parse).transpose().map_err(setting)?;
        // Other programs keep the metadata and may drop the columns that it names.
        let own = own.filter(|own| {
            let label = own.label.iter();
            label.chain([&own.image]).all(|name| file.schema().column(name).is_some())
        });
        let columns = file.schema().columns();
        let column = |name: &String| {
            let found = file.schema().column(name);
            found.ok_or_else(|| {
                let columns = names(columns);
                setting(RowsDefect::NoColumn { column: name.clone(), columns })
            })
        };
        let image = match options.image.as_ref().or(own.as_ref().map(|own| &own.image)) {
            Some(name) => column(name)?,
            None => find_image(file, &features)?,
        };
        let values = bytes_of(file, image)
            .ok_or_else(|| setting(RowsDefect::NotBytes { column: image.name.clone() }))?;
        let label = match (&options.label, &own) {
            (Some(name), _) => Some(column(name)?),
            (None, Some(own)) => own.label.as_ref().map(column).transpose()?,
            (None, None) => match &*features.classes {
                [only] => file.schema().column(&only.column),
                _ => file.schema().column(LABEL).filter(|node| is_label(file, node)),
            },
        };
        let label_name = label.map(|label| label.name.clone());
        let is_left = label.is_none() && own.is_none();
        let classes = features.classes.iter().filter(|_| is_left);
        let other_labels = classes.map(|classes| classes.column.clone()).collect();
        let label = match label {
            Some(node) if is_label(file, node) => Some(LabelColumn {
                leaf: node.leaves.start,
                names: declared(features.classes, own.as_ref(), &node.name),
            }),
            Some(node) => {
                return Err(setting(RowsDefect::NotLabels { column: node.name.clone() }));
            }
            None => None,
        };
        let is_field =
            |node: &&Node| node.name != image.name && Some(&node.name) != label_name.as_ref();
        let fields = columns.iter().filter(is_field);
        let fields = fields.filter_map(|node| {
            let name = node.name.clone();
            Some(FieldColumn { name, values: field_values(file, node)? })
        });
        let box_class_names = own.map_or_else(Vec::new, |own| own.box_class_names);
        Ok(Self { image: values, label, other_labels, fields: fields.collect(), box_class_names })
    }
}

fn declared(classes: Vec<Classes>, own: Option<&Own>, column: &str) -> Vec<String> {
    if let Some(found) = classes.into_iter().find(|classes| classes.column == column) {
        return found.names;
    }
    let own = own.filter(|own| own.label.as_deref() == Some(column));
    own.map_or_else(Vec::new, |own| own.class_names.clone())
}

fn names(columns: &[Node]) -> Vec<String> {
    columns.iter().map(|column| column.name.clone()).collect()
}

/// Whether a column can be labels: integers or texts, one each.
fn is_label(file: &dyn RowFile, node: &Node) -> bool {
    let leaf = file.schema().leaf(node.leaves.start);
    let is_number = matches!(leaf.physical, Physical::Int32 | Physical::Int64)
        && matches!(leaf.meaning, Meaning::Plain | Meaning::Unsigned);
    let is_text = leaf.physical == Physical::Bytes && leaf.meaning == Meaning::Text;
    node.is_leaf()
        && leaf.max_repetition == 0
        && (is_number || is_text || leaf.physical == Physical::Boolean)
}

/// The columns of a structure with bytes and a path, or a column of bytes; `None` for others.
fn bytes_of(file: &dyn RowFile, node: &Node) -> Option<ImageColumn> {
    let is_bytes = |node: &&Node| {
        let leaf = file.schema().leaf(node.leaves.start);
        node.is_leaf() && leaf.max_repetition == 0 && leaf.physical == Physical::Bytes
    };
    if node.is_leaf() {
        return is_bytes(&node).then_some(ImageColumn { bytes: node.leaves.start, path: None });
    }
    let bytes = node.child("bytes").filter(is_bytes)?;
    let path = node.child("path").filter(is_bytes);
    Some(ImageColumn { bytes: bytes.leaves.start, path: path.map(|path| path.leaves.start) })
}

/// The values of a field; `None` for structures and lists with bytes that are not text, which JSON
/// cannot hold.
pub(crate) fn field_values(file: &dyn RowFile, node: &Node) -> Option<FieldValues> {
    if let Some(found) = bytes_of(file, node) {
        return Some(FieldValues::Single(found));
    }
    let bytes = node.leaves.start;
    let leaf = file.schema().leaf(bytes);
    if node.is_leaf() && leaf.max_repetition == 0 && leaf.physical != Physical::Other {
        return Some(FieldValues::Single(ImageColumn { bytes, path: None }));
    }
    let is_text = |leaf| {
        let leaf = file.schema().leaf(leaf);
        match leaf.physical {
            Physical::Bytes | Physical::Fixed(_) => leaf.meaning != Meaning::Plain,
            Physical::Int96 | Physical::Other => false,
            Physical::Boolean
            | Physical::Int32
            | Physical::Int64
            | Physical::Float
            | Physical::Double => true,
        }
    };
    node.leaves.clone().all(is_text).then(|| FieldValues::Nested(node.clone()))
}

/// The only column of images: by its type in the features, or by its first values.
fn find_image<'f>(file: &'f dyn RowFile, features: &Features) -> Result<&'f Node, ReadError> {
    let schema = &file.schema();
    let declared = features.images.iter().filter_map(|name| schema.column(name));
    let mut candidates: Vec<&Node> = declared.collect();
    if candidates.is_empty() {
        for node in schema.columns() {
            if looks_like_images(file, node)? {
                candidates.push(node);
            }
        }
    }
    let setting = |defect| Err(file.error(Flaw::new(0, defect)));
    match &*candidates {
        [only] => Ok(only),
        [] => setting(RowsDefect::NoImages { columns: names(schema.columns()) }),
        [first, second, ..] => setting(RowsDefect::TwoImages {
            first: first.name.clone(),
            second: second.name.clone(),
        }),
    }
}

/// Whether the first value of a column that is not null is an image or a video. A structure of bytes and a path
/// without a value counts as one too.
fn looks_like_images(file: &dyn RowFile, node: &Node) -> Result<bool, ReadError> {
    let Some(column) = bytes_of(file, node) else { return Ok(false) };
    let is_text = matches!(file.schema().leaf(column.bytes).meaning, Meaning::Text | Meaning::Json);
    if is_text {
        return Ok(false);
    }
    let mut is_image = column.path.is_some();
    file.each_value(column.bytes, &mut |value, _| {
        let Some(Value::Bytes(bytes)) = value else { return Ok(ControlFlow::Continue(())) };
        is_image =
            SampleFormat::from_magic(bytes).is_image() || SampleFormat::is_video_magic(bytes);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(is_image)
}
