//! Batches from a store next to those of the same files on disk, and the waits of a consumer that
//! asks at a fixed rate.
//!
//! The loader, its worker and the thread of its requests have one core of this machine, the store
//! has another: its work is not the loader's. Every round measures the files and then the store.

#![expect(clippy::print_stdout, reason = "a benchmark prints its tables")]

mod consumer;
mod data;
mod server;

use std::time::Duration;

use tbl_io::Stores;
use tl_benches::is_measuring;
use tl_pipeline::{Shuffle, Work};
use tl_transform::Recipe;

use crate::consumer::{Pass, Waits};
use crate::data::Shards;
use crate::server::{Server, StoreCore};

/// Rounds that are measured. `TURBOLOADER_ROUNDS` sets another number.
const ROUNDS: usize = 5;

/// Two windows of 1024 photographs are nearly the default read-ahead of 256 MiB.
const BLOCK: &str = "block:16x64";

/// A store of the same region, and one far away: first byte and bandwidth of a connection.
const NEAR: [&str; 4] = ["--first-byte", "30ms", "--per-connection", "55MB"];
const FAR: [&str; 4] = ["--first-byte", "100ms", "--per-connection", "25MB"];

/// The faults of a store on a bad day.
const FAULTS: [&str; 2] = ["--fault", "503:1%,reset:0.5%,stall:0.1%"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == server::ARGUMENT) {
        return server::serve(&arguments[1..]);
    }
    // `cargo bench` passes `--bench`; a name chooses tables.
    let chosen = arguments.iter().find(|argument| !argument.starts_with('-'));
    let is_chosen = |table: &str| chosen.is_none_or(|chosen| table.contains(chosen.as_str()));
    let core = server::pin_loader();
    let shards = Shards::write();
    println!(
        "{} photographs, {} MB, {} TBL files",
        shards.len,
        shards.bytes / 1_000_000,
        shards.count
    );
    for (table, store, options) in [("speed near", "near", NEAR), ("speed far", "far", FAR)] {
        if is_chosen(table) {
            speed(core, &shards, store, &options);
        }
    }
    if is_chosen("first batch") {
        first_batch(core, &shards);
    }
    if is_chosen("waits") {
        waits(core, &shards, "near", &NEAR, &[]);
        waits(core, &shards, "near, with faults", &NEAR, &FAULTS);
    }
}

fn train() -> Work {
    Work::Images(Recipe::imagenet_train(224).expect("224 is a valid size"))
}

/// Epochs as fast as they go.
fn speed(core: StoreCore, shards: &Shards, store: &str, options: &[&str]) {
    let server = Server::start(core, shards.folder(), options);
    println!("\n### Speed, {store}: {}\n", options.join(" "));
    println!(
        "| work | order | files, samples/s | store | store / files, median (smallest to largest) \
         | by processor time | more per MB | GETs per 1000 | received / used | first batch |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, work) in [("stored bytes", Work::Bytes), ("imagenet-train", train())] {
        for order in [BLOCK, "lanes:8/16x8", "full"] {
            let shuffle: Shuffle = order.parse().expect("an order of this library");
            let mut files = Vec::new();
            let mut stores = Vec::new();
            for _ in 0..rounds() {
                files.push(Pass::of_files(shards, work.clone(), shuffle));
                stores.push(Pass::of_store(&server, shards, work.clone(), shuffle));
            }
            row(name, order, &files, &stores);
        }
    }
}

fn row(work: &str, order: &str, files: &[Pass], stores: &[Pass]) {
    let of = |passes: &[Pass], value: fn(&Pass) -> f64| middle(passes.iter().map(value).collect());
    let pairs = || stores.iter().zip(files);
    let ratios: Vec<f64> = pairs().map(|(store, file)| store.rate() / file.rate()).collect();
    let (low, high) = ends(&ratios);
    let processor =
        middle(pairs().map(|(store, file)| file.per_sample() / store.per_sample()).collect());
    let more =
        middle(pairs().map(|(store, file)| store.per_megabyte() - file.per_megabyte()).collect());
    println!(
        "| {work} | {order} | {:.0} | {:.0} | {:.3} ({low:.3}\u{2013}{high:.3}) | {processor:.3} | {more:.0} µs \
         | {:.1} | {:.3} | {:.2} s |",
        of(files, Pass::rate),
        of(stores, Pass::rate),
        middle(ratios),
        of(stores, Pass::gets_per_1000),
        of(stores, Pass::received_by_used),
        of(stores, |pass| pass.first_batch.as_secs_f64()),
    );
}

/// The first batch, and the rounds of requests before it: the factor by which a delay of every answer
/// delays the first batch.
fn first_batch(core: StoreCore, shards: &Shards) {
    let server = Server::start(core, shards.folder(), &[]);
    shards.index(&server.stores().add_to(Stores::new()));
    // A server has the files that were there when it began.
    let near = Server::start(core, shards.folder(), &NEAR);
    let [early, late] = ["20ms", "220ms"].map(|first_byte| {
        Server::start(core, shards.folder(), &["--first-byte", first_byte, "--sigma", "0"])
    });
    println!("\n### First batch of 256 samples, near: {}\n", NEAR.join(" "));
    println!("| opened by | first batch, median (smallest to largest) | rounds of requests |");
    println!("|---|---|---|");
    let files = format!("{} TBL files", shards.count);
    for (name, urls) in [("index", vec![data::index_url()]), (&*files, shards.urls())] {
        let times = |server| -> Vec<f64> {
            (0..rounds()).map(|_| consumer::first_batch(server, &urls).as_secs_f64()).collect()
        };
        let first = times(&near);
        let (low, high) = ends(&first);
        let rounds_of_requests = (middle(times(&late)) - middle(times(&early))) / 0.2;
        println!(
            "| {name} | {:.3} s ({low:.3}\u{2013}{high:.3}) | {rounds_of_requests:.1} |",
            middle(first)
        );
    }
}

/// A consumer that asks at a fixed rate.
fn waits(core: StoreCore, shards: &Shards, store: &str, speed: &[&str], faults: &[&str]) {
    let options = [speed, faults].concat();
    let server = Server::start(core, shards.folder(), &options);
    println!("\n### Waits, {store}: {}\n", options.join(" "));
    println!(
        "| order | asked, samples/s | delivered | waited | batch p50 | p99 | p99.9 | longest \
         | GETs per 1000 | hedges | received / used |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for order in [BLOCK, "full"] {
        for asked in [2000.0, 4000.0] {
            let shuffle = order.parse().expect("an order of this library");
            let waits = Waits::of(&server, shards, shuffle, asked);
            println!("| {order} | {asked} | {waits} |");
        }
    }
}

fn rounds() -> usize {
    let asked = std::env::var("TURBOLOADER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    if is_measuring() { asked.unwrap_or(ROUNDS) } else { 1 }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    (low, values.iter().copied().fold(0.0, f64::max))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
