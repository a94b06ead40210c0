//! tl-pipeline: whole epochs from files in the page cache to batches, and the order alone.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tl_benches::is_measuring;
use tl_pipeline::{Dataset, Loader, LoaderConfig, Order, Shuffle, Work};
use tl_transform::Recipe;

/// The data sets: the photographs of testdata eight times over, and ImageNet's when there are any.
fn data_sets() -> Vec<(&'static str, Vec<PathBuf>)> {
    let photographs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/photos");
    let mut sets = vec![("testdata", vec![photographs; 8])];
    if let Some(data) = std::env::var_os("TURBOLOADER_DATA") {
        sets.push(("imagenet", vec![Path::new(&data).join("imagenet")]));
    }
    sets
}

fn work(name: &str) -> Work {
    let recipe = match name {
        "imagenet-train" => Recipe::imagenet_train(224),
        _ => Recipe::imagenet_eval(224),
    };
    Work::Images(recipe.expect("224 is a valid size"))
}

fn epochs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("epoch");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    for (set, paths) in data_sets() {
        for recipe in ["imagenet-train", "imagenet-eval"] {
            for workers in [1, 2] {
                let dataset = Dataset::open(&paths).expect("the folder is there");
                group.throughput(Throughput::Elements(dataset.len()));
                let config = LoaderConfig {
                    workers,
                    sampler: Shuffle::Full.into(),
                    ..LoaderConfig::new(work(recipe))
                };
                let loader = Loader::new(dataset, config).expect("valid settings");
                let mut epoch = 0;
                let id = BenchmarkId::new(format!("{set}/{recipe}"), format!("workers {workers}"));
                group.bench_function(id, |b| {
                    b.iter(|| {
                        epoch += 1;
                        for batch in loader.epoch(epoch) {
                            black_box(batch.expect("photographs decode"));
                        }
                    });
                });
            }
        }
    }
    group.finish();
}

fn order(criterion: &mut Criterion) {
    let samples = if is_measuring() { 1_281_167 } else { 1000 };
    let order = Order::shuffled(samples, 42, 0);
    let mut group = criterion.benchmark_group("order");
    group.throughput(Throughput::Elements(samples));
    group.bench_function(BenchmarkId::new("every position of", samples), |b| {
        b.iter(|| (0..samples).filter_map(|at| order.sample_at(black_box(at))).max());
    });
    group.finish();
}

criterion_group!(benches, epochs, order);
criterion_main!(benches);
