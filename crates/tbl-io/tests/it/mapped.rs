//! Mappings of files that other hands cut short.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use tbl_io::{Mapped, ReadError, Source};

const PAGE: u64 = 4096;

fn file_of_pages(pages: u64) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for page in 0..pages {
        file.write_all(&[page as u8 + 1; PAGE as usize]).unwrap();
    }
    file
}

fn map_all(file: &tempfile::NamedTempFile) -> Mapped {
    let source = Source::open(file.path()).unwrap();
    Mapped::new(&source, 0, source.len()).unwrap()
}

fn set_len(file: &tempfile::NamedTempFile, len: u64) {
    File::options().write(true).open(file.path()).unwrap().set_len(len).unwrap();
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

fn assert_changed<T: std::fmt::Debug>(result: Result<T, ReadError>) {
    assert!(matches!(result, Err(ReadError::ChangedWhileOpen { .. })), "{result:?}");
}

#[test]
fn a_page_that_could_not_be_read_is_told_from_a_file_that_was_cut_short() {
    let file = file_of_pages(3);
    let mapped = map_all(&file);
    let modified = file.as_file().metadata().unwrap().modified().unwrap();
    // The clock of the file system goes on.
    std::thread::sleep(std::time::Duration::from_millis(50));
    set_len(&file, 0);
    assert_changed(mapped.with(PAGE, PAGE, sum));
    set_len(&file, 3 * PAGE);
    assert_changed(mapped.with(PAGE, PAGE, sum));
    // As if the file had never been cut, and the page had failed.
    file.as_file().set_modified(modified).unwrap();
    for error in [mapped.with(PAGE, PAGE, sum).unwrap_err(), mapped.slice(0, 1).unwrap_err()] {
        assert!(tbl_io::is_transient(&error), "{error}");
    }
}

#[test]
fn ranges_inside_are_given_and_others_refused() {
    let file = file_of_pages(3);
    let source = Source::open(file.path()).unwrap();
    let memory = Source::from_bytes("memory", std::fs::read(file.path()).unwrap());
    for source in [source, memory] {
        // Starts in the middle of a page, so that the kernel maps more than was asked for.
        let mapped = Mapped::new(&source, 100, 2 * PAGE).unwrap();
        assert_eq!((mapped.offset(), mapped.len()), (100, 2 * PAGE));
        assert_eq!(mapped.with(PAGE - 1, 2, <[u8]>::to_vec).unwrap(), [1, 2]);
        assert_eq!(mapped.with(100 + 2 * PAGE, 0, <[u8]>::len).unwrap(), 0);
        for (offset, len) in [
            (99, 1),
            (0, 0),
            (100, 2 * PAGE + 1),
            (101 + 2 * PAGE, 0),
            (u64::MAX, 1),
            (100, u64::MAX),
        ] {
            assert_changed(mapped.with(offset, len, <[u8]>::len));
        }
        assert_changed(Mapped::new(&source, PAGE, 2 * PAGE + 1));
        assert_eq!(
            Mapped::new(&source, 3 * PAGE, 0).unwrap().with(3 * PAGE, 0, <[u8]>::len).unwrap(),
            0
        );
    }
}

#[test]
fn reading_a_page_that_is_gone_is_an_error_and_stays_one() {
    let file = file_of_pages(4);
    let mapped = map_all(&file);
    let other = map_all(&file);
    set_len(&file, PAGE);
    assert_changed(mapped.with(0, 4 * PAGE, sum));
    assert!(mapped.is_damaged());
    set_len(&file, 4 * PAGE);
    assert_changed(mapped.with(0, 1, sum));
    // The second mapping never touched the missing pages; it sees what the file holds now.
    assert_eq!(other.with(0, 4 * PAGE, sum).unwrap(), PAGE);
}

#[test]
fn bytes_that_were_lent_are_vouched_for_afterwards() {
    for (left, expected) in [(2 * PAGE, false), (2 * PAGE - 1, true), (PAGE, true)] {
        let file = file_of_pages(2);
        let mapped = map_all(&file);
        assert!(mapped.lend(PAGE, PAGE + 1).is_none());
        let lent = mapped.lend(PAGE, PAGE).unwrap();
        set_len(&file, left);
        sum(lent);
        assert_eq!(mapped.check().is_err(), expected, "{left}");
    }
}

#[test]
fn a_cut_inside_the_last_page_is_an_error_although_no_signal_tells() {
    let file = file_of_pages(1);
    let mapped = map_all(&file);
    set_len(&file, 10);
    assert_changed(mapped.with(0, 11, sum));
    assert!(!mapped.is_damaged());
    assert_eq!(mapped.with(0, 10, sum).unwrap(), 10);
}

/// Zeros at the end may be those of the file or those after its end; only its length can tell.
#[test]
fn zeros_are_those_of_the_file_or_an_error() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[1, 2, 0, 0, 3, 0]).unwrap();
    let mapped = map_all(&file);
    assert_eq!(mapped.with(0, 4, <[u8]>::to_vec).unwrap(), [1, 2, 0, 0]);
    assert_eq!(mapped.with(0, 6, <[u8]>::to_vec).unwrap(), [1, 2, 0, 0, 3, 0]);
    for cut in (0..6).rev() {
        set_len(&file, cut);
        for end in cut + 1..=6 {
            assert_changed(mapped.with(0, end, <[u8]>::to_vec));
            assert_changed(mapped.with(end - 1, 1, <[u8]>::to_vec));
        }
    }
}

#[test]
fn a_cut_inside_numbers_that_end_with_zeros_is_an_error() {
    for item in [2, 4, 8usize] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // One number is zero, and the last ones lie across a page.
        let numbers = (0..(PAGE as usize + 64) / item).map(|number| number as u64 % 200 * 3);
        let bytes: Vec<u8> =
            numbers.flat_map(|number| number.to_le_bytes()[..item].to_vec()).collect();
        file.write_all(&bytes).unwrap();
        let mapped = map_all(&file);
        for (first, count) in [(0, 1), (0, 2), (1, 7), (PAGE as usize / item - 2, 4)] {
            let start = (first * item) as u64;
            let len = (count * item) as u64;
            let expected = &bytes[first * item..][..count * item];
            assert_eq!(mapped.with(start, len, <[u8]>::to_vec).unwrap(), expected);
        }
        for cut in (0..bytes.len() as u64).filter(|cut| cut % PAGE < 40) {
            // A fault would make every later access of a mapping an error.
            std::fs::write(file.path(), &bytes).unwrap();
            let mapped = map_all(&file);
            set_len(&file, cut);
            let item = item as u64;
            let mut ranges = Vec::new();
            for count in [1, 3] {
                // Ends in the number that is cut, and up to two after it.
                let ends = (1..=3).map(|more| (cut / item + more) * item);
                let fits = |&end: &u64| end >= count * item && end <= bytes.len() as u64;
                ranges.extend(ends.filter(fits).map(|end| (end, count)));
            }
            for (end, count) in ranges {
                let read = mapped.with(end - count * item, count * item, <[u8]>::to_vec);
                assert_changed(read);
            }
        }
    }
}

#[test]
fn a_file_cut_while_threads_read_it_gives_values_or_errors() {
    let file = file_of_pages(64);
    let whole: u64 = (1..=64).map(|value| value * PAGE).sum();
    for round in 0..50 {
        std::fs::write(
            file.path(),
            (0..64 * PAGE).map(|at| (at / PAGE) as u8 + 1).collect::<Vec<_>>(),
        )
        .unwrap();
        let mapped = map_all(&file);
        let cut = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let was_cut = cut.load(Ordering::SeqCst);
                        match mapped.with(0, 64 * PAGE, sum) {
                            Ok(value) => assert_eq!(value, whole),
                            Err(ReadError::ChangedWhileOpen { .. }) => return,
                            Err(other) => panic!("{other}"),
                        }
                        assert!(!was_cut, "a whole file after it was cut");
                    }
                });
            }
            set_len(&file, (round % 64) * PAGE);
            cut.store(true, Ordering::SeqCst);
        });
    }
}

#[test]
fn the_table_of_mappings_takes_new_ones_after_old_ones_are_dropped() {
    let file = file_of_pages(1);
    let source = Source::open(file.path()).unwrap();
    for _ in 0..20_000 {
        let mapped = Mapped::new(&source, 0, PAGE).unwrap();
        assert_eq!(mapped.with(0, 1, sum).unwrap(), 1);
    }
}

/// Runs this test alone in a new process with `MAPPED_CHILD` set.
fn run_as_child(test: &str) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("MAPPED_CHILD", "1")
        .status()
        .unwrap()
}

#[test]
fn a_sigbus_that_is_not_ours_still_ends_the_process() {
    const SIGBUS: i32 = 7;
    if std::env::var_os("MAPPED_CHILD").is_none() {
        let status = run_as_child("mapped::a_sigbus_that_is_not_ours_still_ends_the_process");
        assert_eq!(status.signal(), Some(SIGBUS), "{status}");
        return;
    }
    let file = file_of_pages(1);
    let mapped = map_all(&file);
    assert_eq!(mapped.with(0, 1, sum).unwrap(), 1);
    // The handler that Rust's runtime installs lets the first one pass and restores the default.
    let kill = format!("kill -BUS {}", std::process::id());
    for _ in 0..1000 {
        Command::new("sh").args(["-c", &kill]).status().unwrap();
    }
}
