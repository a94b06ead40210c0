//! Archives of archives, compressed archives, Zstandard in TBL files, MNIST and CIFAR: batches, order
//! and resumption as for any data set.

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use tbl_io::{
    AsStored, Compression, ConvertOptions, Labels, Selection, Stores, TarOptions, TarWriter,
    Target, Unpack, ZstdLevel,
};
use tempfile::TempDir;
use tl_pipeline::{
    Blocks, CacheConfig, CacheKind, Dataset, Loader, LoaderConfig, Readers, Shard, Shuffle, Tail,
    Work,
};
use tl_transform::Recipe;

use crate::caches::{disk, exact, memory};
use crate::content::{Record, record};
use crate::memory::{bmp, config, pixels};

/// The data sets, made once.
static SOURCES: LazyLock<(TempDir, Vec<PathBuf>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let paths = write_all(folder.path());
    (folder, paths)
});

fn tar(path: &Path, members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut writer = TarWriter::create(path, TarOptions { sync: false, overwrite: true }).unwrap();
    for (name, bytes) in members {
        writer.append(name.as_bytes(), bytes).unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

fn convert(from: &Path, to: &Path, compression: Compression) {
    let sources = [tbl_io::open(from).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let options = ConvertOptions::new(Target::Tbl2(compression));
    tbl_io::convert(
        &selection,
        to,
        &options,
        AsStored::default,
        &mut |_| ControlFlow::Continue(()),
    )
    .unwrap();
}

fn write_all(folder: &Path) -> Vec<PathBuf> {
    let at = |name: &str| folder.join(name);
    let picture = |class: &str, number: u32| {
        let (width, height, pixels) = pixels(number);
        (format!("{class}_{number}.bmp"), bmp(width, height, &pixels))
    };
    let classes = [("n01440764", 0..9), ("n01443537", 9..16), ("n01484850", 16..29)];
    let members = |class: &str, numbers: std::ops::Range<u32>| -> Vec<_> {
        numbers.map(|number| picture(class, number)).collect()
    };
    let outer: Vec<_> = classes
        .iter()
        .map(|(class, numbers)| {
            let inner = tar(&at("inner"), &members(class, numbers.clone()));
            (format!("{class}.tar"), inner)
        })
        .collect();
    let plain = tar(&at("train.tar"), &outer);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    fs::write(at("train.tar.gz"), gzip.finish().unwrap()).unwrap();
    convert(&at("train.tar"), &at("zstd.tbl"), Compression::Zstd(ZstdLevel::DEFAULT));

    let shade = |number: u32| u8::try_from(number % 3).unwrap();
    // Images of one size that pay for a dictionary.
    let similar = |number: u32| {
        let pixels: Vec<u8> = (0..192_u8).map(|at| at.wrapping_mul(37) % 101).collect();
        let pixels: Vec<u8> = pixels.into_iter().map(|value| value + shade(number)).collect();
        (format!("{number:04}.bmp"), bmp(8, 8, &pixels))
    };
    tar(&at("similar.tar"), &(0..900).map(similar).collect::<Vec<_>>());
    convert(&at("similar.tar"), &at("dictionary.tbl"), Compression::Zstd(ZstdLevel::DEFAULT));

    let header = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    let noise = |count: u32| (0..count).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8);
    let images: Vec<u8> = header(&[0x803, 31, 28, 28]).into_iter().chain(noise(31 * 784)).collect();
    fs::write(at("x-images-idx3-ubyte"), images).unwrap();
    let labels = header(&[0x801, 31]).into_iter().chain((0..31).map(|number| number % 10));
    fs::write(at("x-labels-idx1-ubyte"), labels.collect::<Vec<u8>>()).unwrap();
    let cifar: Vec<u8> =
        (0..27_u8).flat_map(|number| std::iter::once(number % 10).chain(noise(3072))).collect();
    fs::write(at("data_batch_1.bin"), cifar).unwrap();
    let names: String = (0..10).map(|number| format!("class {number}\n")).collect();
    fs::write(at("batches.meta.txt"), names).unwrap();
    ["train.tar", "train.tar.gz", "zstd.tbl", "dictionary.tbl", "x-images-idx3-ubyte"]
        .into_iter()
        .chain(["data_batch_1.bin"])
        .map(at)
        .collect()
}

fn open(path: &Path) -> Dataset {
    let (folder, _) = &*SOURCES;
    let stores = Stores::new().unpacking(Unpack::Keep(folder.path().join("plain")));
    Dataset::open_in(&stores, &[path]).unwrap()
}

fn loader(path: &Path, config: LoaderConfig) -> Loader {
    Loader::new(open(path), config).unwrap()
}

#[test]
fn an_archive_of_archives_has_the_batches_of_all_its_copies() {
    let (_, paths) = &*SOURCES;
    let [tar, gzip, zstd, ..] = &paths[..] else { panic!() };
    for work in [Work::Images(Recipe::imagenet_train(16).unwrap()), Work::Bytes] {
        let expected = record(&loader(tar, config(work.clone())), 1);
        assert_eq!(expected.iter().map(|record| record.indices.len()).sum::<usize>(), 29);
        assert!(expected.iter().any(|record| record.labels.contains(&2)));
        for path in [gzip, zstd] {
            assert!(record(&loader(path, config(work.clone())), 1) == expected, "{path:?}");
        }
    }
    assert_eq!(open(tar).class_names(), ["n01440764", "n01443537", "n01484850"]);
}

#[test]
fn images_without_a_format_are_decoded_to_their_pixels() {
    let (_, paths) = &*SOURCES;
    let mnist = fs::read(&paths[4]).unwrap();
    let cifar = fs::read(&paths[5]).unwrap();
    let mut decoder = tl_decode::Decoder::new(tl_decode::DecodeOptions::default());
    let mut bytes = Vec::new();
    for at in 0..27_usize {
        let mut pixels = |path: &PathBuf| {
            open(path).read_into(at as u64, &mut bytes).unwrap();
            let mut image = tl_decode::Image::new();
            decoder.decode_into(&bytes, &mut image).unwrap();
            image.data.clone()
        };
        let gray = &mnist[16 + at * 784..][..784];
        assert_eq!(
            pixels(&paths[4]),
            gray.iter().flat_map(|&value| [value; 3]).collect::<Vec<_>>()
        );
        let planes = &cifar[at * 3073 + 1..][..3072];
        let mixed = (0..1024).flat_map(|pixel| [0, 1, 2].map(|plane| planes[plane * 1024 + pixel]));
        assert_eq!(pixels(&paths[5]), mixed.collect::<Vec<_>>());
    }
}

fn caches() -> impl Strategy<Value = Option<(bool, CacheKind)>> {
    let kind = prop_oneof![Just(CacheKind::Encoded), Just(CacheKind::Decoded)];
    prop::option::of((any::<bool>(), kind))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(30),
    ))]

    #[test]
    fn workers_readers_caches_ranks_and_stops_make_no_difference(
        source in 0..6_usize,
        seed: u64,
        epoch in 0..9_u32,
        shuffle in prop_oneof![
            Just(Shuffle::Full),
            Just(Shuffle::None),
            Just(Shuffle::Block { blocks: Blocks::Samples(4), window: 2 }),
        ],
        batch_size in 1..7_usize,
        workers in 1..4_usize,
        readers in prop_oneof![Just(Readers::Workers), (1..3_usize).prop_map(Readers::Threads)],
        cache in caches(),
        stop in any::<prop::sample::Index>(),
        world in 1..4_u32,
    ) {
        let path = &SOURCES.1[source];
        let folder = tempfile::tempdir().unwrap();
        let cache = cache.map_or_else(CacheConfig::default, |(is_on_disk, kind)| if is_on_disk {
            disk(kind, folder.path(), 1 << 20)
        } else {
            memory(kind, 1 << 20)
        });
        let plain = LoaderConfig { seed, batch_size, sampler: shuffle.into(), ..config(exact()) };
        let expected = record(&loader(path, plain.clone()), epoch);

        let other = LoaderConfig { workers, readers, cache, ..plain.clone() };
        let first = loader(path, other.clone());
        prop_assert!(record(&first, epoch) == expected);
        prop_assert!(record(&first, epoch) == expected, "from the cache");

        let mut run = first.epoch(epoch);
        let done = stop.index(expected.len());
        let taken = run.by_ref().take(done).map(Result::unwrap).count();
        let state = run.state().unwrap();
        drop(run);
        let resumed = loader(path, other).resume(&state).unwrap();
        let rest: Vec<Vec<u64>> =
            resumed.map(|batch| batch.unwrap().indices().to_vec()).collect();
        let left: Vec<Vec<u64>> =
            expected[taken..].iter().map(|record| record.indices.clone()).collect();
        prop_assert_eq!(rest, left);

        let ranks = (0..world).map(|rank| {
            let shard = Shard { rank, world, tail: Some(Tail::Uneven) };
            let loader = loader(path, LoaderConfig { shard, ..plain.clone() });
            record(&loader, epoch).iter().flat_map(|record| record.indices.clone()).collect()
        });
        let ranks: Vec<Vec<u64>> = ranks.collect();
        let mut together = ranks.concat();
        together.sort_unstable();
        let mut all: Vec<u64> = expected.iter().flat_map(|Record { indices, .. }| indices.clone()).collect();
        all.sort_unstable();
        prop_assert_eq!(together, all);
    }
}
