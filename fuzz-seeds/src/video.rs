//! Videos: indexes, and their frames.

use std::ops::Range;

use tl_video::{FrameDecoder, Limits, VideoIndex};

const LIMITS: Limits = Limits {
    max_packets: 1 << 16,
    max_table_bytes: 1 << 20,
    max_headers: 1 << 18,
    max_packet_bytes: 1 << 20,
    max_decoder_bytes: 1 << 22,
    max_pictures: 64,
};

/// The place of the video's length in a stored index.
const LENGTH: Range<usize> = 12..20;

/// Opens `data` as a video of any container. Its index is read as it was written.
pub fn video_index(data: &[u8]) {
    let Ok(index) = VideoIndex::open(data, &LIMITS) else { return };
    check(&index, data.len() as u64);
    assert!(index.memory() <= 4096 + 64 * index.packet_count() as usize + data.len());
    let length = data.len() as u64;
    // A packet takes less than 64 bytes.
    let limits = Limits { max_table_bytes: 64 * LIMITS.max_packets, ..LIMITS };
    let read = VideoIndex::from_bytes(&index.to_bytes(length), length, &limits);
    assert!(read.is_ok_and(|read| read == index));
}

/// Reads `data` as a stored index, of a video of the length that it states. One that is accepted keeps
/// what demuxers promise, and its bytes.
pub fn video_stored(data: &[u8]) {
    let length = data.get(LENGTH).and_then(|length| length.try_into().ok());
    let length = u64::from_le_bytes(length.unwrap_or_default());
    let Ok(index) = VideoIndex::from_bytes(data, length, &LIMITS) else { return };
    check(&index, length);
    let again = VideoIndex::from_bytes(&index.to_bytes(length), length, &LIMITS);
    assert!(again.is_ok_and(|again| again == index));
}

/// Checks that an index lies in a file of `length` bytes, its times ascend, and every frame has a plan
/// that decodes it.
fn check(index: &VideoIndex, length: u64) {
    for number in 0..index.packet_count() {
        let packet = index.packet(number).expect("the packet is counted");
        assert!(packet.bytes > 0);
        assert!(packet.offset.checked_add(packet.bytes).is_some_and(|end| end <= length));
    }
    let mut latest = i64::MIN;
    for number in 0..index.frame_count() {
        let frame = index.frame(number).expect("the frame is counted");
        assert!(frame.pts >= latest);
        latest = frame.pts;
        let plan = index.cost(&[number]).expect("the frame is counted");
        assert!(plan.runs.iter().all(|run| run.packets.contains(&frame.packet)));
    }
    assert!(index.frame_at(0.5).is_none_or(|frame| frame < index.frame_count()));
    assert!(index.frame_cost().max_packets <= index.packet_count());
}

/// Decodes the first frames of `data`. Each arrives once, and with whole planes.
pub fn video_frames(data: &[u8]) {
    let Ok(index) = VideoIndex::open(data, &LIMITS) else { return };
    let Ok(mut decoder) = FrameDecoder::new(&index, &LIMITS) else { return };
    let frames: Vec<u64> = (0..index.frame_count().min(16)).collect();
    let plan = index.cost(&frames).expect("the frames are counted");
    let mut decoded = Vec::new();
    let result = decoder.decode(&index, &plan, data, &mut |frame, picture| {
        decoded.push(frame);
        let bytes = if picture.bit_depth > 8 { 2 } else { 1 };
        for plane in picture.views() {
            let samples = plane.width as usize * plane.height as usize;
            assert_eq!(plane.samples.len(), samples * bytes);
        }
    });
    decoded.sort_unstable();
    if result.is_ok() {
        assert_eq!(decoded, frames);
    }
    decoded.dedup();
    assert!(decoded.len() <= frames.len());
}
