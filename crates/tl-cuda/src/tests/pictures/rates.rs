//! Rates of decoding on a real device, printed for `--nocapture`.
#![expect(unsafe_code, reason = "launches that are timed alone")]

use std::collections::{BTreeMap, VecDeque};

use tl_decode::{JpegDecoder, JpegRequest, PartStage, RowIndex};

use super::files::{files, repository};
use super::*;
use crate::picture::batch::{Gathering, Places, Room};
use crate::picture::decoder::Memory;

const PICTURES: usize = 256;
const SIDE: u32 = 224;
const ROUNDS: usize = 20;

/// Random crops of the committed photographs in colour, from as much as a third of one.
fn crops(stage: PartStage) -> Vec<Picture> {
    let mut random = Random(14);
    let mut decoder = JpegDecoder::default();
    let mut parts = JpegParts::default();
    let mut weights = PictureWeights::default();
    let window = Rect::of_size(SIDE, SIDE);
    let mut made = Vec::new();
    let photographs = files(&repository("photos"));
    let photographs: Vec<_> = photographs.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for bytes in photographs.iter().cycle() {
        let info = tl_decode::probe(bytes).unwrap();
        let width = random.range(info.width * 3 / 5, info.width);
        let height = random.range(info.height * 3 / 5, info.height);
        let x = random.below(info.width - width + 1);
        let y = random.below(info.height - height + 1);
        let region = Rect { x, y, width, height };
        let resize = Resize { region, resized: (SIDE, SIDE), window, filter: Filter::Bilinear };
        let mut index = Vec::new();
        if !decoder.row_index(bytes, &mut index).unwrap() {
            continue;
        }
        let index = Some(RowIndex::parse(&index).unwrap());
        let request =
            JpegRequest { region: Some(resize.source()), index, ..JpegRequest::default() };
        decoder.parts(bytes, &request, stage, true, &mut parts).unwrap();
        if parts.color == PlaneColor::YCbCr {
            let mut picture = Picture::default();
            let resize = PictureResize::Pixels(resize.into());
            assert!(picture.prepare(0, &parts, &resize, &placed(window), &mut weights));
            made.push(picture);
        }
        if made.len() == PICTURES {
            break;
        }
    }
    made
}

/// Prints the rate of uploads in sequence, with the conversion to halves.
fn uploads(stage: PartStage, rows: &[RowPicture<'_>], lanes: usize) {
    let fixture = Fixture::with_lanes(BufferLimits::default().scratch, lanes);
    let table = Table::imagenet();
    let conversion = Conversion::new(&fixture.device, Dtype::F16, Layout::Chw, &table).unwrap();
    let images = fixture.images(PICTURES, (SIDE * SIDE) as usize);
    let images = Images { conversion: Some(Arc::new(conversion)), ..images };
    let source = pinned(&fixture.device, &vec![0; images.area]);
    let upload = || fixture.uploader.upload(Arc::clone(&source), Some(&images), rows, &[]).unwrap();
    let warm: Vec<_> = (0..lanes).map(|_| upload()).collect();
    warm.iter().for_each(|buffer| buffer.ready().synchronize().unwrap());
    drop(warm);
    let before = fixture.uploader.stats();
    let start = Instant::now();
    // As many are under way as a loader has in flight.
    let mut held: VecDeque<_> = (0..2 * lanes).map(|_| upload()).collect();
    let mut enqueued = start.elapsed();
    for _ in held.len()..ROUNDS {
        let oldest = held.pop_front().unwrap();
        oldest.ready().synchronize().unwrap();
        drop(oldest);
        let start = Instant::now();
        held.push_back(upload());
        enqueued += start.elapsed();
    }
    held.iter().for_each(|buffer| buffer.ready().synchronize().unwrap());
    let rate = (ROUNDS * PICTURES) as f64 / start.elapsed().as_secs_f64();
    let micros = enqueued.as_secs_f64() * 1e6 / ROUNDS as f64;
    println!(
        "{stage:?}, {lanes} lanes: {rate:.0} pictures/s, {micros:.0} us of the host for each batch"
    );
    drop(held);
    let stats = fixture.uploader.stats().since(&before);
    let device = stats.device_nanos as f64 / 1e6 / stats.batches as f64;
    println!("  {device:.2} ms of the device for a batch");
}

#[test]
fn decoding_of_a_real_device() {
    if real_device().is_none() {
        return;
    }
    for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
        let pictures = crops(stage);
        let rows = pictures.iter().enumerate();
        let rows: Vec<_> = rows.map(|(row, picture)| RowPicture { row, picture }).collect();
        [1, 2, 4, 8].into_iter().for_each(|lanes| uploads(stage, &rows, lanes));
        for scratch in [64, 128, 512] {
            kernels(stage, &rows, scratch, |decoder| decoder);
        }
        // Where nothing is coded, its blocks do not matter.
        let entropy_blocks: &[u32] =
            if stage == PartStage::EntropyRows { &[32, 64, 128, 256] } else { &[] };
        for &block in entropy_blocks {
            println!("entropy in blocks of {block}:");
            kernels(stage, &rows, 512, |decoder| decoder.with_block(c"entropy", block));
        }
        for block in [64, 256] {
            println!("transform in blocks of {block}:");
            kernels(stage, &rows, 512, |decoder| decoder.with_block(c"transform", block));
        }
    }
}

/// Prints what each kernel takes, with chunks of so many MiB.
fn kernels(
    stage: PartStage,
    rows: &[RowPicture<'_>],
    scratch: usize,
    change: impl FnOnce(PictureDecoder) -> PictureDecoder,
) {
    let device = device();
    let decoder = change(PictureDecoder::new(&device).unwrap());
    let stream = device.stream().unwrap();
    let pixels = (SIDE * SIDE) as usize;
    let room = Room { scratch: scratch * MIB, payload: 256 * MIB };
    let gathering = Gathering::new(rows, pixels, room);
    let mut copy = device.pinned(gathering.bytes).unwrap();
    let start = Instant::now();
    gathering.write(&mut copy);
    let gathered = start.elapsed();
    let payload = device.allocate(gathering.device_bytes).unwrap();
    let scratch_memory = device.allocate(gathering.scratch).unwrap();
    let target = device.allocate(PICTURES * pixels * 3).unwrap();
    let pictures = rows.len();
    let payloads = Places::of(pictures).payloads;
    // SAFETY: everything lives until the stream has been waited for in `times`.
    unsafe { stream.copy_to_device(&copy[..payloads], &payload, 0) }.unwrap();
    let memory = Memory { payload: &payload, pictures, scratch: &scratch_memory, target: &target };
    let times = times(&device, &stream, &decoder, &gathering, memory, &copy);
    let chunks = gathering.chunks.len();
    let megabytes = gathering.bytes as f64 / 1e6;
    let needed = gathering.scratch / MIB;
    println!(
        "{stage:?}: {megabytes:.1} MB for {pictures} pictures, gathered in {gathered:?}; {chunks} \
         chunks in {needed} MiB"
    );
    let total: f32 = times.values().sum();
    let each: Vec<_> =
        times.iter().map(|(name, time)| format!("{name} {:.0}", time * 1e3)).collect();
    println!("  {:.0} us: {}", total * 1e3, each.join(", "));
}

/// Milliseconds by kernel for all chunks, the medians of some rounds.
fn times(
    device: &Device,
    stream: &Stream,
    decoder: &PictureDecoder,
    gathering: &Gathering<'_>,
    memory: Memory<'_>,
    copy: &[u8],
) -> BTreeMap<String, f32> {
    let payloads = Places::of(memory.pictures).payloads;
    let mut rounds: BTreeMap<String, Vec<f32>> = BTreeMap::new();
    for _ in 0..=ROUNDS {
        let mut events = vec![(String::new(), device.event().unwrap())];
        stream.record(&events[0].1).unwrap();
        for chunk in &gathering.chunks {
            let mut seen = |name: &std::ffi::CStr| {
                let event = device.event().unwrap();
                stream.record(&event).unwrap();
                events.push((name.to_string_lossy().into_owned(), event));
            };
            let bytes = &copy[chunk.payload..][..chunk.payload_bytes];
            // SAFETY: the memory has what the gathering needs, and is waited for below.
            unsafe { stream.copy_to_device(bytes, memory.payload, payloads) }.unwrap();
            seen(c"copy");
            // SAFETY: as above.
            unsafe { decoder.enqueue(stream, chunk, memory, &mut seen) }.unwrap();
        }
        stream.synchronize().unwrap();
        let mut sums: BTreeMap<String, f32> = BTreeMap::new();
        for pair in events.windows(2) {
            let time = pair[0].1.milliseconds_until(&pair[1].1).unwrap();
            *sums.entry(pair[1].0.clone()).or_default() += time;
        }
        sums.into_iter().for_each(|(name, time)| rounds.entry(name).or_default().push(time));
    }
    let median = |(name, mut times): (String, Vec<f32>)| {
        // The first round compiles.
        times.remove(0);
        times.sort_by(f32::total_cmp);
        (name, times[times.len() / 2])
    };
    rounds.into_iter().map(median).collect()
}
