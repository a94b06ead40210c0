//! Measures windows of tokens: tokens per second of one worker, next to copying the same bytes.
//! `cargo run --release --example tokens -- [LENGTH [TOKENS]]` generates a file of 16-bit tokens:
//! 2^22, of which 2^28 make steady figures.

use std::error::Error;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Instant;

use tbl_io::{Mapped, Source, Stores};
use tl_pipeline::{
    Dataset, Loader, LoaderConfig, PipelineError, Shuffle, TokenNumber, TokenWork, Work,
};
use tl_tokens::{TokenOptions, TokenType, Windows};

/// Rounds that are measured; each is one epoch of every kind, in turn.
const ROUNDS: usize = 7;

const BATCH: usize = 64;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let length = arguments.next().map_or(Ok(2048), |length| length.parse())?;
    let count: usize = arguments.next().map_or(Ok(1 << 22), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("corpus.bin");
    let mut state = 1u64;
    let tokens: Vec<u8> = (0..count)
        .flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let [.., low, high] = state.to_be_bytes();
            [low, high]
        })
        .collect();
    std::fs::write(&path, &tokens)?;
    drop(tokens);
    // The bytes lie for the copies where they lie for the loader.
    let mapped = Mapped::new(&Source::open(&path)?, 0, 2 * count as u64)?;
    let tokens = mapped.slice(0, mapped.len())?;
    let windows = Windows::new(NonZeroU32::new(length).ok_or("LENGTH is 0")?);
    let numbers = [TokenNumber::Stored, TokenNumber::I32, TokenNumber::I64];
    let loaders = numbers.map(|number| loader(&path, windows, number));
    let [stored, narrow, wide] = loaders;
    let loaders = [stored?, narrow?, wide?];
    let mut rates = vec![Vec::new(); 2 + loaders.len()];
    for epoch in 0..ROUNDS {
        let order = loaders[0].order(u32::try_from(epoch)?);
        let starts: Vec<usize> = (0..order.len())
            .filter_map(|position| order.sample_at(position))
            .filter_map(|sample| usize::try_from(sample * u64::from(length)).ok())
            .collect();
        for (place, number) in [TokenType::U16, TokenType::I64].into_iter().enumerate() {
            rates[place].push(copy(tokens, &starts, usize::try_from(windows.tokens())?, number)?);
        }
        for (place, loader) in loaders.iter().enumerate() {
            rates[2 + place].push(epoch_rate(loader, u32::try_from(epoch)?, windows.tokens())?);
        }
    }
    let names =
        ["copied as u16", "converted to i64", "loader, stored", "loader, i32", "loader, i64"];
    for (name, rates) in names.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        let best = rates[rates.len() - 1];
        println!("{name:<18}{median:>8.2} billion tokens/s, at best {best:.2}");
    }
    Ok(())
}

fn loader(path: &PathBuf, windows: Windows, number: TokenNumber) -> Result<Loader, PipelineError> {
    let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
    let dataset = Dataset::open_tokens(&Stores::new(), &[path], &options, windows.into())?;
    let config = LoaderConfig {
        batch_size: BATCH,
        workers: 1,
        sampler: Shuffle::Full.into(),
        prefetch_next_epoch: false,
        ..LoaderConfig::new(Work::Tokens(TokenWork { number }))
    };
    Loader::new(dataset, config)
}

/// Billions of tokens per second of an epoch.
fn epoch_rate(loader: &Loader, epoch: u32, tokens: u64) -> Result<f64, PipelineError> {
    let start = Instant::now();
    let mut rows = 0;
    for batch in loader.epoch(epoch) {
        rows += batch?.len() as u64;
    }
    Ok(billions(rows * tokens, start))
}

/// The same without a loader: windows written to a few batches in turn.
fn copy(
    tokens: &[u8],
    starts: &[usize],
    span: usize,
    number: TokenType,
) -> Result<f64, Box<dyn Error>> {
    let row = span * number.bytes();
    let mut batches = vec![vec![0u8; row * BATCH]; 4];
    let start = Instant::now();
    for (place, first) in starts.iter().enumerate() {
        let batch = &mut batches[place / BATCH % 4];
        let out = &mut batch[place % BATCH * row..][..row];
        let stored = &tokens[2 * first..][..2 * span];
        if TokenType::U16.convert(stored, number, out).is_err() {
            return Err("tokens fit".into());
        }
    }
    std::hint::black_box(&batches);
    Ok(billions((starts.len() * span) as u64, start))
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn billions(tokens: u64, start: Instant) -> f64 {
    tokens as f64 / start.elapsed().as_secs_f64() / 1e9
}
