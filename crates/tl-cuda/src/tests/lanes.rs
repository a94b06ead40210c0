//! Batches on several streams of the device, in memory that goes from one to another.

use super::*;

fn limits(lanes: usize) -> BufferLimits {
    BufferLimits { lanes, ..BufferLimits::default() }
}

#[test]
fn memory_that_was_dropped_unread_is_filled_only_after_its_filling() {
    let device = device();
    let uploader = Uploader::new(&device, limits(2)).unwrap();
    for lane in 0..2 {
        // The last is in the memory of the first, which is longer.
        for bytes in [MIB, MIB / 2 + 3] {
            let stream = uploader.streams().nth(lane).unwrap();
            let sources = [pinned(&device, &[1; MIB]), pinned(&device, &vec![2; bytes])];
            spin(&device, stream);
            let unread = uploader.upload(Arc::clone(&sources[0]), None, &[], &[]).unwrap();
            let address = unread.address();
            drop(unread);
            let buffer = uploader.upload(Arc::clone(&sources[1]), None, &[], &[]).unwrap();
            assert_eq!(buffer.address(), address, "the memory is used again");
            let early = buffer.read().unwrap();
            device.synchronize().unwrap();
            assert!(early == vec![2; bytes], "{bytes} bytes after lane {lane}");
            assert!(buffer.read().unwrap() == vec![2; bytes], "{bytes} bytes after lane {lane}");
        }
        // The next round begins on the other one.
        drop(uploader.upload(Arc::new(vec![3; 10]), None, &[], &[]).unwrap());
        device.synchronize().unwrap();
    }
}

#[test]
fn memory_goes_from_lane_to_lane_by_way_of_its_readers() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits { bytes: MIB as u64, ..limits(3) }).unwrap();
    let consumer = device.stream().unwrap();
    let number = |batch: u8| vec![batch; MIB - 1000 * usize::from(batch)];
    let mut seen: Vec<_> = (0..8).map(|batch| pinned_of(&device, number(batch).len())).collect();
    let sources: Vec<_> = (0..8).map(|batch| pinned(&device, &number(batch))).collect();
    for (source, seen) in sources.iter().zip(&mut seen) {
        // The limit leaves one buffer to all.
        let buffer = uploader.upload(Arc::clone(source), None, &[], &[]).unwrap();
        hold_back(&buffer, &consumer);
        spin(&device, &consumer);
        read_later(&consumer, &buffer, seen);
    }
    // In a driver that does nothing early, the last lane is asked first.
    uploader.streams().last().unwrap().synchronize().unwrap();
    consumer.synchronize().unwrap();
    for (batch, seen) in (0..).zip(&seen) {
        assert!(**seen == number(batch), "batch {batch}");
    }
}

fn pinned_of(device: &Device, bytes: usize) -> PinnedMemory {
    device.pinned(bytes).unwrap()
}

#[test]
fn the_end_of_an_uploader_waits_for_all_lanes() {
    let device = device();
    let uploader = Uploader::new(&device, limits(3)).unwrap();
    uploader.streams().for_each(|stream| spin(&device, stream));
    let sources: Vec<_> = (0..7).map(|batch| pinned(&device, &[batch; 4096])).collect();
    let upload =
        |source: &Arc<dyn HostBytes>| uploader.upload(Arc::clone(source), None, &[], &[]).unwrap();
    let buffers: Vec<_> = sources.iter().map(upload).collect();
    drop(uploader);
    assert!(sources.iter().all(|source| Arc::strong_count(source) == 1));
    for (buffer, batch) in buffers.iter().zip(0..) {
        assert_eq!(buffer.read().unwrap(), [batch; 4096]);
    }
}

#[test]
fn threads_share_lanes_and_buffers() {
    let device = device();
    let table = Table::imagenet();
    let conversion = Conversion::new(&device, Dtype::F16, Layout::Chw, &table).unwrap();
    let conversion = Some(Arc::new(conversion));
    let limits = BufferLimits { keep: 3, ..limits(4) };
    let uploader = Uploader::new(&device, limits).unwrap();
    let one = Uploader::new(&device, BufferLimits::default()).unwrap();
    let images = |count: usize| Images {
        conversion: conversion.clone(),
        decoder: None,
        count,
        pixels: 35,
        width: 7,
        area: count * 105,
    };
    let source = |batch: usize| {
        let mut bytes = noise(105 * (1 + batch % 9) + 50);
        bytes.rotate_left(batch);
        pinned(&device, &bytes)
    };
    let upload = |uploader: &Uploader, batch: usize| {
        let images = images(1 + batch % 9);
        uploader.upload(source(batch), Some(&images), &[], &[]).unwrap()
    };
    // Bytes between the images and the rest have no value.
    let content = |buffer: &DeviceBuffer, batch: usize| {
        let bytes = buffer.read().unwrap();
        let count = 1 + batch % 9;
        [&bytes[..count * 210], &bytes[buffer.place(count * 105)..]].concat()
    };
    let expected: Vec<_> = (0..100).map(|batch| content(&upload(&one, batch), batch)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let stream = device.stream().unwrap();
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            let Some(expected) = expected.get(batch) else { break };
            let buffer = upload(&uploader, batch);
            match batch % 3 {
                // Nobody reads it.
                0 => continue,
                1 => hold_back(&buffer, &stream),
                _ => buffer.record_unknown_reader(),
            }
            assert!(content(&buffer, batch) == *expected, "batch {batch}");
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    assert_eq!(uploader.stats().batches, 100);
}
