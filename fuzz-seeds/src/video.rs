//! Indexes of videos.

use tl_video::{Limits, VideoIndex};

/// Opens `data` as a video of any container. An index lies in the file, its times ascend, and every
/// frame has a plan that decodes it.
pub fn video_index(data: &[u8]) {
    let limits = Limits { max_packets: 1 << 16, max_table_bytes: 1 << 20, max_headers: 1 << 18 };
    let Ok(index) = VideoIndex::open(data, &limits) else { return };
    for number in 0..index.packet_count() {
        let packet = index.packet(number).expect("the packet is counted");
        assert!(packet.bytes > 0);
        assert!(
            packet.offset.checked_add(packet.bytes).is_some_and(|end| end <= data.len() as u64)
        );
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
    assert!(index.memory() <= 4096 + 64 * index.packet_count() as usize + data.len());
}
