//! The crate on a device: the emulated driver, or the real device whose number
//! `TURBOLOADER_TEST_DEVICE` is. Tests of a real device run one at a time: some measure who waits, and
//! allocations of others hold them up.
#![expect(unsafe_code, reason = "a consumer of batches, with kernels and copies of its own")]

mod erasing;
mod lanes;
#[path = "../kernels/library.rs"]
pub(crate) mod library;
mod pictures;
mod rates;

use std::env;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tl_handoff::sync::{Arc, Mutex, MutexGuard, lock};
use tl_simd::Level;
use tl_simd::normalize::{Dtype, ImageWriter, Layout, PixelFormat, Table};

use super::*;
use library::library;

const MIB: usize = 1 << 20;

/// A device of a driver that was compiled with these macros, or the real device if there are none.
fn device_with(macros: &[&str]) -> Result<Device, DeviceReason> {
    if let (Some(ordinal), []) = (real_device(), macros) {
        return Device::open(ordinal);
    }
    // Each test has a driver of its own.
    let library = library("emulator.c", macros, &env::temp_dir());
    let device = Device::open_with(&library, 0);
    std::fs::remove_file(&library).expect("just written");
    device
}

/// A device; a real one is that of the test alone until it is dropped.
pub(crate) struct TestDevice {
    device: Device,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Deref for TestDevice {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

pub(crate) fn device() -> TestDevice {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = real_device().map(|_| lock(&ALONE));
    TestDevice { device: device_with(&[]).expect("a device"), _alone: alone }
}

pub(crate) fn real_device() -> Option<u32> {
    env::var("TURBOLOADER_TEST_DEVICE").ok().map(|number| number.parse().expect("a number"))
}

/// A kernel that runs for so many nanoseconds.
const SPIN: &std::ffi::CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 nanos) {
    .reg .u64 %start, %now, %nanos;
    .reg .pred %early;
    ld.param.u64 %nanos, [nanos];
    mov.u64 %start, %globaltimer;
AGAIN:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %start;
    setp.lt.u64 %early, %now, %nanos;
    @%early bra AGAIN;
    ret;
}
";

/// Keeps a stream busy for 50 ms.
fn spin(device: &Device, stream: &Stream) {
    let module = device.module(SPIN).unwrap();
    let kernel = module.kernel(c"spin").unwrap();
    // SAFETY: the kernel takes one number and touches no memory.
    unsafe { stream.launch(kernel, 1, 1, 1, 50_000_000_u64) }.unwrap();
    // Its code is needed until it has run.
    std::mem::forget(module);
}

/// Pseudo-random bytes.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..bytes).map(|_| next()).collect()
}

fn pinned(device: &Device, bytes: &[u8]) -> Arc<dyn HostBytes> {
    let mut memory = device.pinned(bytes.len()).unwrap();
    memory.copy_from_slice(bytes);
    Arc::new(memory)
}

/// Enqueues a copy of the buffer to the host on `stream`, as a consumer's kernel would read it.
fn read_later(stream: &Stream, buffer: &DeviceBuffer, into: &mut PinnedMemory) {
    // SAFETY: callers wait for the stream before they drop `into` or look at it.
    unsafe { stream.copy_to_host(into, buffer.memory()) }.unwrap();
}

/// Names a consumer's stream to the buffer.
fn hold_back(buffer: &DeviceBuffer, stream: &Stream) {
    // SAFETY: tests make the stream before the buffer, or drop the buffer first.
    buffer.hold_back(unsafe { stream.handle() }).unwrap();
}

#[test]
fn bytes_come_back() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    for bytes in [0, 1, 4095, 3 * MIB + 5] {
        let source = noise(bytes);
        let buffer = uploader.upload(pinned(&device, &source), None, &[], &[]).unwrap();
        assert!(buffer.read().unwrap() == source, "{bytes} bytes");
        let pageable = uploader.upload(Arc::new(source.clone()), None, &[], &[]).unwrap();
        assert!(pageable.read().unwrap() == source, "{bytes} bytes of ordinary memory");
    }
    assert_eq!(uploader.stats().batches, 8);
}

#[test]
fn conversions_have_the_bits_of_the_cpu() {
    const FORMS: [(Dtype, Layout); 7] = [
        (Dtype::F32, Layout::Chw),
        (Dtype::F16, Layout::Chw),
        (Dtype::Bf16, Layout::Chw),
        (Dtype::U8, Layout::Chw),
        (Dtype::F32, Layout::Hwc),
        (Dtype::F16, Layout::Hwc),
        (Dtype::Bf16, Layout::Hwc),
    ];
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let table = Table::imagenet();
    for (dtype, layout) in FORMS {
        let conversion = Arc::new(Conversion::new(&device, dtype, layout, &table).unwrap());
        for (width, height, count) in [(224, 224, 5), (1, 1, 1), (8, 1, 3), (225, 3, 7), (13, 5, 2)]
        {
            let pixels = width * height;
            let source = noise(pixels * 3 * count + 100);
            let area = pixels * 3 * count + 36;
            let images = Images {
                conversion: Some(Arc::clone(&conversion)),
                decoder: None,
                count,
                pixels,
                width,
                area,
            };
            let buffer =
                uploader.upload(pinned(&device, &source), Some(&images), &[], &[]).unwrap();
            let found = buffer.read().unwrap();
            let mut expected = vec![0; pixels * 3 * count * dtype.bytes()];
            let format = PixelFormat { dtype, layout, flip: false };
            let images = expected.chunks_exact_mut(pixels * 3 * dtype.bytes());
            for (image, pixels) in images.zip(source.chunks_exact(pixels * 3)) {
                let mut writer = ImageWriter::new(image, width, height, format, &table);
                for (row, y) in pixels.chunks_exact(width * 3).zip(0..) {
                    writer.write_row(Level::Scalar, y, row);
                }
            }
            let case = format!("{dtype} {layout} {width}x{height} of {count}");
            assert!(found[..expected.len()] == expected, "{case}");
            assert!(found[buffer.place(area)..] == source[area..], "{case}");
        }
    }
}

/// The way in which a buffer learns of a consumer.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Stream,
    ThatThereIsOne,
    Nothing,
}

/// The bytes that a consumer sees that is busy while the buffer is dropped and the next batch copied.
fn seen_by_a_slow_consumer(lanes: usize, told: Told) -> Vec<u8> {
    let device = device();
    let limits = BufferLimits { lanes, ..BufferLimits::default() };
    let uploader = Uploader::new(&device, limits).unwrap();
    let consumer = device.stream().unwrap();
    let first = pinned(&device, &[1; MIB]);
    let second = pinned(&device, &[2; MIB]);
    let mut seen = device.pinned(MIB).unwrap();
    // What is slow only the first time is over when it matters.
    drop(uploader.upload(Arc::clone(&second), None, &[], &[]).unwrap());
    let buffer = uploader.upload(first, None, &[], &[]).unwrap();
    let address = buffer.address();
    match told {
        Told::Stream => hold_back(&buffer, &consumer),
        Told::ThatThereIsOne => {
            consumer.wait(buffer.ready()).unwrap();
            buffer.record_unknown_reader();
        }
        Told::Nothing => consumer.wait(buffer.ready()).unwrap(),
    }
    spin(&device, &consumer);
    read_later(&consumer, &buffer, &mut seen);
    drop(buffer);
    let mut next = uploader.upload(Arc::clone(&second), None, &[], &[]).unwrap();
    let start = Instant::now();
    while told == Told::ThatThereIsOne && next.address() != address {
        assert!(start.elapsed() < Duration::from_secs(10), "the memory is used again");
        next = uploader.upload(Arc::clone(&second), None, &[], &[]).unwrap();
    }
    assert_eq!(next.address(), address, "the memory is used again");
    // In a driver that does nothing early, whoever asks first is served first.
    next.ready().synchronize().unwrap();
    consumer.synchronize().unwrap();
    assert!(next.read().unwrap() == [2; MIB]);
    seen.to_vec()
}

#[test]
fn memory_is_filled_again_only_after_its_readers() {
    for lanes in [1, 2, 3] {
        assert!(seen_by_a_slow_consumer(lanes, Told::Stream) == [1; MIB], "{lanes}");
        assert!(seen_by_a_slow_consumer(lanes, Told::ThatThereIsOne) == [1; MIB], "{lanes}");
    }
}

#[test]
fn the_test_of_readers_fails_without_their_event() {
    // A real driver may put both streams into one queue of the device, which orders them by chance;
    // the next streams get another one.
    for lanes in [1, 2, 3] {
        let seen = |_| seen_by_a_slow_consumer(lanes, Told::Nothing);
        assert!((0..8).map(seen).any(|seen| seen != [1; MIB]), "{lanes}");
    }
}

#[test]
fn consumers_wait_for_the_copy_and_nobody_else_does() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let consumer = device.stream().unwrap();
    let mut seen = [device.pinned(MIB).unwrap(), device.pinned(MIB).unwrap()];
    let source = pinned(&device, &[1; MIB]);
    drop(uploader.upload(pinned(&device, &[2; MIB]), None, &[], &[]).unwrap().read().unwrap());
    uploader.streams().for_each(|stream| spin(&device, stream));
    let start = Instant::now();
    let buffer = uploader.upload(Arc::clone(&source), None, &[], &[]).unwrap();
    // The emulated stream is not busy, and the uploader's thread may have waited for it already.
    let is_busy = real_device().is_some();
    assert!(!is_busy || Arc::strong_count(&source) > 1, "the copy counts its source");
    let [early, ordered] = &mut seen;
    read_later(&consumer, &buffer, early);
    hold_back(&buffer, &consumer);
    read_later(&consumer, &buffer, ordered);
    assert!(!is_busy || start.elapsed() < Duration::from_millis(40), "nobody waits");
    consumer.synchronize().unwrap();
    assert!(!is_busy || **early == [2; MIB], "without an order the last batch is seen");
    assert!(**ordered == [1; MIB]);
    drop(uploader);
    assert_eq!(Arc::strong_count(&source), 1, "an uploader's end drops the sources");
}

/// Memory that its last owner fills again.
struct Refilled(PinnedMemory);

impl HostBytes for Refilled {
    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Refilled {
    fn drop(&mut self) {
        self.0.fill(9);
    }
}

#[test]
fn pinned_memory_is_filled_again_after_the_streams_that_copy_from_it() {
    let device = device();
    for names_stream in [true, false] {
        let target = device.allocate(MIB).unwrap();
        let stream = device.stream().unwrap();
        let keeper = PinnedKeeper::new(&device).unwrap();
        let mut memory = device.pinned(MIB).unwrap();
        memory.fill(3);
        let source: Arc<dyn HostBytes> = Arc::new(Refilled(memory));
        let pinned = keeper.keep(Arc::clone(&source));
        spin(&device, &stream);
        // SAFETY: the keeper has the bytes until the stream that it is told has come so far, or the test
        // waits for it below; the target lives longer.
        unsafe { stream.copy_to_device(source.bytes(), &target, 0) }.unwrap();
        if names_stream {
            // SAFETY: the stream is dropped after the use.
            pinned.record_stream(unsafe { stream.handle() }).unwrap();
            drop(source);
        } else {
            stream.synchronize().unwrap();
            drop(source);
        }
        let start = Instant::now();
        drop(pinned);
        assert!(real_device().is_none() || start.elapsed() < Duration::from_millis(40));
        // Its end waits for what it has.
        drop(keeper);
        assert!(stream.read(&target, MIB).unwrap() == [3; MIB], "{names_stream}");
    }
}

#[test]
fn pinned_memory_outlives_its_keeper() {
    let device = device();
    let keeper = PinnedKeeper::new(&device).unwrap();
    let source: Arc<dyn HostBytes> = Arc::new(device.pinned(100).unwrap());
    let pinned = keeper.keep(Arc::clone(&source));
    drop(keeper);
    drop(pinned);
    assert_eq!(Arc::strong_count(&source), 1, "who drops it waits");
}

#[test]
fn buffers_outlive_the_uploader() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let buffer = uploader.upload(pinned(&device, &[3; 100]), None, &[], &[]).unwrap();
    drop(uploader);
    assert_eq!(buffer.read().unwrap(), [3; 100]);
}

#[test]
fn the_limit_of_memory_is_kept_and_free_memory_used_again() {
    let device = device();
    let limits = BufferLimits { bytes: 2 * MIB as u64, keep: 2, ..BufferLimits::default() };
    let uploader = Uploader::new(&device, limits).unwrap();
    let upload = |bytes: usize| uploader.upload(pinned(&device, &vec![7; bytes]), None, &[], &[]);
    let first = upload(MIB).unwrap();
    let second = upload(MIB / 2).unwrap();
    let half = MIB as u64 / 2;
    let exhausted = DeviceReason::OutOfMemory { need: MIB as u64, free: half };
    assert_eq!(upload(MIB).unwrap_err(), exhausted);
    drop(second);
    // What is free is too small, and makes way.
    let third = upload(MIB).unwrap();
    assert_eq!(uploader.stats().allocated, 2 * MIB as u64);
    drop((first, third));
    assert_eq!(upload(2 * MIB).unwrap().bytes(), 2 * MIB);
    assert_eq!(uploader.stats().allocated, 2 * MIB as u64);
}

#[test]
fn exhausted_devices_say_so() {
    let device = device();
    let Err(DeviceReason::OutOfMemory { need, free }) = device.allocate(1 << 50) else {
        panic!("no device has a pebibyte");
    };
    assert_eq!(need, 1 << 50);
    assert!(free > 0);
}

#[test]
fn drivers_that_do_not_work_are_named() {
    let reason = |macros: &[&str]| device_with(macros).map(|_| ()).unwrap_err();
    let too_old = DeviceReason::DriverTooOld {
        found: CudaVersion { major: 10, minor: 2 },
        need: CudaVersion { major: 11, minor: 0 },
    };
    assert_eq!(reason(&["VERSION=10020"]), too_old);
    assert_eq!(reason(&["DEVICES=0"]), DeviceReason::NoDevice { ordinal: 0, devices: 0 });
    assert_eq!(reason(&["FAILING=\"cuInit\"", "CODE=3"]), DeviceReason::Forked);
    let unknown = DeviceReason::Library { function: "cuInit", error: "CUDA_ERROR".to_owned() };
    assert_eq!(reason(&["FAILING=\"cuInit\"", "CODE=999"]), unknown);
    let lacking = reason(&["cuEventRecord=other"]);
    let lacks =
        DeviceReason::Library { function: "cuEventRecord", error: "not in the library".to_owned() };
    assert_eq!(lacking, lacks);
    let nowhere = Device::open_with("/nowhere/libcuda.so.1".as_ref(), 0);
    assert!(matches!(nowhere, Err(DeviceReason::NoDriver { .. })));
    let text = Device::open_with(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"), 0);
    assert!(matches!(text, Err(DeviceReason::NoDriver { .. })));
}

#[test]
fn a_device_that_is_lost_fails_the_uploads_after() {
    let device = device_with(&["FAILING=\"cuEventSynchronize\"", "CODE=700"]).unwrap();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let first = uploader.upload(Arc::new(vec![1; 10]), None, &[], &[]);
    let lost = DeviceReason::Library {
        function: "cuEventSynchronize",
        error: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(),
    };
    let start = Instant::now();
    loop {
        let later = uploader.upload(Arc::new(vec![1; 10]), None, &[], &[]);
        if let Err(reason) = later {
            assert_eq!(reason, lost);
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "the thread sees it");
    }
    drop(first);
}

#[test]
fn copies_that_cannot_begin_are_errors_and_cost_no_memory() {
    let device = device_with(&["FAILING=\"cuMemcpyHtoDAsync_v2\"", "CODE=1"]).unwrap();
    let uploader =
        Uploader::new(&device, BufferLimits { bytes: 100, keep: 1, ..BufferLimits::default() })
            .unwrap();
    for _ in 0..3 {
        let source: Arc<dyn HostBytes> = Arc::new(vec![1; 100]);
        let failed = uploader.upload(Arc::clone(&source), None, &[], &[]).unwrap_err();
        assert!(matches!(failed, DeviceReason::Library { function: "cuMemcpyHtoDAsync", .. }));
        assert_eq!(Arc::strong_count(&source), 1);
    }
}

#[test]
fn streams_that_are_gone_cost_the_memory_and_nothing_else() {
    let device = device_with(&["FAILING=\"cuEventRecord\"", "CODE=400", "CALLS=5"]).unwrap();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let stream = device.stream().unwrap();
    let first = uploader.upload(Arc::new(vec![1; 10]), None, &[], &[]).unwrap();
    let second = uploader.upload(Arc::new(vec![2; 10]), None, &[], &[]).unwrap();
    hold_back(&first, &stream);
    drop(first);
    assert_eq!(second.read().unwrap(), [2; 10]);
}

#[test]
fn the_stream_of_a_thread_may_be_read_by_one_and_dropped_by_another() {
    let device = device();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let sources = [pinned(&device, &[1; MIB]), pinned(&device, &[2; MIB])];
    let mut seen = device.pinned(MIB).unwrap();
    drop(uploader.upload(Arc::clone(&sources[1]), None, &[], &[]).unwrap());
    let buffer = uploader.upload(Arc::clone(&sources[0]), None, &[], &[]).unwrap();
    // SAFETY: each thread has such a stream.
    let own = unsafe { StreamHandle::new(2) };
    let (buffer, own_stream) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            buffer.hold_back(own).unwrap();
            let stream = device.per_thread_stream();
            spin(&device, &stream);
            read_later(&stream, &buffer, &mut seen);
            (buffer, stream)
        });
        reading.join().unwrap()
    });
    let address = buffer.address();
    drop(buffer);
    let next = uploader.upload(Arc::clone(&sources[1]), None, &[], &[]).unwrap();
    assert_eq!(next.address(), address);
    next.ready().synchronize().unwrap();
    device.synchronize().unwrap();
    assert!(*seen == [1; MIB]);
    std::mem::forget(own_stream);
}

#[test]
fn captures_of_others_do_not_matter() {
    let device = device_with(&["CAPTURING=1"]).unwrap();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let buffer = uploader.upload(pinned(&device, &[3; 100]), None, &[], &[]).unwrap();
    assert_eq!(buffer.read().unwrap(), [3; 100]);
}

#[test]
fn memory_with_unknown_readers_is_not_used_again_after_a_capture() {
    let device = device_with(&["CAPTURING=1"]).unwrap();
    assert!(device.synchronize().unwrap_err().to_string().contains("cuCtxSynchronize"));
    let limits = BufferLimits { bytes: 1000, ..BufferLimits::default() };
    let uploader = Uploader::new(&device, limits).unwrap();
    let upload = || uploader.upload(Arc::new(vec![3; 400]), None, &[], &[]);
    let known = upload().unwrap();
    let address = known.address();
    drop(known);
    let unknown = upload().unwrap();
    assert_eq!(unknown.address(), address, "memory whose readers are known is used again");
    unknown.record_unknown_reader();
    drop(unknown);
    // Nobody can say when it has been read: it is neither filled nor freed.
    let next = upload().unwrap();
    assert_ne!(next.address(), address);
    assert_eq!(uploader.stats().allocated, 800);
    let free = upload().unwrap_err();
    assert_eq!(free, DeviceReason::OutOfMemory { need: 400, free: 200 });
    assert_eq!(next.read().unwrap(), [3; 400]);
}

#[test]
fn pinned_memory_with_unknown_readers_is_not_used_again_after_a_capture() {
    struct Source(Vec<u8>, Arc<AtomicUsize>);
    impl HostBytes for Source {
        fn bytes(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Source {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    for (macros, expected) in [(&["CAPTURING=1"][..], 0), (&["DEVICES=1"], 1)] {
        let device = device_with(&[macros, &["FAILING=\"cuEventRecord\"", "CALLS=0"]].concat());
        let device = device.unwrap();
        let dropped = Arc::new(AtomicUsize::new(0));
        let keeper = PinnedKeeper::new(&device).unwrap();
        // The end of the legacy stream cannot be recorded: all of the context is waited for.
        drop(keeper.keep(Arc::new(Source(vec![1], Arc::clone(&dropped)))));
        drop(keeper);
        assert_eq!(dropped.load(Ordering::Relaxed), expected, "{macros:?}");
    }
}

#[test]
fn a_fork_drops_buffers_while_their_pool_is_locked() {
    let device = device_with(&["MEMORY=100000"]).unwrap();
    let uploader = Uploader::new(&device, BufferLimits::default()).unwrap();
    let buffer = uploader.upload(Arc::new(vec![1; 10]), None, &[], &[]).unwrap();
    let locked = buffer.lock_pool();
    // SAFETY: the child drops the buffer and exits at once; a signal ends it if it waits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: it takes a number.
        unsafe { libc::alarm(20) };
        // SAFETY: the other value is never dropped in this process.
        drop(unsafe { std::ptr::read(&raw const buffer) });
        // SAFETY: as above.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    drop(locked);
    assert_eq!(buffer.read().unwrap(), [1; 10]);
}

#[test]
fn the_compiled_kernels_are_those_of_the_sources() {
    let sources =
        [&include_bytes!("../kernels/kernels.cu")[..], include_bytes!("../kernels/decode.cu")];
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    let hash = sources.concat().iter().fold(0xCBF2_9CE4_8422_2325, fnv);
    let ptx = include_str!("../kernels/kernels.ptx");
    let is_of = ptx.starts_with(&format!("// Sources: {hash:016x}\n"));
    assert!(is_of, "run `cargo xtask ptx`");
}
