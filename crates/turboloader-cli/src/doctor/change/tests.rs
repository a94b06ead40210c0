use std::time::Duration;

use clap::Parser;
use tl_pipeline::{Dataset, Loader, Shuffle, Work};

use super::*;
use crate::cli::{Cli, Command};

const FILES: &str = "testdata/photos";

fn photos() -> Dataset {
    Dataset::open(&[tl_testdata::shipped!("photos")]).expect("the photographs exist")
}

/// The report on eight workers that spent their time so, in milliseconds for 1,000 samples.
fn report(stage: Stage, millis: u64, waits: [u64; 2]) -> Report {
    let [worker, reader] = waits.map(Duration::from_millis);
    let mut stats = tl_pipeline::LoaderStats::default();
    (stats.batches, stats.samples, stats.processed, stats.workers) = (20, 1000, 1000, 8);
    (stats.consumer_wait, stats.consumer_busy) =
        (Duration::from_millis(200), Duration::from_millis(320));
    (stats.worker_wait, stats.readers.wait) = (worker, reader);
    stats.readers.readers = usize::from(!reader.is_zero());
    for stage in Stage::ALL {
        stats.stages[stage] = Duration::from_millis(10);
    }
    stats.stages[stage] = Duration::from_millis(millis);
    Report::new(stats)
}

/// The findings over `samples` samples whose training gave `training`.
fn found(training: Report, samples: u64, is_exact: bool) -> Measured {
    let sampler = Shuffle::Full.into();
    let shuffle = ShuffleQuality::measure(&sampler, &photos(), 0, 4).expect("they have an order");
    Measured {
        data: DataFigures {
            samples,
            bytes_per_sample: 111_000.0,
            pixels_per_sample: 187_500.0,
            open_s: 0.1,
            is_in_store: false,
            jpegs_without_index: true,
            unpacked_block_bytes: 0,
        },
        warm: report(Stage::Decode, 400, [0, 0]),
        one: report(Stage::Decode, 400, [0, 0]),
        disk: (ReadRate::default(), ReadRate::default()),
        variants: is_exact
            .then_some(Variant { what: "fast", command: Some("--decode fast"), rate: 9e6 })
            .into_iter()
            .collect(),
        readers: Some(MoreReaders { option: "--readers", readers: 16, rate: 9e6 }),
        training,
        replay: None,
        files: FILES.to_owned(),
        recipe: "imagenet-train".to_owned(),
        size: Some(224),
        batch_size: 64,
        is_exact,
        is_cached: false,
        copy_rate: 1e10,
        shuffle,
        #[cfg(feature = "remote")]
        store: None,
    }
}

/// The settings that `arguments` stand for in addition to a recipe, and the work on samples.
fn settings(recipe: &str, arguments: &[&str]) -> String {
    let fixed = ["tl", "bench", FILES, "--recipe", recipe];
    let cli = Cli::try_parse_from(fixed.iter().chain(arguments));
    let Command::Bench(args) = cli.unwrap_or_else(|error| panic!("{error}")).command else {
        panic!("a bench");
    };
    let config = crate::bench::config(&args, &photos()).expect("settings that go together");
    let Work::Images(recipe) = &config.work else { panic!("images") };
    let said = format!("{recipe} {config:?}");
    Loader::new(photos(), config).expect("settings that a loader takes");
    said
}

/// Everything that is advised against any limit: of data that fits in any memory, and in none.
fn advised(is_exact: bool) -> Vec<String> {
    let stages = Stage::ALL.map(|stage| report(stage, 900, [0, 0]));
    let others = [report(Stage::Decode, 10, [900, 0]), report(Stage::Decode, 10, [0, 900])];
    let mut advised = Vec::new();
    for training in stages.iter().chain(&others) {
        for samples in [12, 1 << 40] {
            let changes = changes(&found(training.clone(), samples, is_exact));
            advised.extend(changes.into_iter().filter_map(|change| change.command));
        }
    }
    advised.sort();
    advised.dedup();
    advised
}

#[test]
fn everything_that_is_advised_can_be_copied_and_changes_something() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path().to_str().expect("a path in UTF-8");
    for (recipe, is_exact) in [("imagenet-train", false), ("imagenet-eval", true)] {
        let advised = advised(is_exact);
        let before = settings(recipe, &[]);
        for command in &advised {
            let word = |word| if word == "DIR" { folder } else { word };
            let words: Vec<&str> = command.split(' ').map(word).collect();
            if words[0] == "tl" {
                Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{command}: {error}"));
            } else if words[0] == "--workers" {
                // What is found is of eight workers, on whatever machine.
                assert_ne!(settings(recipe, &words), settings(recipe, &["--workers", "8"]));
            } else {
                assert_ne!(settings(recipe, &words), before, "{command}");
            }
        }
        let kept = if is_exact { "--cache decoded" } else { "--cache decoded --decode exact" };
        for expected in [
            "--cache-memory 2M",
            "--cache-folder DIR --cache-disk ",
            kept,
            "--readers 16",
            "--batch-size 256",
            "--workers 2",
            "tl convert testdata/photos -o new.tbl --to raw --size 256",
            "tl convert testdata/photos -o new.tbl --jpeg-index",
            "tl explain imagenet-train",
        ] {
            let is_there = advised.iter().any(|command| command.contains(expected));
            assert!(is_there, "{expected}: {advised:?}");
        }
        assert_eq!(advised.iter().any(|command| command == "--decode fast"), is_exact);
    }
}

#[test]
fn blocks_that_a_full_shuffle_unpacks_are_shuffled_or_converted() {
    let mut found = found(report(Stage::Read, 900, [0, 0]), 12, true);
    let is_about_blocks = |command: &str| {
        command == "--shuffle block:sourcex8" || command == format!("tl convert {FILES} -o new.tbl")
    };
    let advised = |found: &Measured| {
        let commands = changes(found).into_iter().filter_map(|change| change.command);
        commands.filter(|command| is_about_blocks(command)).count()
    };
    assert_eq!(advised(&found), 0);
    found.data.unpacked_block_bytes = 1 << 20;
    assert_eq!(advised(&found), 2);
}

#[test]
fn what_gains_nothing_is_not_advised() {
    let slow = || found(report(Stage::Read, 900, [0, 0]), 12, true);
    let readers = |found: &Measured| {
        changes(found)
            .into_iter()
            .filter_map(|change| change.command)
            .any(|command| command.contains("--readers"))
    };
    assert!(readers(&slow()));
    let rate = slow().training.rate();
    let more = |rate| Some(MoreReaders { option: "--readers", readers: 16, rate });
    assert!(!readers(&Measured { readers: more(1.02 * rate), ..slow() }));
    let cached = changes(&Measured { is_cached: true, ..slow() });
    assert!(cached.iter().all(|change| !change.to_string().contains("--cache")), "{cached:?}");
}

#[test]
fn more_readers_are_of_the_kind_there_was() {
    let more = MoreReaders { option: "--uring", readers: 64, rate: 9e6 };
    let slow = found(report(Stage::Decode, 10, [0, 900]), 12, true);
    let changes = changes(&Measured { readers: Some(more), ..slow });
    let advised = changes.into_iter().filter_map(|change| change.command);
    let advised = advised.filter(|command| !command.contains("cache")).collect::<Vec<_>>();
    assert_eq!(advised, ["--uring 64"]);
    // Behind the options that were given, whose number it replaces.
    let words = ["--uring", "32", "--uring", "64"];
    assert_ne!(settings("imagenet-train", &words[..2]), settings("imagenet-train", &words[2..]));
}
