//! The labels of ImageNet's validation images, as they are downloaded.

use std::collections::HashMap;
use std::io;

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::location::Location;
use crate::source::Source;
use crate::storage::Stores;
use crate::tar;
use crate::unpack::gunzipped;

use super::mat;
use super::table::{Table, TableFormat, without_byte_order_mark};

/// Folders that the files are looked for in, below the root.
const FOLDERS: [&str; 4] = ["", "ILSVRC2012_devkit_t12/data", "devkit/data", "data"];

/// A name for each image, in the order of their names.
const SYNSET_LABELS: &str = "imagenet_2012_validation_synset_labels.txt";
const SOLUTION: &str = "LOC_val_solution.csv";
const GROUND_TRUTH: &str = "ILSVRC2012_validation_ground_truth.txt";
const META: &str = "meta.mat";

/// The development kit as it is downloaded, and its most bytes once unpacked: it has 6 MB.
const DEVKIT: &str = "ILSVRC2012_devkit_t12.tar.gz";
const MAX_DEVKIT_BYTES: u64 = 64 << 20;

const EXPECTED: &str = "ILSVRC2012_devkit_t12.tar.gz or its ILSVRC2012_validation_ground_truth.txt \
                        with meta.mat, LOC_val_solution.csv, or \
                        imagenet_2012_validation_synset_labels.txt";

/// The class of each validation image by its name without an extension, from the files that exist
/// below `root`.
pub(crate) fn val_classes(
    stores: &Stores,
    root: &Location,
) -> Result<HashMap<Vec<u8>, String>, ReadError> {
    for folder in FOLDERS {
        let folder = if folder.is_empty() { root.clone() } else { root.join(folder.as_bytes()) };
        let find = |name: &str| stores.open_existing(&folder.join(name.as_bytes()));
        if let Some(source) = find(SOLUTION)? {
            return of_solution(&source);
        }
        if let Some(source) = find(SYNSET_LABELS)? {
            let text = text(&source)?;
            let classes = lines(&source, &text)?.map(|(_, class)| class.to_owned());
            return Ok(numbered(classes));
        }
        if let Some(source) = find(GROUND_TRUTH)? {
            let Some(meta) = find(META)? else {
                let text = "not found; it has the classes of the numbers in the ground truth";
                let error = io::Error::new(io::ErrorKind::NotFound, text);
                return Err(ReadError::io(folder.join(META.as_bytes()), error));
            };
            return of_devkit(&source, &meta);
        }
    }
    if let Some(kit) = stores.open_existing(&root.join(DEVKIT.as_bytes()))? {
        return of_packed_devkit(&kit);
    }
    let what = "a folder without labels of validation images".to_owned();
    let defect = ListDefect::Unread { what, expected: EXPECTED };
    Err(defect.at(&stores.printable(root), ListPlace::default()))
}

fn bytes(source: &Source) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    ReadLimits::default().read_whole(source, &mut bytes)?;
    Ok(bytes)
}

fn text(source: &Source) -> Result<String, ReadError> {
    let bytes = bytes(source)?;
    String::from_utf8(without_byte_order_mark(&bytes).to_vec()).map_err(|error| {
        let reason = "not UTF-8".to_owned();
        let defect = ListDefect::Json { reason, expected: "lines of text" };
        let offset = error.utf8_error().valid_up_to() as u64;
        defect.at(source.location(), ListPlace::offset(offset))
    })
}

/// The lines of a text with their numbers, up to the last one that is not empty. None of them is:
/// the place of a line is the number of its image.
fn lines<'a>(
    source: &Source,
    text: &'a str,
) -> Result<impl Iterator<Item = (u64, &'a str)>, ReadError> {
    let lines = (1..).zip(text.trim_ascii_end().lines().map(str::trim));
    if let Some((line, _)) = lines.clone().find(|(_, text)| text.is_empty()) {
        let reason = "the line is empty".to_owned();
        let defect = ListDefect::Json { reason, expected: "the label of an image" };
        return Err(defect.at(source.location(), ListPlace::line(line)));
    }
    Ok(lines)
}

/// Classes by the names that the images have in their order.
fn numbered(classes: impl Iterator<Item = String>) -> HashMap<Vec<u8>, String> {
    let name = |number: u32| format!("ILSVRC2012_val_{number:08}").into_bytes();
    (1..).zip(classes).map(|(n, class)| (name(n), class)).collect()
}

/// The competition's table: a name, and a class with boxes.
fn of_solution(source: &Source) -> Result<HashMap<Vec<u8>, String>, ReadError> {
    let table = Table::read(source, TableFormat::Csv, &ReadLimits::default())?;
    let find = |name| table.find(name).map_err(|d| d.at(source.location(), ListPlace::default()));
    let name = find("ImageId")?;
    let class = find("PredictionString")?;
    let mut classes = HashMap::new();
    for row in (0..).take(table.rows()) {
        let cell = |column: usize| table.columns.get(column).and_then(|texts| texts.get(row));
        let first = cell(class).unwrap_or_default().split(u8::is_ascii_whitespace).next();
        let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
        classes.insert(cell(name).unwrap_or_default().to_vec(), first);
    }
    Ok(classes)
}

/// The development kit, compressed.
fn of_packed_devkit(kit: &Source) -> Result<HashMap<Vec<u8>, String>, ReadError> {
    let archive = gunzipped(kit, MAX_DEVKIT_BYTES)?;
    let find = |name: &str| {
        let member = tar::member_called(&archive, name.as_bytes())?;
        member.ok_or_else(|| {
            let text = format!("the development kit has no {name}");
            ReadError::io(kit.location(), io::Error::new(io::ErrorKind::NotFound, text))
        })
    };
    of_devkit(&find(GROUND_TRUTH)?, &find(META)?)
}

/// The development kit: a number for each image, and the classes of the numbers.
fn of_devkit(truth: &Source, meta: &Source) -> Result<HashMap<Vec<u8>, String>, ReadError> {
    let Some(synsets) = mat::synsets(&bytes(meta)?) else {
        let reason = "not a MATLAB file with synsets".to_owned();
        let defect = ListDefect::Json { reason, expected: "meta.mat of the development kit" };
        return Err(defect.at(meta.location(), ListPlace::default()));
    };
    let wnids: HashMap<i64, String> =
        synsets.into_iter().map(|synset| (synset.number, synset.wnid)).collect();
    let mut classes = Vec::new();
    let text = text(truth)?;
    for (line, text) in lines(truth, &text)? {
        let number = text.parse().ok();
        let class = number.and_then(|number: i64| wnids.get(&number)).ok_or_else(|| {
            let reason = format!("`{}` is not the number of a synset", text.escape_debug());
            let defect = ListDefect::Json { reason, expected: "one that meta.mat has" };
            defect.at(truth.location(), ListPlace::line(line))
        })?;
        classes.push(class.clone());
    }
    Ok(numbered(classes.into_iter()))
}
