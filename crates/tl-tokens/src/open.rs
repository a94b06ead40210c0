//! Opening several files of tokens.

#[cfg(feature = "text")]
use std::any::Any;
use std::ffi::OsStr;

use tbl_io::{FileKind, Location, Opened, ReadError, SampleSource, Source, Stores, TokensDefect};

use crate::file::{TokenFile, TokenOptions};
use crate::format::typed;
use crate::index::FileIndex;
use crate::order::MegatronOrder;
use crate::sequences::Sequences;
use crate::source::TokenSource;
#[cfg(feature = "text")]
use crate::text::{TextDocuments, TextInput, TextKind, TextLines, index_texts_in};

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
    if let Some(input) = &options.text {
        return open_texts(stores, locations, input, sequences);
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
    for location in stores.expand_all(locations)? {
        let Some(index) = FileIndex::find(stores, &location)? else {
            // Such as JSON Lines, which would be lists of files of images.
            if tbl_io::is_list(&location) {
                let source = TokensDefect::Texts;
                return Err(ReadError::Tokens { location, offset: 0, source });
            }
            plain.push(location);
            continue;
        };
        sources.extend(open_plain(&mut plain)?);
        let listed = |source| index.open(source, options);
        let opened = |opened| Ok(Box::new(open(source_of(opened)?, &listed)?) as _);
        sources.extend(tbl_io::open_each(stores, index.files(), opened)?);
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

/// Opens files of texts, and those of shard indexes. JSON Lines are not the manifests that
/// [`open_each`](tbl_io::open_each) takes them for.
#[cfg(feature = "text")]
fn open_texts<L: AsRef<OsStr>>(
    stores: &Stores,
    locations: &[L],
    input: &TextInput,
    sequences: Sequences,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let indexed = index_texts_in(stores.clone());
    let mut sources: Vec<Box<dyn SampleSource>> = Vec::new();
    let mut push = |text: TextDocuments| {
        let file = TokenFile::of_text(text)?;
        sources.push(Box::new(TokenSource::new(file, sequences)?));
        Ok::<_, ReadError>(())
    };
    for location in stores.expand_all(locations)? {
        let source = stores.open_file(&location)?.ok_or_else(|| {
            let location = location.clone();
            ReadError::NotAFile { location, found: FileKind::Directory }
        })?;
        if let Some(shards) = tbl_io::open_shards(&indexed, &source)? {
            for shard in shards {
                push(TextDocuments::of_lines(lines_of(shard)?, input))?;
            }
            continue;
        }
        let shard = match TextKind::of(&source)? {
            TextKind::Lines => tbl_io::open_indexed(&indexed, &location)?,
            TextKind::Whole | TextKind::Rows => None,
        };
        push(match shard {
            Some(shard) => TextDocuments::of_lines(lines_of(shard)?, input),
            None => TextDocuments::open(stores, source, input)?,
        })?;
    }
    tbl_io::allow_open_files(sources.len());
    Ok(sources)
}

/// The lines that a shard index lists of a file.
#[cfg(feature = "text")]
fn lines_of(shard: Box<dyn SampleSource>) -> Result<TextLines, ReadError> {
    let location = shard.location().clone();
    let shard: Box<dyn Any> = shard;
    shard.downcast().map(|lines| *lines).map_err(|_| {
        let source = TokensDefect::Kind { what: "lines of texts", expected: "JSON Lines" };
        ReadError::Tokens { location, offset: 0, source }
    })
}
