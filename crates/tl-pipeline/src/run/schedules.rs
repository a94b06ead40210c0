//! Whole loaders under shuttle: runs that continue over epochs, are parked, cancelled and resumed.

use tbl_format::SampleFormat;
use tbl_io::{Entry, Location, ReadError, SampleSource, SourceKind};
use tl_handoff::sync::{Arc, explore, lock, thread};

use crate::{Dataset, Loader, LoaderConfig, Order, PipelineError, Readers, Shuffle, Work};

/// Samples that hold their own number, except one that cannot be read.
#[derive(Debug)]
struct Numbers {
    location: Location,
    count: u64,
    bad: Option<u64>,
}

impl SampleSource for Numbers {
    fn location(&self) -> &Location {
        &self.location
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.count
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let format = SampleFormat::Unknown;
        let offset = 8 * index;
        let bytes = 8;
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
        if self.bad == Some(index) {
            let location = self.location.clone();
            let sample_count = self.count;
            return Err(ReadError::SampleOutOfRange { location, index, sample_count });
        }
        bytes.clear();
        bytes.extend_from_slice(&index.to_le_bytes());
        Ok(())
    }
}

/// Three samples in batches of two: a whole and a short batch per epoch.
fn loader(workers: usize, prefetch: usize) -> Loader {
    loader_with(None, LoaderConfig { workers, prefetch, ..LoaderConfig::new(Work::Bytes) })
}

fn loader_with(bad: Option<u64>, config: LoaderConfig) -> Loader {
    let dataset = Dataset::from_sources(vec![Box::new(Numbers {
        location: "numbers".into(),
        count: 3,
        bad,
    })])
    .unwrap();
    let sampler = Shuffle::Full.into();
    Loader::new(dataset, LoaderConfig { sampler, batch_size: 2, ..config }).unwrap()
}

/// A worker, and readers that are ahead by the bytes of one sample.
fn with_readers(bad: Option<u64>, readers: usize) -> Loader {
    let config = LoaderConfig::new(Work::Bytes);
    let readers = Readers::Threads(readers);
    let read_ahead_bytes = 8;
    loader_with(bad, LoaderConfig { workers: 1, prefetch: 1, readers, read_ahead_bytes, ..config })
}

/// Two workers, and room for two batches, of which the consumer may keep one.
fn with_budget(readers: Readers) -> Loader {
    let config = LoaderConfig::new(Work::Bytes);
    let memory_budget = Some(1 << 30);
    let read_ahead_bytes = 8;
    let config = LoaderConfig { memory_budget, readers, read_ahead_bytes, ..config };
    let loader = loader_with(None, LoaderConfig { workers: 2, prefetch: 1, ..config });
    assert_eq!(loader.memory().max_batches, Some(2));
    loader
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
        // The run is parked and continues, or is stopped by a request for other batches.
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
        let view = batch.clone();
        let shared = Arc::new(tl_handoff::sync::Mutex::new(Some(batch)));
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

#[test]
fn runs_with_readers_are_parked_taken_up_and_dropped() {
    explore(|| {
        let loader = with_readers(None, 2);
        receive(&mut loader.epoch(0), 0, 2);
        receive(&mut loader.epoch(1), 0, 1);
        let mut epoch = loader.epoch(7);
        let dropping = thread::spawn(move || drop(loader));
        receive(&mut epoch, 0, 1);
        drop(epoch);
        dropping.join().unwrap();
    });
}

#[test]
fn epochs_with_readers_are_broken_off_and_resumed() {
    explore(|| {
        let loader = with_readers(None, 1);
        let mut epoch = loader.epoch(0);
        receive(&mut epoch, 0, 1);
        let state = epoch.state().unwrap();
        drop(epoch);
        receive(&mut loader.resume(&state).unwrap(), 1, 1);
        receive(&mut loader.epoch(1), 0, 2);
    });
}

/// Whether a reader or a worker met it, the consumer gets the error at its position, and the run
/// ends.
#[test]
fn what_a_reader_cannot_read_is_the_consumers_to_hear() {
    explore(|| {
        let order = Order::shuffled(3, 0, 0);
        for (position, received) in [(0, 0), (2, 1)] {
            let loader = with_readers(order.sample_at(position), 1);
            let mut epoch = loader.epoch(0);
            receive(&mut epoch, 0, received);
            let error = epoch.next().unwrap().unwrap_err();
            assert!(matches!(error, PipelineError::Sample(_)), "{error}");
            assert!(epoch.next().is_none());
        }
    });
}

/// Another thread releases batches while the loader needs their memory.
#[test]
fn a_consumer_keeps_batches_within_the_budget() {
    explore(|| {
        let loader = with_budget(Readers::Workers);
        let mut kept = None;
        for number in 0..2 {
            let mut epoch = loader.epoch(number);
            for batch in epoch.by_ref() {
                let batch = batch.unwrap();
                let view = batch.clone();
                let before = kept.replace(batch);
                assert!(loader.memory().batches <= 2);
                let dropping = thread::spawn(move || drop((view, before)));
                dropping.join().unwrap();
            }
        }
        drop(kept);
        assert_eq!((loader.memory().batches <= 2, loader.memory().held), (true, 0));
    });
}

/// Two threads release views of one batch, and no thread waits for either forever.
#[test]
fn views_are_dropped_side_by_side_under_a_budget() {
    explore(|| {
        let loader = with_budget(Readers::Workers);
        let mut epoch = loader.epoch(0);
        let first = epoch.next().unwrap().unwrap();
        let views = [first.clone(), first];
        let dropping = views.map(|view| thread::spawn(move || drop(view)));
        receive(&mut epoch, 1, 1);
        receive(&mut loader.epoch(1), 0, 2);
        dropping.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_consumer_that_keeps_all_is_told_and_goes_on_without_them() {
    explore(|| {
        let loader = with_budget(Readers::Workers);
        let mut kept: Vec<_> = loader.epoch(0).map(Result::unwrap).collect();
        let error = loader.epoch(1).next().unwrap().unwrap_err();
        assert!(matches!(error, PipelineError::BatchesHeld { held: 2, most: 2 }), "{error}");
        kept.pop();
        receive(&mut loader.epoch(2), 0, 2);
    });
}

#[test]
fn epochs_under_a_budget_are_broken_off_and_resumed() {
    explore(|| {
        let loader = with_budget(Readers::Threads(1));
        let mut epoch = loader.epoch(0);
        let first = epoch.next().unwrap().unwrap();
        let state = epoch.state().unwrap();
        drop(epoch);
        // The one that is kept leaves room for one.
        receive(&mut loader.resume(&state).unwrap(), 1, 1);
        assert_eq!(first.indices().len(), 2);
        drop(first);
        assert_eq!(loader.batch(5, 1).unwrap().len(), 1);
        receive(&mut loader.epoch(1), 0, 1);
    });
}
