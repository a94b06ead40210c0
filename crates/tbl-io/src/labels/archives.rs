//! Archives of one class each, as ImageNet has them: `n01440764.tar` with `n01440764_36.JPEG`.

use std::path::Path;

use crate::error::ReadError;
use crate::sample::{SampleSource, SourceKind};

/// The folder that the samples of each source count as lying in, if every source is an archive whose
/// name is a number of `WordNet` (`n` and eight digits) that all its samples start with, in no folder.
/// A single archive has one class, which is none.
pub(super) fn class_folders(
    sources: &[&dyn SampleSource],
) -> Result<Option<Vec<Vec<u8>>>, ReadError> {
    let named: Option<Vec<&str>> = sources.iter().map(|source| wordnet_number(*source)).collect();
    let Some(named) = named.filter(|named| named.iter().any(|name| *name != named[0])) else {
        return Ok(None);
    };
    for (source, name) in sources.iter().zip(&named) {
        for index in 0..source.sample_count() {
            let entry = match source.entry(index) {
                Ok(entry) => entry,
                Err(error) if error.is_damage() => continue,
                Err(error) => return Err(error),
            };
            let key = entry.key.unwrap_or_default();
            let rest = key.strip_prefix(name.as_bytes());
            if rest.is_none_or(|rest| !rest.starts_with(b"_") || rest.contains(&b'/')) {
                return Ok(None);
            }
        }
    }
    Ok(Some(named.iter().map(|name| format!("{name}/").into_bytes()).collect()))
}

/// The name of an archive up to its first dot, if it is a number of `WordNet`.
fn wordnet_number(source: &dyn SampleSource) -> Option<&str> {
    if source.kind() != SourceKind::Tar {
        return None;
    }
    let name = Path::new(source.location().as_os_str()).file_name()?.to_str()?;
    let name = name.split('.').next()?;
    let digits = name.strip_prefix('n')?;
    let is_number = digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then_some(name)
}
