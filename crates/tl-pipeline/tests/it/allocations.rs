//! Counts allocations: in steady state they must not grow with the number of samples.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use tbl_format::SampleFormat;
use tl_pipeline::{LoaderConfig, Work};
use tl_transform::Recipe;

use crate::memory::{config, dataset, loader, sample, train};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

const BATCHES: usize = 40;

/// Allocations of a whole epoch of `BATCHES` batches, once everything has its size.
fn allocations(work: Work, format: SampleFormat, batch_size: usize) -> u64 {
    let count = u32::try_from(BATCHES * batch_size).unwrap();
    let samples = (0..count).map(|number| sample(number % 97, format)).collect();
    let loader = loader(dataset(samples), LoaderConfig { batch_size, ..config(work) });
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

/// With twice the samples in as many batches, the number of allocations stays what it was. Shown
/// for formats whose decoders are ours; jpeg-decoder, png, image-webp and tiff allocate by
/// themselves for every image.
///
/// In a process of its own, because other tests allocate meanwhile.
#[test]
fn samples_cost_no_allocations() {
    const CHILD: &str = "TL_PIPELINE_ALLOCATIONS";
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let test = "allocations::samples_cost_no_allocations";
        let output = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let decode = || Work::Images(Recipe::decode());
    for (name, work, format) in [
        ("imagenet-train, BMP", train(), SampleFormat::Bmp),
        ("imagenet-train, raw", train(), SampleFormat::RawU8),
        ("decode, BMP", decode(), SampleFormat::Bmp),
        ("bytes", Work::Bytes, SampleFormat::Bmp),
    ] {
        let single = allocations(work.clone(), format, 8);
        let double = allocations(work, format, 16);
        assert!(double <= single + 16, "{name}: {single} allocations, {double} for twice as many");
        // What is left is threads and one shared handle a batch.
        assert!(single <= 4 * BATCHES as u64, "{name}: {single}");
    }
}
