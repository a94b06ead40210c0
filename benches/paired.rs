//! Contenders that do the same jobs in turn, and the table of their times.
//!
//! Criterion measures one thing after the other, and a shared machine changes its speed in between.
//! Here every round passes each handful of jobs through all contenders before the next handful, in
//! an order that rotates, so that the ratios of a round compare like with like. The processor time of
//! this process counts, which other processes disturb least.

mod report;

use std::hint::black_box;
use std::time::Duration;

use crate::{is_measuring, processor_time};

/// Jobs that pass through one contender before the next has its turn.
const HANDFUL: usize = 8;

/// Rounds that are measured, after one that is not. `TURBOLOADER_ROUNDS` sets another number.
const ROUNDS: usize = 9;

/// A decoder that does the jobs of a workload.
pub trait Contender<Job> {
    /// The decoder and, where that matters, its version.
    fn name(&self) -> &str;

    /// Decodes to RGB; decoders without that conversion leave grey files grey.
    fn decode(&mut self, job: &Job) -> &[u8];
}

/// Jobs that are measured together.
#[derive(Debug)]
pub struct Workload<Job> {
    /// The set of files, and the request.
    pub name: String,
    /// The files with what is wanted of them.
    pub jobs: Vec<Job>,
}

/// The first argument of this process that is not an option: workloads are left out whose name does
/// not contain it.
#[must_use]
pub fn chosen() -> Option<String> {
    std::env::args().skip(1).find(|argument| !argument.starts_with('-'))
}

/// Measures the contenders, of which the ratios refer to the first, and prints the table of `group`;
/// `differing` jobs were done wrong before.
pub fn measure<Job>(
    group: &str,
    workload: &Workload<Job>,
    contenders: &mut [Box<dyn Contender<Job>>],
    differing: usize,
) {
    let times = rounds(&workload.jobs, contenders);
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
    report::print(workload, differing, &names, &times);
    if is_measuring() {
        report::save(group, workload, &names, &times);
    }
}

/// The milliseconds per image of each contender in each round.
fn rounds<Job>(jobs: &[Job], contenders: &mut [Box<dyn Contender<Job>>]) -> Vec<Vec<f64>> {
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
fn round<Job>(
    jobs: &[Job],
    contenders: &mut [Box<dyn Contender<Job>>],
    number: usize,
) -> Vec<Duration> {
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
///
/// # Panics
/// If the kernel refuses.
pub fn pin_to_one_core() {
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
