//! Whole loaders under shuttle: runs that go on over epochs, are parked, broken off and resumed.

use std::path::Path;

use tbl_format::SampleFormat;
use tbl_io::{Entry, Field, ReadError, SampleSource, SourceKind};

use crate::sync::{Arc, explore, lock, thread};
use crate::{Dataset, Loader, LoaderConfig, Order, Shuffle, Work};

/// Samples that hold their own number.
#[derive(Debug)]
struct Numbers(u64);

impl SampleSource for Numbers {
    fn path(&self) -> &Path {
        Path::new("numbers")
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.0
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let format = SampleFormat::Unknown;
        let (offset, bytes) = (8 * index, 8);
        let entry = Entry {
            key: None,
            label: None,
            format,
            width: 0,
            height: 0,
            offset,
            bytes,
            stored_bytes: 8,
        };
        Ok(entry)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        bytes.clear();
        bytes.extend_from_slice(&index.to_le_bytes());
        Ok(())
    }

    fn will_need(&self, _: u64) {}

    fn read_fields(&self, _: u64, _: &mut Vec<Field>) -> Result<(), ReadError> {
        Ok(())
    }

    fn class_names(&self) -> &[String] {
        &[]
    }
}

/// Three samples in batches of two: a whole and a short batch per epoch.
fn loader(workers: usize, prefetch: usize) -> Loader {
    let dataset = Dataset::from_sources(vec![Box::new(Numbers(3))]).unwrap();
    let sampler = Shuffle::Full.into();
    let config = LoaderConfig {
        workers,
        prefetch,
        sampler,
        batch_size: 2,
        ..LoaderConfig::new(Work::Bytes)
    };
    Loader::new(dataset, config).unwrap()
}

/// Receives `batches` of an epoch from number `first` on and compares them with the order.
fn receive(epoch: &mut crate::Epoch, first: u64, batches: usize) {
    let order = Order::shuffled(3, 0, epoch.number());
    for (batch, number) in epoch.by_ref().take(batches).zip(first..) {
        let batch = batch.unwrap();
        assert_eq!(batch.number(), number);
        assert_eq!(batch.len(), if number == 0 { 2 } else { 1 });
        for (row, &index) in batch.indices().iter().enumerate() {
            assert_eq!(Some(index), order.sample_at(number * 2 + row as u64));
            assert_eq!(batch.sample(row).unwrap().bytes, index.to_le_bytes());
        }
    }
}

#[test]
fn epochs_follow_each_other_in_one_run() {
    explore(|| {
        let loader = loader(2, 2);
        for number in 0..2 {
            let mut epoch = loader.epoch(number);
            receive(&mut epoch, 0, 2);
            assert!(epoch.next().is_none());
        }
    });
}

#[test]
fn epochs_are_broken_off_and_resumed() {
    explore(|| {
        let loader = loader(2, 1);
        let mut epoch = loader.epoch(0);
        receive(&mut epoch, 0, 1);
        let state = epoch.state().unwrap();
        drop(epoch);
        let mut epoch = loader.resume(&state).unwrap();
        receive(&mut epoch, 1, 1);
        // The run is parked and goes on, or is told to stop by a request for something else.
        receive(&mut loader.epoch(1), 0, 1);
        receive(&mut loader.epoch(7), 0, 1);
    });
}

#[test]
fn an_epoch_may_end_before_or_after_its_loader() {
    explore(|| {
        let loader = loader(2, 2);
        let mut epoch = loader.epoch(0);
        let dropping = thread::spawn(move || drop(loader));
        receive(&mut epoch, 0, 2);
        drop(epoch);
        dropping.join().unwrap();
    });
}

#[test]
fn batches_go_home_while_workers_and_loader_end() {
    explore(|| {
        let loader = loader(2, 1);
        let mut epoch = loader.epoch(0);
        let batch = epoch.next().unwrap().unwrap();
        let (view, shared) = (batch.clone(), Arc::new(crate::sync::Mutex::new(Some(batch))));
        let taken = Arc::clone(&shared);
        let dropping = thread::spawn(move || drop(lock(&taken).take()));
        drop(epoch);
        drop(loader);
        assert_eq!(view.indices().len(), 2);
        dropping.join().unwrap();
    });
}

#[test]
fn epochs_side_by_side_are_the_same() {
    explore(|| {
        let loader = Arc::new(loader(1, 1));
        let others = {
            let loader = Arc::clone(&loader);
            thread::spawn(move || {
                receive(&mut loader.epoch(0), 0, 2);
                receive(&mut loader.epoch(1), 0, 1);
            })
        };
        receive(&mut loader.epoch(0), 0, 2);
        receive(&mut loader.epoch(1), 0, 2);
        others.join().unwrap();
    });
}
