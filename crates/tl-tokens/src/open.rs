//! Opening several files of tokens.

use std::ffi::OsStr;

use tbl_io::{FileKind, Opened, ReadError, SampleSource, Stores};

use crate::file::{TokenFile, TokenOptions};
use crate::sequences::Sequences;
use crate::source::TokenSource;

/// Opens files of tokens, whose sequences are samples. Locations are those of
/// [`open_all_in`](tbl_io::open_all_in), and each is a file.
///
/// # Errors
/// As for [`open_all_in`](tbl_io::open_all_in), [`TokenFile::open`] and [`TokenSource::new`], of the
/// first that does not open; [`ReadError::NotAFile`] for a folder.
pub fn open_all_in<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    options: &TokenOptions,
    sequences: Sequences,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    #[cfg(feature = "text")]
    if options.text.is_some() {
        return open_texts(stores, locations, options, sequences);
    }
    let open = |opened| match opened {
        Opened::Folder(folder) => {
            let location = folder.location().clone();
            Err(ReadError::NotAFile { location, found: FileKind::Directory })
        }
        Opened::File(source) => {
            let file = TokenFile::open(stores, source, options)?;
            Ok(Box::new(TokenSource::new(file, sequences)?) as _)
        }
    };
    tbl_io::open_each(stores, locations, open)
}

/// Opens files of texts. JSON Lines are not the manifests that [`open_each`](tbl_io::open_each) takes
/// them for.
#[cfg(feature = "text")]
fn open_texts<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    options: &TokenOptions,
    sequences: Sequences,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let mut sources: Vec<Box<dyn SampleSource>> = Vec::new();
    for location in locations {
        for location in stores.expand(location)? {
            let source = stores.open_file(&location)?.ok_or_else(|| {
                let location = location.clone();
                ReadError::NotAFile { location, found: FileKind::Directory }
            })?;
            let file = TokenFile::open(stores, source, options)?;
            sources.push(Box::new(TokenSource::new(file, sequences)?));
        }
    }
    tbl_io::allow_open_files(sources.len());
    Ok(sources)
}
