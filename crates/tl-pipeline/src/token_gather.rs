//! Rows of a batch, filled with tokens.

use std::mem;
use std::slice;

use tbl_io::{ReadError, SampleSource};
use tl_handoff::slab::Parts;
use tl_handoff::sync::Arc;
use tl_tokens::{Fill, Piece, Sequences, TokenFile, TokenSource, TokenType};
use tl_transform::Draw;
use tl_transform::rng::{EPOCH_STREAM, Rng};

use crate::cache::CacheConfig;
use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::error::PipelineError;
use crate::fields::Fields;
use crate::layout::RowKind;
use crate::order::Ordered;
use crate::readers::Readers;
use crate::row::RowExtras;
use crate::table::{ColumnSpec, ColumnType};
use crate::tokens::TokenNumber;
use crate::work::Work;

/// Tokens that are written between two hints about those of the next row.
const HINT: usize = 128;

/// The operation in whose stream of an epoch the offset of windows is drawn.
const OFFSET_STREAM: u8 = 3;

/// Writes stored tokens.
type WriteTokens<'w> = dyn FnMut(&[u8]) -> Result<(), ReadError> + 'w;

/// Calls a function with stored tokens: so many from a first one on.
type ReadTokens<'r> = dyn FnMut(u64, u64, &mut WriteTokens<'_>) -> Result<(), ReadError> + 'r;

/// Writes the tokens of samples into their rows.
#[derive(Debug)]
pub(crate) struct TokenGatherer {
    sequences: Sequences,
    number: TokenType,
    specs: Arc<[ColumnSpec]>,
    /// The bytes of a token and of a target where there is none.
    pad: Vec<u8>,
    ignore: Vec<u8>,
    seed: u64,
    /// True if the bytes of samples come from readers or caches.
    is_read_elsewhere: bool,
}

/// The memory of a worker that gathers tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenScratch {
    /// The pieces of a row.
    pieces: Vec<Piece>,
    /// The sample of the worker's next row, as far as it can be told.
    pub(crate) next: Option<Ordered>,
    /// The pieces of the sample `next_of`.
    next_pieces: Vec<Piece>,
    next_of: Option<Draw>,
}

/// The tokens of the next row, of which the processor is told.
struct Ahead<'a> {
    file: &'a TokenFile,
    pieces: slice::Iter<'a, Piece>,
    first: u64,
    left: u64,
}

impl<'a> Ahead<'a> {
    fn new(file: &'a TokenFile, pieces: &'a [Piece]) -> Self {
        Self { file, pieces: pieces.iter(), first: 0, left: 0 }
    }

    /// Tells the processor of the next tokens.
    fn hint(&mut self) {
        if self.left == 0 {
            let Some(piece) = self.pieces.next() else { return };
            (self.first, self.left) = (piece.first, piece.count);
        }
        let count = self.left.min(HINT as u64);
        self.file.prefetch(self.first, count);
        self.first += count;
        self.left -= count;
    }
}

/// True if readers and caches can have the bytes of samples: of windows that stay.
pub(crate) fn is_readable(sequences: &Sequences) -> bool {
    sequences.offsets() == 1 && !sequences.has_documents()
}

impl TokenGatherer {
    /// For work on tokens, which this data set must have; `None` for other work, which it must not
    /// have tokens for.
    pub(crate) fn new(
        dataset: &Dataset,
        config: &LoaderConfig,
    ) -> Result<Option<Self>, PipelineError> {
        let unusable = |text| Err(PipelineError::Unusable(text));
        let first = dataset.token_sources().next();
        let (work, source) = match (&config.work, first) {
            (Work::Tokens(work), Some(source)) => (*work, source),
            (Work::Tokens(_), None) => {
                let first = dataset.shards().first().map(|shard| shard.location().clone());
                let location = first.unwrap_or_default();
                return unusable(format!("{location}: not a file of tokens, so it has no windows"));
            }
            (Work::Images(_) | Work::Clips(_) | Work::Columns(_), Some(source)) => {
                let what = "tokens are neither images nor clips nor columns of a table";
                return unusable(format!("{}: {what}", source.location()));
            }
            (
                Work::Bytes | Work::Views | Work::Images(_) | Work::Clips(_) | Work::Columns(_),
                _,
            ) => return Ok(None),
        };
        if config.fields != Fields::default() {
            return unusable("fields go with samples of files; tokens have none".to_owned());
        }
        let is_read_elsewhere =
            config.readers != Readers::Workers || config.cache != CacheConfig::default();
        let sequences = *source.sequences();
        if is_read_elsewhere && !is_readable(&sequences) {
            return unusable(
                "readers and caches bring windows that start at the same tokens in every epoch; \
                documents and windows with a random offset are read by workers"
                    .to_owned(),
            );
        }
        let number = match work.number {
            TokenNumber::I32 => TokenType::I32,
            TokenNumber::I64 => TokenType::I64,
            TokenNumber::Stored => stored_number(dataset, source)?,
        };
        let Fill { pad, ignore } = sequences.fill().unwrap_or_default();
        let pad = bytes_of("pad", pad, number)?;
        // Windows, and rows without targets, have every value.
        let needs_ignore = sequences.has_documents() && sequences.targets();
        let ignore = if needs_ignore { bytes_of("ignore", ignore, number)? } else { Vec::new() };
        let specs = specs(&sequences, number).into();
        let seed = config.seed;
        Ok(Some(Self { sequences, number, specs, pad, ignore, seed, is_read_elsewhere }))
    }

    /// The columns of batches.
    pub(crate) fn specs(&self) -> &Arc<[ColumnSpec]> {
        &self.specs
    }

    /// The kind of rows.
    pub(crate) fn rows(&self) -> RowKind {
        let targets = self.sequences.targets();
        if self.sequences.has_documents() {
            RowKind::Documents { targets }
        } else {
            RowKind::Windows { targets }
        }
    }

    /// The offset of windows in `epoch`.
    fn offset(&self, epoch: u32) -> u32 {
        match self.sequences.offsets() {
            1 => 0,
            offsets => Rng::new(self.seed, epoch, EPOCH_STREAM, OFFSET_STREAM).below(offsets),
        }
    }

    /// True if the bytes of samples come from readers or caches, for [`convert`](Self::convert).
    pub(crate) fn is_read_elsewhere(&self) -> bool {
        self.is_read_elsewhere
    }

    /// Writes the tokens of a sample into its row, and returns how many bytes they had. `buffer` is
    /// used where they are not mapped.
    pub(crate) fn gather(
        &self,
        dataset: &Dataset,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        buffer: &mut Vec<u8>,
        scratch: &mut TokenScratch,
    ) -> Result<usize, ReadError> {
        let (source, local) = dataset.locate(draw.sample)?;
        let source = token_source(source);
        if let Some(piece) = source.read_text(local, buffer)? {
            let file = source.file();
            let item = file.number().bytes() as u64;
            let mut read = |first: u64, count: u64, write: &mut WriteTokens<'_>| {
                let at = |token: u64| usize::try_from(token * item).unwrap_or(usize::MAX);
                write(buffer.get(at(first)..at(first + count)).unwrap_or_default())
            };
            return self.gather_documents(file, &[piece], parts, &mut read, None);
        }
        let TokenScratch { pieces, next, next_pieces, next_of } = scratch;
        let file = if next_of.take() == Some(draw) {
            mem::swap(pieces, next_pieces);
            token_source(dataset.locate(draw.sample)?.0).file()
        } else {
            self.pieces(dataset, draw, pieces)?
        };
        let next = next.map(|next| Draw { sample: next.sample, ..draw });
        // Errors are left to the row itself.
        let next_file = next.and_then(|next| self.pieces(dataset, next, next_pieces).ok());
        *next_of = next.filter(|_| next_file.is_some());
        let mut ahead = next_file.map(|file| Ahead::new(file, next_pieces));
        if self.sequences.has_documents() {
            let mut read = |first: u64, count: u64, write: &mut WriteTokens<'_>| {
                file.read(first, count, buffer, write).flatten()
            };
            return self.gather_documents(file, pieces, parts, &mut read, ahead.as_mut());
        }
        let mut bytes = 0;
        let mut out = parts.columns.get(0);
        for &Piece { first, count, .. } in &*pieces {
            let count_here = usize::try_from(count).unwrap_or(usize::MAX);
            let (here, rest) = out.split_at_mut(count_here.saturating_mul(self.number.bytes()));
            let convert = |stored: &[u8]| {
                bytes += stored.len();
                self.convert_into(file, first, stored, here, ahead.as_mut())
            };
            file.read(first, count, buffer, convert).flatten()?;
            out = rest;
        }
        Ok(bytes)
    }

    /// As [`gather`](Self::gather), from the stored bytes of a window.
    pub(crate) fn convert(
        &self,
        dataset: &Dataset,
        draw: Draw,
        parts: &mut Parts<'_, RowExtras>,
        stored: &[u8],
        TokenScratch { pieces, .. }: &mut TokenScratch,
    ) -> Result<(), ReadError> {
        let file = self.pieces(dataset, draw, pieces)?;
        let item = file.number().bytes();
        let expected = pieces.iter().map(|piece| piece.count).sum::<u64>() * item as u64;
        if stored.len() as u64 != expected {
            let first = pieces.first().map_or(0, |piece| piece.first);
            let (offset, _) = file.range(first, 0)?;
            let location = file.location().clone();
            return Err(ReadError::ChangedWhileOpen { location, offset, expected });
        }
        let mut stored = stored;
        let mut out = parts.columns.get(0);
        for &Piece { first, count, .. } in &*pieces {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let (here, rest) = stored.split_at(count * item);
            let (out_here, out_rest) = out.split_at_mut(count * self.number.bytes());
            self.convert_into(file, first, here, out_here, None)?;
            stored = rest;
            out = out_rest;
        }
        Ok(())
    }

    /// The file of a sample, and its pieces in an epoch.
    fn pieces<'d>(
        &self,
        dataset: &'d Dataset,
        draw: Draw,
        pieces: &mut Vec<Piece>,
    ) -> Result<&'d TokenFile, ReadError> {
        let (source, local) = dataset.locate(draw.sample)?;
        let source = token_source(source);
        source.pieces(local, self.offset(draw.epoch), pieces)?;
        Ok(source.file())
    }

    /// Writes pieces of documents one after the other, with the target and the position of each
    /// token, and fills the rest of the row. `read` calls a function with stored tokens: so many from a
    /// first one on.
    fn gather_documents(
        &self,
        file: &TokenFile,
        pieces: &[Piece],
        parts: &mut Parts<'_, RowExtras>,
        read: &mut ReadTokens<'_>,
        mut ahead: Option<&mut Ahead<'_>>,
    ) -> Result<usize, ReadError> {
        let item = self.number.bytes();
        let stored_item = file.number().bytes();
        let targets = self.sequences.targets();
        let positions = 1 + usize::from(targets);
        parts.extra.fields.starts.push(0);
        let mut at = 0;
        let mut bytes = 0;
        for &Piece { first, count, continues, .. } in pieces {
            let stored_count = count + u64::from(continues && targets);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let end = at + count;
            read(first, stored_count, &mut |stored: &[u8]| {
                bytes += stored.len();
                let tokens = &mut parts.columns.get(0)[at * item..end * item];
                let ahead = ahead.as_deref_mut();
                self.convert_into(file, first, &stored[..count * stored_item], tokens, ahead)?;
                if !targets || count == 0 {
                    return Ok(());
                }
                let next = &stored[stored_item..];
                let targets = &mut parts.columns.get(1)[at * item..end * item];
                let (known, last) = targets.split_at_mut(next.len() / stored_item * item);
                last.copy_from_slice(if last.is_empty() { &[] } else { &self.ignore });
                self.convert_into(file, first + 1, next, known, None)
            })?;
            let places = parts.columns.get(positions)[at * 4..end * 4].as_chunks_mut().0;
            for (place, position) in places.iter_mut().zip(0i32..) {
                *place = position.to_ne_bytes();
            }
            at = end;
            let end = i32::try_from(end).expect("the length of rows is an `i32`");
            parts.extra.fields.starts.push(end);
        }
        fill(&mut parts.columns.get(0)[at * item..], &self.pad);
        if targets {
            fill(&mut parts.columns.get(1)[at * item..], &self.ignore);
        }
        parts.columns.get(positions)[at * 4..].fill(0);
        Ok(bytes)
    }

    /// Converts the tokens from `first` on, and tells the processor of those ahead meanwhile: a row
    /// lies at another place of the file than the one before it, where the processor expects nothing.
    fn convert_into(
        &self,
        file: &TokenFile,
        first: u64,
        stored: &[u8],
        out: &mut [u8],
        mut ahead: Option<&mut Ahead<'_>>,
    ) -> Result<(), ReadError> {
        let item = file.number().bytes();
        assert_eq!(stored.len() / item, out.len() / self.number.bytes(), "tokens and their room");
        let stored = stored.chunks(HINT * item);
        let out = out.chunks_mut(HINT * self.number.bytes());
        for ((place, stored), out) in (0..).step_by(HINT).zip(stored).zip(out) {
            if let Some(ahead) = &mut ahead {
                ahead.hint();
            }
            let converted = file.number().convert(stored, self.number, out);
            converted.map_err(|(token, value)| {
                file.misfit(first + place + token as u64, value, self.number)
            })?;
        }
        Ok(())
    }
}

/// The tokens of a source.
fn token_source(source: &dyn SampleSource) -> &TokenSource {
    // `check_sources` saw that all of them are.
    TokenSource::of(source).expect("sources of tokens are not mixed with others")
}

/// The type of the tokens in all files.
fn stored_number(dataset: &Dataset, first: &TokenSource) -> Result<TokenType, PipelineError> {
    let number = first.file().number();
    match dataset.token_sources().find(|other| other.file().number() != number) {
        None => Ok(number),
        Some(other) => Err(PipelineError::Unusable(format!(
            "{}: tokens are {}, those of {} {}: set the type of batches",
            other.location(),
            other.file().number().name(),
            first.location(),
            number.name()
        ))),
    }
}

/// The columns of batches.
fn specs(sequences: &Sequences, number: TokenType) -> Vec<ColumnSpec> {
    let column = |name: &str, number: ColumnType, length: u64| {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        ColumnSpec { name: name.to_owned(), number, shape: vec![length] }
    };
    let number = number.into();
    let length = sequences.length().into();
    if !sequences.has_documents() {
        return vec![column("tokens", number, length + u64::from(sequences.targets()))];
    }
    let targets = sequences.targets().then(|| column("targets", number, length));
    let positions = column("positions", ColumnType::I32, length);
    let tokens = column("tokens", number, length);
    [Some(tokens), targets, Some(positions)].into_iter().flatten().collect()
}

/// A value of rows as bytes of the batch's type.
fn bytes_of(what: &str, value: i64, number: TokenType) -> Result<Vec<u8>, PipelineError> {
    let mut bytes = vec![0; number.bytes()];
    match TokenType::I64.convert(&value.to_le_bytes(), number, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => {
            let text = format!("{what} is {value}, which tokens of {} cannot be", number.name());
            Err(PipelineError::Unusable(text))
        }
    }
}

fn fill(out: &mut [u8], value: &[u8]) {
    out.chunks_exact_mut(value.len().max(1)).for_each(|token| token.copy_from_slice(value));
}
