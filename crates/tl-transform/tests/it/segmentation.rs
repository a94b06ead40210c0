//! Masks of objects equal those of pycocotools, whose results `coco_masks.jsonl` has.

use serde::Deserialize;
use tl_transform::Segmentation;

#[derive(Deserialize)]
struct Case {
    segmentation: Segmentation,
    mask: Segmentation,
}

#[test]
fn masks_are_those_of_pycocotools() {
    let lines = include_str!("coco_masks.jsonl").lines();
    let mut pixels = [0_usize; 2];
    for (line, text) in (1..).zip(lines) {
        let Case { segmentation, mask } = serde_json::from_str(text).unwrap();
        let Segmentation::Counts { height, width, .. } = mask else { panic!("line {line}") };
        let expected = mask.mask(width, height).unwrap();
        assert_eq!(segmentation.mask(width, height).unwrap(), expected, "line {line}");
        expected.data().iter().for_each(|&pixel| pixels[usize::from(pixel)] += 1);
    }
    assert!(pixels.iter().all(|&count| count > 10_000), "{pixels:?}");
}
