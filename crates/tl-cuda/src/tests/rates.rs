//! Rates of a real device, printed for `--nocapture`.
#![expect(unsafe_code, reason = "copies and launches that are timed alone")]

use super::*;

const IMAGES: usize = 256;
const PIXELS: usize = 224 * 224;
const BYTES: usize = IMAGES * PIXELS * 3;
const ROUNDS: usize = 50;

/// The median of the device's seconds for `work`.
fn seconds(device: &Device, stream: &Stream, work: impl Fn()) -> f32 {
    let time = |_| {
        let start = device.event().unwrap();
        let end = device.event().unwrap();
        stream.record(&start).unwrap();
        work();
        stream.record(&end).unwrap();
        end.synchronize().unwrap();
        start.milliseconds_until(&end).unwrap() / 1e3
    };
    work();
    let mut times: Vec<f32> = (0..ROUNDS).map(time).collect();
    times.sort_by(f32::total_cmp);
    times[ROUNDS / 2]
}

#[test]
fn conversions_and_copies_of_a_real_device() {
    if real_device().is_none() {
        return;
    }
    let device = device();
    let stream = device.stream().unwrap();
    let source = pinned(&device, &noise(BYTES));
    let staging = device.allocate(BYTES).unwrap();
    let bare = seconds(&device, &stream, || {
        // SAFETY: source and target live until `seconds` has waited for the stream.
        unsafe { stream.copy_to_device(source.bytes(), &staging, 0) }.unwrap();
    });
    println!("{}: bare pinned copy {:.2} GB/s", device.name(), BYTES as f32 / bare / 1e9);
    let table = Table::imagenet();
    for (dtype, layout) in [
        (Dtype::F16, Layout::Chw),
        (Dtype::F32, Layout::Chw),
        (Dtype::U8, Layout::Chw),
        (Dtype::F16, Layout::Hwc),
        (Dtype::F32, Layout::Hwc),
    ] {
        let conversion = Conversion::new(&device, dtype, layout, &table).unwrap();
        let target = device.allocate(BYTES * dtype.bytes()).unwrap();
        let time = seconds(&device, &stream, || {
            // SAFETY: as above.
            unsafe { conversion.enqueue(&stream, &staging, &target, IMAGES, PIXELS) }.unwrap();
        });
        let rate = (BYTES * (1 + dtype.bytes())) as f32 / time / 1e9;
        let micros = time * 1e6;
        println!("{dtype} {layout} of 256x224x224: {micros:.1} us, {rate:.0} GB/s both ways");
    }
    for dtype in [None, Some(Dtype::F16)] {
        uploads(&device, &source, dtype);
    }
}

/// Prints the rate of uploads in sequence.
fn uploads(device: &Device, source: &Arc<dyn HostBytes>, dtype: Option<Dtype>) {
    let uploader = Uploader::new(device, BufferLimits::default()).unwrap();
    let conversion = |dtype| Conversion::new(device, dtype, Layout::Chw, &Table::imagenet());
    let images = dtype.map(|dtype| Images {
        conversion: Some(Arc::new(conversion(dtype).unwrap())),
        decoder: None,
        count: IMAGES,
        pixels: PIXELS,
        width: PIXELS,
        area: BYTES,
    });
    let upload = || uploader.upload(Arc::clone(source), images.as_ref(), &[], &[]).unwrap();
    upload().ready().synchronize().unwrap();
    let start = Instant::now();
    let mut last = upload();
    for _ in 1..ROUNDS {
        last = upload();
    }
    let enqueued = start.elapsed();
    last.ready().synchronize().unwrap();
    let rate = (ROUNDS * BYTES) as f64 / start.elapsed().as_secs_f64() / 1e9;
    let micros = enqueued.as_secs_f64() * 1e6 / ROUNDS as f64;
    println!("uploads with conversion {dtype:?}: {rate:.2} GB/s, {micros:.1} us of the host each");
}
