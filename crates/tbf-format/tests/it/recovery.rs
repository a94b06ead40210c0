//! What a crash of the writer can leave, and what it cannot.

use tbf_format::{BuildOptions, FormatError, Node, Outcome, Recovery, SegmentBuilder};

use crate::data::id;

#[test]
fn a_writer_that_stops_anywhere_leaves_something_to_discard() {
    let mut builder =
        SegmentBuilder::new(BuildOptions { dim: 4, index: true, ..Default::default() });
    for row in 0..5 {
        let node = Node {
            id: id(row),
            timestamp: 5,
            context_hash: 0,
            confidence: 1.0,
            outcome: Outcome::Failure,
            text: Some("make"),
        };
        builder.push(&node, &[1.0; 4]).unwrap();
    }
    let encoded = builder.finish().unwrap();
    let mut draft = Vec::new();
    encoded.write_draft(&mut draft).unwrap();
    for written in 0..=draft.len() {
        assert_eq!(Recovery::of(&draft[..written]), Recovery::Discard, "{written} bytes");
    }
    // The length may reach the disk before the data do, and a header does so whole.
    for written in [0].into_iter().chain(128..=draft.len()) {
        let mut zeroed = vec![0; draft.len()];
        zeroed[..written].copy_from_slice(&draft[..written]);
        assert_eq!(Recovery::of(&zeroed), Recovery::Discard, "{written} bytes");
    }
    assert_eq!(Recovery::of(&encoded.to_bytes()), Recovery::Keep);
}

/// One flipped bit must not make recovery throw a whole segment away.
#[test]
fn no_damaged_header_is_taken_for_an_interrupted_writer() {
    let whole = SegmentBuilder::new(BuildOptions::default()).finish().unwrap().to_bytes();
    for bit in 0..128 * 8 {
        let mut file = whole.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(Recovery::of(&file), Recovery::Inspect(_)), "bit {bit}");
    }
    let mut file = whole;
    file.pop();
    let error = Recovery::of(&file);
    assert!(matches!(error, Recovery::Inspect(FormatError::Truncated { .. })), "{error:?}");
}
