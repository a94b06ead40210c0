//! Boxes and masks under warps, against torchvision (`testdata/annotations/warps.py`).

use std::path::PathBuf;

use serde::Deserialize;
use tl_simd::resample::Rect;
use tl_transform::step::{Affine, Elastic, Mix, Rotate, Warp};
use tl_transform::{
    AnnotationError, BoundingBoxes, BoxFormat, Coordinates, Interpolation, Mask, Pass, Plan, Step,
    Stream,
};

use crate::{noise, plan_of, still};

#[derive(Deserialize)]
struct Case {
    step: WarpStep,
    size: (u32, u32),
    format: BoxFormat,
    boxes: Vec<[f32; 4]>,
    boxes_after: Vec<[f32; 4]>,
    seed: u64,
    size_after: (u32, u32),
    crc: u32,
}

/// A step of JSON that is a warp.
#[derive(Deserialize)]
struct WarpStep {
    warp: Warp,
}

fn cases() -> Vec<(String, Case)> {
    let committed = tl_testdata::shipped!("annotations/warps.jsonl");
    let path = std::env::var_os("TL_TRANSFORM_WARPS").map_or(committed, PathBuf::from);
    let text = std::fs::read_to_string(path).expect("the cases can be read");
    let case = |line: &str| (line.to_owned(), serde_json::from_str(line).expect("a case"));
    let cases: Vec<_> = text.lines().map(case).collect();
    assert!(cases.len() > 140, "{} cases", cases.len());
    cases
}

#[test]
fn masks_move_as_in_torchvision() {
    for (line, case) in cases() {
        let (width, height) = case.size;
        let numbers = noise(width as usize * height as usize, case.seed);
        let mut mask = Mask::new(width, height, numbers).expect("as many numbers as pixels");
        let plan = plan_of(Step::Warp(case.step.warp), case.size);
        plan.move_mask(&mut mask).expect("a mask of the image");
        assert_eq!(mask.size(), case.size_after, "{line}");
        assert_eq!(crc32fast::hash(mask.data()), case.crc, "{line}");
    }
}

#[test]
fn boxes_move_as_in_torchvision() {
    for (line, case) in cases() {
        let boxes = BoundingBoxes::new(case.format, case.size, case.boxes);
        let mut boxes = boxes.expect("finite boxes");
        let plan = plan_of(Step::Warp(case.step.warp), case.size);
        plan.move_boxes(&mut boxes).expect("boxes of the image");
        assert_eq!(boxes.canvas(), case.size_after, "{line}");
        assert_eq!(boxes.boxes(), case.boxes_after, "{line}");
    }
}

#[test]
fn displacements_that_are_none_leave_boxes_on_whole_pixels() {
    let given = vec![[1.0, 2.0, 30.0, 17.0], [0.25, 3.5, 9.0, 9.75]];
    let mut boxes = BoundingBoxes::new(BoxFormat::Xyxy, (40, 20), given).expect("finite boxes");
    plan_of(still(), (40, 20)).move_boxes(&mut boxes).expect("boxes of the image");
    // torchvision looks corners up at the next whole pixel.
    let expected: [[f32; 4]; 2] = [[1.0, 2.0, 30.0, 17.0], [1.0, 4.0, 9.0, 10.0]];
    for (found, expected) in boxes.boxes().iter().zip(expected) {
        let far =
            found.iter().zip(expected).any(|(found, expected)| (found - expected).abs() > 1e-4);
        assert!(!far, "{found:?} for {expected:?}");
    }
    let mut mask = Mask::new(5, 4, noise(20, 1)).expect("as many numbers as pixels");
    plan_of(still(), (5, 4)).move_mask(&mut mask).expect("a mask of the image");
    assert_eq!(mask.data(), noise(20, 1));
}

#[test]
fn annotations_of_impossible_images_do_not_move() {
    let stream = Stream::default();
    let (interpolation, fill) = (Interpolation::Bilinear, None);
    let (alpha, sigma) = ((9.0, 9.0), (5.0, 5.0));
    let elastic = Step::Warp(Warp::Elastic(Elastic { alpha, sigma, stream, interpolation, fill }));
    let (width, height) = (65_535, 65_535);
    let whole = vec![[0.0, 0.0, 9.0, 9.0]];
    let mut boxes = BoundingBoxes::new(BoxFormat::Xyxy, (width, height), whole).expect("a box");
    let refused = Err(AnnotationError::Size { width, height });
    assert_eq!(plan_of(elastic, (width, height)).move_boxes(&mut boxes), refused);
    let expand = Some((1 << 20, 1 << 20));
    let rotate = Rotate { angle: 30.0, interpolation, expand, center: None, fill };
    let mut mask = Mask::new(2, 1, vec![1, 2]).expect("a mask");
    let refused = Err(AnnotationError::Size { width: 2, height: 1 });
    for step in [Step::Warp(Warp::Rotate(rotate)), Step::Pass(Pass::whole(3, 1))] {
        assert_eq!(plan_of(step, (2, 1)).move_mask(&mut mask), refused);
    }
}

/// A row of pixels made a million rows high, of which a plan takes the middle.
#[test]
fn masks_are_not_resized_beyond_the_window() {
    let window = Rect { x: 2, y: 500_000, width: 3, height: 4 };
    let region = Rect::of_size(2, 1);
    let pass = Pass { region, resized: (8, 1 << 20), window, ..Pass::whole(2, 1) };
    let mut mask = Mask::new(2, 1, vec![1, 2]).expect("a mask");
    plan_of(Step::Pass(pass), (2, 1)).move_mask(&mut mask).expect("a mask of the image");
    assert_eq!((mask.size(), mask.data()), ((3, 4), &[1, 1, 2].repeat(4)[..]));
}

#[test]
fn mixtures_leave_annotations_where_they_are() {
    let affine = Affine { translate: (2.0, 1.0), ..Affine::default() };
    let step = Step::Warp(Warp::Affine(affine));
    let (begin, end) = (Mix::Begin { weight: 0.5 }, Mix::End { weight: 0.5 });
    let mixed = vec![Step::Mix(begin), step, Step::Mix(end)];
    let mut plan = Plan { steps: mixed, ..Plan::whole(4, 3) };
    let given = vec![[0.0, 0.0, 1.0, 1.0]];
    let mut boxes = BoundingBoxes::new(BoxFormat::Xyxy, (4, 3), given.clone()).expect("a box");
    plan.move_boxes(&mut boxes).expect("boxes of the image");
    assert_eq!(boxes.boxes(), given);
    plan.steps.push(step);
    plan.move_boxes(&mut boxes).expect("boxes of the image");
    assert_eq!(boxes.boxes(), [[2.0, 1.0, 3.0, 2.0]]);
}
