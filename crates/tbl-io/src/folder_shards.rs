//! Folders of files that hold samples, in a format that another crate reads: the folder stands for its
//! files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use tbl_format::SampleFormat;

use crate::error::ReadError;
use crate::escape::Escaped;
use crate::folder::Folder;
use crate::location::Location;
use crate::saved;
use crate::storage::Stores;

/// The files of a registered format in a folder without images, in the order of their names or of the
/// list that `datasets` saves with them; `None` for other folders.
///
/// # Errors
/// [`ReadError::Io`] for a folder with several splits, such as `train-00000-of-00002.parquet` and
/// `test-00000-of-00001.parquet`, or the rows and episodes of LeRobot, and for a list of `datasets`
/// that cannot be read.
pub(crate) fn files_of(
    stores: &Stores,
    location: &Location,
    folder: &Folder,
) -> Result<Option<Vec<Location>>, ReadError> {
    if stores.formats().is_empty() {
        return Ok(None);
    }
    let has_extension = |name: &[u8]| {
        let extension = name.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
        let mut formats = stores.formats().iter();
        formats.any(|format| extension == format.extension().as_bytes())
    };
    let names: Vec<_> = folder.paths().collect();
    let set = names.iter().map(|name| &**name).collect();
    if let Some(files) = saved::files_of(stores, location, &set)? {
        return Ok(Some(files));
    }
    let mut files = Vec::new();
    let mut is_lerobot = false;
    for name in names {
        is_lerobot |= *name == *b"meta/info.json";
        if SampleFormat::from_file_name(&name).is_image() {
            return Ok(None);
        }
        if has_extension(&name) {
            files.push(name);
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    let splits: BTreeSet<&[u8]> = files.iter().map(|name| split(name)).collect();
    if splits.len() > 1 {
        return Err(several(location, &splits, &files, is_lerobot));
    }
    Ok(Some(files.iter().map(|name| location.join(name)).collect()))
}

/// The part of a path that the files of a split share: the folder, and the name up to its first number.
fn split(path: &[u8]) -> &[u8] {
    let base = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let name = path.get(base..).unwrap_or_default();
    let end = name.iter().position(|byte| byte.is_ascii_digit() || *byte == b'.');
    path.get(..base + end.unwrap_or(name.len())).unwrap_or(path)
}

/// Splits that a message names.
const LISTED: usize = 6;

fn several(
    location: &Location,
    splits: &BTreeSet<&[u8]>,
    files: &[Cow<'_, [u8]>],
    is_lerobot: bool,
) -> ReadError {
    let names: Vec<String> =
        splits.iter().take(LISTED).map(|split| format!("{}*", Escaped(split))).collect();
    let more = if splits.len() > LISTED { ", .." } else { "" };
    let extension = files.first().and_then(|name| name.rsplit(|&byte| byte == b'.').next());
    let lerobot =
        "; a data set of LeRobot is opened by `LeRobotDataset` in Python, `LeRobot` in Rust";
    let text = format!(
        "has {} splits: {}{more}; pass the {} files of one{}",
        splits.len(),
        names.join(", "),
        Escaped(extension.unwrap_or_default()),
        if is_lerobot { lerobot } else { "" },
    );
    ReadError::io(location, io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_split_share_their_name_up_to_a_number() {
        for (path, expected) in [
            ("data/train-00000-of-00002.parquet", "data/train-"),
            ("train.parquet", "train"),
            ("default/train/0000.parquet", "default/train/"),
            ("2024/part-3-a.snappy.parquet", "2024/part-"),
            ("name", "name"),
        ] {
            assert_eq!(split(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }
}
