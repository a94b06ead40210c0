//! The table of one workload, and the file by which `cargo xtask bench` finds its medians.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::fs;
use std::path::Path;

use super::Workload;

/// Prints how many files our decoder got wrong, and then milliseconds per image and, against the
/// first contender, how many times faster each is.
pub(super) fn print<Job>(
    workload: &Workload<Job>,
    differing: usize,
    names: &[&str],
    times: &[Vec<f64>],
) {
    println!("\n{}, {} files, {differing} differ\n", workload.name, workload.jobs.len());
    let Some(first) = names.first() else { return };
    println!("| decoder | ms per image, median (smallest to largest) | speed, {first} = 1 |");
    println!("|---|---|---|");
    for (name, rounds) in names.iter().zip(times) {
        let ratios: Vec<f64> = times[0].iter().zip(rounds).map(|(base, own)| base / own).collect();
        let (own, ratio) = (Spread::of(rounds), Spread::of(&ratios));
        println!(
            "| {name} | {:.3} ({:.3}\u{2013}{:.3}) | {:.2} ({:.2}\u{2013}{:.2}) |",
            own.median, own.smallest, own.largest, ratio.median, ratio.smallest, ratio.largest
        );
    }
}

/// Writes the medians where criterion would, in its form.
pub(super) fn save<Job>(group: &str, workload: &Workload<Job>, names: &[&str], times: &[Vec<f64>]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/criterion").join(group);
    for (name, rounds) in names.iter().zip(times) {
        let id = format!("{group}/{}/{name}", workload.name);
        let folder: String =
            id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let folder = root.join(folder).join("new");
        let spread = Spread::of(rounds);
        let nanoseconds = |milliseconds: f64| milliseconds * 1e6;
        let estimates = format!(
            "{{\"median\": {{\"point_estimate\": {}, \"confidence_interval\": \
             {{\"lower_bound\": {}, \"upper_bound\": {}}}}}}}",
            nanoseconds(spread.median),
            nanoseconds(spread.smallest),
            nanoseconds(spread.largest)
        );
        let benchmark = format!("{{\"full_id\": \"{id}\", \"throughput\": {{\"Elements\": 1}}}}");
        fs::create_dir_all(&folder).expect("the target folder is ours");
        fs::write(folder.join("estimates.json"), estimates).expect("the target folder is ours");
        fs::write(folder.join("benchmark.json"), benchmark).expect("the target folder is ours");
    }
}

/// The middle and the ends of a row of measurements.
struct Spread {
    median: f64,
    smallest: f64,
    largest: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
        Self {
            median: at(sorted.len() / 2),
            smallest: at(0),
            largest: at(sorted.len().saturating_sub(1)),
        }
    }
}
