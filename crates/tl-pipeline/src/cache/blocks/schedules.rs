//! A block under shuttle: it arrives, breaks off, is awaited and written, and its loader is dropped.

use tl_handoff::sync::{Arc, explore, thread};

use super::layout::{Layout, Member};
use super::shelf::{Begun, Shelf};
use crate::cache::CacheStats;
use crate::cache::disk::Disk;
use crate::cache::key::Key;

/// A block of two samples, of 3 and 5 bytes.
fn layout() -> Layout {
    let members =
        vec![Member { sample: 8, range: 100..103 }, Member { sample: 9, range: 110..115 }];
    Layout { number: 8, key: Key([7; 32]), object: 0, members, bytes: 8 }
}

/// Two requests bring a sample each, and one of them may break off, while a worker waits for a sample
/// and the loader is dropped. `extra` bytes are for the cache alone.
fn check(extra: u64, breaks_off: bool, closes_early: bool) {
    explore(move || {
        // In memory where there is such a folder: every schedule has one.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        let shelf = Arc::new(Shelf::new(Disk::open(folder.path(), 1 << 20), 1000));
        let Begun::Here(block) = Shelf::begin(&shelf, &layout(), extra, &|| false) else {
            panic!("nobody else fetches it");
        };
        assert!(matches!(Shelf::begin(&shelf, &layout(), 0, &|| false), Begun::Elsewhere));
        let first = Arc::clone(&block);
        let first = thread::spawn(move || first.receive(0, vec![1; 3]));
        let second = Arc::clone(&block);
        let second =
            thread::spawn(
                move || {
                    if breaks_off { second.fail() } else { second.receive(1, vec![2; 5]) }
                },
            );
        let worker = thread::spawn(move || block.wait_for(1, &|| false));
        if closes_early {
            shelf.close();
        }
        for request in [first, second] {
            request.join().expect("requests do not panic");
        }
        let found = worker.join().expect("workers do not panic");
        assert!(found.is_none() || (*found.expect("it is some")).as_slice() == [2; 5]);
        if !closes_early {
            shelf.close();
        }
        let mut stats = CacheStats::default();
        shelf.add_stats(&mut stats);
        assert!(shelf.pending(8).is_none() && shelf.is_empty());
        assert!(stats.disk.inserted == 1 || breaks_off || closes_early);
        // What arrives when the folder is left stays reserved until somebody opens it alone.
        let late = if closes_early { 4096 } else { 0 };
        let reserved = stats.disk.bytes - stats.disk.inserted * 4096;
        assert!(reserved <= late, "{reserved} bytes stay reserved");
    });
}

#[test]
fn a_block_that_arrives_is_written() {
    check(0, false, false);
}

#[test]
fn a_block_that_breaks_off_is_given_up() {
    check(5, true, false);
}

#[test]
fn a_loader_is_dropped_while_a_block_arrives() {
    check(5, false, true);
}
