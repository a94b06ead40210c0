//! Files made here, of structures that FFmpeg's muxers do not write.

use tl_video::{Codec, Color, Ratio, VideoError};

use crate::support::{Clip, open};

/// An element of EBML with a size of two bytes.
fn element(id: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(body.len()).unwrap();
    assert!(size < 0x3fff);
    let id = id.to_be_bytes();
    let id = &id[id.iter().position(|byte| *byte != 0).unwrap()..];
    [id, &(size | 0x4000).to_be_bytes(), body].concat()
}

/// An element of unknown size.
fn unknown(id: u32, body: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[0xff], body].concat()
}

fn video_track(number: u8, codec: &[u8], more: &[u8]) -> Vec<u8> {
    let video = [
        element(0xb0, &[0, 96]),
        element(0xba, &[64]),
        element(0x54b0, &[128]),
        element(0x54ba, &[64]),
        element(0x55b0, &[element(0x55b1, &[5]), element(0x55b9, &[1])].concat()),
        element(0x7670, &element(0x7675, &(-90.0_f32).to_be_bytes())),
    ];
    let parts = [
        element(0xd7, &[number]),
        element(0x83, &[1]),
        element(0x86, codec),
        element(0xe0, &video.concat()),
        more.to_vec(),
    ];
    element(0xae, &parts.concat())
}

fn matroska(tracks: &[Vec<u8>], clusters: &[u8]) -> Vec<u8> {
    let info = element(0x1549_a966, &element(0x2a_d7b1, &[0x07, 0xa1, 0x20]));
    let body = [info, element(0x1654_ae6b, &tracks.concat()), clusters.to_vec()].concat();
    [element(0x1a45_dfa3, b""), unknown(0x1853_8067, &body)].concat()
}

fn block(time: i16, flags: u8, frame: &[u8]) -> Vec<u8> {
    [&[0x81][..], &time.to_be_bytes(), &[flags], frame].concat()
}

#[test]
fn matroska_of_a_live_stream() {
    let group = |parts: &[Vec<u8>]| element(0xa0, &parts.concat());
    let clusters = [
        unknown(
            0x1f43_b675,
            &[
                element(0xe7, &[100]),
                group(&[element(0xa1, &block(0, 0, b"key")), element(0x9b, &[40])]),
                // Of another track.
                element(0xa3, &[&[0x40, 0x82][..], &block(0, 0x80, b"no")[1..]].concat()),
            ]
            .concat(),
        ),
        unknown(
            0x1f43_b675,
            &[
                element(0xe7, &[2, 0]),
                group(&[element(0xfb, &[0]), element(0xa1, &block(-2, 0, b"later"))]),
                element(0xa3, &block(20, 0x80, b"last")),
            ]
            .concat(),
        ),
    ];
    // The first track is disabled, and the second one is of sound.
    let disabled = video_track(2, b"V_VP9", &element(0xb9, &[0]));
    let sound = element(0xae, &element(0x83, &[2]));
    let duration = element(0x23_e383, &[0x01, 0x31, 0x2d, 0x00]);
    let tracks = [disabled, sound, video_track(1, b"V_MPEG4/ISO/AVC", &duration)];
    let bytes = matroska(&tracks, &clusters.concat());
    let index = open(&bytes).unwrap();
    let packets: Vec<_> = (0..3)
        .map(|number| index.packet(number).unwrap())
        .map(|packet| {
            let start = packet.offset as usize;
            (packet.pts, packet.is_key, &bytes[start..start + packet.bytes as usize])
        })
        .collect();
    assert_eq!(packets, [(100, true, &b"key"[..]), (510, false, b"later"), (532, true, b"last")]);
    assert_eq!(index.frame_count(), 3);
    let info = index.info();
    assert_eq!(info.codec, Codec::H264);
    assert_eq!(info.time_base, Ratio { numerator: 1, denominator: 2000 });
    // 20 ms.
    assert_eq!(index.end_pts(), 532 + 40);
    assert_eq!(info.sample_aspect_ratio, Ratio { numerator: 4, denominator: 3 });
    assert_eq!(info.rotation, 90);
    assert_eq!(info.color, Color { matrix: Some(5), full_range: Some(false) });
}

#[test]
fn frames_of_vp8_that_are_not_shown_are_hidden() {
    let cluster = [
        element(0xe7, &[0]),
        element(0xa3, &block(0, 0x80, &[0x10, 1])),
        element(0xa3, &block(1, 0, &[0x01, 1])),
        element(0xa3, &block(40, 0, &[0x11, 1])),
    ];
    let cluster = element(0x1f43_b675, &cluster.concat());
    let index = open(&matroska(&[video_track(1, b"V_VP8", &[])], &cluster)).unwrap();
    assert_eq!((index.packet_count(), index.frame_count()), (3, 2));
    assert_eq!(index.cost(&[1]).unwrap().runs[0].packets, 0..3);
    // Other codecs have no such bit.
    let index = open(&matroska(&[video_track(1, b"V_VP9", &[])], &cluster)).unwrap();
    assert_eq!(index.frame_count(), 3);
}

#[test]
fn features_that_are_not_read_are_named() {
    let cluster =
        |block: &[u8]| element(0x1f43_b675, &[element(0xe7, &[0]), element(0xa3, block)].concat());
    let track = video_track(1, b"V_VP8", &[]);
    let message = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    let laced = matroska(std::slice::from_ref(&track), &cluster(&block(0, 0x82, &[1, 1, 1])));
    let text = message(&laced);
    assert!(text.starts_with("Matroska: unsupported: several frames in a block (element 0xA3"));
    let packed = video_track(1, b"V_VP8", &element(0x6d80, &[0]));
    let text = message(&matroska(&[packed], &cluster(&block(0, 0x80, b"x"))));
    assert!(text.contains("unsupported: compressed or encrypted frames (element 0x6D80"), "{text}");
    let text = message(&matroska(&[], &cluster(&block(0, 0x80, b"x"))));
    assert!(text.starts_with("Matroska: no video track in `Tracks`"), "{text}");
    let text = message(&matroska(&[track], &[]));
    assert!(text.starts_with("Matroska: no frame that is shown"), "{text}");
    let clip = Clip::of("h264_b.mp4");
    // After the header of `stsd`, and the size of its entry.
    let at = clip.bytes.windows(4).position(|name| name == b"stsd").unwrap() + 12;
    let mut bytes = clip.bytes;
    bytes[at + 4..at + 8].copy_from_slice(b"encv");
    let expected = format!("MP4: unsupported: encrypted video (`encv` at byte {at})");
    assert_eq!(message(&bytes), expected);
}

/// The clip with one table replaced by another of the same size.
fn with_table(clip: &Clip, name: &[u8; 4], table: &[u8]) -> Vec<u8> {
    let mut bytes = clip.bytes.clone();
    let at = bytes.windows(4).position(|window| window == name).unwrap() + 4;
    bytes[at..at + table.len()].copy_from_slice(table);
    bytes
}

#[test]
fn tables_are_checked_against_their_boxes() {
    let clip = Clip::of("h264_b.mp4");
    let message = |name: &[u8; 4], table: &[u8]| {
        open(&with_table(&clip, name, table)).unwrap_err().to_string()
    };
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let at = clip.bytes.windows(4).position(|window| window == b"stsz").unwrap() - 4;
    let text = message(b"stsz", &words(&[0, 0, u32::MAX]));
    let need = 12 + 4 * u64::from(u32::MAX);
    assert_eq!(text, format!("MP4: `stsz` at byte {at} needs {need} bytes, found 172"));
    // Samples of one size have no table.
    let text = message(b"stsz", &words(&[0, 1000, u32::MAX]));
    assert_eq!(text, "limit exceeded: max_packets is 4194304, this file needs 4294967295");
    let text = message(b"stsz", &words(&[0, 1000, 400]));
    assert_eq!(
        text,
        format!(
            "MP4: `stsz` at byte {at}: bytes of all samples is 400000, expected at most the bytes of \
             the file"
        )
    );
    let at = clip.bytes.windows(4).position(|window| window == b"stts").unwrap() - 4;
    let text = message(b"stts", &words(&[0, 1, 39, 512]));
    assert_eq!(text, format!("MP4: `stts` at byte {at} describes 39 of 40 packets"));
    let at = clip.bytes.windows(4).position(|window| window == b"stco").unwrap() - 4;
    let text = message(b"stsc", &words(&[0, 1, 1, 39, 1]));
    assert_eq!(text, format!("MP4: `stco` at byte {at} describes 39 of 40 packets"));
    let text = message(b"stco", &words(&[0, 1, 6000]));
    assert!(text.starts_with("MP4: packet 0 of "), "{text}");
    let end = format!(" bytes at byte 6000 is not inside the file of {} bytes", clip.bytes.len());
    assert!(text.ends_with(&end), "{text}");
}

#[test]
fn sizes_of_four_bits_are_read_from_the_high_half_on() {
    let clip = Clip::of("h264_tables.mp4");
    // 30 sizes of 16 bits make room for 30 of 4 bits.
    let mut table = vec![0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 30];
    table.extend([0x12; 15]);
    let index = open(&with_table(&clip, b"stz2", &table)).unwrap();
    let sizes: Vec<u64> = (0..4).map(|number| index.packet(number).unwrap().bytes).collect();
    assert_eq!(sizes, [1, 2, 1, 2]);
    table[7] = 5;
    let error = open(&with_table(&clip, b"stz2", &table)).unwrap_err();
    assert!(matches!(error, VideoError::Value { field: "field size", found: 5, .. }), "{error}");
}

#[test]
fn all_frames_are_keys_without_a_table_of_them() {
    let clip = Clip::of("h264_b.mp4");
    let index = open(&with_table(&clip, b"stbl", &[])).unwrap();
    assert!(!index.packet(1).unwrap().is_key);
    let at = clip.bytes.windows(4).position(|window| window == b"stss").unwrap();
    let mut bytes = clip.bytes;
    bytes[at..at + 4].copy_from_slice(b"free");
    let index = open(&bytes).unwrap();
    assert!((0..40).all(|number| index.packet(number).unwrap().is_key));
}

#[test]
fn an_old_index_can_have_offsets_in_the_file() {
    let clip = Clip::of("h264.avi");
    let mut bytes = clip.bytes.clone();
    let movie = bytes.windows(4).position(|name| name == b"movi").unwrap() as u32;
    let at = bytes.windows(4).position(|name| name == b"idx1").unwrap() + 8;
    for entry in bytes[at..].chunks_exact_mut(16) {
        let place = u32::from_le_bytes(*entry[8..].first_chunk().unwrap()) + movie;
        entry[8..12].copy_from_slice(&place.to_le_bytes());
    }
    assert_eq!(open(&bytes).unwrap(), clip.index());
}

/// Nothing in a run that has neither fields nor bytes bounds its number of samples.
#[test]
fn many_runs_of_nothing_are_bounded() {
    let clip = Clip::of("h264_fragments_edit.mp4");
    let mut runs = Vec::new();
    for _ in 0..100 {
        runs.extend(16_u32.to_be_bytes());
        runs.extend(b"trun\0\0\0\0");
        runs.extend(u32::MAX.to_be_bytes());
    }
    let header = [&16_u32.to_be_bytes()[..], b"tfhd\0\0\0\0", &1_u32.to_be_bytes()].concat();
    let body = [header, runs].concat();
    let part = [&(body.len() as u32 + 8).to_be_bytes()[..], b"traf", &body].concat();
    let whole = [&(part.len() as u32 + 8).to_be_bytes()[..], b"moof", &part].concat();
    let error = open(&[&clip.bytes[..], &whole].concat()).unwrap_err();
    assert!(matches!(error, VideoError::LimitExceeded { .. }), "{error}");
}

#[test]
fn the_track_of_matroska_is_the_default_one() {
    let flag = |id, value| element(id, &[value]);
    let enabled = |value| flag(0xb9, value);
    let default = |value| flag(0x88, value);
    let of_second = [&[0x82][..], &block(0, 0x80, b"second")[1..]].concat();
    let blocks = [element(0xa3, &block(0, 0x80, b"first")), element(0xa3, &of_second)];
    let cluster = element(0x1f43_b675, &[element(0xe7, &[0]), blocks.concat()].concat());
    for (flags, expected) in [
        ([vec![], vec![]], "V_1"),
        ([default(0), vec![]], "V_2"),
        ([default(0), default(0)], "V_1"),
        ([enabled(0), default(0)], "V_2"),
        ([enabled(0), enabled(0)], "V_1"),
        ([default(0), enabled(0)], "V_1"),
    ] {
        let [first, second] = &flags;
        let tracks = [video_track(1, b"V_1", first), video_track(2, b"V_2", second)];
        let index = open(&matroska(&tracks, &cluster)).unwrap();
        assert_eq!(index.info().codec_name, expected, "{flags:?}");
    }
}
