//! Figures of an index: groups, the rate, and the cost of a frame alone.

use tl_video::{FrameTimes, VideoIndex};

use crate::support::Clip;

/// The definition: plans of every frame by itself.
fn costs(index: &VideoIndex) -> Vec<(u64, u64)> {
    let cost = |frame| {
        let plan = index.cost(&[frame]).unwrap();
        let packets = plan.runs[0].packets.clone();
        let bytes = packets.map(|number| index.packet(number).unwrap().bytes).sum();
        (plan.packet_count(), bytes)
    };
    (0..index.frame_count()).map(cost).collect()
}

#[test]
fn the_cost_of_a_frame_is_that_of_its_plan() {
    for clip in Clip::all() {
        let index = clip.index();
        let costs = costs(&index);
        let frames = costs.len() as f64;
        let cost = index.frame_cost();
        let packets: u64 = costs.iter().map(|(packets, _)| packets).sum();
        let bytes: u64 = costs.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(cost.mean_packets, packets as f64 / frames, "{}", clip.name);
        assert_eq!(cost.mean_bytes, bytes as f64 / frames);
        assert_eq!(Some(cost.max_packets), costs.iter().map(|(packets, _)| *packets).max());
        assert_eq!(Some(cost.max_bytes), costs.iter().map(|(_, bytes)| *bytes).max());
        let packets = (0..index.packet_count()).map(|number| index.packet(number).unwrap());
        assert_eq!(index.packet_bytes(), packets.map(|packet| packet.bytes).sum::<u64>());
    }
}

#[test]
fn groups_start_at_key_packets() {
    let groups = Clip::of("h264_b.mp4").index().groups();
    assert_eq!((groups.count, groups.shortest, groups.longest), (4, 4, 12));
    let groups = Clip::of("h264_open.mp4").index().groups();
    assert_eq!((groups.count, groups.shortest, groups.longest), (4, 9, 11));
}

#[test]
fn clips_of_a_variable_rate_are_known() {
    let variable = ["h264_rate.mp4", "h264_fragments.mp4", "h264_edits.mp4"];
    for clip in Clip::all() {
        let index = clip.index();
        let is_variable = variable.contains(&clip.name.as_str());
        assert_eq!(index.is_constant_rate(), !is_variable, "{}", clip.name);
        let fps = clip.expected["average_rate"].as_f64().unwrap();
        if index.info().times == FrameTimes::Stored && !is_variable {
            assert!((index.average_fps() - fps).abs() < 0.7, "{} {fps}", clip.name);
        }
    }
}
