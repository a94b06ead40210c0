//! Plans: the packets that frames need, and the frame at a time.

use tl_video::{FrameTimes, Run, VideoError, VideoIndex};

use crate::support::Clip;

/// The numbers of packets that start groups.
fn keys(index: &VideoIndex) -> Vec<u64> {
    (0..index.packet_count()).filter(|number| index.packet(*number).unwrap().is_key).collect()
}

#[test]
fn a_frame_is_decoded_from_a_key_that_is_shown_before_it() {
    for clip in Clip::all() {
        let index = clip.index();
        let keys = keys(&index);
        for number in 0..index.frame_count() {
            let frame = index.frame(number).unwrap();
            let plan = index.cost(&[number]).unwrap();
            let [Run { packets, frames }] = plan.runs.as_slice() else { panic!("{plan:?}") };
            assert_eq!(frames, &[number]);
            assert!(packets.contains(&frame.packet), "{} {number}", clip.name);
            // The definition: the last key before the frame both ways.
            let is_before =
                |key: &&u64| **key <= frame.packet && index.packet(**key).unwrap().pts <= frame.pts;
            let start = keys.iter().rfind(is_before);
            assert_eq!(Some(&packets.start), start, "{} {number}", clip.name);
            if index.info().times == FrameTimes::Stored {
                assert_eq!(packets.end, frame.packet + 1);
            }
        }
    }
}

#[test]
fn pictures_before_a_key_of_an_open_group_need_the_group_before() {
    let index = Clip::of("h264_open.mp4").index();
    assert_eq!(keys(&index), [0, 9, 19, 29]);
    // Packets 10 to 12 are stored after the key picture and shown before it.
    let key = index.packet(9).unwrap().pts;
    let shown_at = |packet| index.packet(packet).unwrap().pts;
    let leading: Vec<u64> = (10..19).filter(|packet| shown_at(*packet) < key).collect();
    assert!(!leading.is_empty());
    for number in 0..index.frame_count() {
        let packet = index.frame(number).unwrap().packet;
        let start = index.cost(&[number]).unwrap().runs[0].packets.start;
        if (9..19).contains(&packet) {
            assert_eq!(start, if leading.contains(&packet) { 0 } else { 9 });
        }
    }
}

#[test]
fn frames_share_runs_where_that_takes_no_more_packets() {
    let index = Clip::of("h264_b.mp4").index();
    assert_eq!(keys(&index), [0, 12, 24, 36]);
    // Twice, in any order, and across the border of groups that follow each other.
    let last = (0..40).find(|number| index.frame(*number).unwrap().packet == 11).unwrap();
    let plan = index.cost(&[13, 0, 14, 13, last]).unwrap();
    assert_eq!(plan.runs.len(), 1);
    assert_eq!(plan.runs[0].frames, [0, last, 13, 14]);
    assert_eq!(plan.runs[0].packets.start, 0);
    let plan = index.cost(&[0, 13]).unwrap();
    assert_eq!((plan.runs.len(), plan.runs[0].packets.clone()), (2, 0..1));
    // A group is skipped.
    let plan = index.cost(&[30, 2]).unwrap();
    let starts: Vec<u64> = plan.runs.iter().map(|run| run.packets.start).collect();
    assert_eq!(starts, [0, 24]);
    assert_eq!(plan.frame_count(), 2);
    let sum: u64 = plan.runs.iter().map(|run| run.packets.end - run.packets.start).sum();
    assert_eq!(plan.packet_count(), sum);
    assert!(index.cost(&[]).unwrap().runs.is_empty());
    let error = index.cost(&[40]).unwrap_err();
    assert!(matches!(error, VideoError::NoFrame { frame: 40, count: 40 }));
    assert_eq!(error.to_string(), "frame 40 of a video of 40 frames");
}

#[test]
fn hidden_frames_are_decoded_and_not_kept() {
    let index = Clip::of("h264_edit.mp4").index();
    let first = index.frame(0).unwrap();
    assert!(first.packet > 0);
    assert_eq!(index.cost(&[0]).unwrap().runs[0].packets, 0..first.packet + 1);
    // 300 ms pass before the first frame.
    assert_eq!((index.first_pts(), index.frame_at(0.2)), (3840, None));
    assert_eq!(index.frame_at(0.3), Some(0));
}

#[test]
fn counted_frames_read_as_far_as_pictures_can_be_held_back() {
    let index = Clip::of("h264.avi").index();
    let keys = keys(&index);
    let plan = index.cost(&[1]).unwrap();
    assert_eq!(plan.runs[0].packets, 0..keys[1]);
}

#[test]
fn a_time_has_the_last_frame_that_has_started() {
    for clip in Clip::all() {
        let index = clip.index();
        let base = index.info().time_base;
        let seconds =
            |pts: i64| pts as f64 * f64::from(base.numerator) / f64::from(base.denominator);
        let starts: Vec<f64> = (0..index.frame_count())
            .map(|number| seconds(index.frame(number).unwrap().pts))
            .collect();
        let end = seconds(index.end_pts());
        for (number, start) in (0..).zip(&starts) {
            let next = starts.get(number as usize + 1).copied().unwrap_or(end);
            if *start < next {
                assert_eq!(index.frame_at(*start), Some(number), "{} {start}", clip.name);
                let last = f64::from_bits(next.to_bits() - 1);
                assert_eq!(index.frame_at(last), Some(number), "{} {last}", clip.name);
            }
        }
        for outside in [starts[0] - 0.001, end, end + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(index.frame_at(outside), None, "{} {outside}", clip.name);
        }
        assert!((index.duration() - (end - starts[0])).abs() < 1e-9);
    }
}

#[test]
fn a_rate_that_varies_is_searched_by_time() {
    let index = Clip::of("h264_rate.mp4").index();
    let gaps: std::collections::BTreeSet<i64> = (1..index.frame_count())
        .map(|number| index.frame(number).unwrap().pts - index.frame(number - 1).unwrap().pts)
        .collect();
    assert_eq!(gaps.into_iter().collect::<Vec<_>>(), [112, 612]);
    assert_eq!(index.frame_at(2500.0 / 12800.0), Some(4));
    assert_eq!(index.frame_at(2560.0 / 12800.0), Some(5));
}
