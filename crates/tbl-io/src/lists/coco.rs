//! Annotations as COCO writes them: objects, keypoints and captions of images in one JSON file.

use std::collections::HashMap;
use std::ffi::OsStr;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::ReadError;
use crate::files::Files;
use crate::list_error::{ListDefect, ListPlace};
use crate::list_options::Coco;
use crate::listed::{Annotations, Column, Listed, Parts, Span, Values};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::note::Note;
use crate::sample::SourceKind;
use crate::source::Source;
use crate::storage::Stores;

use super::flip_pairs::flip_pairs;
use super::json_stream::JsonStream;
use super::rows::path_below;

/// Opens the images of a file of annotations as COCO writes them, in its order.
///
/// Each sample has the field `json`: `{"image":{..},"annotations":[..]}`, with the objects of the
/// file byte for byte, apart from the numbers of categories if [`Coco::dense`] changes them. The
/// file is read once in blocks of 1 MiB; only the places of its objects are kept. One in a store is
/// kept in memory as well.
///
/// ```
/// use tbl_io::{Coco, SampleSource, SampleSourceExt, Stores, open_coco};
///
/// let root = tempfile::tempdir()?;
/// std::fs::write(root.path().join("1.jpg"), b"...")?;
/// let file = root.path().join("instances.json");
/// let json = r#"{"images": [{"id": 7, "file_name": "1.jpg"}],
///     "annotations": [{"image_id": 7, "bbox": [1, 2, 3, 4], "category_id": 18}],
///     "categories": [{"id": 18, "name": "dog"}]}"#;
/// std::fs::write(&file, json)?;
/// let samples = open_coco(&Stores::new(), &file, &Coco { dense: true, ..Coco::default() })?;
/// assert_eq!(samples.box_class_names(), ["dog"]);
/// let mut fields = Vec::new();
/// samples.read_fields(0, &mut fields)?;
/// assert!(fields[0].bytes.ends_with(br#""bbox":[1, 2, 3, 4],"category_id":0}]}"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReadError::List`] with the byte of a defect: broken JSON, an image or a category whose number
/// occurs twice, names of files that are unsafe or do not exist, and with [`Coco::dense`] a category
/// that is not listed.
pub fn open_coco(
    stores: &Stores,
    annotations: impl AsRef<OsStr>,
    options: &Coco,
) -> Result<Listed, ReadError> {
    let location = Location::new(annotations);
    match stores.open_file(&location)? {
        Some(source) => of_source(stores, source, options),
        None => {
            let what = "a folder".to_owned();
            let defect = ListDefect::Unread { what, expected: "a JSON file of annotations" };
            Err(defect.at(&stores.printable(&location), ListPlace::default()))
        }
    }
}

pub(super) fn of_source(
    stores: &Stores,
    source: Source,
    options: &Coco,
) -> Result<Listed, ReadError> {
    let location = source.location().clone();
    let content = Content::read(&source)?;
    let root = content.root(stores, &location, options);
    let mut names = Names::new();
    for Image { file_name, span, .. } in &content.images {
        let path = path_below(&root, b"", file_name.as_bytes());
        let place = || ListPlace::offset(span.offset);
        let path = path.map_err(|defect| defect.at(&location, place()))?;
        names.push(&path).map_err(|TooManyNames| ReadError::too_many_names(&location))?;
    }
    let (files, missing) = Files::named(stores, root, &names)?;
    if let Some(&first) = missing.first() {
        let offset = content.images.get(first as usize).map_or(0, |image| image.span.offset);
        let first = names.path(first).into_owned();
        let defect = ListDefect::Missing { count: missing.len() as u64, first };
        return Err(defect.at(&location, ListPlace::offset(offset)));
    }
    let samples = u32::try_from(content.images.len()).unwrap_or(u32::MAX);
    let has_places = options.dense || content.are_categories_listable();
    let box_class_names = content.class_names(options.dense || !has_places);
    let box_class_numbers = if has_places { Vec::new() } else { content.category_numbers() };
    let (flip_pairs, unclear) = content.flip_pairs();
    let notes = content.stray_annotations().into_iter().chain(unclear).collect();
    let annotations = content.annotations(source, &location, options)?;
    let column =
        Column { name: b"json".to_vec(), values: Values::Annotations(Box::new(annotations)) };
    let parts = Parts {
        kind: SourceKind::Manifest,
        location,
        names,
        samples,
        labels: Vec::new(),
        class_names: Vec::new(),
        columns: vec![column],
        limits: options.limits,
        notes,
    };
    let listed = Listed::new(files, parts);
    Ok(listed.with_box_classes(box_class_names, box_class_numbers).with_flip_pairs(flip_pairs))
}

/// The content of a file of annotations.
#[derive(Default)]
struct Content {
    images: Vec<Image>,
    objects: Vec<Object>,
    categories: Vec<CategoryMembers>,
    /// The first object of each category.
    category_uses: HashMap<i64, u64>,
}

struct Image {
    id: i64,
    file_name: String,
    span: Span,
}

/// An annotation.
struct Object {
    image_id: i64,
    span: Span,
}

#[derive(Deserialize)]
struct ImageMembers {
    id: i64,
    file_name: String,
}

#[derive(Deserialize)]
struct ObjectMembers {
    image_id: i64,
    category_id: Option<i64>,
}

#[derive(Deserialize)]
struct CategoryMembers {
    id: i64,
    name: String,
    /// The names of the keypoints of its objects; something else in files of other tools.
    #[serde(default)]
    keypoints: serde_json::Value,
}

const EXPECTED: &str = "an object with `images` and `annotations`, as COCO writes it";
const EXPECTED_IMAGE: &str = "an image with `id` and `file_name`";
const EXPECTED_OBJECT: &str = "an annotation with `image_id`";
const EXPECTED_CATEGORY: &str = "a category with `id` and `name`";

/// Categories with larger numbers have names without places of their own.
const MAX_NAMED_CATEGORY: i64 = 1 << 16;

impl Content {
    fn read(source: &Source) -> Result<Self, ReadError> {
        let mut json = JsonStream::new(source);
        let mut content = Self::default();
        json.expect(b'{', EXPECTED)?;
        let mut seen: Vec<String> = Vec::new();
        while json.has_next(seen.is_empty(), b'}')? {
            json.peek()?;
            let offset = json.offset();
            let (name, _) = json.value::<String>("a name")?;
            json.expect(b':', "a colon")?;
            if seen.contains(&name) {
                let defect = ListDefect::Twice { what: "key", name: name.into_bytes() };
                return Err(defect.at(source.location(), ListPlace::offset(offset)));
            }
            match name.as_str() {
                "images" => content.read_images(&mut json)?,
                "annotations" => content.read_objects(&mut json)?,
                "categories" => content.read_categories(&mut json)?,
                _ => drop(json.value::<IgnoredAny>("a value")?),
            }
            seen.push(name);
            if seen.len() > MAX_KEYS {
                return Err(json.unexpected("fewer keys"));
            }
        }
        if json.peek()?.is_some() {
            return Err(json.unexpected("the end of the file"));
        }
        if !seen.iter().any(|name| name == "images") {
            let reason = "no `images`".to_owned();
            let defect = ListDefect::Json { reason, expected: EXPECTED };
            return Err(defect.at(source.location(), ListPlace::default()));
        }
        content.check_ids(source.location())?;
        Ok(content)
    }

    fn read_images(&mut self, json: &mut JsonStream<'_>) -> Result<(), ReadError> {
        json.expect(b'[', "a list of images")?;
        while json.has_next(self.images.is_empty(), b']')? {
            let (ImageMembers { id, file_name }, span) = json.value(EXPECTED_IMAGE)?;
            self.images.push(Image { id, file_name, span });
        }
        Ok(())
    }

    fn read_objects(&mut self, json: &mut JsonStream<'_>) -> Result<(), ReadError> {
        json.expect(b'[', "a list of annotations")?;
        while json.has_next(self.objects.is_empty(), b']')? {
            let (ObjectMembers { image_id, category_id }, span) = json.value(EXPECTED_OBJECT)?;
            if let Some(category) = category_id {
                self.category_uses.entry(category).or_insert(span.offset);
            }
            self.objects.push(Object { image_id, span });
        }
        Ok(())
    }

    fn read_categories(&mut self, json: &mut JsonStream<'_>) -> Result<(), ReadError> {
        json.expect(b'[', "a list of categories")?;
        while json.has_next(self.categories.is_empty(), b']')? {
            self.categories.push(json.value(EXPECTED_CATEGORY)?.0);
        }
        self.categories.sort_by_key(|category| category.id);
        Ok(())
    }

    /// Fails for numbers that stand for two images or categories.
    fn check_ids(&self, location: &Location) -> Result<(), ReadError> {
        let twice = |what, id: i64, place| {
            let name = id.to_string().into_bytes();
            Err(ListDefect::Twice { what, name }.at(location, place))
        };
        let mut seen = HashMap::with_capacity(self.images.len());
        for image in &self.images {
            if seen.insert(image.id, ()).is_some() {
                return twice("image", image.id, ListPlace::offset(image.span.offset));
            }
        }
        let equal = self.categories.windows(2).find(|pair| pair[0].id == pair[1].id);
        equal.map_or(Ok(()), |pair| twice("category", pair[0].id, ListPlace::default()))
    }

    /// The folder of the images.
    fn root(&self, stores: &Stores, location: &Location, options: &Coco) -> Location {
        if let Some(images) = &options.images {
            return images.clone();
        }
        let folder = location.folder();
        let (Some(path), Some(first)) = (location.path(), self.images.first()) else {
            return folder;
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let split = stem.rsplit('_').next().unwrap_or_default();
        let inside = folder.path().unwrap_or(path).to_owned();
        let above = inside.join("..");
        let candidates = [
            inside.clone(),
            above.join(split),
            above.join("images").join(split),
            inside.join("images"),
            above.join("images"),
        ];
        let has_first = |root: &std::path::PathBuf| {
            let below = path_below(&Location::new(root), b"", first.file_name.as_bytes());
            let image = below.map(|below| Location::new(root).join(&below));
            image.is_ok_and(|image| stores.open_file(&image).is_ok())
        };
        candidates.into_iter().find(has_first).map_or(folder, |root| Location::new(&root))
    }

    /// Whether a list can have the names of categories at the places of their numbers.
    fn are_categories_listable(&self) -> bool {
        self.categories.iter().all(|category| (0..MAX_NAMED_CATEGORY).contains(&category.id))
    }

    fn category_numbers(&self) -> Vec<i64> {
        self.categories.iter().map(|category| category.id).collect()
    }

    /// The names of categories: one after the other if `dense`, otherwise at the places of their
    /// numbers.
    fn class_names(&self, dense: bool) -> Vec<String> {
        let mut names = Vec::new();
        for CategoryMembers { id, name, .. } in &self.categories {
            if !dense {
                names.resize(usize::try_from(*id).unwrap_or_default(), String::new());
            }
            names.push(name.clone());
        }
        names
    }

    /// The pairs of keypoints that the names of each category with keypoints give, and the note on
    /// names that give different ones, which are none.
    fn flip_pairs(&self) -> (Vec<[usize; 2]>, Option<Note>) {
        let named = |category: &CategoryMembers| {
            let names = category.keypoints.as_array()?.iter();
            let names: Option<Vec<&str>> = names.map(|name| name.as_str()).collect();
            Some((category.id, flip_pairs(&names?)))
        };
        let mut all = self.categories.iter().filter_map(named);
        let Some((first, pairs)) = all.next() else { return (Vec::new(), None) };
        match all.find(|(_, others)| *others != pairs) {
            None => (pairs, None),
            Some((other, _)) => (Vec::new(), Some(Note::OtherFlipPairs { first, other })),
        }
    }

    /// The note on annotations of images that are not listed.
    fn stray_annotations(&self) -> Option<Note> {
        let images: HashMap<i64, ()> = self.images.iter().map(|image| (image.id, ())).collect();
        let mut strays = self.objects.iter().filter(|one| !images.contains_key(&one.image_id));
        let image_id = strays.next()?.image_id;
        Some(Note::StrayAnnotations { annotations: 1 + strays.count() as u64, image_id })
    }

    /// The annotations of each image.
    fn annotations(
        self,
        source: Source,
        location: &Location,
        options: &Coco,
    ) -> Result<Annotations, ReadError> {
        let numbers = (0_u32..).zip(&self.images);
        let numbers: HashMap<i64, u32> =
            numbers.map(|(number, image)| (image.id, number)).collect();
        let renumbered = if options.dense {
            let places: HashMap<i64, i64> =
                self.categories.iter().map(|category| category.id).zip(0..).collect();
            let mut unknown: Vec<_> =
                self.category_uses.iter().filter(|(id, _)| !places.contains_key(id)).collect();
            unknown.sort_unstable_by_key(|(_, offset)| **offset);
            if let Some((id, offset)) = unknown.first() {
                let reason = format!("category {id} is not listed");
                let defect = ListDefect::Json { reason, expected: "one of `categories`" };
                return Err(defect.at(location, ListPlace::offset(**offset)));
            }
            Some(places)
        } else {
            None
        };
        let mut objects: Vec<(u32, Span)> = Vec::with_capacity(self.objects.len());
        for Object { image_id, span } in self.objects {
            objects.extend(numbers.get(&image_id).map(|&image| (image, span)));
        }
        // Stable, so that annotations of one image keep their order.
        objects.sort_by_key(|(image, _)| *image);
        let images = self.images.into_iter().map(|image| image.span).collect();
        Annotations::new(source, images, &objects, renumbered)
    }
}

/// The most keys of the outermost object.
const MAX_KEYS: usize = 1024;
