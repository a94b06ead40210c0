//! The reads that opening takes, and the memory that an index keeps.

use std::cell::RefCell;
use std::io;

use tl_video::{Limits, ReadAt, VideoIndex};

use crate::support::Clip;

/// A file that remembers its reads.
struct Counted<'a> {
    bytes: &'a [u8],
    /// Zeros between the front of the file and its last bytes.
    hole: u64,
    hole_at: u64,
    reads: RefCell<Vec<(u64, u64)>>,
}

impl<'a> Counted<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, hole: 0, hole_at: 0, reads: RefCell::default() }
    }

    fn read(&self) -> u64 {
        self.reads.borrow().iter().map(|read| read.1).sum()
    }
}

impl ReadAt for Counted<'_> {
    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64 + self.hole)
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.reads.borrow_mut().push((offset, bytes.len() as u64));
        assert!(offset + bytes.len() as u64 <= self.length()?, "a read inside the file");
        for (at, byte) in (offset..).zip(bytes) {
            let source = match at {
                at if at < self.hole_at => Some(at),
                at => (at - self.hole_at).checked_sub(self.hole).map(|at| at + self.hole_at),
            };
            *byte = source.map_or(0, |at| self.bytes[at as usize]);
        }
        Ok(())
    }
}

fn open(source: &Counted<'_>) -> VideoIndex {
    VideoIndex::open(source, &Limits::default()).unwrap()
}

#[test]
fn clips_of_a_few_kilobytes_take_few_reads() {
    for clip in Clip::all() {
        let source = Counted::new(&clip.bytes);
        open(&source);
        let reads = source.reads.borrow().len();
        assert!(reads <= 5, "{}: {reads} reads", clip.name);
    }
}

/// A gigabyte of data is skipped by its box's size.
#[test]
fn data_is_not_read() {
    let clip = Clip::of("h264_b.mp4");
    let at = clip.bytes.windows(4).position(|name| name == b"mdat").unwrap() - 4;
    let size = u32::from_be_bytes(*clip.bytes[at..].first_chunk().unwrap());
    let hole = 1 << 30;
    let mut bytes = clip.bytes.clone();
    bytes[at..at + 4].copy_from_slice(&(size + hole).to_be_bytes());
    let hole_at = u64::from(size) + at as u64;
    let source = Counted { hole: hole.into(), hole_at, ..Counted::new(&bytes) };
    assert_eq!(open(&source), clip.index());
    assert_eq!(source.reads.borrow().len(), 2, "{:?}", source.reads.borrow());
    assert!(source.read() <= 8192);
}

/// A movie with one sample after another, of `count` samples.
fn movie(count: u32) -> Vec<u8> {
    let clip = Clip::of("h264_tables.mp4");
    let boxes = |names: &[&[u8; 4]], bodies: &[Vec<u8>]| {
        let mut all = Vec::new();
        for (name, body) in names.iter().zip(bodies) {
            all.extend((body.len() as u32 + 8).to_be_bytes());
            all.extend(*name);
            all.extend(body);
        }
        all
    };
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    let body_of = |name: &[u8; 4]| {
        let at = clip.bytes.windows(4).position(|window| window == name).unwrap();
        let size = u32::from_be_bytes(*clip.bytes[at - 4..].first_chunk().unwrap()) as usize;
        clip.bytes[at + 4..at - 4 + size].to_vec()
    };
    // Sizes and times as of an encoder: key pictures are large, pictures between them are shown
    // earlier.
    let size = |n: u32| if n.is_multiple_of(250) { 40_000 } else { 2_000 + (n * 7919) % 3_000 };
    let shift = |n: u32| [1024, 2560, 1024, 0, 512][(n % 5) as usize];
    let sizes: Vec<u32> = (0..count).map(size).collect();
    let data: u32 = sizes.iter().sum();
    let stbl = boxes(
        &[b"stsd", b"stts", b"ctts", b"stss", b"stsc", b"stsz", b"stco"],
        &[
            body_of(b"stsd"),
            numbers(&[0, 1, count, 512]),
            [numbers(&[0, count]), (0..count).flat_map(|n| numbers(&[1, shift(n)])).collect()]
                .concat(),
            [
                numbers(&[0, count / 250]),
                (0..count / 250).flat_map(|n| numbers(&[n * 250 + 1])).collect(),
            ]
            .concat(),
            numbers(&[0, 1, 1, count, 1]),
            [numbers(&[0, 0, count]), numbers(&sizes)].concat(),
            numbers(&[0, 1, 8]),
        ],
    );
    let minf = boxes(&[b"stbl"], &[stbl]);
    let mdia = boxes(&[b"mdhd", b"hdlr", b"minf"], &[body_of(b"mdhd"), body_of(b"hdlr"), minf]);
    let trak = boxes(&[b"tkhd", b"mdia"], &[body_of(b"tkhd"), mdia]);
    let moov = boxes(&[b"mvhd", b"trak"], &[body_of(b"mvhd"), trak]);
    boxes(&[b"mdat", b"moov"], &[vec![0; data as usize], moov])
}

#[test]
fn an_index_takes_eight_bytes_for_a_frame_at_most() {
    let count = 9000;
    let bytes = movie(count);
    let source = Counted::new(&bytes);
    let index = open(&source);
    assert_eq!(index.frame_count(), u64::from(count));
    let each = index.memory() as f64 / f64::from(count);
    assert!(each < 8.0, "{each} bytes a frame");
    assert_eq!(source.reads.borrow().len(), 3);
}
