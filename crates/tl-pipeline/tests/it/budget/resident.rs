//! The real memory of the process, by its peak resident set.

use std::io::Write;

use super::*;

/// For `--nocapture`, also from the child.
fn say(text: &str) {
    std::io::stderr().write_all(text.as_bytes()).unwrap();
}

/// The most memory that this process ever had resident, and what it has now.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
    };
    (field("VmHWM:"), field("VmRSS:"))
}

/// True if `test` has this process for itself; if not, it was run in a separate one.
fn is_alone(test: &str) -> bool {
    const CHILD: &str = "TL_PIPELINE_BUDGET";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    say(&String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    false
}

/// A million samples from eight workers, some of them a hundred thousand times as large as others
/// and side by side. Without the budget they take more than it.
#[test]
fn a_million_samples_stay_within_the_budget() {
    if !is_alone("budget::resident::a_million_samples_stay_within_the_budget") {
        return;
    }
    const SAMPLES: u64 = 1_000_000;
    const WORKERS: usize = 8;
    let settings = |memory_budget: Option<u64>| LoaderConfig {
        batch_size: 256,
        workers: WORKERS,
        memory_budget,
        sampler: Shuffle::None.into(),
        // Under the budget they never meet.
        ..whole(memory_budget.is_none().then(|| Barrier::new(WORKERS)))
    };
    let run = |memory_budget, samples| {
        let loader = loader(generated(samples), settings(memory_budget));
        let rows: u64 = loader.epoch(0).map(|batch| batch.unwrap().len() as u64).sum();
        assert_eq!(rows, samples);
        loader.memory()
    };
    let refused = Loader::new(generated(1), settings(Some(0)));
    let Err(PipelineError::MemoryBudget { required, .. }) = refused else { panic!() };
    let (_, before) = resident();
    let report = run(Some(required), SAMPLES);
    let (peak, after) = resident();
    assert_eq!(report.large_samples, 16 * SAMPLES / 100_000, "{report}");
    let mib = |bytes: u64| bytes.saturating_sub(before) / MIB;
    say(&format!("peak {} MiB, then {} MiB: {report}\n", mib(peak), mib(after)));
    assert!(peak - before <= required, "{} MiB: {report}", mib(peak));
    run(None, 1_000);
    let (unbounded, _) = resident();
    say(&format!("without a budget {} MiB\n", mib(unbounded)));
    assert!(unbounded - before > required, "{} MiB without a budget", mib(unbounded));
}

/// Every row in its own size, 256 MB of images in flight if nothing held them back.
#[test]
fn rows_that_grow_stay_within_the_budget() {
    if !is_alone("budget::resident::rows_that_grow_stay_within_the_budget") {
        return;
    }
    const BUDGET: u64 = 640 * MIB;
    for work in [Work::Bytes, Work::Images(Recipe::decode())] {
        let memory_budget = Some(BUDGET);
        let config = LoaderConfig { batch_size: 64, workers: 4, memory_budget, ..config(work) };
        let loader = loader(generated(200_000), LoaderConfig { prefetch: 2, ..config });
        let (_, before) = resident();
        let rows: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
        assert_eq!(rows, 200_000);
        let (peak, _) = resident();
        let report = loader.memory();
        assert!(peak.saturating_sub(before) <= BUDGET, "{} MiB: {report}", (peak - before) / MIB);
        say(&format!("peak {} MiB: {report}\n", (peak - before) / MIB));
    }
}

/// Files of 8 MB with small images: a gigabyte in a batch, if buffers beyond the bound were kept.
#[test]
fn sidecar_files_stay_within_the_budget() {
    if !is_alone("budget::resident::sidecar_files_stay_within_the_budget") {
        return;
    }
    const BUDGET: u64 = 256 * MIB;
    let config = LoaderConfig {
        batch_size: 128,
        memory_budget: Some(BUDGET),
        fields: Fields { bytes: vec!["json".into()], ..Fields::default() },
        ..config(small())
    };
    let loader = loader(source(Generated { samples: 128, side, sidecar: 8 << 20 }), config);
    let (_, before) = resident();
    let error = loader.epoch(0).next().unwrap().unwrap_err();
    assert!(matches!(error, PipelineError::BatchMemory { .. }), "{error}");
    let (peak, _) = resident();
    let taken = peak.saturating_sub(before);
    assert!(taken <= BUDGET, "{} MiB: {}", taken / MIB, loader.memory());
    say(&format!("sidecar files: peak {} MiB\n", taken / MIB));
}
