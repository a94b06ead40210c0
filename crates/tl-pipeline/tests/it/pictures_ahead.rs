//! Bytes that are prepared ahead, where these are images for a device that decodes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tl_pipeline::{
    Batch, Collate, Dataset, Delivery, DeviceDecode, DeviceOptions, Loader, LoaderConfig, Readers,
};
use tl_transform::{Dtype, Layout};

use crate::decoding::{cropped, indexed, kinds, recipe};
use crate::delivery::{images, on_device, on_host, options_with, photos, there};

/// Longer than a batch takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// The settings of an epoch of small batches, of which the device decodes the images.
fn ahead(device: &DeviceOptions, prefetch_bytes: u64) -> LoaderConfig {
    let delivery = on_device(device.clone());
    let config = images(recipe(&cropped(24), Dtype::F16, Layout::Chw));
    LoaderConfig { batch_size: 2, prefetch_bytes: Some(prefetch_bytes), delivery, ..config }
}

/// Compares two epochs with those of the host, while the consumer keeps its last batches.
fn check(dataset: &Dataset, config: LoaderConfig, kept: usize) {
    let what = format!("{} workers, {:?}, {kept}", config.workers, config.prefetch_bytes);
    let on_the_host = LoaderConfig { delivery: Delivery::Host, ..config.clone() };
    let host = Loader::new(dataset.clone(), on_the_host).unwrap();
    let loader = Loader::new(dataset.clone(), config).unwrap();
    let mut held = Vec::new();
    for epoch in 0..2 {
        let mut batches = loader.epoch(epoch);
        for expected in host.epoch(epoch) {
            let expected = expected.unwrap();
            let batch = batches.next_timeout(PATIENCE).unwrap();
            let batch = batch.expect(&what);
            assert!(there(&batch) == on_host(&expected), "{what}, {}", expected.number());
            held.push(batch);
            if held.len() > kept {
                held.remove(0);
            }
        }
        assert!(batches.next_timeout(PATIENCE).is_none());
        assert_eq!(loader.memory().held, held.len() as u64);
    }
    assert!(loader.stats().uploads.pictures > 0);
}

#[test]
fn few_bytes_ahead_hold_nobody_up() {
    let root = tempfile::tempdir().unwrap();
    let kinds = indexed(&root.path().join("kinds.tbl"), &kinds()[..24]).0;
    let device = options_with(&[]);
    for workers in 1..=4 {
        let readers = if workers % 2 == 0 { Readers::Threads(2) } else { Readers::Workers };
        for (prefetch_bytes, kept) in [(1, 0), (1, 3), (60_000, 5), (400_000, 1)] {
            let config = LoaderConfig { workers, readers, ..ahead(&device, prefetch_bytes) };
            check(&kinds, config, kept);
        }
    }
}

#[test]
fn batches_are_held_back_by_the_bytes_of_their_pictures() {
    let device = DeviceOptions { decode: DeviceDecode::Coefficients, ..options_with(&[]) };
    // Six batches, each picture of some kilobytes.
    for (prefetch_bytes, certain) in [(1 << 30, 6), (1, 1)] {
        for workers in [1, 4] {
            let asked = Arc::new(AtomicU64::new(0));
            let (finish, finished) = mpsc::channel();
            let seen = Arc::clone(&asked);
            let collate = Collate::new(move |batch: &Batch| {
                let early = batch.number() > seen.load(Ordering::SeqCst);
                assert!(!early || workers > 1 || prefetch_bytes > 1, "{}", batch.number());
                finish.send(()).unwrap();
                Ok(())
            });
            let config = ahead(&device, prefetch_bytes);
            let collate = Some(collate);
            let config = LoaderConfig { workers, collate, prefetch_next_epoch: false, ..config };
            let loader = Loader::new(photos(), config).unwrap();
            let mut epoch = loader.epoch(0);
            // So many are made though nobody asks for them.
            (0..certain).for_each(|_| finished.recv_timeout(PATIENCE).unwrap());
            for batch in 1..=6 {
                (0..100).for_each(|_| std::thread::yield_now());
                asked.store(batch, Ordering::SeqCst);
                epoch.next_timeout(PATIENCE).unwrap().unwrap();
            }
            assert!(epoch.next_timeout(PATIENCE).is_none());
        }
    }
}

#[test]
fn runs_that_are_left_leave_no_bytes_behind() {
    let device = options_with(&[]);
    for workers in [1, 3] {
        let config = LoaderConfig { workers, ..ahead(&device, 50_000) };
        let loader = Loader::new(photos(), config).unwrap();
        for left in 0..6 {
            let mut epoch = loader.epoch(left);
            let mut held = Vec::new();
            for _ in 0..left {
                held.push(epoch.next_timeout(PATIENCE).unwrap().unwrap());
                let alone = loader.batch(left, 5).unwrap();
                assert_eq!(alone.len(), 2);
            }
            assert_eq!(loader.memory().held, u64::from(left));
        }
    }
}
