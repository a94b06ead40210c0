//! Opening several files of tokens.

use std::ffi::OsStr;

use tbl_io::{FileKind, Location, Opened, ReadError, SampleSource, Source, Stores, TokensDefect};

use crate::file::{TokenFile, TokenOptions};
use crate::format::typed;
use crate::index::FileIndex;
use crate::order::MegatronOrder;
use crate::sequences::Sequences;
use crate::source::TokenSource;

/// Opens files of tokens, whose sequences are samples. Locations are those of
/// [`open_all_in`](tbl_io::open_all_in), and each is a file, or an `index.json` of LitData or MDS, or
/// the folder of one, which stands for the files that it lists. Each file that is not known here is
/// shown to `other` first, which opens files of other crates.
///
/// # Errors
/// As for [`open_all_in`](tbl_io::open_all_in), [`TokenFile::open`] and [`TokenSource::new`], of the
/// first that does not open; [`ReadError::NotAFile`] for a folder without an index;
/// [`TokensDefect::OrderOf`] if there is an order, and several files or other sequences than windows.
pub fn open_all_in<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    options: &TokenOptions,
    sequences: Sequences,
    other: impl Fn(&Source, &TokenOptions) -> Result<Option<TokenFile>, ReadError> + Sync,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    #[cfg(feature = "text")]
    if options.text.is_some() {
        return open_texts(stores, locations, options, sequences);
    }
    let file = |source: Source| match other(&source, options)? {
        Some(file) => typed(file, options),
        None => TokenFile::open(stores, source, options),
    };
    let open = |source: Source, file: &dyn Fn(Source) -> Result<TokenFile, ReadError>| {
        let file = file(source)?;
        let file = match options.end_token {
            Some(end) => file.with_ends(end)?,
            None => file,
        };
        match &options.order {
            None => TokenSource::new(file, sequences),
            Some(order) => {
                TokenSource::ordered(file, sequences, MegatronOrder::open(stores, order)?)
            }
        }
    };
    let mut sources = Vec::new();
    let mut plain: Vec<Location> = Vec::new();
    let open_plain = |plain: &mut Vec<Location>| {
        let opened = |opened| Ok(Box::new(open(source_of(opened)?, &file)?) as _);
        tbl_io::open_each(stores, &std::mem::take(plain), opened)
    };
    for location in locations {
        for location in stores.expand(location)? {
            let Some(index) = FileIndex::find(stores, &location)? else {
                plain.push(location);
                continue;
            };
            sources.extend(open_plain(&mut plain)?);
                // Such as JSON Lines, which would be lists of files of images.
                if tbl_io::is_list(&location) {
                    let source = TokensDefect::Texts;
                    return Err(ReadError::Tokens { location, offset: 0, source });
                }
            let listed = |source| index.open(source, options);
            let opened = |opened| Ok(Box::new(open(source_of(opened)?, &listed)?) as _);
            sources.extend(tbl_io::open_each(stores, index.files(), opened)?);
        }
    }
    sources.extend(open_plain(&mut plain)?);
    match sources.get(1) {
        Some(second) if options.order.is_some() => {
            let source = TokensDefect::OrderOf { found: "not with several" };
            Err(ReadError::Tokens { location: second.location().clone(), offset: 0, source })
        }
        _ => Ok(sources),
    }
}

fn source_of(opened: Opened) -> Result<Source, ReadError> {
    match opened {
        Opened::File(source) => Ok(source),
        Opened::Folder(folder) => {
            let location = folder.location().clone();
            Err(ReadError::NotAFile { location, found: FileKind::Directory })
        }
    }
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
