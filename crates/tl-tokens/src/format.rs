//! The formats of token files: which one a file has, and where its tokens lie.

mod litdata;
mod llm_c;
mod mds;
mod megatron;
mod npy;
mod safetensors;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use tbl_io::{Location, ReadError, Source, Stores, TokensDefect};

use crate::file::{TokenFile, TokenOptions};
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;

pub(crate) use litdata::{Chunk, Config, open as open_chunk};
pub(crate) use mds::{Mds, Shard};
pub(crate) use megatron::open as megatron;
#[cfg(feature = "text")]
pub(crate) use megatron::{HEADER_BYTES, header};

/// The number of first bytes that identify a format.
const FRONT_BYTES: usize = 16;

/// Opens a file by its first bytes, by its name, or as raw tokens of the type that the caller gives.
pub(crate) fn open(
    stores: &Stores,
    source: Source,
    options: &TokenOptions,
) -> Result<TokenFile, ReadError> {
    let front = front(&source)?;
    let name = source.location().extension().and_then(OsStr::to_str).unwrap_or_default();
    if megatron::is(&front) || name.eq_ignore_ascii_case("idx") {
        let tokens = sibling(stores, source.location(), "idx", "bin")?;
        return typed(TokenFile::open_megatron(tokens, &source)?, options);
    }
    let layout = if npy::is(&front) {
        npy::layout(&source, 1)?
    } else if name.eq_ignore_ascii_case("safetensors") {
        safetensors::layout(&source, options.tensor.as_deref())?
    } else if let Some(layout) = llm_c::layout(&source, &front)? {
        layout
    } else if let Some(number) = options.number {
        let bytes = source.len();
        Layout { format: TokenFormat::Raw, number, offset: 0, bytes }
    } else {
        let index = named(source.location(), "bin", "idx").map(|name| stores.open_existing(&name));
        return match index.transpose()?.flatten() {
            Some(index) => TokenFile::open_megatron(source, &index),
            None => Err(defect(&source, 0, TokensDefect::NoType)),
        };
    };
    typed(TokenFile::new(source, layout, None)?, options)
}

/// The numbers of a file of NumPy that has a table of integers with so many columns, row by row.
pub(crate) fn npy_table(source: Source, columns: usize) -> Result<TokenFile, ReadError> {
    let layout = npy::layout(&source, columns)?;
    TokenFile::new(source, layout, None)
}

/// The file, unless its tokens have another type than the caller says.
pub(crate) fn typed(file: TokenFile, options: &TokenOptions) -> Result<TokenFile, ReadError> {
    let stored = file.number();
    match options.number {
        Some(wanted) if wanted != stored => {
            let other = TokensDefect::OtherType { stored: stored.name(), wanted: wanted.name() };
            Err(file.defect(0, other))
        }
        Some(_) | None => Ok(file),
    }
}

/// The first bytes; zeros after the end of a shorter file.
fn front(source: &Source) -> Result<[u8; FRONT_BYTES], ReadError> {
    let mut front = [0; FRONT_BYTES];
    let present = usize::try_from(source.len()).unwrap_or(FRONT_BYTES).min(FRONT_BYTES);
    source.read_exact_at(0, &mut front[..present])?;
    Ok(front)
}

/// The location with the extension `to` in place of `from`; `None` where it ends otherwise.
fn named(location: &Location, from: &str, to: &str) -> Option<Location> {
    let name = location.as_os_str().as_bytes();
    let name = &name[name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)..];
    let stem = name.strip_suffix(from.as_bytes()).filter(|stem| stem.ends_with(b"."))?;
    Some(location.folder().join(&[stem, to.as_bytes()].concat()))
}

/// The file whose extension is `to` where that of `location` is `from`.
fn sibling(
    stores: &Stores,
    location: &Location,
    from: &str,
    to: &str,
) -> Result<Source, ReadError> {
    let missing = |location: &Location| {
        let error = std::io::Error::new(
            std::io::ErrorKind::NotFound,
            format!("expected a file of tokens called like this index, ending in .{to}"),
        );
        ReadError::Io { location: location.clone(), source: error }
    };
    let other = named(location, from, to).ok_or_else(|| missing(location))?;
    stores.open_existing(&other)?.ok_or_else(|| missing(&other))
}

/// Fails unless `have` bytes are exactly `need`.
fn check_len(source: &Source, what: &'static str, need: Option<u64>) -> Result<(), ReadError> {
    let have = source.len();
    let need = need.unwrap_or(u64::MAX);
    if have == need {
        return Ok(());
    }
    Err(defect(source, have.min(need), TokensDefect::Length { what, need, have }))
}

/// The type that NumPy or safetensors call `name`, if it is one of integers.
fn integer(name: &str) -> Option<TokenType> {
    TokenType::named(&name.to_ascii_lowercase())
}
