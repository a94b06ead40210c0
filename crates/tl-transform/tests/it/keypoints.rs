//! Keypoints against torchvision's results (`testdata/annotations/keypoints.py`).

use std::path::PathBuf;

use serde::Deserialize;
use tl_transform::step::{Affine, Warp};
use tl_transform::{AnnotationError, Coordinates, Keypoints, Pass, Plan, Step};

use crate::annotations::Move;
use crate::{plan_of, still};

#[derive(Deserialize)]
struct Case {
    before: State,
    #[serde(default)]
    moves: Vec<Move>,
    warp: Option<Warp>,
    after: State,
}

#[derive(Deserialize)]
struct State {
    size: (u32, u32),
    points: Vec<[f32; 2]>,
}

/// The cases in the repository, or those of the file that `TL_TRANSFORM_KEYPOINTS` names.
fn cases() -> Vec<(String, Case)> {
    let committed = tl_testdata::shipped!("annotations/keypoints.jsonl");
    let path = std::env::var_os("TL_TRANSFORM_KEYPOINTS").map_or(committed, PathBuf::from);
    let text = std::fs::read_to_string(path).expect("the cases can be read");
    let case = |line: &str| (line.to_owned(), serde_json::from_str(line).expect("a case"));
    text.lines().map(case).collect()
}

#[test]
fn keypoints_move_with_the_bits_of_torchvision() {
    let cases = cases();
    assert!(cases.len() >= 110, "{} cases", cases.len());
    for (line, Case { before, moves, warp, after }) in cases {
        let mut points = Keypoints::new(before.size, before.points).unwrap();
        moves.iter().try_for_each(|step| step.coordinates(&mut points)).unwrap();
        if let Some(warp) = warp {
            let plan = plan_of(Step::Warp(warp), points.canvas());
            plan.move_keypoints(&mut points).unwrap();
        }
        assert_eq!(points.canvas(), after.size, "{line}");
        assert_eq!(points.points(), after.points, "{line}");
    }
}

#[test]
fn displacements_that_are_none_leave_points_on_whole_pixels() {
    let given = vec![[1.0, 2.0], [30.75, 17.25], [-4.0, 90.0]];
    let mut points = Keypoints::new((40, 20), given).unwrap();
    plan_of(still(), (40, 20)).move_keypoints(&mut points).unwrap();
    // torchvision looks points up at the whole pixel before, within the image.
    let expected: [[f32; 2]; 3] = [[1.0, 2.0], [30.0, 17.0], [0.0, 19.0]];
    for (found, expected) in points.points().iter().zip(expected) {
        let far = found.iter().zip(expected).any(|(a, b)| (a - b).abs() > 1e-4);
        assert!(!far, "{found:?} for {expected:?}");
    }
}

#[test]
fn an_odd_number_of_flips_mirrors() {
    let whole = Pass::whole(4, 3);
    let step = |flip, flip_vertical| Step::Pass(Pass { flip, flip_vertical, ..whole });
    let plan = |head, steps: Vec<Step>, tail| Plan {
        head: Pass { flip: head, ..whole },
        steps,
        tail: Pass { flip_vertical: tail, ..whole },
        erasures: Vec::new(),
    };
    assert!(!plan(false, Vec::new(), false).is_mirrored());
    assert!(plan(true, Vec::new(), false).is_mirrored());
    assert!(!plan(true, Vec::new(), true).is_mirrored());
    assert!(plan(true, vec![step(true, false)], true).is_mirrored());
    assert!(!plan(false, vec![step(true, true)], false).is_mirrored());
    let turned = Step::Warp(Warp::Affine(Affine { angle: 180.0, ..Affine::default() }));
    assert!(plan(false, vec![turned, step(false, true)], false).is_mirrored());
}

#[test]
fn points_nowhere_and_of_impossible_images_are_refused() {
    for number in [f32::NAN, f32::INFINITY, -2e20] {
        let refused = Keypoints::new((4, 4), vec![[0.0, 1.0], [number, 0.0]]);
        assert_eq!(refused, Err(AnnotationError::NotFinitePoint { position: 1 }));
    }
    let refused = |width, height| Err(AnnotationError::Size { width, height });
    assert_eq!(
        Keypoints::new((0, 4), Vec::new()),
        Err(AnnotationError::Size { width: 0, height: 4 })
    );
    let mut points = Keypoints::new((4, 4), vec![[1.0, 2.0]]).unwrap();
    assert_eq!(points.resize((70_000, 1)), refused(70_000, 1));
    assert_eq!(points.crop((0, 0), (1, 0)), refused(1, 0));
    assert_eq!(points.pad((0, 0), (1, 70_000)), refused(1, 70_000));
    assert_eq!(Plan::whole(5, 4).move_keypoints(&mut points), refused(4, 4));
    assert_eq!(points.points(), [[1.0, 2.0]]);
}
