//! JPEG decoding beside libjpeg-turbo, zune-jpeg and jpeg-decoder: the same files, one core.
//!
//! Criterion measures one thing after the other, and a shared machine changes its speed in between.
//! Here every round passes each handful of files through all decoders before the next handful, in
//! an order that rotates, so that the ratios of a round compare like with like. What counts is the
//! processor time of this process, which other processes disturb least.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod decoders;
mod report;
mod work;

use std::hint::black_box;
use std::time::Duration;

use tl_benches::{is_measuring, processor_time};

use crate::decoders::{Contender, contenders};
use crate::work::{Job, workloads};

/// Files that pass through one decoder before the next has its turn.
const HANDFUL: usize = 8;

/// Rounds that are measured, after one that is not. `TURBOLOADER_ROUNDS` sets another number.
const ROUNDS: usize = 9;

fn main() {
    pin_to_one_core();
    let chosen: Option<String> =
        std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    for workload in workloads() {
        if chosen.as_ref().is_some_and(|chosen| !workload.name.contains(chosen.as_str())) {
            continue;
        }
        let mut contenders = contenders(&workload);
        let differing = decoders::differing(&workload);
        let times = rounds(&workload.jobs, &mut contenders);
        let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
        report::print(&workload, differing, &names, &times);
        if is_measuring() {
            report::save(&workload, &names, &times);
        }
    }
}

/// The milliseconds per image of each contender in each round.
fn rounds(jobs: &[Job], contenders: &mut [Box<dyn Contender>]) -> Vec<Vec<f64>> {
    let asked = std::env::var("TURBOLOADER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let count = if is_measuring() { asked.unwrap_or(ROUNDS) } else { 1 };
    if is_measuring() {
        round(jobs, contenders, 0);
    }
    let mut times = vec![Vec::new(); contenders.len()];
    for number in 0..count {
        for (times, spent) in times.iter_mut().zip(round(jobs, contenders, number)) {
            times.push(spent.as_secs_f64() * 1e3 / jobs.len() as f64);
        }
    }
    times
}

/// One pass of all files through all contenders: the time of each.
fn round(jobs: &[Job], contenders: &mut [Box<dyn Contender>], number: usize) -> Vec<Duration> {
    let mut spent = vec![Duration::ZERO; contenders.len()];
    for (handful, turn) in jobs.chunks(HANDFUL).zip(number..) {
        for i in 0..contenders.len() {
            let i = (i + turn) % contenders.len();
            let start = processor_time();
            for job in handful {
                black_box(contenders[i].decode(job));
            }
            spent[i] += processor_time() - start;
        }
    }
    spent
}

/// Keeps this process, and threads that a decoder may start, on one core.
fn pin_to_one_core() {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let allowed = sched_getaffinity(None).expect("the kernel says");
        let last = (0..CpuSet::MAX_CPU).rev().find(|&core| allowed.is_set(core));
        let mut one = CpuSet::new();
        one.set(last.expect("this runs on some core"));
        sched_setaffinity(None, &one).expect("a core that is allowed");
    }
}
