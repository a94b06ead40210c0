//! Images and further files that belong to them by the common parts of their paths.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tbl_format::path::check_new_name;

use crate::error::ReadError;
use crate::files::Files;
use crate::limits::ReadLimits;
use crate::list_error::{ListDefect, ListPlace};
use crate::listed::{Column, FileNumbers, Listed, Parts, Values};
use crate::location::Location;
use crate::names::{Names, TooManyNames};
use crate::sample::SourceKind;
use crate::storage::{Opened, Stores};

use super::pattern::{Pattern, alternatives};
use super::table::without_byte_order_mark;

/// Images, and files of other patterns that belong to them, such as masks.
///
/// In a pattern `*` stands for any part of a name, `**` for any number of folders and `{jpg,png}` for
/// one of several texts; all other characters stand for themselves. Files belong together if the
/// stars of their patterns stand for the same: `images/*.{jpg,png}` and `masks/*.png`,
/// `left/*/*_leftImg8bit.png` and `gt/*/*_gtFine_labelIds.png`.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// The pattern of the images.
    pub image: String,
    /// Names of fields, and the patterns of their files.
    pub fields: Vec<(String, String)>,
    /// A text file with a line for each image to take, in this order: what the stars stand for, with
    /// slashes between them, or the last of these parts. Default: all images, in the order of their
    /// paths.
    pub split: Option<Location>,
    /// The treatment of files without a partner.
    pub unpaired: Unpaired,
}

/// The treatment of files that have no partner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unpaired {
    /// They are an error.
    #[default]
    Refuse,
    /// Images without a field stay, and files without an image are left out.
    Keep,
    /// Both are left out.
    Drop,
}

/// The files of a pattern.
struct Matches {
    /// The pattern, for messages.
    pattern: Location,
    /// In the order of their paths' bytes.
    files: Vec<Match>,
}

/// A file of a pattern.
#[derive(Clone)]
struct Match {
    /// The path from the root on.
    path: Vec<u8>,
    /// The parts that the stars stand for.
    key: Vec<u8>,
}

/// Opens images with their further files.
///
/// # Errors
/// [`ReadError::List`] for files without a partner, patterns with different numbers of stars, and
/// lines of the split that no image has; [`ReadError::Io`].
pub fn open_pairs(stores: &Stores, pairs: &Pairs) -> Result<Listed, ReadError> {
    let texts = pairs.fields.iter().map(|(_, pattern)| pattern.as_str());
    let texts: Vec<&str> = std::iter::once(pairs.image.as_str()).chain(texts).collect();
    let alternatives: Vec<Vec<String>> = texts.iter().map(|text| alternatives(text)).collect();
    let plain: Vec<&str> = alternatives.iter().flatten().map(String::as_str).collect();
    let folders = Folders::of(&plain)?;
    let mut below = plain.iter().zip(&folders.below);
    let mut all = Vec::with_capacity(texts.len());
    for (text, alternatives) in texts.iter().zip(&alternatives) {
        let patterns: Vec<_> = below.by_ref().take(alternatives.len()).collect();
        all.push(folders.matches(stores, text, &patterns)?);
    }
    let stars = |text: &&str| Pattern::new(text.as_bytes()).stars();
    if let Some(other) = plain.iter().find(|text| stars(text) != stars(&plain[0])) {
        let what = format!("a pattern with {} stars", stars(other));
        let expected = "as many stars as in the pattern of the images";
        let defect = ListDefect::Unread { what, expected };
        return Err(defect.at(&Location::new(other), ListPlace::default()));
    }
    let fields = all.split_off(1);
    let images = all.pop().map_or(Vec::new(), |images| images.files);
    let images = match &pairs.split {
        Some(split) => in_split(stores, split, &images)?,
        None => images,
    };
    listed(stores, pairs, folders.root, images, &fields)
}

/// The folders of patterns below a common root.
struct Folders {
    root: Location,
    /// By pattern, the folder before its first star: empty, or with a slash at the end.
    below: Vec<Vec<u8>>,
}

impl Folders {
    fn of(patterns: &[&str]) -> Result<Self, ReadError> {
        let folder = |pattern: &&str| Pattern::new(pattern.as_bytes()).folder.to_vec();
        let given: Vec<Vec<u8>> = patterns.iter().map(folder).collect();
        if let Some(folders) = Self::shared(&given) {
            return Ok(folders);
        }
        let absolute = given.iter().map(|folder| {
            let text = if folder.is_empty() { b"." } else { folder.as_slice() };
            let location = Location::new(OsStr::from_bytes(text));
            let Some(path) = location.path() else { return Ok(folder.clone()) };
            let found = path.canonicalize().map_err(|error| ReadError::io(path, error))?;
            Ok([found.as_os_str().as_bytes(), b"/"].concat())
        });
        let absolute = absolute.collect::<Result<Vec<_>, ReadError>>()?;
        Self::shared(&absolute).ok_or_else(|| {
            let what = "a pattern in another store than the images".to_owned();
            let defect = ListDefect::Unread { what, expected: "patterns of one store" };
            defect.at(&Location::new(patterns.last().unwrap_or(&"")), ListPlace::default())
        })
    }

    /// The folder that all begin with, if their names below it are safe.
    fn shared(folders: &[Vec<u8>]) -> Option<Self> {
        let first = folders.first()?;
        let mut end = first.len();
        for folder in folders {
            let equal = first.iter().zip(folder).take_while(|(a, b)| a == b).count().min(end);
            let slash = first.get(..equal)?.iter().rposition(|&byte| byte == b'/');
            end = slash.map_or(0, |at| at + 1);
        }
        let root = first.get(..end)?;
        if root.ends_with(b"://") {
            return None;
        }
        let mut below = Vec::with_capacity(folders.len());
        for folder in folders {
            let rest = folder.get(end..)?;
            let name = rest.strip_suffix(b"/").unwrap_or(rest);
            if !name.is_empty() && check_new_name(name).is_err() {
                return None;
            }
            below.push(rest.to_vec());
        }
        let root = if root.is_empty() { b"." } else { root };
        Some(Self { root: Location::new(OsStr::from_bytes(root)), below })
    }

    /// The files that match `text`, one of whose `patterns` each has to, with the folder of each.
    fn matches(
        &self,
        stores: &Stores,
        text: &str,
        patterns: &[(&&str, &Vec<u8>)],
    ) -> Result<Matches, ReadError> {
        let mut files = Vec::new();
        for (pattern, folder) in patterns {
            files.extend(self.of_pattern(stores, pattern, folder)?);
        }
        if files.is_empty() {
            let text_of_error = "no file matches this pattern";
            let error = std::io::Error::new(std::io::ErrorKind::NotFound, text_of_error);
            return Err(ReadError::io(text, error));
        }
        // Each pattern has its own in order already.
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut keys = HashMap::new();
        for file in &files {
            if let Some(first) = keys.insert(file.key.as_slice(), file.path.as_slice()) {
                let stars = with_slashes(&file.key);
                let files = Box::new([first.to_vec(), file.path.clone()]);
                let defect = ListDefect::SameStars { stars, files };
                return Err(defect.at(&Location::new(text), ListPlace::default()));
            }
        }
        Ok(Matches { pattern: Location::new(text), files })
    }

    /// The files that match a pattern without alternatives, in the order of their paths.
    fn of_pattern(
        &self,
        stores: &Stores,
        pattern: &str,
        folder: &[u8],
    ) -> Result<Vec<Match>, ReadError> {
        let parsed = Pattern::new(pattern.as_bytes());
        let location = if folder.is_empty() { self.root.clone() } else { self.root.join(folder) };
        let location = match location.path() {
            Some(_) => Location::new(OsStr::from_bytes(trimmed(location.as_os_str().as_bytes()))),
            None => location,
        };
        let Opened::Folder(found) = stores.open(&location)? else {
            let found = crate::error::FileKind::RegularFile;
            return Err(ReadError::NotAFolder { location, found });
        };
        let file = |path: std::borrow::Cow<'_, [u8]>| {
            let key = parsed.capture(&path)?;
            Some(Match { path: [folder, &path].concat(), key })
        };
        Ok(found.paths().filter_map(file).collect())
    }
}

/// A path without slashes at its end; the root stays.
fn trimmed(path: &[u8]) -> &[u8] {
    match path {
        [rest @ .., b'/'] if !rest.is_empty() => rest,
        _ => path,
    }
}

/// The first image of a name, and the next one if there are several.
struct Named<'a> {
    first: &'a Match,
    second: Option<&'a Match>,
}

/// The images by the names that `name` makes of their keys.
fn by_name(images: &[Match], name: impl Fn(&[u8]) -> Vec<u8>) -> HashMap<Vec<u8>, Named<'_>> {
    let mut named: HashMap<Vec<u8>, Named<'_>> = HashMap::new();
    for image in images {
        named
            .entry(name(&image.key))
            .and_modify(|named| named.second = named.second.or(Some(image)))
            .or_insert(Named { first: image, second: None });
    }
    named
}

/// The parts of a key with slashes between them.
fn with_slashes(key: &[u8]) -> Vec<u8> {
    let parts = key.split(|&byte| byte == 0).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(&b'/')
}

/// The images that a split lists, in its order.
fn in_split(stores: &Stores, split: &Location, images: &[Match]) -> Result<Vec<Match>, ReadError> {
    let Some(source) = stores.open_file(split)? else {
        let what = "a folder".to_owned();
        let defect = ListDefect::Unread { what, expected: "a text file of names" };
        return Err(defect.at(split, ListPlace::default()));
    };
    let mut text = Vec::new();
    ReadLimits::default().read_whole(&source, &mut text)?;
    let by_path = by_name(images, with_slashes);
    let by_last =
        by_name(images, |key| key.rsplit(|&byte| byte == 0).next().unwrap_or_default().to_vec());
    let mut chosen = Vec::new();
    let mut missing: Option<(u64, &[u8])> = None;
    let mut count = 0_u64;
    let text = without_byte_order_mark(&text);
    for (line, text) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let name = text.trim_ascii();
        if name.is_empty() {
            continue;
        }
        match by_path.get(name).or_else(|| by_last.get(name)) {
            Some(Named { first, second: None }) => chosen.push((*first).clone()),
            Some(Named { first, second: Some(second) }) => {
                let name = name.to_vec();
                let files = Box::new([first.path.clone(), second.path.clone()]);
                let defect = ListDefect::Ambiguous { name, files };
                return Err(defect.at(source.location(), ListPlace::line(line)));
            }
            None => {
                count += 1;
                missing.get_or_insert((line, name));
            }
        }
    }
    let Some((line, first)) = missing else { return Ok(chosen) };
    let defect = ListDefect::Missing { count, first: first.to_vec() };
    Err(defect.at(source.location(), ListPlace::line(line)))
}

fn listed(
    stores: &Stores,
    pairs: &Pairs,
    root: Location,
    mut images: Vec<Match>,
    fields: &[Matches],
) -> Result<Listed, ReadError> {
    let by_key = |matches: &Matches| {
        let keys = matches.files.iter().map(|file| file.key.clone());
        keys.zip(0..).collect::<HashMap<_, _>>()
    };
    let places: Vec<HashMap<Vec<u8>, usize>> = fields.iter().map(by_key).collect();
    if pairs.unpaired == Unpaired::Refuse {
        check_paired(pairs, &images, fields, &places)?;
    }
    if pairs.unpaired == Unpaired::Drop {
        images.retain(|image| places.iter().all(|places| places.contains_key(&image.key)));
    }
    let mut names = Names::new();
    let too_many = |TooManyNames| ReadError::too_many_names(&root);
    for Match { path, .. } in &images {
        names.push(path).map_err(too_many)?;
    }
    let mut columns = Vec::with_capacity(fields.len());
    for ((name, _), (matches, places)) in pairs.fields.iter().zip(fields.iter().zip(&places)) {
        let mut files = FileNumbers::default();
        for Match { key, .. } in &images {
            let Some(Match { path, .. }) = places.get(key).and_then(|&at| matches.files.get(at))
            else {
                files.push(None);
                continue;
            };
            files.push(u32::try_from(names.len()).ok());
            names.push(path).map_err(too_many)?;
        }
        columns.push(Column { name: name.clone().into_bytes(), values: Values::Files(files) });
    }
    let (files, missing) = Files::named(stores, root.clone(), &names)?;
    if let Some(&first) = missing.first() {
        let first = names.path(first).into_owned();
        let defect = ListDefect::Missing { count: missing.len() as u64, first };
        return Err(defect.at(&root, ListPlace::default()));
    }
    let parts = Parts {
        kind: SourceKind::Manifest,
        location: root,
        samples: u32::try_from(images.len()).unwrap_or(u32::MAX),
        names,
        labels: Vec::new(),
        class_names: Vec::new(),
        columns,
        limits: ReadLimits::default(),
        notes: Vec::new(),
    };
    Ok(Listed::new(files, parts))
}

/// Fails for images without a partner and, unless a split chooses among them, for files without an
/// image.
fn check_paired(
    pairs: &Pairs,
    images: &[Match],
    fields: &[Matches],
    places: &[HashMap<Vec<u8>, usize>],
) -> Result<(), ReadError> {
    let image = Location::new(&pairs.image);
    let unpaired = |of: &[Match], other: &Location, is_paired: &dyn Fn(&[u8]) -> bool| {
        let mut without = of.iter().filter(|file| !is_paired(&file.key));
        let first = without.next()?.path.clone();
        let count = 1 + without.count() as u64;
        Some(ListDefect::Unpaired { count, of: of.len() as u64, other: other.clone(), first })
    };
    let keys: HashSet<&[u8]> = images.iter().map(|image| image.key.as_slice()).collect();
    for (matches, places) in fields.iter().zip(places) {
        let of_images = unpaired(images, &matches.pattern, &|key| places.contains_key(key));
        if let Some(defect) = of_images {
            return Err(defect.at(&image, ListPlace::default()));
        }
        let of_fields = unpaired(&matches.files, &image, &|key| keys.contains(key));
        if let Some(defect) = of_fields.filter(|_| pairs.split.is_none()) {
            return Err(defect.at(&matches.pattern, ListPlace::default()));
        }
    }
    Ok(())
}
