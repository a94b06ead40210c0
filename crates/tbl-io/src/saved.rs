//! Folders that `datasets` of Hugging Face saves: Arrow files that `state.json` lists, and a folder of
//! them for each split.
//!
//! Other Arrow files in such a folder are caches of `map` and `filter`, and not its samples.

use std::collections::BTreeSet;
use std::io;

use serde::Deserialize;

use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::location::Location;
use crate::storage::Stores;

/// The file that lists those of a data set.
const STATE: &[u8] = b"state.json";

/// The file with the features, which tells the folder from others with a `state.json`.
const INFO: &[u8] = b"dataset_info.json";

/// The file that lists the splits.
const SPLITS: &[u8] = b"dataset_dict.json";

/// The files of a data set, in order.
#[derive(Deserialize)]
struct State {
    #[serde(rename = "_data_files")]
    data_files: Vec<DataFile>,
    /// The files with an order of the rows, which `datasets` before version 2 saved.
    #[serde(rename = "_indices_data_files", default)]
    indices: Option<Vec<DataFile>>,
}

#[derive(Deserialize)]
struct DataFile {
    filename: String,
}

#[derive(Deserialize)]
struct Splits {
    splits: Vec<String>,
}

/// The files of a saved folder with the files `names`; `None` for other folders.
///
/// # Errors
/// [`ReadError::Io`] for several splits, and for lists that cannot be read or name other files.
pub(crate) fn files_of(
    stores: &Stores,
    folder: &Location,
    names: &BTreeSet<&[u8]>,
) -> Result<Option<Vec<Location>>, ReadError> {
    if names.contains(SPLITS) {
        let location = folder.join(SPLITS);
        let Splits { splits } = read(stores, &location)?;
        let [split] = &*splits else {
            let text = format!(
                "has the splits {}; open the folder of one",
                splits.join(", ").escape_default()
            );
            return Err(ReadError::io(folder, io::Error::new(io::ErrorKind::InvalidInput, text)));
        };
        let prefix = format!("{split}/");
        return listed(stores, folder, &prefix, names).map(Some);
    }
    let is_saved = names.contains(STATE) && names.contains(INFO);
    if is_saved { listed(stores, folder, "", names).map(Some) } else { Ok(None) }
}

/// The files that `state.json` lists in the part of a folder with this prefix.
fn listed(
    stores: &Stores,
    folder: &Location,
    prefix: &str,
    names: &BTreeSet<&[u8]>,
) -> Result<Vec<Location>, ReadError> {
    let state = [prefix.as_bytes(), STATE].concat();
    let location = folder.join(&state);
    let invalid =
        |text: String| ReadError::io(&location, io::Error::new(io::ErrorKind::InvalidData, text));
    if !names.contains(&*state) {
        return Err(ReadError::io(location, io::ErrorKind::NotFound.into()));
    }
    let State { data_files, indices } = read(stores, &location)?;
    if indices.is_some_and(|indices| !indices.is_empty()) {
        let text = "has an order of its rows in files of indices, which versions before 2 of \
                    `datasets` wrote; load and save it with a later one";
        return Err(invalid(text.to_owned()));
    }
    let mut files = Vec::new();
    for DataFile { filename } in data_files {
        let name = [prefix.as_bytes(), filename.as_bytes()].concat();
        // A name of the listing leads to no other folder.
        if !names.contains(&*name) {
            let name = filename.escape_default();
            return Err(invalid(format!("lists the file {name}, which does not exist")));
        }
        files.push(folder.join(&name));
    }
    Ok(files)
}

fn read<T: for<'d> Deserialize<'d>>(stores: &Stores, location: &Location) -> Result<T, ReadError> {
    let source = stores.open_file(location)?;
    let source =
        source.ok_or_else(|| ReadError::io(location, io::ErrorKind::IsADirectory.into()))?;
    let mut bytes = Vec::new();
    ReadLimits::default().read_whole(&source, &mut bytes)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let text = format!("expected a list as `save_to_disk` of `datasets` writes it: {error}");
        ReadError::io(location, io::Error::new(io::ErrorKind::InvalidData, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &std::path::Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    /// The files of a folder with these files, or the error, both without the folder's path.
    fn check(files: &[(&str, &str)], expected: Result<Option<&[&str]>, &str>) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), files);
        let names = files.iter().map(|(name, _)| name.as_bytes()).collect();
        let location = Location::new(folder.path());
        let found = files_of(&Stores::new(), &location, &names);
        let root = format!("{location}/");
        let relative = |text: String| text.replace(&root, "").replace(&location.to_string(), ".");
        let found = found.map_err(|error| relative(error.to_string())).map(|files| {
            let files = files?.into_iter().map(|file| relative(file.to_string()));
            Some(files.collect::<Vec<_>>())
        });
        let expected = expected.map_err(str::to_owned).map(|files| {
            files.map(|files| files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>())
        });
        assert_eq!(found, expected);
    }

    const INFO: (&str, &str) = ("dataset_info.json", "{}");

    const TWO: &str = r#"{"_data_files": [{"filename": "b.arrow"}, {"filename": "a.arrow"}]}"#;

    #[test]
    fn the_list_has_the_files_and_their_order() {
        check(&[("a.arrow", "")], Ok(None));
        let state = ("state.json", TWO);
        let files = [("a.arrow", ""), ("b.arrow", ""), ("cache-1.arrow", "")];
        check(&[state, INFO, files[0], files[1], files[2]], Ok(Some(&["b.arrow", "a.arrow"])));
        check(&[state, files[0], files[1]], Ok(None));
        let missing = "state.json: lists the file b.arrow, which does not exist";
        check(&[state, INFO, files[0]], Err(missing));
        let outside = r#"{"_data_files": [{"filename": "../a.arrow"}]}"#;
        let missing = "state.json: lists the file ../a.arrow, which does not exist";
        check(&[("state.json", outside), INFO, files[0]], Err(missing));
    }

    #[test]
    fn a_folder_of_one_split_is_that_split() {
        let one = r#"{"splits": ["train"]}"#;
        let list = ("train/state.json", TWO);
        let files = [("train/a.arrow", ""), ("train/b.arrow", "")];
        let all = [("dataset_dict.json", one), list, files[0], files[1]];
        check(&all, Ok(Some(&["train/b.arrow", "train/a.arrow"])));
        let two = r#"{"splits": ["train", "test"]}"#;
        let error = ".: has the splits train, test; open the folder of one";
        check(&[("dataset_dict.json", two), list, files[0], files[1]], Err(error));
        let error = "train/state.json: entity not found";
        check(&[("dataset_dict.json", one), files[0], files[1]], Err(error));
    }

    #[test]
    fn other_lists_are_errors() {
        let old = r#"{"_data_files": [], "_indices_data_files": [{"filename": "i.arrow"}]}"#;
        let error = "state.json: has an order of its rows in files of indices, which versions before \
                     2 of `datasets` wrote; load and save it with a later one";
        check(&[("state.json", old), INFO], Err(error));
        let error = "state.json: expected a list as `save_to_disk` of `datasets` writes it: missing \
                     field `_data_files` at line 1 column 2";
        check(&[("state.json", "{}"), INFO], Err(error));
    }
}
