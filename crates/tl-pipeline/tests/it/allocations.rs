//! Counts allocations, which in steady state must not grow with the number of samples, and the bytes
//! that a loader keeps.

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use idv_format::Compression;
use tbf_format::BuildOptions;
use tbl_format::SampleFormat;
use tbl_io::{NewSample, StreamWriter, TarOptions, TarWriter, WriteOptions};
use tl_pipeline::{Columns, Dataset, LoaderConfig, Neighbors, Shuffle, TokenWork, Work};
use tl_tokens::{PackedRows, Sequences, TokenOptions, TokenType, Windows};
use tl_transform::batch_op::{CutMix, MixUp, Mosaic};
use tl_transform::op::{
    CenterCrop, ErasingValue, GaussianBlur, GaussianNoise, GridMask, RandomErasing,
    RandomResizedCrop, Resize, ToFloat,
};
use tl_transform::{DecodeMode, Dtype, Layout as ImageLayout, OutputSpec, Recipe};

use crate::documents;
use crate::memory::{Stored, config, dataset, flat_jpeg, jpeg, loader, sample, train};
use crate::steps::everything;
use crate::tables::files::{write_idv, write_tbf};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Bytes that are allocated now, and the most that were at any time.
static LIVE: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);

fn grow(bytes: usize) {
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    let live = LIVE.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes as u64, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        shrink(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

const BATCHES: usize = 40;

/// Allocations of a whole epoch of `BATCHES` batches, once everything has its size.
fn allocations(work: Work, batch_size: usize, open: impl Fn(usize) -> Dataset) -> u64 {
    let dataset = open(BATCHES * batch_size);
    let loader = loader(dataset, LoaderConfig { batch_size, ..config(work) });
    let epoch = |epoch| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        assert_eq!(loader.epoch(epoch).filter(|batch| batch.is_ok()).count(), BATCHES);
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    for warm_up in 0..20 {
        epoch(warm_up);
    }
    (20..25).map(epoch).min().unwrap()
}

/// Blurs, adds noise, erases, and mixes the images of a batch.
fn filtered_and_mixed() -> Recipe {
    let output = OutputSpec { dtype: Dtype::F32, layout: ImageLayout::Chw };
    let erasing = RandomErasing { p: 1.0, ..RandomErasing::default() };
    let ops = vec![
        RandomResizedCrop::new(16).into(),
        GaussianBlur::new(5).into(),
        GaussianNoise::default().into(),
        GridMask { distance: (4, 9), ..GridMask::default() }.into(),
        ToFloat {}.into(),
        RandomErasing { value: ErasingValue::RANDOM, ..erasing }.into(),
    ];
    let cut_mix = CutMix { num_classes: Some(5), ..CutMix::default() };
    let ways = vec![MixUp::default().into(), cut_mix.into(), Mosaic::default().into()];
    Recipe::new(ops, output).unwrap().with_batch_ops(ways).unwrap()
}

fn samples(count: usize, format: SampleFormat) -> Vec<Stored> {
    (0..u32::try_from(count).unwrap()).map(|number| sample(number % 97, format)).collect()
}

/// JPEG files of several kinds, with another size, sampling or number of scans from one to the next.
fn jpegs(count: usize) -> Dataset {
    const FILES: [(&str, (u32, u32)); 6] = [
        ("sampling_2x2_1x1_1x1", (35, 29)),
        ("grey", (35, 29)),
        ("tall", (9, 150)),
        ("restart_rows", (35, 90)),
        ("each_scan_420", (35, 29)),
        ("progressive_deep_420", (75, 51)),
    ];
    let folder = tl_testdata::shipped!("jpeg");
    let read = |number: usize| {
        let (name, size) = FILES[number % FILES.len()];
        let bytes = std::fs::read(folder.join(name).with_extension("jpg")).unwrap();
        let key = format!("{number:06}.jpg");
        Stored { key, label: None, format: SampleFormat::Jpeg, size, bytes }
    };
    dataset((0..count).map(read).collect())
}

/// Lossy WebP files of two sizes.
fn webps(count: usize) -> Dataset {
    let files = [
        tl_testdata::shipped!("images/webp/lossy.webp"),
        tl_testdata::shipped!("photos/animals/chelsea_face.webp"),
    ];
    let read = |number: usize| {
        let bytes = std::fs::read(&files[number % files.len()]).unwrap();
        let info = tl_decode::probe(&bytes).unwrap();
        let size = (info.width, info.height);
        let key = format!("{number:06}.webp");
        Stored { key, label: None, format: SampleFormat::WebP, size, bytes }
    };
    dataset((0..count).map(read).collect())
}

/// BMP files in a TAR archive, in folders that are not classes.
fn tar(folder: &Path, count: usize) -> Dataset {
    let path = folder.join(format!("{count}.tar"));
    let mut writer = TarWriter::create(&path, TarOptions { sync: false, overwrite: true }).unwrap();
    for (number, Stored { bytes, .. }) in samples(count, SampleFormat::Bmp).iter().enumerate() {
        writer.append(format!("train/bmp/{number:06}.bmp").as_bytes(), bytes).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

/// Named and labelled samples in a TBL file, under LZ4 where that makes them smaller.
fn tbl(folder: &Path, count: usize, format: SampleFormat) -> Dataset {
    let path = folder.join(format!("{count}-{format}.tbl"));
    let options = WriteOptions {
        compression: tbl_io::Compression::Lz4,
        sync: false,
        overwrite: true,
        ..WriteOptions::default()
    };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for (number, stored) in samples(count, format).iter().enumerate() {
        let key = format!("train/bmp/{number:06}.bmp");
        let sample = NewSample {
            format,
            width: stored.size.0,
            height: stored.size.1,
            key: Some(key.as_bytes()),
            label: stored.label,
            ..NewSample::new(&stored.bytes)
        };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

/// True if `test` has this process for itself; if not, it was run in a separate one.
fn is_alone(test: &str) -> bool {
    const CHILD: &str = "TL_PIPELINE_ALLOCATIONS";
    if std::env::var_os(CHILD).is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    false
}

/// An image of 64 million pixels between small ones, decoded into pixels and into planes.
#[test]
fn a_giant_does_not_cost_its_memory_for_good() {
    const SIDE: u16 = 8192;
    const PIXELS: u64 = 64 << 20;
    if !is_alone("allocations::a_giant_does_not_cost_its_memory_for_good") {
        return;
    }
    let resize = Resize::new(16);
    let ops = vec![resize.into(), CenterCrop::new(16).into()];
    let output = OutputSpec { dtype: Dtype::U8, layout: ImageLayout::Hwc };
    let recipe = Recipe::new(ops, output).unwrap();
    // So large a margin leaves no smaller scale.
    let fast = DecodeMode::Fast { decode_margin: 1000.0 };
    for (mode, decoded) in [(DecodeMode::Exact, 3 * PIXELS), (fast, PIXELS)] {
        let sides = [64, 64, 64, SIDE, 64, 64, 64, 64];
        let samples = sides.map(|side| jpeg(&format!("{side}.jpg"), flat_jpeg(side)));
        let work = Work::Images(recipe.clone().with_decode(mode).unwrap());
        let config = LoaderConfig { workers: 1, sampler: Shuffle::None.into(), ..config(work) };
        // Or the next epoch's giant may be in the making when it is measured what is kept.
        let config = LoaderConfig { prefetch_next_epoch: false, ..config };
        let loader = loader(dataset(samples.into()), config);
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let rows: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
        assert_eq!(rows, sides.len());
        let peak = PEAK.load(Ordering::Relaxed) - before;
        let kept = LIVE.load(Ordering::Relaxed) - before;
        assert!(peak > decoded, "{mode}: {peak} bytes at the most");
        assert!(kept < 16 << 20, "{mode}: {kept} of {peak} bytes kept");
    }
}

/// With twice the samples in as many batches, the number of allocations stays the same. Shown for
/// formats whose decoders are ours; png, image-webp (lossless WebP) and tiff allocate by themselves
/// for every image.
///
/// In a separate process, because other tests allocate meanwhile.
#[test]
fn samples_cost_no_allocations() {
    if !is_alone("allocations::samples_cost_no_allocations") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let memory = |format| move |count| -> Dataset { dataset(samples(count, format)) };
    let tar = |count| tar(folder.path(), count);
    let tbl = |format| {
        let folder = folder.path();
        move |count| tbl(folder, count, format)
    };
    let decode = || Work::Images(Recipe::decode());
    let (bmp, raw) = (SampleFormat::Bmp, SampleFormat::RawU8);
    assert_eq!(row_index_allocations(folder.path()), 0);
    check("imagenet-train, BMP", &train, memory(bmp));
    check("imagenet-train, JPEG", &train, jpegs);
    check("decode, JPEG", &decode, jpegs);
    check("imagenet-train, lossy WebP", &train, webps);
    check("decode, lossy WebP", &decode, webps);
    let eval = || Work::Images(Recipe::imagenet_eval(16).unwrap());
    check("imagenet-eval, JPEG", &eval, jpegs);
    check("imagenet-eval, lossy WebP", &eval, webps);
    check("imagenet-train, raw", &train, memory(raw));
    let mixed = || Work::Images(filtered_and_mixed());
    check("filters and mixing, raw", &mixed, memory(raw));
    check("decode, BMP", &decode, memory(bmp));
    let every_step = || Work::Images(everything());
    check("every step, BMP", &every_step, memory(bmp));
    check("every step, JPEG", &every_step, jpegs);
    check("bytes", &|| Work::Bytes, memory(bmp));
    check("imagenet-train, BMP in TAR", &train, tar);
    check("bytes in TAR", &|| Work::Bytes, tar);
    check("imagenet-train, BMP in TBL", &train, tbl(bmp));
    check("imagenet-train, raw in TBL", &train, tbl(raw));
    check("bytes in TBL", &|| Work::Bytes, tbl(bmp));
    for compression in [Compression::None, Compression::Deflate] {
        let open = |count: usize| {
            let path = folder.path().join("a.idv");
            write_idv(&path, 0..count as u64, compression);
            Dataset::open(&[path]).unwrap()
        };
        let features = vec!["dense".into(), "sparse".into()];
        let columns = Columns { features, label: Some("key".into()), ..Columns::default() };
        check("columns", &|| Work::Columns(columns.clone()), open);
    }
    let open = |count: usize| {
        let path = folder.path().join("a.tbf");
        write_tbf(&path, count.try_into().unwrap(), BuildOptions::default());
        Dataset::open(&[path]).unwrap()
    };
    let columns = vec!["embedding".into()];
    let neighbors = Neighbors { fanouts: vec![3, 2], columns, ..Neighbors::default() };
    let columns = Columns { neighbors: Some(neighbors), ..Columns::default() };
    check("neighbours", &|| Work::Columns(columns.clone()), open);
    let open = |count: usize| {
        let path = folder.path().join("a.bin");
        std::fs::write(&path, vec![7; 2 * (count * 8 + 1)]).unwrap();
        let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
        let windows = Windows::new(NonZeroU32::new(8).unwrap());
        Dataset::open_tokens(&tbl_io::Stores::new(), &[path], &options, windows.into()).unwrap()
    };
    check("tokens", &|| Work::Tokens(TokenWork::default()), open);
    let open = |count: usize| {
        let lengths = vec![3; 2 * count];
        let path = documents::write(folder.path(), &lengths);
        let rows = PackedRows::new(NonZeroU32::new(7).unwrap());
        documents::open(&path, Sequences::Packed(rows)).unwrap()
    };
    check("documents", &|| Work::Tokens(TokenWork::default()), open);
}

/// Allocations of reading every row index of a data set with a buffer that is large enough.
fn row_index_allocations(folder: &Path) -> u64 {
    let path = folder.join("indexed.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for number in 0..500_u32 {
        let row_index = number.to_le_bytes().repeat(1 + number as usize % 300);
        let bytes = number.to_be_bytes();
        let row_index = (number % 5 != 0).then_some(&row_index[..]);
        writer.write_sample(&NewSample { row_index, ..NewSample::new(&bytes) }).unwrap();
    }
    writer.finish().unwrap();
    // In two places, so that one in the middle of the data set is found too.
    let dataset = Dataset::open(&[&path, &path]).unwrap();
    let mut row_index = Vec::with_capacity(4 * 300);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for (index, number) in (0..).zip((0..500_u32).chain(0..500)) {
        let found = dataset.row_index_into(index, &mut row_index).unwrap();
        assert_eq!(found, number % 5 != 0);
        assert!(!found || row_index.starts_with(&number.to_le_bytes()));
        assert!(!found || row_index.len() == 4 * (1 + number as usize % 300));
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

fn check(name: &str, work: &dyn Fn() -> Work, open: impl Fn(usize) -> Dataset) {
    let single = allocations(work(), 8, &open);
    let double = allocations(work(), 16, &open);
    assert!(double <= single + 16, "{name}: {single} allocations, {double} for twice as many");
    // The rest are handles of each batch, four where images are mixed, and the three parts of a slab
    // where an epoch needs one more than the one before.
    assert!(single <= 4 * BATCHES as u64 + 3, "{name}: {single}");
}
