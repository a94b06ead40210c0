//! WebP decoding beside libwebp and image-webp: the same files, one core.

#![expect(clippy::print_stdout, reason = "a benchmark says what it leaves out")]

mod decoders;
mod work;

use tl_benches::paired::{chosen, measure, pin_to_one_core};

use crate::decoders::contenders;
use crate::work::workloads;

fn main() {
    pin_to_one_core();
    let chosen = chosen();
    for workload in workloads() {
        if chosen.as_ref().is_some_and(|chosen| !workload.name.contains(chosen.as_str())) {
            continue;
        }
        let differing = decoders::differing(&workload);
        measure("webp", &workload, &mut contenders(&workload), differing);
    }
}
