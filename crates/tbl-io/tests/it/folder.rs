//! Folders as data sets: order, links, fields, what is passed over.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tbl_io::{
    AsStored, Field, FileKind, Folder, Location, Object, Pin, RangeFault, Ranges, ReadError,
    SampleSource, SampleSourceExt, Source, Storage, Stores, verify,
};

/// Creates the files, each with its own path as contents.
fn tree(paths: &[&[u8]]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for path in paths {
        let file = root.path().join(std::ffi::OsStr::from_bytes(path));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, path).unwrap();
    }
    root
}

fn keys(folder: &Folder) -> Vec<Vec<u8>> {
    (0..folder.sample_count())
        .map(|index| folder.entry(index).unwrap().key.unwrap().into_owned())
        .collect()
}

fn open(root: &Path) -> Folder {
    Folder::open(root).unwrap()
}

#[test]
fn samples_come_in_the_order_of_their_paths_bytes() {
    // `-` and `.` sort before `/`, so that whole paths sort differently than name by name.
    let sorted: [&[u8]; 7] = [
        b"a-b/1.jpg",
        b"a.jpg",
        b"a/1.JPEG",
        b"a/2.png",
        b"ab/deep/down/x.tiff",
        b"b.webp",
        b"\xff\xfe.bmp",
    ];
    let mut created = sorted;
    created.reverse();
    let root = tree(&created);
    let folder = open(root.path());
    assert_eq!(keys(&folder), sorted);
    let mut bytes = Vec::new();
    for (index, path) in (0..).zip(sorted) {
        folder.read_into(index, &mut bytes).unwrap();
        assert_eq!(bytes, path);
        assert_eq!(folder.entry(index).unwrap().bytes, path.len() as u64);
    }
}

#[test]
fn other_files_are_counted_and_hidden_ones_too() {
    let root =
        tree(&[b"a.jpg", b"a.txt", b"README.md", b".hidden.jpg", b".git/x.jpg", b"dir/notes.cls"]);
    assert!(
        std::process::Command::new("mkfifo")
            .arg(root.path().join("pipe.jpg"))
            .status()
            .unwrap()
            .success()
    );
    let folder = open(root.path());
    assert_eq!(keys(&folder), [b"a.jpg"]);
    let skipped = folder.skipped();
    assert_eq!((skipped.other_files, skipped.hidden, skipped.special_files), (2, 2, 1));
    let mut fields = Vec::new();
    folder.read_fields(0, &mut fields).unwrap();
    assert_eq!(fields, [Field { extension: b"txt".to_vec(), bytes: b"a.txt".to_vec() }]);
}

#[test]
fn labels_are_read_from_fields() {
    let root = tree(&[b"1.jpg", b"2.jpg", b"3.jpg", b"4.jpg"]);
    fs::write(root.path().join("1.cls"), "11\n").unwrap();
    fs::write(root.path().join("1.json"), r#"{"label": 5}"#).unwrap();
    fs::write(root.path().join("2.json"), r#"{"label": 22}"#).unwrap();
    fs::write(root.path().join("3.cls"), "cat").unwrap();
    let folder = open(root.path());
    let labels: Vec<_> = (0..4).map(|index| folder.entry(index).unwrap().label).collect();
    assert_eq!(labels, [Some(11), Some(22), None, None]);
}

#[test]
fn links_are_followed_and_circles_end() {
    let root = tree(&[b"real/1.jpg", b"real/deep/2.jpg", b"sub/3.jpg"]);
    let outside = tree(&[b"4.jpg", b"more/5.jpg"]);
    let path = |name: &str| root.path().join(name);
    symlink(root.path(), path("circle")).unwrap();
    symlink("..", path("real/deep/up")).unwrap();
    // Sorts before the folder it leads to, which still keeps its own path.
    symlink("real", path("alias")).unwrap();
    symlink(outside.path(), path("outside")).unwrap();
    symlink(outside.path(), path("outside2")).unwrap();
    symlink(path("real/1.jpg"), path("linked.jpg")).unwrap();
    symlink("nowhere", path("broken.jpg")).unwrap();
    symlink("self.jpg", path("self.jpg")).unwrap();
    symlink("/dev/zero", path("zero.jpg")).unwrap();
    let folder = open(root.path());
    let expected: [&[u8]; 6] = [
        b"linked.jpg",
        b"outside/4.jpg",
        b"outside/more/5.jpg",
        b"real/1.jpg",
        b"real/deep/2.jpg",
        b"sub/3.jpg",
    ];
    assert_eq!(keys(&folder), expected);
    let skipped = folder.skipped();
    assert_eq!((skipped.repeated_folders, skipped.broken_links, skipped.special_files), (4, 2, 1));
    let notes: Vec<String> = folder.notes().iter().map(ToString::to_string).collect();
    let expected = "passed over 2 broken links, 1 special files, 4 links to folders read already, \
                    such as alias/";
    assert_eq!(notes, [expected]);
}

#[test]
fn a_file_that_goes_away_is_an_error_with_its_name() {
    let root = tree(&[b"a.jpg", b"b.jpg"]);
    let folder = open(root.path());
    fs::remove_file(root.path().join("b.jpg")).unwrap();
    let mut bytes = Vec::new();
    folder.read_into(0, &mut bytes).unwrap();
    let error = folder.read_into(1, &mut bytes).unwrap_err();
    assert_eq!(error.sample_index(), Some(1));
    assert!(error.to_string().contains("b.jpg: sample 1 (b.jpg): No such file"), "{error}");
    assert!(matches!(
        folder.read_into(2, &mut bytes),
        Err(ReadError::SampleOutOfRange { index: 2, sample_count: 2, .. })
    ));
}

#[test]
fn a_file_is_no_folder() {
    let root = tree(&[b"a.jpg"]);
    let error = Folder::open(root.path().join("a.jpg")).unwrap_err();
    assert!(matches!(error, ReadError::NotAFolder { found: FileKind::RegularFile, .. }));
    assert!(matches!(Folder::open(root.path().join("b")), Err(ReadError::Io { .. })));
}

#[test]
fn a_label_is_read_once() {
    let root = tree(&[b"a.jpg", b"b.jpg", b"a.cls", b"b.txt"]);
    fs::write(root.path().join("a.cls"), "7").unwrap();
    let folder = open(root.path());
    let label = |index| folder.entry(index).unwrap().label;
    assert_eq!([label(0), label(1)], [Some(7), None]);
    fs::remove_file(root.path().join("a.cls")).unwrap();
    assert_eq!([label(0), label(1)], [Some(7), None]);
}

/// A folder of a store, whose objects have zeros as text, and counts of what was done.
#[derive(Clone, Debug)]
struct Listed(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    names: Vec<String>,
    announced: AtomicU64,
    read_ahead: AtomicU64,
    read_late: AtomicU64,
    /// Announced, and closed before they were read.
    dropped: AtomicU64,
    under_way: AtomicU64,
    most_under_way: AtomicU64,
}

#[derive(Debug)]
struct Announceable {
    counts: Arc<Counts>,
    name: String,
    pin: Pin,
    is_announced: AtomicBool,
}

impl Storage for Listed {
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError> {
        let Object { name, pin, .. } = listed.unwrap().clone();
        let (counts, name) = (Arc::clone(&self.0), String::from_utf8(name).unwrap());
        let object_of = Announceable { counts, name, pin, is_announced: AtomicBool::default() };
        Ok(Source::from_ranges(object, Arc::new(object_of)))
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        let object = |name: &String| Object {
            name: name.clone().into_bytes(),
            len: name.len() as u64,
            pin: Pin::Version("1".into()),
        };
        Ok(self.0.names.iter().map(object).collect())
    }
}

impl Ranges for Announceable {
    fn len(&self) -> u64 {
        self.name.len() as u64
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn will_need(&self, _: u64, _: u64) {
        self.counts.announced.fetch_add(1, Ordering::Relaxed);
        self.is_announced.store(true, Ordering::Relaxed);
    }

    fn read_exact_at(&self, _: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        let counts = &self.counts;
        let now = counts.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        counts.most_under_way.fetch_max(now, Ordering::Relaxed);
        if self.is_announced.swap(false, Ordering::Relaxed) {
            counts.read_ahead.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.read_late.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        bytes.fill(b'0');
        counts.under_way.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Announceable {
    fn drop(&mut self) {
        let is_announced = *self.is_announced.get_mut();
        self.counts.dropped.fetch_add(u64::from(is_announced), Ordering::Relaxed);
    }
}

#[test]
fn a_check_of_a_folder_in_a_store_reads_the_objects_that_it_announced() {
    const SAMPLES: u64 = 300;
    let of_sample = |number| ["bmp", "cls", "txt"].map(|end| format!("{number:03}.{end}"));
    let counts = Counts {
        names: (0..SAMPLES).flat_map(of_sample).collect(),
        announced: AtomicU64::new(0),
        read_ahead: AtomicU64::new(0),
        read_late: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        most_under_way: AtomicU64::new(0),
    };
    let store = Listed(Arc::new(counts));
    let stores = Stores::new().with("mem", Arc::new(store.clone()));
    let mut ended = |_: tbl_io::Finding<'_>| ControlFlow::Continue(());
    let one = NonZeroUsize::MIN;
    let summary = verify(&stores, &["mem://bucket/folder/"], one, || AsStored, &mut ended).unwrap();
    assert_eq!((summary.samples, summary.bad_samples), (SAMPLES, 0));
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let Counts { announced, read_ahead, read_late, dropped, most_under_way, .. } = &*store.0;
    // All but the first sample and its two fields.
    assert_eq!((count(announced), count(read_ahead), count(dropped)), (897, 897, 0));
    // Those, and the labels.
    assert_eq!(count(read_late), 3 + SAMPLES);
    assert!(count(most_under_way) > 8, "labels are read at once");
}
