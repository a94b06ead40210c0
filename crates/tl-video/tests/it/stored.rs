//! Indexes as bytes: equal when they are read again, refused when they are not of their video.

use tl_video::{Limits, VideoError, VideoIndex};

use crate::support::Clip;

fn read(bytes: &[u8], length: usize) -> Result<VideoIndex, VideoError> {
    VideoIndex::from_bytes(bytes, length as u64, &Limits::default())
}

fn stored(clip: &Clip) -> Vec<u8> {
    clip.index().to_bytes(clip.bytes.len() as u64)
}

/// What readers rely on: packets in the video, times that ascend, a plan for every frame.
fn check(index: &VideoIndex, length: usize) {
    for number in 0..index.packet_count() {
        let packet = index.packet(number).unwrap();
        assert!(packet.bytes > 0 && packet.offset + packet.bytes <= length as u64);
    }
    let frames: Vec<u64> = (0..index.frame_count()).collect();
    assert!(frames.iter().map(|number| index.frame(*number).unwrap().pts).is_sorted());
    for frame in &frames {
        let plan = index.cost(&[*frame]).unwrap();
        assert!(plan.runs[0].packets.contains(&index.frame(*frame).unwrap().packet));
    }
    index.frame_at(0.5);
    index.frame_cost();
}

#[test]
fn an_index_is_read_as_it_was_written() {
    for clip in Clip::all() {
        let bytes = stored(&clip);
        let index = read(&bytes, clip.bytes.len()).unwrap();
        assert_eq!(index, clip.index(), "{}", clip.name);
        assert_eq!(index.to_bytes(clip.bytes.len() as u64), bytes);
        check(&index, clip.bytes.len());
        // A fixed part and the configuration of the codec, and a few bytes for each packet.
        let fixed = 100 + index.info().configuration.len() as u64 + 5 * 21;
        let most = fixed + 11 * index.packet_count();
        assert!(bytes.len() as u64 <= most, "{}: {} of {most}", clip.name, bytes.len());
    }
}

#[test]
fn every_truncation_and_every_other_length_is_refused() {
    for clip in Clip::all() {
        let bytes = stored(&clip);
        for end in 0..bytes.len() {
            let error = read(&bytes[..end], clip.bytes.len()).unwrap_err();
            assert!(matches!(error, VideoError::ShortIndex { .. }), "{} {error:?}", clip.name);
        }
        let longer = [&bytes[..], b"x"].concat();
        for (bytes, length) in [(&longer, clip.bytes.len()), (&bytes, clip.bytes.len() - 1)] {
            let error = read(bytes, length).unwrap_err();
            assert!(matches!(error, VideoError::StoredIndex { .. }), "{} {error:?}", clip.name);
        }
    }
}

/// The container's checksum finds such damage first; a forged index has none.
#[test]
fn every_flipped_bit_is_an_error_or_an_index_in_the_video() {
    for clip in Clip::all() {
        let intact = stored(&clip);
        for at in 0..intact.len() * 8 {
            let mut bytes = intact.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            match read(&bytes, clip.bytes.len()) {
                Ok(index) => check(&index, clip.bytes.len()),
                Err(error) => assert!(error.to_string().is_ascii(), "{error}"),
            }
        }
    }
}

#[test]
fn forged_values_are_named() {
    let clip = Clip::of("h264_b.mp4");
    let intact = stored(&clip);
    let check = |at: usize, value: &[u8], expected: &str| {
        let mut bytes = intact.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        assert_eq!(read(&bytes, clip.bytes.len()).unwrap_err().to_string(), expected);
    };
    check(4, &[9], "video index: version is 9, expected 1");
    check(6, &[3], "video index: container is 3, expected a known one");
    check(28, &[0; 4], "video index: ratio of a sample's sides is 0, expected a positive fraction");
    // The number of packets, after the name and the configuration of the codec.
    let configuration = clip.index().info().configuration.len();
    let offsets = 52 + 4 + "avc1".len() + 4 + configuration;
    check(
        offsets,
        &u32::MAX.to_le_bytes(),
        "limit exceeded: max_packets is 4194304, this file needs 4294967295",
    );
    let mut bytes = intact.clone();
    let end = (clip.bytes.len() as u64).to_le_bytes();
    bytes[offsets + 4..offsets + 12].copy_from_slice(&end);
    let error = read(&bytes, clip.bytes.len()).unwrap_err();
    assert!(matches!(error, VideoError::OutsideFile { packet: 0, .. }), "{error:?}");
}

#[test]
fn limits_are_charged() {
    let clip = Clip::of("h264_b.mp4");
    let bytes = stored(&clip);
    let packets = clip.index().packet_count();
    for limits in [
        Limits { max_packets: packets - 1, ..Limits::default() },
        Limits { max_table_bytes: bytes.len() as u64 - 1, ..Limits::default() },
    ] {
        let length = clip.bytes.len() as u64;
        let error = VideoIndex::from_bytes(&bytes, length, &limits).unwrap_err();
        assert!(matches!(error, VideoError::LimitExceeded { .. }), "{error:?}");
    }
}
