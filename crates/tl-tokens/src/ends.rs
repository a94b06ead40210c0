//! Documents that a token ends, found by looking at every token once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tbl_io::ReadError;

use crate::file::TokenFile;
use crate::number::TokenType;
use crate::starts::Starts;

/// Tokens that a thread looks at in one go.
const PIECE: u64 = 1 << 22;

/// The most threads that look.
const MAX_THREADS: usize = 8;

/// Tokens that are compared before one is looked for among them: loops of this length become vector
/// instructions.
const BLOCK: usize = 128;

/// The documents of `file`, each of which ends with a token `end`.
pub(crate) fn find(file: &TokenFile, end: i64) -> Result<Starts, ReadError> {
    let number = file.number();
    let mut pattern = vec![0; number.bytes()];
    let converted = TokenType::I64.convert(&end.to_ne_bytes(), number, &mut pattern);
    converted.map_err(|(_, value)| file.misfit(0, value, number))?;
    if cfg!(target_endian = "big") {
        pattern.reverse();
    }
    let count = file.len().div_ceil(PIECE);
    let next = AtomicU64::new(0);
    let work = || {
        let mut found = Vec::new();
        let mut buffer = Vec::new();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= count {
                return Ok(found);
            }
            let first = piece * PIECE;
            let tokens = PIECE.min(file.len() - first);
            let read = file.read(first, tokens, &mut buffer, |stored| ends_in(stored, &pattern));
            // No thread starts another piece after an error.
            found.push((piece, read.inspect_err(|_| next.store(count, Ordering::Relaxed))?));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let threads = threads.min(usize::try_from(count).unwrap_or(usize::MAX)).max(1);
    let found = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let own = work();
        let others = others.into_iter().map(|thread| thread.join().expect("looking panics not"));
        [own].into_iter().chain(others).collect::<Result<Vec<_>, ReadError>>()
    });
    let mut found: Vec<(u64, Vec<u32>)> = found?.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(piece, _)| *piece);
    let mut starts = Starts::new();
    let mut add = |end: u64| {
        // Documents longer than any length are cut.
        while end > starts.end() {
            let length = u32::try_from(end - starts.end()).unwrap_or(u32::MAX);
            starts.push(length);
        }
    };
    for (piece, ends) in found {
        ends.into_iter().for_each(|end| add(piece * PIECE + u64::from(end)));
    }
    add(file.len());
    Ok(starts)
}

/// The number of tokens up to each token that is `pattern`, and including it.
fn ends_in(stored: &[u8], pattern: &[u8]) -> Vec<u32> {
    match pattern.len() {
        1 => ends::<1>(stored, pattern),
        2 => ends::<2>(stored, pattern),
        4 => ends::<4>(stored, pattern),
        _ => ends::<8>(stored, pattern),
    }
}

fn ends<const N: usize>(stored: &[u8], pattern: &[u8]) -> Vec<u32> {
    let (tokens, _) = stored.as_chunks::<N>();
    let pattern: [u8; N] = pattern.try_into().expect("a token of the same type");
    let mut found = Vec::new();
    let mut first = 0;
    for block in tokens.chunks(BLOCK) {
        if block.iter().fold(false, |any, token| any | (*token == pattern)) {
            let places = (first + 1..).zip(block).filter(|(_, token)| **token == pattern);
            found.extend(places.map(|(end, _)| end));
        }
        first += u32::try_from(block.len()).expect("a piece has few tokens");
    }
    found
}
