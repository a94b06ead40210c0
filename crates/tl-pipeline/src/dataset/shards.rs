//! Folders of archives and TBL files: the samples that were meant are in these files.

use tbl_io::{SampleSource, SourceKind};

use crate::error::EmptyError;

/// The extensions of such files. An index stands for the others, so it comes first.
const EXTENSIONS: [&str; 3] = ["tlidx", "tar", "tbl"];

/// Samples of a folder that are looked at before all are counted.
const LOOKED_AT: u64 = 64;

/// The error for a folder with such files and without images, by their names.
pub(super) fn in_folder(source: &dyn SampleSource) -> Option<EmptyError> {
    let count = source.sample_count();
    let is_shard = |index| name(source, index).is_some_and(|name| extension(&name).is_some());
    if source.kind() != SourceKind::Folder || !(0..count.min(LOOKED_AT)).any(is_shard) {
        return None;
    }
    let mut found: [Vec<Vec<u8>>; EXTENSIONS.len()] = Default::default();
    for index in 0..count {
        if source.facts(index).is_ok_and(|facts| facts.format.is_image()) {
            return None;
        }
        let Some(name) = name(source, index) else { continue };
        if let Some(place) = extension(&name) {
            found[place].push(name);
        }
    }
    let (extension, names) =
        EXTENSIONS.into_iter().zip(found).find(|(_, names)| !names.is_empty())?;
    let folder = |name: &[u8]| name.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let first = names.first()?;
    let folder_of_first = &first[..folder(first)];
    let pattern = match &names[..] {
        [only] => only.clone(),
        all if all.iter().all(|name| &name[..folder(name)] == folder_of_first) => {
            [folder_of_first, b"*.", extension.as_bytes()].concat()
        }
        _ => [b"**/*.", extension.as_bytes()].concat(),
    };
    let location = source.location().clone();
    let pattern = location.join(&pattern);
    Some(EmptyError::Shards { location, count: names.len() as u64, extension, pattern })
}

fn name(source: &dyn SampleSource, index: u64) -> Option<Vec<u8>> {
    source.entry(index).ok()?.key.map(std::borrow::Cow::into_owned)
}

/// The place of a name's extension in [`EXTENSIONS`].
fn extension(name: &[u8]) -> Option<usize> {
    let last = name.rsplit(|&byte| byte == b'.').next()?;
    EXTENSIONS.iter().position(|extension| last == extension.as_bytes())
}
