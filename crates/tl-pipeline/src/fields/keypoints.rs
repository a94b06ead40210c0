//! The keypoints of one sample, or of each of its objects: read from a sidecar file and moved like
//! the image.

use std::iter::repeat_n;

use serde_json::Value;
use tl_transform::{Keypoints, UserKeypoints};

use super::annotate::Placed;
use super::files::Files;
use super::objects::{Objects, retain, single};
use super::readers::KeypointLayout;
use super::values::{MOST_BYTES, ValueReader};
use super::{Fields, ListPointer, ValueField, ValueFormat, ValueKind, refused};
use crate::dataset::Dataset;
use crate::error::{AnnotationFault, PipelineError};
use crate::table::{ColumnSpec, ColumnType};

/// Points that move with the image, such as the joints of persons or the marks of a face.
///
/// Each object of an image has as many points, or each sample has: a JSON pointer with one `*` for
/// the elements of a list, such as `/annotations/*/keypoints`, leads to those of objects
/// ([`Batch::keypoints`](crate::Batch::keypoints)); everything else to those of a sample, which are
/// a column of the batch too ([`Batch::column_named`](crate::Batch::column_named)).
///
/// A point has two numbers, across and down, or three: the third is its visibility as in COCO's
/// files, where 0 stands for a point without a label. Lists of points show which; a plain list of
/// numbers is one of triples, unless `shape` says otherwise. (0, 0) is the middle of the top left
/// pixel.
///
/// Points move as `KeyPoints` of torchvision v2, and keep their coordinates outside the image. With
/// visibility, those that come to lie outside have no label any more, and points without a label are
/// (0, 0, 0), as in the training code of Detectron2 and torchvision.
///
/// The points of objects are left out with the boxes of [`Fields::boxes`], in whose order they are;
/// without boxes all objects stay.
#[derive(Clone, Debug, PartialEq)]
pub struct KeypointField {
    /// The name of the field in batches.
    pub name: String,
    /// The extension of the sidecar file, without its leading dot.
    pub file: String,
    /// The format of the file.
    pub format: ValueFormat,
    /// The number of points, and the numbers of each: 2 or 3. Default `None`: those of the first
    /// sample that has points.
    pub shape: Option<[usize; 2]>,
    /// Pairs of points that change places if the image is mirrored, such as the left and the right
    /// hand. Default none, as in torchvision: a mirrored left hand stays a left hand.
    pub flip_pairs: Vec<[usize; 2]>,
    /// Gives (0, 0, 0) for each point to objects without points (no value, `null` or `[]`) and to
    /// samples without a value. Points then have a visibility. Default false, where these are errors.
    pub fills_missing: bool,
}

/// The most points of an object.
const MOST_POINTS: usize = 1 << 16;

impl KeypointField {
    /// Keypoints in the sidecar file with extension `file`, without pairs.
    #[must_use]
    pub fn new(name: impl Into<String>, file: impl Into<String>, format: ValueFormat) -> Self {
        let flip_pairs = Vec::new();
        Self {
            name: name.into(),
            file: file.into(),
            format,
            shape: None,
            flip_pairs,
            fills_missing: false,
        }
    }

    /// True for points of objects, false for those of a sample.
    #[must_use]
    pub fn is_of_objects(&self) -> bool {
        matches!(self.objects(), Ok(Some(_)))
    }

    /// The pointer to the points of objects; `None` for those of a sample.
    fn objects(&self) -> Result<Option<ListPointer>, PipelineError> {
        if let ValueFormat::Json(pointer) = &self.format
            && pointer.split('/').any(|token| token == "*")
        {
            let parsed = ListPointer::parse(pointer);
            return parsed.map(Some).map_err(|error| self.refused(&error.to_string()));
        }
        self.format.check().map_err(|reason| self.refused(&reason))?;
        Ok(None)
    }

    pub(super) fn check(&self) -> Result<(), PipelineError> {
        self.objects()?;
        if let Some(shape) = self.shape {
            self.check_shape(&shape)?;
        }
        let mut seen = Vec::new();
        for point in self.flip_pairs.iter().flatten() {
            if seen.contains(&point) {
                return Err(self.refused(&format!("flip_pairs has point {point} twice")));
            }
            seen.push(point);
        }
        Ok(())
    }

    /// The shape, if points can have it.
    fn check_shape(&self, shape: &[usize]) -> Result<[usize; 2], PipelineError> {
        let &[count @ 1..=MOST_POINTS, numbers @ 2..=3] = shape else {
            return Err(self.refused(&format!(
                "shape is {shape:?}, expected [points, 2], or [points, 3] with visibility, and 1 to \
                {MOST_POINTS} points"
            )));
        };
        if self.fills_missing && numbers == 2 {
            return Err(self.refused(
                "points of two numbers have no visibility, which marks those that are missing",
            ));
        }
        match self.flip_pairs.iter().flatten().find(|&&point| point >= count) {
            Some(point) => Err(self
                .refused(&format!("flip_pairs has point {point}, expected numbers below {count}"))),
            None => Ok([count, numbers]),
        }
    }

    fn refused(&self, reason: &str) -> PipelineError {
        refused(format!("keypoints `{}`: {reason}", self.name))
    }

    /// The field of a sample's points as numbers.
    fn values(&self) -> ValueField {
        let shape = self.shape.map(|shape| shape.to_vec());
        let kind = ValueKind::Numbers { number: Some(ColumnType::F32), shape };
        let format = self.format.clone();
        let missing = self.fills_missing.then_some(0.0);
        ValueField { kind, missing, ..ValueField::new(&self.name, &self.file, format) }
    }

    /// The column of a sample's points. Without a shape in the settings, that of the first sample that
    /// has points.
    fn column_in(&self, dataset: &Dataset) -> Result<ColumnSpec, PipelineError> {
        let values = self.values();
        let mut spec = match values.configured_spec() {
            Some(spec) => spec,
            None => self.found_in(dataset, |files| {
                let spec = values.spec_of(files, MOST_BYTES)?;
                Ok(spec.filter(|spec| !spec.shape.contains(&0)))
            })?,
        };
        if let [numbers] = spec.shape[..]
            && numbers % 3 == 0
        {
            spec.shape = vec![numbers / 3, 3];
        }
        Ok(spec)
    }

    /// The result of `find` for the first sample that has one.
    fn found_in<T>(
        &self,
        dataset: &Dataset,
        find: impl Fn(&mut Files) -> Result<Option<T>, AnnotationFault>,
    ) -> Result<T, PipelineError> {
        let fields = Fields { keypoints: vec![self.clone()], ..Fields::default() };
        let found = fields.first_found(dataset, find);
        found.map_err(|reason| self.refused(&format!("they have no shape: {reason}")))
    }

    /// The shape of the first object's points.
    fn shape_in(
        &self,
        dataset: &Dataset,
        pointer: &ListPointer,
    ) -> Result<[usize; 2], PipelineError> {
        let shape = self.found_in(dataset, |files| {
            let objects = Objects { file: &self.file, document: files.document(&self.file)? };
            let mut shape = None;
            let fault = |pointer| objects.expected(pointer, POINTS);
            objects.each_found(pointer, LISTS, fault, |value| match self.present(value) {
                Some(value) => {
                    shape = shape.or(Some(shape_of(value)?));
                    Some(())
                }
                None => self.fills_missing.then_some(()),
            })?;
            Ok(shape)
        })?;
        self.check_shape(&shape)
    }

    /// The points of an object, if it has some.
    fn present<'a>(&self, value: Option<&'a Value>) -> Option<&'a Value> {
        let is_empty = |value: &Value| {
            value.is_null() || value.as_array().is_some_and(|points| points.is_empty())
        };
        value.filter(|value| !self.fills_missing || !is_empty(value))
    }
}

const LISTS: &str = "a list of keypoints";
const POINTS: &str = "points of two or three numbers";

/// The shape of the points of an object: lists of numbers, or triples without lists of their own.
fn shape_of(value: &Value) -> Option<[usize; 2]> {
    let list = value.as_array()?;
    match list.first()?.as_array() {
        Some(point) => Some([list.len(), point.len()]),
        None => (list.len() % 3 == 0).then_some([list.len() / 3, 3]),
    }
}

/// Reads the keypoints of a field that [`Fields::check`](super::Fields::check) has seen.
#[derive(Clone, Debug)]
pub(crate) struct KeypointReader {
    field: KeypointField,
    shape: [usize; 2],
    place: Place,
}

/// The owner of the points.
#[derive(Clone, Debug)]
enum Place {
    Sample(ValueReader),
    Objects(ListPointer),
}

impl KeypointReader {
    /// The reader of a field, whose column is added to `columns` if it has one.
    pub(super) fn new(
        field: &KeypointField,
        dataset: &Dataset,
        columns: &mut Vec<ColumnSpec>,
    ) -> Result<Self, PipelineError> {
        let (shape, place) = match field.objects()? {
            Some(pointer) => {
                let known = field.shape.map_or_else(|| field.shape_in(dataset, &pointer), Ok);
                (known?, Place::Objects(pointer))
            }
            None => {
                let spec = field.column_in(dataset)?;
                let shape = field.check_shape(&spec.shape)?;
                let reader = ValueReader::new(&field.values(), spec.clone(), columns.len());
                columns.push(spec);
                (shape, Place::Sample(reader.taking_flat()))
            }
        };
        Ok(Self { field: field.clone(), shape, place })
    }

    pub(super) fn layout(&self) -> KeypointLayout {
        let column = match &self.place {
            Place::Sample(values) => Some(values.column()),
            Place::Objects(_) => None,
        };
        KeypointLayout { shape: self.shape, column }
    }

    /// The reader of a sample's points as numbers, if it has a column.
    pub(super) fn values(&mut self) -> Option<&mut ValueReader> {
        match &mut self.place {
            Place::Sample(values) => Some(values),
            Place::Objects(_) => None,
        }
    }

    /// The points as the image lies, those of all objects.
    pub(super) fn moved(
        &mut self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&[f32]>,
        limit: u64,
    ) -> Result<UserKeypoints, AnnotationFault> {
        let shape = self.shape;
        let mut numbers = match (carried, &mut self.place) {
            (Some(carried), _) => carried.to_vec(),
            (None, Place::Sample(values)) => {
                let mut bytes = vec![0; shape.iter().product::<usize>() * size_of::<f32>()];
                values.write(files, limit, &mut bytes)?;
                bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
            }
            (None, Place::Objects(_)) => self.of_objects(files)?,
        };
        self.move_points(placed, &mut numbers)?;
        Ok(UserKeypoints { shape, numbers })
    }

    /// Moves a sample's points, which are in the column's bytes, unless a user's transform has left
    /// others.
    pub(super) fn move_column(
        &self,
        placed: &Placed<'_>,
        carried: Option<&[f32]>,
        bytes: &mut [u8],
    ) -> Result<(), AnnotationFault> {
        let bytes = bytes.as_chunks_mut().0;
        let stored = || bytes.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
        let mut numbers: Vec<f32> = carried.map_or_else(stored, <[f32]>::to_vec);
        self.place_points(placed, &mut numbers)?;
        bytes.iter_mut().zip(numbers).for_each(|(bytes, number)| *bytes = number.to_ne_bytes());
        Ok(())
    }

    /// The points of all objects, as they are in the file.
    fn of_objects(&self, files: &mut Files) -> Result<Vec<f32>, AnnotationFault> {
        let mut numbers = Vec::new();
        let Place::Objects(pointer) = &self.place else { return Ok(numbers) };
        let file = &self.field.file;
        let objects = Objects { file, document: files.document(file)? };
        let shape = self.shape;
        let fault = |pointer| AnnotationFault::Points { file: file.clone(), pointer, shape };
        objects.each_found(pointer, LISTS, fault, |value| match self.field.present(value) {
            Some(value) => push(value, shape, &mut numbers),
            None => {
                let count = shape.iter().product();
                self.field.fills_missing.then(|| numbers.extend(repeat_n(0.0, count)))
            }
        })?;
        Ok(numbers)
    }

    /// Appends the points of the objects that stay, as the image lies in the batch; of all objects
    /// without `stays`.
    pub(super) fn place(
        &self,
        files: &mut Files,
        placed: &Placed<'_>,
        carried: Option<&[f32]>,
        stays: Option<&[bool]>,
        out: &mut Vec<f32>,
    ) -> Result<(), AnnotationFault> {
        let file = &self.field.file;
        *out = carried.map_or_else(|| self.of_objects(files), |carried| Ok(carried.to_vec()))?;
        if let Some(stays) = stays {
            let numbers: usize = self.shape.iter().product();
            let objects = Objects { file, document: files.document(file)? };
            objects.check_count("sets of keypoints", stays.len(), out.len() / numbers)?;
            let each = |stays: &bool| repeat_n(*stays, numbers);
            retain(out, &stays.iter().flat_map(each).collect::<Vec<bool>>());
        }
        self.place_points(placed, out)
    }

    /// Moves points with the image, which may lie outside it then.
    fn move_points(&self, placed: &Placed<'_>, numbers: &mut [f32]) -> Result<(), AnnotationFault> {
        let [count, width] = self.shape;
        let points = numbers.chunks_exact(width).map(|point| [point[0], point[1]]);
        let mut points = Keypoints::new(placed.size, points.collect())?;
        let plan = placed.plan();
        plan.move_keypoints(&mut points)?;
        for (numbers, point) in numbers.chunks_exact_mut(width).zip(points.points()) {
            numbers[..2].copy_from_slice(point);
        }
        if plan.is_mirrored() {
            for object in numbers.chunks_exact_mut(count * width) {
                for &[left, right] in &self.field.flip_pairs {
                    (0..width).for_each(|n| object.swap(left * width + n, right * width + n));
                }
            }
        }
        Ok(())
    }

    /// Moves points as they lie in the batch, where those outside the image have no label.
    fn place_points(
        &self,
        placed: &Placed<'_>,
        numbers: &mut [f32],
    ) -> Result<(), AnnotationFault> {
        self.move_points(placed, numbers)?;
        let is_inside = is_inside(placed.plan().output_size());
        if self.shape[1] == 3 {
            for point in numbers.as_chunks_mut::<3>().0 {
                if point[2] == 0.0 || !is_inside([point[0], point[1]]) {
                    *point = [0.0; 3];
                }
            }
        }
        Ok(())
    }
}

/// Tells of a point whether it is on an image of this size, as torchvision's `SanitizeKeyPoints`.
fn is_inside(size: (u32, u32)) -> impl Fn([f32; 2]) -> bool {
    let width = f64::from(size.0);
    let height = f64::from(size.1);
    move |[x, y]| (0.0..width).contains(&f64::from(x)) && (0.0..height).contains(&f64::from(y))
}

/// Appends the numbers of an object's points of this shape: a list for each point, or one for all.
fn push(value: &Value, [count, width]: [usize; 2], out: &mut Vec<f32>) -> Option<()> {
    let list = value.as_array()?;
    let mut take = |numbers: &[Value]| {
        numbers.iter().try_for_each(|number| {
            out.push(single(number)?);
            Some(())
        })
    };
    if list.len() == count * width && !list.first()?.is_array() {
        return take(list);
    }
    if list.len() != count {
        return None;
    }
    list.iter().try_for_each(|point| take(point.as_array().filter(|point| point.len() == width)?))
}
