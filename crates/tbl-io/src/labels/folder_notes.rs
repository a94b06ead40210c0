//! Notes on folders: classes that look like splits, and folders that look like classes.

use std::collections::BTreeSet;
use std::path::Path;

use super::folders::Classes;
use crate::location::Location;
use crate::note::Note;
use crate::sample::{SampleSource, SourceKind};

/// Usual names of the folders that a data set is split into.
const SPLITS: &[&str] = &[
    "train",
    "training",
    "val",
    "valid",
    "validation",
    "dev",
    "eval",
    "test",
    "testing",
    "trainval",
];

/// Usual names of the folders of a data set whose images have masks or boxes.
const PARTS: &[&str] = &[
    "image",
    "images",
    "img",
    "imgs",
    "mask",
    "masks",
    "label",
    "labels",
    "annotation",
    "annotations",
];

/// The note on class folders with such names: those of one source, or of all sources together.
pub(super) fn like_splits(classes: &Classes) -> Option<Note> {
    let of_source = classes.of_source.iter().map(|of_source| of_source.values().copied().collect());
    let of_source: Vec<BTreeSet<usize>> = of_source.collect();
    let name = |number: usize| classes.names.get(number).cloned().unwrap_or_default();
    let all = of_source.iter().flatten().copied().collect();
    let is_known = |classes: &&BTreeSet<usize>, known: &[&str]| {
        let name = |&number: &usize| name(number).to_ascii_lowercase();
        classes.len() > 1 && classes.iter().map(name).all(|name| known.contains(&name.as_str()))
    };
    let found = of_source
        .iter()
        .chain([&all])
        .find(|classes| is_known(classes, SPLITS) || is_known(classes, PARTS))?;
    Some(Note::FoldersLikeSplits { names: found.iter().map(|&number| name(number)).collect() })
}

/// The note on folders whose samples have neither labels nor class folders, unless there is at most
/// one. `is_unlabelled` tells by the number of a source whether its samples have no labels.
pub(super) fn separate_folders(
    sources: &[&dyn SampleSource],
    is_unlabelled: impl Fn(usize) -> bool,
) -> Option<Note> {
    let folders: Vec<&Path> = sources
        .iter()
        .enumerate()
        .filter(|(number, source)| source.kind() == SourceKind::Folder && is_unlabelled(*number))
        .filter(|(_, source)| source.sample_count() > 0)
        .map(|(_, source)| Path::new(source.location().as_os_str()))
        .collect();
    let &[first, _, ..] = folders.as_slice() else { return None };
    let parent = first.parent().filter(|parent| {
        folders.iter().all(|folder| folder.file_name().is_some() && folder.parent() == Some(parent))
    });
    let here = Path::new(".");
    let parent = parent.map(|parent| if parent.as_os_str().is_empty() { here } else { parent });
    let parent = parent.map(Location::new);
    Some(Note::SeparateFolders { folders: folders.len() as u64, first: first.into(), parent })
}
