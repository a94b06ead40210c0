//! Jobs over shards: each is a file of its own, and a job that is started again does what is missing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tbl_io::{
    AsStored, Compression, ConvertOptions, Labels, Location, Placement, Selection, Stores, Target,
};
use tl_store_server::Dialect;
use tl_transform::{Channels, PixelType};
use turboloader::job::{
    Job, JobError, JobFolders, Outcome, OutputFormat, Report, Status, Task, Totals,
};
use turboloader::{Dataset, IndexKinds, Probe, Statistics, Survey};

use crate::remote::{Server, copy, served};

const TO_TBL: Task = Task::Convert {
    to: OutputFormat::Tbl,
    compression: Compression::None,
    indexes: IndexKinds { jpeg: false, video: false },
};

/// Writes a part of the photographs as an archive, a TBL and a Parquet file, and a folder.
fn sources(root: &Path) -> Vec<PathBuf> {
    let photos = tl_testdata::shipped!("photos");
    let folder = root.join("folder");
    copy(&photos, &folder);
    let parquet = tl_pipeline::parquet_target().unwrap();
    let mut sources: Vec<PathBuf> =
        ["a.tar", "b.tbl", "c.parquet"].map(|name| root.join(name)).into();
    for (path, target) in
        sources.iter().zip([Target::Tar, Target::Tbl2(Compression::None), parquet])
    {
        convert(&folder, path, target);
    }
    sources.push(folder);
    sources
}

fn convert(source: &Path, to: &Path, target: Target) {
    let sources = [tbl_io::open_in(&tl_pipeline::stores(), source).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let options = ConvertOptions { sync: false, ..ConvertOptions::new(target) };
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    if matches!(target, Target::Tbl2(_)) {
        tbl_io::convert(&selection, to, &options, || Probe, &mut on_event).unwrap();
    } else {
        tbl_io::convert(&selection, to, &options, AsStored::default, &mut on_event).unwrap();
    }
}

/// The end of a job: its totals, its report, and the shards that were worked on.
struct Ended {
    totals: Totals,
    report: String,
    worked: Vec<usize>,
}

fn run(stores: &Stores, sources: &[PathBuf], task: Task, output: &str, threads: usize) -> Ended {
    let path = tempfile::tempdir().unwrap().keep().join("report.jsonl");
    let folders = JobFolders {
        output: Some(Location::new(output)),
        report: Some(Location::new(&path)),
        ..JobFolders::default()
    };
    let job = Job::new(stores, sources, task, &folders).unwrap();
    let report = Report::new(stores, &job).unwrap();
    let mut worked = Vec::new();
    let mut on_shard = |number, outcome: &Outcome| {
        if !outcome.is_skipped {
            worked.push(number);
        }
        ControlFlow::Continue(())
    };
    let threads = NonZeroUsize::new(threads).unwrap();
    let totals = job.run(stores, threads, report, &mut on_shard).unwrap();
    worked.sort_unstable();
    let report = fs::read_to_string(&path).unwrap();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    Ended { totals, report, worked }
}

/// The record of a file in the folder of a conversion.
fn record_of(output: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(output.join("_records")).unwrap().map(|entry| entry.unwrap().path());
    let is_own = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(name);
    entries.into_iter().find(is_own).unwrap()
}

/// The files of a folder that are no records.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn a_shard_becomes_the_file_that_a_conversion_makes() {
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path());
    let stores = tl_pipeline::stores();
    let mut reports = Vec::new();
    for threads in [1, 3] {
        let output = root.path().join(format!("out-{threads}"));
        let ended = run(&stores, &sources, TO_TBL, output.to_str().unwrap(), threads);
        assert!(ended.totals.is_good() && ended.worked == [0, 1, 2, 3], "{}", ended.report);
        for source in &sources {
            let expected = root.path().join("expected.tbl");
            convert(source, &expected, Target::Tbl2(Compression::None));
            let name = format!("{}.tbl", source.file_stem().unwrap().to_str().unwrap());
            assert!(
                fs::read(output.join(&name)).unwrap() == fs::read(&expected).unwrap(),
                "{name}"
            );
            fs::remove_file(expected).unwrap();
        }
        assert_eq!(files(&output).len(), 4);
        reports.push(ended.report.replace(output.to_str().unwrap(), "OUT"));
    }
    assert_eq!(reports[0], reports[1]);
    assert_eq!(reports[0].lines().count(), 5);
}

#[test]
fn a_job_does_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let mut sources = sources(root.path());
    // A folder has no version.
    sources.pop();
    let stores = tl_pipeline::stores();
    let output = root.path().join("out");
    let to = output.to_str().unwrap();
    let first = run(&stores, &sources, TO_TBL, to, 2);
    let made = files(&output);
    let check = |worked: &[usize], what: &str| {
        let next = run(&stores, &sources, TO_TBL, to, 2);
        assert_eq!(next.worked, worked, "{what}");
        assert!(files(&output) == made, "{what}");
        next.report
    };
    assert_eq!(check(&[], "nothing has changed"), first.report);
    fs::remove_file(record_of(&output, "a.tbl")).unwrap();
    fs::remove_file(output.join("a.tbl")).unwrap();
    check(&[0], "neither record nor output");
    let record = record_of(&output, "b.tbl");
    let bytes = fs::read(&record).unwrap();
    fs::write(&record, &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_file(output.join("b.tbl")).unwrap();
    check(&[1], "half a record");
    fs::remove_file(output.join("c.tbl")).unwrap();
    check(&[2], "no output");
    fs::write(output.join("c.tbl"), b"another length").unwrap();
    assert_eq!(check(&[2], "another output"), first.report);
    let mut flipped = made["c.tbl"].clone();
    flipped[1000] ^= 1;
    fs::write(output.join("c.tbl"), flipped).unwrap();
    check(&[2], "another byte in the output");
    let record = record_of(&output, "a.tbl");
    let text = fs::read_to_string(&record).unwrap();
    let other = format!("\"writer\":\"{}", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&other));
    fs::write(&record, text.replace(&other, "\"writer\":\"0")).unwrap();
    check(&[0], "a record of another version");
    let lz4 = Task::Convert {
        to: OutputFormat::Tbl,
        compression: Compression::Lz4,
        indexes: IndexKinds::default(),
    };
    assert_eq!(run(&stores, &sources, lz4, to, 2).worked, [0, 1, 2]);
    check(&[0, 1, 2], "other settings");
    let archive = fs::read(&sources[0]).unwrap();
    fs::write(&sources[0], &archive).unwrap();
    check(&[0], "a source that was written again");
    // As `cp -p` does.
    let times =
        fs::FileTimes::new().set_modified(fs::metadata(&sources[0]).unwrap().modified().unwrap());
    fs::write(&sources[0], &archive).unwrap();
    fs::File::options().append(true).open(&sources[0]).unwrap().set_times(times).unwrap();
    check(&[0], "a source with its old time");
}

#[test]
fn results_replace_neither_shards_nor_files_of_others() {
    let root = tempfile::tempdir().unwrap();
    let mut sources = sources(root.path());
    sources.pop();
    let stores = tl_pipeline::stores();
    let folder =
        |path: &Path| JobFolders { output: Some(Location::new(path)), ..JobFolders::default() };
    let link = root.path().join("link");
    std::os::unix::fs::symlink(root.path(), &link).unwrap();
    for output in [root.path(), &link, &root.path().join("folder/..")] {
        let refused = Job::new(&stores, &sources, TO_TBL, &folder(output));
        assert!(matches!(refused, Err(JobError::OutputIsShard { .. })), "{output:?}: {refused:?}");
    }
    let output = root.path().join("out");
    fs::create_dir(&output).unwrap();
    fs::write(output.join("a.tbl"), b"of somebody").unwrap();
    let to = output.to_str().unwrap();
    for _ in 0..2 {
        let ended = run(&stores, &sources, TO_TBL, to, 2);
        assert_eq!([ended.totals.good, ended.totals.failed], [2, 1]);
        assert!(ended.report.contains("--force"), "{}", ended.report);
        assert_eq!(fs::read(output.join("a.tbl")).unwrap(), b"of somebody");
    }
    let other = root.path().join("other");
    fs::create_dir(&other).unwrap();
    let moved = other.join("b.tbl");
    fs::copy(&sources[1], &moved).unwrap();
    assert_eq!(run(&stores, &[moved], TO_TBL, to, 1).totals.failed, 1, "another shard's file");
    let folders = JobFolders { overwrite: true, ..folder(&output) };
    let job = Job::new(&stores, &sources, TO_TBL, &folders).unwrap();
    let outcome = job.task().run(&stores, &job.shards()[0]);
    assert_eq!((outcome.record.status, outcome.is_skipped), (Status::Good, false));
    assert!(run(&stores, &sources, TO_TBL, to, 2).worked.is_empty());
}

#[test]
fn a_killed_task_leaves_no_result_of_an_earlier_version() {
    let root = tempfile::tempdir().unwrap();
    let sources = [sources(root.path()).swap_remove(0)];
    let stores = tl_pipeline::stores();
    let output = root.path().join("out");
    let to = output.to_str().unwrap();
    run(&stores, &sources, TO_TBL, to, 1);
    let made = fs::read(output.join("a.tbl")).unwrap();
    let record = record_of(&output, "a.tbl");
    let result = fs::read(&record).unwrap();
    let archive = fs::read(&sources[0]).unwrap();
    // The task is cut off by a folder where its output has to be: its record has no result then.
    fs::write(&sources[0], [&archive[..], &[0; 512]].concat()).unwrap();
    fs::remove_file(output.join("a.tbl")).unwrap();
    fs::create_dir(output.join("a.tbl")).unwrap();
    assert_eq!(run(&stores, &sources, TO_TBL, to, 1).totals.failed, 1);
    assert_ne!(fs::read(&record).unwrap(), result);
    fs::remove_dir(output.join("a.tbl")).unwrap();
    fs::write(output.join("a.tbl"), b"the output of a killed task").unwrap();
    fs::write(&sources[0], &archive).unwrap();
    assert_eq!(run(&stores, &sources, TO_TBL, to, 1).worked, [0]);
    assert!(fs::read(output.join("a.tbl")).unwrap() == made);
}

#[test]
fn a_job_that_ends_early_continues() {
    let root = tempfile::tempdir().unwrap();
    let mut sources = sources(root.path());
    sources.pop();
    let stores = tl_pipeline::stores();
    let output = root.path().join("out");
    let folders = JobFolders { output: Some(Location::new(&output)), ..JobFolders::default() };
    let path = root.path().join("report.jsonl");
    let folders = JobFolders { report: Some(Location::new(&path)), ..folders };
    let job = Job::new(&stores, &sources, TO_TBL, &folders).unwrap();
    let report = Report::new(&stores, &job).unwrap();
    assert!(matches!(report.finish(), Err(JobError::Stopped { done: 0, shards: 3 })));
    let report = Report::new(&stores, &job).unwrap();
    let ended = job.run(&stores, NonZeroUsize::MIN, report, &mut |_, _| ControlFlow::Break(()));
    assert!(matches!(ended, Err(JobError::Stopped { done: 0, shards: 3 })));
    assert!(!path.exists());
    let next = run(&stores, &sources, TO_TBL, output.to_str().unwrap(), 1);
    assert!(!next.worked.contains(&0) && next.worked.contains(&2) && next.totals.is_good());
}

#[test]
fn damage_is_a_record_and_a_refusal_is_none() {
    let root = tempfile::tempdir().unwrap();
    let mut sources = sources(root.path());
    let mut bytes = fs::read(&sources[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&sources[1], bytes).unwrap();
    fs::write(&sources[0], b"no archive at all, and not a table").unwrap();
    sources[3] = root.path().join("missing.tar");
    let stores = tl_pipeline::stores();
    let output = root.path().join("out");
    let to = output.to_str().unwrap();
    let ended = run(&stores, &sources, TO_TBL, to, 2);
    let Totals { good, damaged, failed, ref not_good, .. } = ended.totals;
    assert_eq!([good, damaged, failed], [1, 2, 1]);
    for (shard, source) in not_good.iter().zip([&sources[0], &sources[1], &sources[3]]) {
        assert!(shard.reason.contains(source.to_str().unwrap()), "{shard:?}");
    }
    assert!(not_good[1].reason.contains("sample"), "{not_good:?}");
    assert_eq!(not_good[2].status, Status::Failed);
    assert_eq!(files(&output).keys().collect::<Vec<_>>(), ["c.tbl"]);
    // Damage stays until the source changes; what the system refused is tried again.
    let next = run(&stores, &sources, TO_TBL, to, 2);
    assert_eq!(next.worked, [3]);
    assert_eq!(next.report, ended.report);
    // A shard without samples may be a wrong one, whose bytes are whole.
    let empty = root.path().join("empty.tar");
    fs::write(&empty, [0; 1024]).unwrap();
    for _ in 0..2 {
        let ended = run(&stores, std::slice::from_ref(&empty), TO_TBL, to, 1);
        assert_eq!((ended.totals.damaged, ended.worked), (1, vec![0]));
    }
    let verified = run(&stores, &sources, Task::Verify { decode: true }, to, 2);
    assert_eq!(verified.totals.bad_samples, 1);
    assert_eq!([verified.totals.good, verified.totals.damaged], [1, 2]);
}

#[test]
fn statistics_of_shards_are_those_of_the_data_set() {
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path());
    let stores = tl_pipeline::stores();
    let to = root.path().join("out");
    let totals = run(&stores, &sources, Task::Stats, to.to_str().unwrap(), 3).totals;
    let dataset = Dataset::open_in(&stores, &sources).unwrap();
    let survey = Survey::of(&dataset.into(), Some((PixelType::U8, Channels::Rgb))).unwrap();
    let moments = survey.moments.unwrap();
    assert_eq!(totals.mean.unwrap().to_vec(), moments.mean());
    assert_eq!(totals.std.unwrap().to_vec(), moments.deviation());
    let statistics = totals.statistics.unwrap();
    assert_eq!([statistics.bytes, statistics.images], [survey.bytes, moments.images()]);
    assert_eq!(statistics.formats, survey.formats);
    // Samples of each class, by names that the shards have in common.
    assert!(statistics.classes["animals"] > 0 && statistics.classes["animals"].is_multiple_of(4));
    let counts = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    assert_eq!(counts(&statistics.classes) + statistics.unlabelled, counts(&statistics.formats));
    assert_eq!(counts(&statistics.image_sizes), statistics.images);
    assert_eq!(statistics.sample_bytes.values().sum::<u64>(), totals.samples);
    // As text and back.
    let text = serde_json::to_string(&statistics).unwrap();
    assert_eq!(serde_json::from_str::<Statistics>(&text).unwrap(), statistics);
}

#[test]
fn compressed_archives_are_checked_and_counted() {
    let root = tempfile::tempdir().unwrap();
    let sources = sources(root.path());
    let zipped = std::process::Command::new("gzip").arg(&sources[0]).status().unwrap();
    assert!(zipped.success());
    let shards = [root.path().join("a.tar.gz")];
    let stores = tl_pipeline::stores();
    let to = root.path().join("out");
    for task in [Task::Stats, Task::Verify { decode: false }, TO_TBL] {
        let ended = run(&stores, &shards, task, to.to_str().unwrap(), 1);
        assert!(ended.totals.is_good() && ended.totals.samples > 0, "{}", ended.report);
    }
}

/// A store with the archives of a folder.
fn store(root: &Path) -> Server {
    served(root, Dialect::S3, |_| {})
}

#[test]
fn a_store_has_the_files_of_a_folder() {
    let root = tempfile::tempdir().unwrap();
    let mut sources = sources(root.path());
    sources.pop();
    let server = store(root.path());
    let remote = server.stores();
    let stores = remote.add_to(tl_pipeline::stores());
    let urls: Vec<PathBuf> =
        ["a.tar", "b.tbl", "c.parquet"].iter().map(|name| server.url(name).into()).collect();
    let local = root.path().join("out");
    run(&stores, &sources, TO_TBL, local.to_str().unwrap(), 2);
    let first = run(&stores, &urls, TO_TBL, "s3://b/out", 2);
    assert!(first.totals.is_good(), "{}", first.report);
    for (name, bytes) in files(&local) {
        assert!(server.service.objects.content(&format!("b/out/{name}")).unwrap() == bytes);
    }
    let next = run(&stores, &urls, TO_TBL, "s3://b/out", 2);
    assert!(next.worked.is_empty() && next.report == first.report);
    let bytes = server.service.objects.content("b/a.tar").unwrap();
    server.service.objects.put("b/a.tar", [&bytes[..], &[0; 512]].concat());
    let folders = JobFolders { output: Some(Location::new("s3://b/out")), ..JobFolders::default() };
    let folders =
        JobFolders { report: Some(Location::new("s3://b/reports/report.jsonl")), ..folders };
    let job = Job::new(&stores, &urls, TO_TBL, &folders).unwrap();
    let record = job.shards()[2].record.as_ref().unwrap().url().unwrap().to_owned();
    server.service.objects.remove(record.strip_prefix("s3://").unwrap());
    assert_eq!(run(&stores, &urls, TO_TBL, "s3://b/out", 2).worked, [0, 2]);
    // A process is killed during an upload of the job, and another one during one of somebody.
    for name in ["out/a.tbl", "out/else.tbl", "reports/report.jsonl"] {
        let placement = Placement { overwrite: true, sync: true };
        let mut draft = stores.create(&Location::new(server.url(name)), placement).unwrap();
        draft.write_all(&vec![7; 12 << 20]).unwrap();
        std::mem::forget(draft);
    }
    assert_eq!(server.service.pending_uploads().len(), 3);
    job.clean_up(&remote).unwrap();
    let left = server.service.pending_uploads();
    assert_eq!(left.iter().map(|one| &one.name[..]).collect::<Vec<_>>(), ["b/out/else.tbl"]);
}

#[test]
fn shards_of_one_name_are_told_apart_or_refused() {
    let stores = tl_pipeline::stores();
    let root = tempfile::tempdir().unwrap();
    let sources = ["1/a.tar", "2/a.tar", "2/a.tar.gz"];
    let folders = |output| JobFolders {
        output,
        records: Some(Location::new(root.path())),
        ..JobFolders::default()
    };
    let job = Job::new(&stores, &sources, Task::Stats, &folders(None)).unwrap();
    let mut records: Vec<_> = job.shards().iter().map(|shard| shard.record.clone()).collect();
    records.dedup();
    assert_eq!(records.len(), 3);
    let refused = Job::new(&stores, &sources, TO_TBL, &folders(Some(Location::new(root.path()))));
    assert!(matches!(refused, Err(JobError::SameOutput { .. })));
    let refused = Job::new(&stores, &sources, TO_TBL, &folders(None));
    assert!(matches!(refused, Err(JobError::NoOutput)));
    let refused = Job::new(&stores, &["train.tlidx"], Task::Stats, &folders(None));
    assert!(matches!(refused, Err(JobError::ShardIndex { .. })));
}

/// The output and the record of the only shard of a job.
fn places(source: &str, output: Option<&str>, records: &str) -> Result<[String; 2], JobError> {
    let stores = turboloader::RemoteStores::new(turboloader::StoreOptions::default())
        .add_to(tl_pipeline::stores());
    let task = if output.is_some() { TO_TBL } else { Task::Stats };
    let folders = JobFolders {
        output: output.map(Location::new),
        records: Some(Location::new(records)),
        ..JobFolders::default()
    };
    let job = Job::new(&stores, &[source], task, &folders)?;
    let text = |place: &Option<Location>| {
        place
            .as_ref()
            .map(|place| place.as_os_str().to_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    Ok([text(&job.shards()[0].output), text(&job.shards()[0].record)])
}

#[test]
fn names_of_results_have_no_queries_and_are_told_apart() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    for url in ["https://h/get/?sig=SECRET", "https://h/get?sig=SECRET"] {
        let [output, record] = places(url, Some("s3://b/out"), root).unwrap();
        assert_eq!(output, "s3://b/out/get.tbl");
        assert!(!record.contains("SECRET"), "{record}");
        let [_, first] = places(url, None, root).unwrap();
        let [_, next] = places(&url.replace("SECRET", "OTHER"), None, root).unwrap();
        assert_eq!(first, next, "a URL that is signed anew");
        assert!(!first.contains("SECRET") && !first.contains('?'), "{first}");
    }
    let [output, one] = places("s3://b/v1.5/", Some("s3://b/out"), root).unwrap();
    assert_eq!(output, "s3://b/out/v1.5.tbl");
    let [_, other] = places("s3://b/v1.5/", Some("s3://b/other"), root).unwrap();
    assert_ne!(one, other, "records of two conversions in one folder");
    for name in ["..", ".tar", "s3://b/.tar"] {
        let refused = places(name, Some("s3://b/out"), root);
        assert!(matches!(refused, Err(JobError::NoName { .. })), "{name}: {refused:?}");
    }
    let long = format!("{}.tar", "\u{e9}".repeat(100));
    let [_, record] = places(&format!("a{long}"), None, root).unwrap();
    assert!(record.contains(&format!("/a{}-", "\u{e9}".repeat(89))), "{record}");
    let stores = tl_pipeline::stores();
    let folders =
        JobFolders { output: None, records: Some(Location::new(root)), ..JobFolders::default() };
    let twice = Job::new(&stores, &["a.tar", "a.tar"], Task::Stats, &folders);
    assert!(matches!(twice, Err(JobError::SameShard { .. })));
}
