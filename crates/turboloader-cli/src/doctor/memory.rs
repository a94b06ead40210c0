//! The size of the machine's memory, and its rate of copying.

use std::fs;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::threads;

/// Larger than the caches of most processors, small enough to have twice for every core.
const COPIED_BYTES: usize = 32 << 20;

/// Bytes that can be had without swapping; `None` where `/proc` does not say.
pub(super) fn available_bytes() -> Option<u64> {
    parse_available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn parse_available(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Bytes a second that `threads` threads copy together, measured for about `time`.
pub(super) fn copy_rate(threads: usize, time: Duration) -> Result<f64, Failure> {
    thread::scope(|scope| {
        let copy = || copy_for(time);
        let copies = (0..threads).map(|worker| threads::spawn(scope, worker, threads, copy));
        let copies: Vec<_> = copies.collect::<Result<_, _>>()?;
        Ok(copies.into_iter().map(|copy| copy.join().unwrap_or(0.0)).sum())
    })
}

fn copy_for(time: Duration) -> f64 {
    let from = vec![1u8; COPIED_BYTES];
    let mut to = vec![0u8; COPIED_BYTES];
    let start = Instant::now();
    let mut copied = 0.0;
    loop {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        copied += 1.0;
        let spent = start.elapsed();
        if spent >= time {
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let bytes = COPIED_BYTES as f64;
            return copied * bytes / spent.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_kib() {
        let text = "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:    8 kB\n";
        assert_eq!(parse_available(text), Some(8192));
        assert_eq!(parse_available("MemTotal: 16 kB\n"), None);
    }

    #[test]
    fn memory_is_copied() {
        assert!(copy_rate(2, Duration::from_millis(1)).unwrap() > 1e6);
    }
}
