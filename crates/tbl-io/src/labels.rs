//! One label per sample over all the sources of a data set, and what the classes are called.

use std::collections::{BTreeSet, HashMap};

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::sample::SampleSource;

/// The labels of a data set that consists of one or more sources.
///
/// Explicit labels (`.cls`, `.json`, TBL) count when any sample of any source has one. Otherwise
/// class folders give them: the first folder below the one that all samples share, the classes
/// sorted by name and numbered from 0. A single class is none.
///
/// ```
/// use tbl_io::{Folder, LabelOrigin, Labels, SampleSource};
///
/// let root = tempfile::tempdir()?;
/// for class in ["dogs", "cats"] {
///     std::fs::create_dir(root.path().join(class))?;
///     std::fs::write(root.path().join(class).join("1.jpg"), b"...")?;
/// }
/// let sources: [Box<dyn SampleSource>; 1] = [Box::new(Folder::open(root.path())?)];
/// let labels = Labels::resolve(&sources)?;
/// assert_eq!(labels.origin(), LabelOrigin::ClassFolders);
/// assert_eq!(labels.class_names(), ["cats", "dogs"]);
/// assert_eq!(labels.label(0, 1), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Labels {
    /// By source and sample; [`NONE`] for a sample without one. Empty for a source without any.
    labels: Vec<Vec<i64>>,
    class_names: Vec<String>,
    origin: LabelOrigin,
}

/// Where labels come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelOrigin {
    /// There are none.
    None,
    /// They are stored with the samples.
    Explicit,
    /// They follow from the folders that the samples lie in.
    ClassFolders,
}

const NONE: i64 = i64::MIN;

impl Labels {
    /// Finds the labels of all samples of `sources`: 8 bytes for each.
    ///
    /// Labels that cannot be read are none; reading the sample reports the damage.
    ///
    /// # Errors
    /// [`ReadError::Io`] when an entry or a label cannot be read, [`ReadError::LabelWithoutClass`]
    /// when sources have different class names and a label is beyond those of its own.
    pub fn resolve(sources: &[Box<dyn SampleSource>]) -> Result<Self, ReadError> {
        let mut folders = Folders::default();
        let mut explicit = Vec::with_capacity(sources.len());
        let mut folder_ids = Vec::with_capacity(sources.len());
        let mut any_explicit = false;
        for source in sources {
            // Lists that cannot be read leave it to each sample what is wrong with it.
            let stored = unless_damaged(source.stored_labels())?.flatten();
            let stored = stored.filter(|labels| labels.iter().any(|&label| label != NONE));
            let (mut labels, mut ids) = (Vec::new(), Vec::new());
            if let Some(stored) = stored {
                any_explicit = true;
                explicit.push(stored);
                folder_ids.push(ids);
                continue;
            }
            for index in 0..source.sample_count() {
                let entry = unless_damaged(source.entry(index))?;
                let (label, key) = entry.map_or((None, None), |entry| (entry.label, entry.key));
                any_explicit |= label.is_some();
                labels.push(label.unwrap_or(NONE));
                if !any_explicit {
                    ids.push(key.map_or(NO_FOLDER, |key| folders.id(&key)));
                }
            }
            explicit.push(labels);
            folder_ids.push(ids);
        }
        if any_explicit {
            let class_names = merge_class_names(sources, &mut explicit)?;
            return Ok(Self { labels: explicit, class_names, origin: LabelOrigin::Explicit });
        }
        drop(explicit);
        Ok(Self::from_folders(&folders, folder_ids))
    }

    /// The labels that class folders give to samples with these names, as those of source 0.
    pub(crate) fn of_class_folders<'a>(
        keys: impl Iterator<Item = Option<std::borrow::Cow<'a, [u8]>>>,
    ) -> Self {
        let mut folders = Folders::default();
        let ids = keys.map(|key| key.map_or(NO_FOLDER, |key| folders.id(&key))).collect();
        Self::from_folders(&folders, vec![ids])
    }

    fn from_folders(folders: &Folders, folder_ids: Vec<Vec<u32>>) -> Self {
        let (class_of, class_names) = folders.classes();
        if class_names.len() < 2 {
            let labels = vec![Vec::new(); folder_ids.len()];
            return Self { labels, class_names: Vec::new(), origin: LabelOrigin::None };
        }
        let label = |id: u32| class_of.get(id as usize).copied().unwrap_or(NONE);
        let labels =
            folder_ids.into_iter().map(|ids| ids.into_iter().map(label).collect()).collect();
        Self { labels, class_names, origin: LabelOrigin::ClassFolders }
    }

    /// The label of sample `index` of source number `source`.
    pub fn label(&self, source: usize, index: u64) -> Option<i64> {
        let index = usize::try_from(index).ok()?;
        self.labels.get(source)?.get(index).copied().filter(|&label| label != NONE)
    }

    /// The classes' names by label; empty when they have none. Names that are not UTF-8 are
    /// escaped.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// Where the labels come from.
    pub fn origin(&self) -> LabelOrigin {
        self.origin
    }
}

fn unless_damaged<T>(result: Result<T, ReadError>) -> Result<Option<T>, ReadError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Stands for the folder of a sample without a name.
const NO_FOLDER: u32 = u32::MAX;

/// The distinct folders of samples.
#[derive(Default)]
struct Folders {
    ids: HashMap<Vec<u8>, u32>,
    last: Option<(Vec<u8>, u32)>,
}

impl Folders {
    fn id(&mut self, key: &[u8]) -> u32 {
        let slash = key.iter().rposition(|&byte| byte == b'/');
        let folder = &key[..slash.map_or(0, |at| at + 1)];
        if let Some((last, id)) = &self.last
            && last == folder
        {
            return *id;
        }
        let new = u32::try_from(self.ids.len()).unwrap_or(NO_FOLDER);
        let id = *self.ids.entry(folder.to_vec()).or_insert(new);
        self.last = Some((folder.to_vec(), id));
        id
    }

    /// Each folder's label by id, and the classes in the order of their names.
    fn classes(&self) -> (Vec<i64>, Vec<String>) {
        let shared = self.shared_prefix();
        let class = |folder: &[u8]| components(folder).nth(shared).map(<[u8]>::to_vec);
        let names: BTreeSet<Vec<u8>> = self.ids.keys().filter_map(|folder| class(folder)).collect();
        let labels: HashMap<&[u8], i64> = names.iter().map(Vec::as_slice).zip(0..).collect();
        let mut class_of = vec![NONE; self.ids.len()];
        for (folder, &id) in &self.ids {
            let label = class(folder).and_then(|name| labels.get(name.as_slice()).copied());
            if let (Some(label), Some(slot)) = (label, class_of.get_mut(id as usize)) {
                *slot = label;
            }
        }
        (class_of, names.iter().map(|name| Escaped(name).to_string()).collect())
    }

    /// How many leading components all folders share.
    fn shared_prefix(&self) -> usize {
        let mut folders = self.ids.keys();
        let Some(first) = folders.next() else { return 0 };
        folders.fold(components(first).count(), |shared, folder| {
            let equal = components(first).zip(components(folder)).take_while(|(a, b)| a == b);
            shared.min(equal.count())
        })
    }
}

/// The parts of a folder's path; `.` and empty ones say nothing.
fn components(folder: &[u8]) -> impl Iterator<Item = &[u8]> {
    folder.split(|&byte| byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// Brings the class numbers of several sources to one list of names. Sources with equal lists
/// keep their numbers; different ones are renumbered by the sorted union of their names. There a
/// negative label, which many writers mean as none, becomes none.
fn merge_class_names(
    sources: &[Box<dyn SampleSource>],
    labels: &mut [Vec<i64>],
) -> Result<Vec<String>, ReadError> {
    let labelled = || {
        let has_labels = |labels: &[i64]| labels.iter().any(|&label| label != NONE);
        sources.iter().zip(labels.iter()).filter(move |(_, labels)| has_labels(labels))
    };
    let mut lists = labelled().map(|(source, _)| source.class_names());
    let first = lists.next().unwrap_or_default();
    if lists.all(|list| list == first) {
        return Ok(first.to_vec());
    }
    if labelled().any(|(source, _)| source.class_names().is_empty()) {
        // Without names on every side the numbers are all there is to go by.
        return Ok(Vec::new());
    }
    let union: BTreeSet<&str> =
        labelled().flat_map(|(source, _)| source.class_names()).map(String::as_str).collect();
    let number: HashMap<&str, i64> = union.iter().copied().zip(0..).collect();
    for (source, labels) in sources.iter().zip(labels) {
        let names = source.class_names();
        for (index, label) in (0..).zip(labels) {
            let Ok(class) = usize::try_from(*label) else {
                *label = NONE;
                continue;
            };
            let merged = names.get(class).and_then(|name| number.get(name.as_str()));
            *label = *merged.ok_or_else(|| ReadError::LabelWithoutClass {
                path: source.path().to_owned(),
                index,
                label: *label,
                class_count: names.len(),
            })?;
        }
    }
    Ok(union.into_iter().map(str::to_owned).collect())
}
