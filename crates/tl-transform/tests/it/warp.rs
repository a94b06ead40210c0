//! Warps: sizes and coefficients of torchvision, what is drawn, and what is refused.

use tl_transform::op::{
    ElasticTransform, PerAxis, RandomAffine, RandomPerspective, RandomRotation, Range, Shear,
};
use tl_transform::step::{Affine, Elastic, Perspective, Rotate, Warp};
use tl_transform::{
    Draw, Dtype, Fill, Image, Interpolation, Layout, Op, OutputSpec, Parity, Recipe, Runner, Step,
    Stream,
};

const U8: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const PARITIES: [Parity; 2] = [Parity::Pil, Parity::Tensor];
const FILTERS: [Interpolation; 3] =
    [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic];

const ROTATE: Rotate = Rotate {
    angle: 0.0,
    interpolation: Interpolation::Nearest,
    expand: None,
    center: None,
    fill: Some(Fill::BLACK),
};

fn recipe(op: impl Into<Op>) -> Recipe {
    Recipe::new(vec![op.into()], U8).expect("a valid operation")
}

/// Warps drawn for an image of 100x80 pixels, one an epoch.
fn drawn(op: impl Into<Op>, epochs: u32) -> Vec<Step> {
    let recipe = recipe(op);
    let steps = |epoch| {
        let plan = recipe.plan(100, 80, Draw { seed: 3, epoch, sample: 5 });
        plan.expect("an image that can be planned").steps
    };
    (0..epochs).flat_map(steps).collect()
}

fn image(width: u32, height: u32) -> Image {
    let bytes = (0..width * height * 3).map(|at| (at * 37 % 251).to_le_bytes()[0]);
    Image::from_pixels(width, height, bytes.collect())
}

fn run(warp: Warp, parity: Parity, mut image: Image) -> Image {
    let done = Runner::new().run(&[Step::Warp(warp)], parity, &mut image);
    done.expect("warps fit every image");
    image
}

#[test]
fn expanded_rotations_have_the_sizes_of_the_packages() {
    let check = |angle, size, pil, tensor| {
        for (parity, expected) in PARITIES.into_iter().zip([pil, tensor]) {
            let rotate = Rotate { angle, ..ROTATE }.expanded(parity, size);
            assert_eq!(rotate.expand, Some(expected), "{angle} {size:?} {parity}");
        }
    };
    check(30.0, (500, 375), (622, 575), (622, 575));
    check(45.0, (500, 375), (620, 619), (620, 619));
    check(90.0, (500, 375), (375, 500), (375, 500));
    check(-17.25, (500, 375), (590, 507), (590, 507));
    check(180.0, (500, 375), (500, 375), (500, 375));
    check(1e-7, (500, 375), (502, 377), (500, 375));
    check(1e-6, (64, 64), (66, 66), (64, 64));
}

#[test]
fn coefficients_are_those_of_torchvision() {
    let from = [(0, 0), (499, 0), (499, 374), (0, 374)];
    let to = [(20, 10), (470, 25), (490, 352), (13, 329)];
    let expected = [
        1.134_346_5,
        0.024_891_615,
        -22.935_844,
        -0.041_467_87,
        1.244_036_1,
        -11.611_004,
        4.052_115_8e-5,
        0.000_186_440_68,
    ];
    let found = Perspective::coefficients(from, to).unwrap();
    for (found, expected) in found.into_iter().zip(expected) {
        let error: f32 = found / expected - 1.0;
        assert!(error.abs() <= 4.0 * f32::EPSILON, "{found} for {expected}");
    }
    assert_eq!(Perspective::coefficients([(0, 0); 4], to), None);
    assert_eq!(Perspective::coefficients(from, [(5, 5); 4]), None);
}

#[test]
fn quarter_turns_move_pixels_and_whole_ones_leave_them() {
    let pixels = image(7, 4);
    for (parity, interpolation) in PARITIES.into_iter().flat_map(|p| FILTERS.map(|f| (p, f))) {
        let rotated = |angle: f64| {
            let rotate = Rotate { angle, interpolation, ..ROTATE }.expanded(parity, (7, 4));
            run(Warp::Rotate(rotate), parity, pixels.clone())
        };
        assert_eq!(rotated(-360.0).pixels(), pixels.pixels());
        let quarter = rotated(90.0);
        assert_eq!(quarter.size(), (4, 7));
        for (x, y) in (0..4).flat_map(|x| (0..7).map(move |y| (x, y))) {
            let first = (x * 7 + 6 - y) * 3;
            let pixel = &quarter.pixels()[(y * 4 + x) * 3..][..3];
            assert_eq!(pixel, &pixels.pixels()[first..][..3], "{x} {y}");
        }
        let back = rotated(270.0);
        let rotate = Rotate { angle: 180.0, interpolation, ..ROTATE };
        let twice = run(Warp::Rotate(rotate), parity, back);
        assert_eq!(twice.pixels(), quarter.pixels());
    }
}

#[test]
fn draws_stay_within_their_bounds() {
    let rotations = drawn(RandomRotation { expand: true, ..RandomRotation::new(20.0) }, 500);
    let angles = rotations.iter().map(|step| {
        let Step::Warp(Warp::Rotate(rotate)) = step else { panic!("{step:?}") };
        rotate.angle
    });
    let angles: Vec<f64> = angles.collect();
    assert_eq!(angles.len(), 500);
    assert!(angles.iter().all(|angle| angle.abs() <= 20.0));
    let mean = angles.iter().sum::<f64>() / 500.0;
    // Six deviations of the mean of 500 numbers from -20 to 20.
    assert!(mean.abs() < 6.0 * 20.0 / 3.0_f64.sqrt() / 500.0_f64.sqrt(), "mean {mean}");

    let op = RandomAffine {
        translate: Some((0.1, 0.25)),
        scale: Some((0.5, 2.0)),
        shear: Some(Shear::Both(-5.0, 10.0, 2.0, 3.0)),
        ..RandomAffine::new(0.0)
    };
    for step in drawn(op, 500) {
        let Step::Warp(Warp::Affine(affine)) = step else { panic!("{step:?}") };
        let Affine { angle, translate: (x, y), scale, shear, .. } = affine;
        assert!(angle.abs() < f64::EPSILON && x.abs() <= 10.0 && y.abs() <= 20.0, "{affine:?}");
        assert_eq!((x.fract().abs() + y.fract().abs()).to_bits(), 0, "whole pixels");
        assert!((0.5..=2.0).contains(&scale) && (-5.0..=10.0).contains(&shear.0), "{affine:?}");
        assert!((2.0..=3.0).contains(&shear.1), "{affine:?}");
    }

    let perspectives = drawn(RandomPerspective::default(), 500).len();
    // Six deviations of 500 coins.
    assert!(perspectives.abs_diff(250) < 67, "{perspectives}");
}

#[test]
fn json_has_the_defaults_of_torchvision() {
    let check = |json: &str, expected: Op, text: &str| {
        assert_eq!(serde_json::from_str::<Op>(json).unwrap(), expected);
        assert_eq!(expected.to_string(), text);
        let again = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<Op>(&again).unwrap(), expected);
    };
    check(
        r#"{"op": "random_rotation", "degrees": 30}"#,
        RandomRotation::new(30.0).into(),
        "RandomRotation(-30..30 degrees, nearest)",
    );
    check(
        r#"{"op": "random_affine", "degrees": [0, 10], "translate": [0.1, 0.2], "shear": [1, 2, 3, 4], "fill": [1, 2, 3]}"#,
        RandomAffine {
            degrees: Range::Between(0.0, 10.0),
            translate: Some((0.1, 0.2)),
            shear: Some(Shear::Both(1.0, 2.0, 3.0, 4.0)),
            fill: Some(Fill::Rgb([1.0, 2.0, 3.0])),
            ..RandomAffine::new(0.0)
        }
        .into(),
        "RandomAffine(0..10 degrees, nearest, translate 0.1 0.2, shear 1..2 3..4, fill [1.0, 2.0, 3.0])",
    );
    check(
        r#"{"op": "random_perspective", "fill": null}"#,
        RandomPerspective { fill: None, ..RandomPerspective::default() }.into(),
        "RandomPerspective(distortion 0.5, p 0.5, bilinear, no fill)",
    );
    check(
        r#"{"op": "elastic_transform", "sigma": [4, 5]}"#,
        ElasticTransform { sigma: PerAxis::Each([4.0, 5.0]), ..ElasticTransform::default() }.into(),
        "ElasticTransform(alpha 50, sigma 4 5, bilinear)",
    );
}

#[test]
fn parameters_out_of_range_are_refused() {
    let refused = |op: Op, parameter: &str| {
        let error = Recipe::new(vec![op], U8).unwrap_err().to_string();
        assert!(error.contains(&format!(": {parameter} is ")), "{error}");
    };
    let rotation = RandomRotation::new(10.0);
    refused(RandomRotation::new(-1.0).into(), "degrees");
    refused(
        RandomRotation { degrees: Range::Between(f64::NAN, 1.0), ..rotation }.into(),
        "degrees",
    );
    refused(
        RandomRotation { interpolation: Interpolation::Lanczos, ..rotation }.into(),
        "interpolation",
    );
    refused(RandomRotation { fill: Some(Fill::Grey(256.0)), ..rotation }.into(), "fill");
    refused(RandomRotation { center: Some((f64::INFINITY, 0.0)), ..rotation }.into(), "center");
    let affine = RandomAffine::new(10.0);
    refused(RandomAffine { translate: Some((0.0, 1.5)), ..affine }.into(), "translate");
    refused(RandomAffine { scale: Some((0.0, 1.0)), ..affine }.into(), "scale");
    refused(RandomAffine { scale: Some((2.0, 1.0)), ..affine }.into(), "scale");
    refused(RandomAffine { shear: Some(Shear::Across(2.0, 1.0)), ..affine }.into(), "shear");
    let perspective = RandomPerspective::default();
    let distortion_scale = 1.25;
    refused(RandomPerspective { distortion_scale, ..perspective }.into(), "distortion_scale");
    refused(RandomPerspective { p: -0.5, ..perspective }.into(), "p");
    let elastic = ElasticTransform::default();
    refused(ElasticTransform { sigma: PerAxis::Each([0.0, 1.0]), ..elastic }.into(), "sigma");
    refused(ElasticTransform { alpha: PerAxis::Same(f64::NAN), ..elastic }.into(), "alpha");
    refused(
        ElasticTransform { interpolation: Interpolation::Bicubic, ..elastic }.into(),
        "interpolation",
    );
}

#[test]
fn every_warp_works_on_the_smallest_images() {
    let ops: [Op; 4] = [
        RandomRotation { expand: true, ..RandomRotation::new(180.0) }.into(),
        RandomAffine { scale: Some((0.1, 9.0)), ..RandomAffine::new(180.0) }.into(),
        RandomPerspective { p: 1.0, distortion_scale: 1.0, ..RandomPerspective::default() }.into(),
        ElasticTransform::default().into(),
    ];
    for (op, (width, height)) in
        ops.iter().flat_map(|op| [(1, 1), (1, 9), (8, 1), (2, 2)].map(|size| (op, size)))
    {
        for (parity, epoch) in PARITIES.into_iter().flat_map(|p| (0..20).map(move |e| (p, e))) {
            let recipe = recipe(op.clone()).with_parity(parity).unwrap();
            let plan = recipe.plan(width, height, Draw { epoch, ..Draw::default() }).unwrap();
            let mut pixels = image(width, height);
            Runner::new().run(&plan.steps, parity, &mut pixels).unwrap();
            assert_eq!(pixels.size(), plan.size_before_tail(), "{op} {width}x{height}");
        }
    }
}

#[test]
fn displacements_follow_from_their_stream() {
    let elastic = Elastic {
        alpha: (50.0, 50.0),
        sigma: (5.0, 5.0),
        stream: Stream::default(),
        interpolation: Interpolation::Bilinear,
        fill: Some(Fill::BLACK),
    };
    let other = Stream { op: 1, ..elastic.stream };
    let run = |elastic, parity| run(Warp::Elastic(elastic), parity, image(40, 30));
    let pixels = run(elastic, Parity::Pil);
    assert_eq!(run(elastic, Parity::Tensor).pixels(), pixels.pixels());
    assert_ne!(run(Elastic { stream: other, ..elastic }, Parity::Pil).pixels(), pixels.pixels());
    assert_ne!(pixels.pixels(), image(40, 30).pixels());
    let still = Elastic { alpha: (0.0, 0.0), ..elastic };
    assert_eq!(run(still, Parity::Pil).pixels(), image(40, 30).pixels());
}
