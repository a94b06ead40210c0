//! Samples that readers bring, and samples that are lent: the bytes are those that workers read.

use std::fs::File;

use tbl_io::{
    Folder, NewSample, PageCache, ReadLimits, ReadOptions, SampleSource, Source, StreamWriter,
    TarArchive, TarOptions, TarWriter, TblFile, WriteOptions,
};
use tl_pipeline::{
    Dataset, ErrorBudget, Loader, LoaderConfig, LoaderNote, OnError, PipelineError, Readers, Work,
};

use crate::containers::containers;
use crate::content::{Record, record};
use crate::memory::{bmps, config, dataset, loader, sample, train};

fn stages() -> Vec<Readers> {
    let uring = |page_cache| Readers::Uring { depth: 8, page_cache };
    let threads = [1, 3].map(Readers::Threads);
    let uring = [PageCache::Used, PageCache::Bypassed].map(uring);
    threads.into_iter().chain(uring).collect()
}

/// The records of an epoch, and a check of who read them.
fn record_by(readers: Readers, loader: &Loader, epoch: u32) -> Vec<Record> {
    let record = record(loader, epoch);
    let is_other = match readers {
        Readers::Uring { depth, page_cache } => !has_uring(depth, page_cache),
        Readers::Workers | Readers::Threads(_) | _ => false,
    };
    let notes = loader.notes();
    let noted = notes.iter().any(|note| matches!(note, LoaderNote::NoUring { .. }));
    assert_eq!(noted, is_other, "{readers:?}: {notes:?}");
    record
}

#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn has_uring(depth: u32, page_cache: PageCache) -> bool {
    tbl_io::UringReader::new(depth, page_cache).is_ok()
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
fn has_uring(_: u32, _: PageCache) -> bool {
    false
}

#[test]
fn whoever_reads_the_batches_are_the_same() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    for path in &paths {
        for work in [train(), Work::Bytes] {
            let open = || Dataset::open(&[path]).unwrap();
            let expected = [1, 2].map(|epoch| record(&loader(open(), config(work.clone())), epoch));
            for readers in stages() {
                // A budget of one sample, of a few, of all.
                for (workers, read_ahead_bytes) in [(1, 1), (3, 2000), (2, 0)] {
                    let config = config(work.clone());
                    let config = LoaderConfig { readers, workers, read_ahead_bytes, ..config };
                    let loader = loader(open(), config);
                    let epochs = [1, 2].map(|epoch| record_by(readers, &loader, epoch));
                    assert!(epochs == expected, "{} {readers:?} {workers}", path.display());
                }
            }
        }
    }
}

#[test]
fn a_source_that_says_nothing_of_its_bytes_is_read_by_the_readers_whole() {
    let expected = record(&loader(bmps(23), config(train())), 1);
    for readers in stages() {
        let loader = loader(bmps(23), LoaderConfig { readers, ..config(train()) });
        assert!(record_by(readers, &loader, 1) == expected, "{readers:?}");
    }
}

#[test]
fn readers_change_no_error() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    let path = &paths[1];
    for readers in [Readers::Workers].into_iter().chain(stages()) {
        let dataset = Dataset::open(&[path]).unwrap();
        let cut = dataset.facts(10).unwrap().offset + 1;
        let whole = std::fs::read(path).unwrap();
        File::options().write(true).open(path).unwrap().set_len(cut).unwrap();
        let (on_error, error_budget) = (OnError::Skip, ErrorBudget::UNLIMITED);
        let config = LoaderConfig { readers, on_error, error_budget, ..config(Work::Bytes) };
        let loader = loader(dataset, config);
        let samples: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
        assert_eq!((samples, loader.stats().skipped), (10, 13), "{readers:?}");
        drop(loader);
        std::fs::write(path, whole).unwrap();
    }
}

#[test]
fn a_sample_beyond_the_limit_is_an_error_whoever_asks_for_it() {
    let root = tempfile::tempdir().unwrap();
    let (folder, tar) = (root.path().join("files"), root.path().join("a.tar"));
    std::fs::create_dir(&folder).unwrap();
    let mut writer = TarWriter::create(&tar, TarOptions::default()).unwrap();
    for (name, len) in [("0.bmp", 9), ("1.bmp", 10)] {
        std::fs::write(folder.join(name), vec![1; len]).unwrap();
        writer.append(name.as_bytes(), &vec![1; len]).unwrap();
    }
    writer.finish().unwrap();
    let tbl = root.path().join("a.tbl");
    let mut writer = StreamWriter::create(&tbl, WriteOptions::default()).unwrap();
    for len in [9, 10] {
        writer.write_sample(&NewSample::new(&vec![1; len])).unwrap();
    }
    writer.finish().unwrap();
    let mut options = ReadOptions::default();
    options.limits.sample_bytes = 9;
    let limits: ReadLimits = options.limits;
    let sources: [&dyn Fn() -> Box<dyn SampleSource>; 3] = [
        &|| Box::new(Folder::open_with(&folder, limits).unwrap()),
        &|| Box::new(TarArchive::new(Source::open(&tar).unwrap(), limits).unwrap()),
        &|| Box::new(TblFile::from_source(Source::open(&tbl).unwrap(), options).unwrap()),
    ];
    for open in sources {
        for readers in [Readers::Workers].into_iter().chain(stages()) {
            for work in [Work::Bytes, Work::Views, train()] {
                let (on_error, error_budget) = (OnError::Skip, ErrorBudget::UNLIMITED);
                let config = LoaderConfig { readers, on_error, error_budget, ..config(work) };
                let loader = loader(Dataset::from_sources(vec![open()]).unwrap(), config);
                loader.epoch(0).for_each(|batch| drop(batch.unwrap()));
                let skipped = loader.audit();
                let found = skipped.iter().find(|entry| entry.error.index == 1).unwrap();
                let text = found.error.fault.to_string();
                assert_eq!(text, "sample bytes is 10, expected at most 9", "{readers:?}");
            }
        }
    }
}

#[test]
fn views_are_the_bytes_and_outlive_their_loader() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    for path in &paths {
        let open = || Dataset::open(&[path]).unwrap();
        let expected = record(&loader(open(), config(Work::Bytes)), 1);
        for workers in [1, 3] {
            let loader = loader(open(), LoaderConfig { workers, ..config(Work::Views) });
            assert!(record(&loader, 1) == expected, "{}", path.display());
        }
        let views = loader(open(), config(Work::Views));
        let batches: Vec<_> = views.epoch(1).map(Result::unwrap).collect();
        drop(views);
        let bytes = loader(open(), config(Work::Bytes));
        for (view, bytes) in batches.iter().zip(bytes.epoch(1)) {
            let bytes = bytes.unwrap();
            view.check_views().unwrap();
            for row in 0..view.len() {
                assert_eq!(view.sample(row), bytes.sample(row));
            }
        }
    }
}

#[test]
fn views_of_a_file_cut_short_say_so() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    let path = &paths[1];
    let loader = loader(Dataset::open(&[path]).unwrap(), config(Work::Views));
    let batch = loader.epoch(0).next().unwrap().unwrap();
    assert!(batch.sample(0).is_some());
    File::options().write(true).open(path).unwrap().set_len(1).unwrap();
    assert_eq!(batch.sample(0), None);
    assert!(batch.check_views().is_err());
}

#[test]
fn readers_are_refused_in_impossible_numbers() {
    let page_cache = PageCache::Used;
    for readers in [
        Readers::Threads(0),
        Readers::Threads(1025),
        Readers::Uring { depth: 0, page_cache },
        Readers::Uring { depth: u32::MAX, page_cache },
    ] {
        let config = LoaderConfig { readers, ..config(Work::Bytes) };
        let refused = Loader::new(bmps(3), config).unwrap_err();
        assert!(matches!(refused, PipelineError::Setting { setting: "readers", .. }), "{refused}");
    }
}

#[test]
fn an_epoch_can_be_dropped_with_its_readers_anywhere() {
    let format = tbl_format::SampleFormat::Bmp;
    for readers in stages() {
        for batches in 0..6 {
            let samples = (0..23).map(|number| sample(number, format)).collect();
            let config = LoaderConfig { readers, read_ahead_bytes: 3000, ..config(Work::Bytes) };
            let loader = loader(dataset(samples), config);
            let mut epoch = loader.epoch(0);
            assert_eq!(epoch.by_ref().take(batches).count(), batches);
            drop(epoch);
        }
    }
}
