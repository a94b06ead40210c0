//! Opens and decodes damaged copies of videos: every truncation, and copies with flipped bits. Prints
//! a line for each file, and exits with 1 if one of them made a panic outside a decoder.
//!
//! `cargo run --release -p tl-video --example damage -- [--flips N] FILE...`

use std::error::Error;
use std::io::Write;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs, panic};

use tl_video::{FrameDecoder, Limits, VideoError, VideoIndex};

/// The copies of a file by what became of them.
#[derive(Debug, Default)]
struct Counts {
    copies: u64,
    /// Without an index.
    refused: u64,
    /// With an index, and an error of a packet.
    damaged: u64,
    /// With all frames.
    decoded: u64,
    /// Decoders that panicked, which is an error of the packet.
    caught: u64,
    panics: u64,
    slowest: Duration,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut flips = 5000;
    let mut files = Vec::new();
    let mut arguments = env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--flips" => flips = arguments.next().ok_or("--flips needs a number")?.parse()?,
            _ => files.push(argument),
        }
    }
    // Decoders' panics are counted, not printed.
    panic::set_hook(Box::new(|_| {}));
    let mut output = std::io::stdout().lock();
    let mut panics = 0;
    writeln!(
        output,
        "| file | copies | refused | damaged | decoded | caught | panics | slowest ms |"
    )?;
    writeln!(output, "|---|---|---|---|---|---|---|---|")?;
    for file in &files {
        let whole = fs::read(file)?;
        let mut counts = Counts::default();
        for end in 0..whole.len() {
            counts.look_at(whole.get(..end).unwrap_or_default());
        }
        let mut state = 1;
        for _ in 0..flips {
            let mut bytes = whole.clone();
            for _ in 0..1 + next(&mut state) % 3 {
                let at = next(&mut state) % bytes.len().max(1) as u64;
                let bit = next(&mut state) % 8;
                let byte = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at));
                byte.into_iter().for_each(|byte| *byte ^= 1 << bit);
            }
            counts.look_at(&bytes);
        }
        let Counts { copies, refused, damaged, decoded, caught, slowest, .. } = counts;
        let slowest = slowest.as_secs_f64() * 1e3;
        panics += counts.panics;
        writeln!(
            output,
            "| {file} | {copies} | {refused} | {damaged} | {decoded} | {caught} | {} | {slowest:.1} |",
            counts.panics
        )?;
    }
    if let Some(peak) = peak_memory() {
        writeln!(output, "\npeak memory {peak}")?;
    }
    Ok(if panics == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Counts {
    fn look_at(&mut self, bytes: &[u8]) {
        let start = Instant::now();
        self.copies += 1;
        match catch_unwind(|| decode(bytes)) {
            Err(_) => self.panics += 1,
            Ok(None) => self.refused += 1,
            Ok(Some(Ok(()))) => self.decoded += 1,
            Ok(Some(Err(error))) => {
                self.damaged += 1;
                self.caught += u64::from(error.to_string().contains("panicked"));
            }
        }
        self.slowest = self.slowest.max(start.elapsed());
    }
}

/// Decodes all frames; `None` without an index.
fn decode(bytes: &[u8]) -> Option<Result<(), VideoError>> {
    let limits = Limits::default();
    let index = VideoIndex::open(bytes, &limits).ok()?;
    let frames: Vec<u64> = (0..index.frame_count()).collect();
    let decode = || {
        let plan = index.cost(&frames)?;
        FrameDecoder::new(&index, &limits)?.decode(&index, &plan, bytes, &mut |_, _| {})
    };
    Some(decode())
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    *state >> 33
}

/// The largest resident memory of the process, as Linux states it.
fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}
