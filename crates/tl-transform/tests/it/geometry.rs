//! What the operations of geometry draw, what they refuse, and that merging them changes nothing.

use tl_transform::op::{
    CenterCrop, FiveCrop, Pad, PadMode, RandomAutocontrast, RandomCrop, RandomHorizontalFlip,
    RandomInvert, RandomResizedCrop, RandomShortestSize, RandomVerticalFlip, RandomZoomOut, Resize,
    ScaleJitter, Sides, Size, TenCrop,
};
use tl_transform::{
    BoundingBoxes, BoxFormat, Coordinates, Draw, Dtype, Fill, Image, Interpolation, Layout, Mask,
    Op, OutputSpec, Padding, Parity, Pass, Plan, PlanError, Recipe, RecipeError, Rng, Runner, Step,
};

const U8: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const DRAWS: u64 = 20_000;

fn recipe(ops: Vec<Op>) -> Recipe {
    Recipe::new(ops, U8).expect("parameters in range")
}

fn read(json: &str) -> Op {
    serde_json::from_str(json).expect("an operation")
}

fn plan(op: impl Into<Op>, size: (u32, u32), sample: u64) -> Result<Plan, PlanError> {
    recipe(vec![op.into()]).plan(size.0, size.1, Draw { seed: 7, epoch: 1, sample })
}

/// The result of a plan on an image.
fn run(plan: &Plan, parity: Parity, image: &Image) -> Image {
    let mut steps = vec![Step::Pass(plan.head)];
    steps.extend(&plan.steps);
    steps.push(Step::Pass(plan.tail));
    let mut image = image.clone();
    Runner::new().run(&steps, parity, &mut image).expect("steps for this image");
    image
}

fn picture(width: u32, height: u32, rng: &mut Rng) -> Image {
    let bytes = width as usize * height as usize * 3;
    Image::from_pixels(width, height, (0..bytes).map(|_| rng.below(256).to_le_bytes()[0]).collect())
}

/// An operation without chance, of any kind.
fn certain(rng: &mut Rng) -> Op {
    let side = |rng: &mut Rng| 1 + rng.below(40);
    let fill = [Fill::BLACK, Fill::Grey(9.0), Fill::Rgb([1.0, 2.0, 3.0])][rng.below(3) as usize];
    let modes = [PadMode::Constant, PadMode::Edge, PadMode::Reflect, PadMode::Symmetric];
    let widths = [0; 4].map(|_| rng.below(9));
    match rng.below(6) {
        0 => RandomHorizontalFlip { p: 1.0 }.into(),
        1 => RandomVerticalFlip { p: 1.0 }.into(),
        2 => CenterCrop { size: Size::exact(side(rng), side(rng)) }.into(),
        3 => Resize { size: Some(Size::Exact([side(rng), side(rng)])), ..Resize::new(1) }.into(),
        4 => {
            let padding_mode = modes[rng.below(4) as usize];
            Pad { padding: Sides::Every(widths), fill, padding_mode }.into()
        }
        _ => Pad { padding: Sides::Every(widths), fill, padding_mode: PadMode::Constant }.into(),
    }
}

#[test]
fn merged_operations_give_the_pixels_of_one_after_the_other() {
    let mut rng = Rng::new(5, 0, 0, 0);
    let mut merged = 0;
    for number in 0..3_000 {
        let parity = [Parity::Pil, Parity::Tensor][number % 2];
        let ops: Vec<Op> = (0..1 + rng.below(6)).map(|_| certain(&mut rng)).collect();
        let (width, height) = (1 + rng.below(40), 1 + rng.below(40));
        let image = picture(width, height, &mut rng);
        let numbers = image.pixels().iter().step_by(3).copied().collect();
        let mut mask = Mask::new(width, height, numbers).expect("a number a pixel");
        let whole = recipe(ops.clone()).with_parity(parity).unwrap();
        let whole = whole.plan(width, height, Draw::default()).expect("sizes within the limits");
        merged += usize::from(ops.len() > whole.steps.len() + 2);
        let (mut expected, mut moved) = (image.clone(), mask.clone());
        for op in &ops {
            let (width, height) = expected.size();
            let one = recipe(vec![op.clone()]).with_parity(parity).unwrap();
            let one = one.plan(width, height, Draw::default()).expect("sizes within the limits");
            expected = run(&one, parity, &expected);
            one.move_mask(&mut moved).expect("a mask of the image");
        }
        let found = run(&whole, parity, &image);
        assert_eq!(found.size(), expected.size(), "{ops:?} {whole:?}");
        assert!(found.pixels() == expected.pixels(), "{width}x{height} {ops:?} {whole:?}");
        whole.move_mask(&mut mask).expect("a mask of the image");
        assert!(mask == moved, "{width}x{height} {ops:?} {whole:?}");
        assert_eq!(mask.size(), found.size(), "{ops:?}");
    }
    assert!(merged > 500, "{merged} plans have fewer passes than operations");
}

#[test]
fn boxes_go_with_what_they_are_around() {
    let ops = vec![
        CenterCrop::new(60).into(),
        Resize::new(30).into(),
        Pad { padding: Sides::Each([4, 2]), fill: Fill::BLACK, padding_mode: PadMode::Constant }
            .into(),
        RandomHorizontalFlip { p: 1.0 }.into(),
        RandomVerticalFlip { p: 1.0 }.into(),
    ];
    let plan = recipe(ops).plan(100, 80, Draw::default()).expect("an image");
    let boxes = vec![[30.0, 20.0, 50.0, 40.0], [0.0, 0.0, 100.0, 80.0], [0.0, 0.0, 10.0, 80.0]];
    let mut boxes = BoundingBoxes::new(BoxFormat::Xyxy, (100, 80), boxes).expect("numbers");
    plan.move_boxes(&mut boxes).expect("boxes of the image");
    // The middle begins at (20, 10); 38 columns and 34 rows are left in the end.
    let expected = [[19.0, 17.0, 29.0, 27.0], [4.0, 2.0, 34.0, 32.0], [34.0, 2.0, 34.0, 32.0]];
    assert_eq!((boxes.canvas(), boxes.boxes()), ((38, 34), &expected[..]));
}

/// Sizes that torchvision 0.29.2 gives: `F._geometry._compute_resized_output_size`.
#[test]
fn resizes_have_the_sizes_of_torchvision() {
    let check = |json: &str, image, expected| {
        let size = recipe(vec![read(json)]).plan(500, 375, Draw::default());
        assert!(size.is_ok(), "{json}");
        let plan = plan(read(json), image, 0).expect("an image");
        assert_eq!(plan.output_size(), expected, "{json} {image:?}");
    };
    check(r#"{"op":"resize","size":256}"#, (500, 375), (341, 256));
    check(r#"{"op":"resize","size":[100,200]}"#, (500, 375), (200, 100));
    check(r#"{"op":"resize","size":256,"max_size":300}"#, (500, 375), (300, 225));
    check(r#"{"op":"resize","size":256,"max_size":342}"#, (500, 375), (341, 256));
    check(r#"{"op":"resize","size":256,"max_size":300}"#, (375, 500), (225, 300));
    check(r#"{"op":"resize","max_size":100}"#, (500, 375), (100, 75));
    check(r#"{"op":"resize","max_size":100}"#, (77, 300), (25, 100));
    check(
        r#"{"op":"random_shortest_size","min_size":[480],"max_size":600}"#,
        (500, 375),
        (600, 450),
    );
    check(r#"{"op":"random_shortest_size","min_size":[300]}"#, (500, 375), (400, 300));
}

#[test]
fn the_views_of_ten_crops_are_those_of_torchvision() {
    let image = picture(7, 6, &mut Rng::new(6, 0, 0, 0));
    let part = |x: u32, y: u32, flip: bool, vertical: bool| {
        let place = |column: u32, row: u32| {
            let column = if flip { 6 - x - column } else { x + column };
            let row = if vertical { 5 - y - row } else { y + row };
            (row as usize * 7 + column as usize) * 3
        };
        let places = (0..3).flat_map(|row| (0..4).map(move |column| (column, row)));
        let pixels = places.map(|(column, row)| place(column, row));
        pixels.flat_map(|at| image.pixels()[at..at + 3].to_vec()).collect::<Vec<u8>>()
    };
    // Half of three columns, and half of three rows, rounds to the even 2.
    let corners = [(0, 0), (3, 0), (0, 3), (3, 3), (2, 2)];
    for vertical_flip in [false, true] {
        let op = TenCrop { size: Size::exact(4, 3), vertical_flip };
        let recipe = recipe(vec![op.into()]);
        assert_eq!((recipe.views(), recipe.output_size()), (10, Some((4, 3))));
        for view in 0..10 {
            let mut plan = Plan::whole(1, 1);
            recipe.plan_view_into((7, 6), Draw::default(), view, &mut plan).expect("an image");
            let (x, y) = corners[view as usize % 5];
            let flipped = view >= 5;
            let expected = part(x, y, flipped && !vertical_flip, flipped && vertical_flip);
            assert_eq!(run(&plan, Parity::Pil, &image).pixels(), expected, "{view}");
        }
    }
    let five =
        recipe(vec![FiveCrop { size: Size::exact(4, 3) }.into(), RandomZoomOut::default().into()]);
    assert_eq!(five.views(), 5);
}

/// Kolmogorov's distance between numbers and the uniform distribution on 0..1, times sqrt(n).
fn distance(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let places = values.iter().enumerate().map(|(rank, value)| {
        (value - rank as f64 / count).abs().max((value - (rank + 1) as f64 / count).abs())
    });
    places.fold(0.0, f64::max) * count.sqrt()
}

/// 99.9 % point of the Kolmogorov distribution.
const LIMIT: f64 = 1.95;

/// Four standard deviations of the number of successes.
fn check_rate(found: usize, p: f64) {
    let (mean, deviation) = (DRAWS as f64 * p, (DRAWS as f64 * p * (1.0 - p)).sqrt());
    assert!((found as f64 - mean).abs() < 4.0 * deviation, "{found} of {DRAWS}, expected {mean}");
}

#[test]
fn flips_happen_as_often_as_they_should() {
    for p in [0.5, 0.1, 0.93] {
        let heads = |op: Op| {
            (0..DRAWS).map(move |sample| plan(op.clone(), (9, 9), sample).expect("an image").head)
        };
        check_rate(heads(RandomHorizontalFlip { p }.into()).filter(|pass| pass.flip).count(), p);
        let vertical = heads(RandomVerticalFlip { p }.into());
        check_rate(vertical.filter(|pass| pass.flip_vertical).count(), p);
    }
    let both = vec![RandomHorizontalFlip::default().into(), RandomVerticalFlip::default().into()];
    let both = recipe(both);
    let heads = (0..DRAWS)
        .map(|sample| both.plan(9, 9, Draw { seed: 3, epoch: 0, sample }).expect("an image").head);
    check_rate(heads.filter(|pass| pass.flip && pass.flip_vertical).count(), 0.25);
}

#[test]
fn random_crops_begin_anywhere_with_the_same_chance() {
    let crop = RandomCrop { padding: Sides::All(4), ..RandomCrop::new(32) };
    let mut places = [[0_u32; 9]; 2];
    for sample in 0..DRAWS {
        let plan = plan(crop, (32, 32), sample).expect("an image");
        assert!(plan.is_one_pass(), "{plan:?}");
        assert_eq!(plan.output_size(), (32, 32));
        let Pass { region, padding, .. } = plan.head;
        places[0][(region.x + 4 - padding.left) as usize] += 1;
        places[1][(region.y + 4 - padding.top) as usize] += 1;
    }
    let expected = DRAWS as f64 / 9.0;
    for counts in places {
        let squares = counts.map(|count| (f64::from(count) - expected).powi(2) / expected);
        // 99.9 % point of chi-square with 8 degrees of freedom.
        assert!(squares.iter().sum::<f64>() < 26.1, "{counts:?}");
    }
}

#[test]
fn zooming_out_is_uniform_in_factor_and_place() {
    let op = RandomZoomOut { p: 0.5, ..RandomZoomOut::default() };
    let side = 10_000;
    let plans = (0..DRAWS).map(|sample| plan(op, (side, side), sample).expect("an image").head);
    let zoomed: Vec<Pass> = plans.filter(|pass| pass.output_size().0 > side).collect();
    check_rate(zoomed.len(), 0.5);
    let width = f64::from(side);
    let factors = zoomed.iter().map(|pass| (f64::from(pass.output_size().0) / width - 1.0) / 3.0);
    let factors = distance(factors.collect());
    let place = |before: u32, after: u32| f64::from(before) / f64::from(before + after);
    let wide = zoomed.iter().filter(|pass| pass.output_size().0 > 12_000);
    let across = distance(wide.clone().map(|p| place(p.padding.left, p.padding.right)).collect());
    let down = distance(wide.map(|p| place(p.padding.top, p.padding.bottom)).collect());
    assert!(factors < LIMIT && across < LIMIT && down < LIMIT, "{factors} {across} {down}");
}

#[test]
fn lengths_of_the_shorter_side_are_equally_likely() {
    let sizes = vec![10, 20, 30, 40];
    let op = RandomShortestSize {
        min_size: sizes.clone(),
        max_size: None,
        interpolation: Interpolation::Bilinear,
        antialias: true,
    };
    let shorter = |sample| plan(op.clone(), (50, 80), sample).expect("an image").output_size().0;
    let found: Vec<u32> = (0..DRAWS).map(shorter).collect();
    for size in sizes {
        check_rate(found.iter().filter(|side| **side == size).count(), 0.25);
    }
}

#[test]
fn scales_of_a_jitter_are_uniform() {
    let op: ScaleJitter =
        serde_json::from_str(r#"{"target_size":[8000,9000],"scale_range":[0.5,2.0]}"#)
            .expect("parameters");
    let width =
        |sample| f64::from(plan(op, (4_000, 4_000), sample).expect("an image").output_size().0);
    let factors = (0..DRAWS).map(|sample| (width(sample) / 8_000.0 - 0.5) / 1.5).collect();
    assert!(distance(factors) < LIMIT);
}

#[test]
fn a_resize_that_is_cropped_has_sides_up_to_the_limit() {
    let plan = |side| {
        let ops = vec![Resize::new(side).into(), CenterCrop { size: Size::exact(8, 8) }.into()];
        recipe(ops).plan(65_535, 1, Draw::default())
    };
    let within = plan(16).expect("a plan");
    assert_eq!((within.head.resized, within.output_size()), ((1_048_560, 16), (8, 8)));
    let error = PlanError::ResizedSide { width: 1_114_095, height: 17 };
    assert_eq!(plan(17).map(|_| ()), Err(error));
}

#[test]
fn a_crop_larger_than_the_image_is_an_error_or_gets_a_border() {
    let crop = RandomCrop { padding: Sides::All(2), ..RandomCrop::new(20) };
    let error = PlanError::CropSize { crop: (20, 20), width: 14, height: 54 };
    assert_eq!(plan(crop, (10, 50), 0).map(|_| ()), Err(error));
    let padded = RandomCrop { pad_if_needed: true, ..crop };
    let most = (0..200).map(|sample| {
        let plan = plan(padded, (10, 50), sample).expect("a border");
        assert_eq!(plan.output_size(), (20, 20));
        plan.head.padding.left
    });
    // Two columns of border and all of the six that are missing.
    assert_eq!(most.max(), Some(8));
    let error = PlanError::CropSize { crop: (9, 8), width: 8, height: 8 };
    assert_eq!(plan(FiveCrop { size: Size::exact(9, 8) }, (8, 8), 0).map(|_| ()), Err(error));
}

#[test]
fn the_smallest_and_the_largest_images_are_defined() {
    let black = |left, right| Padding { left, right, ..Padding::default() };
    let one = plan(CenterCrop { size: Size::exact(4, 1) }, (1, 1), 0).expect("an image").head;
    assert_eq!(one.padding, black(1, 2));
    let reflected =
        Pad { padding: Sides::Each([3, 3]), fill: Fill::BLACK, padding_mode: PadMode::Reflect };
    let image = Image::from_pixels(1, 1, vec![5, 6, 7]);
    let found = run(&plan(reflected, (1, 1), 0).expect("an image"), Parity::Pil, &image);
    assert_eq!(found.pixels(), [[5, 6, 7]; 49].as_flattened());
    let size = |width, height| Err(PlanError::ImageSize { width, height });
    // A thousand rows reduced to ten leave no column of one.
    assert_eq!(
        plan(read(r#"{"op":"resize","max_size":10}"#), (1, 1_000), 0).map(|_| ()),
        size(0, 10)
    );
    let wide = Pad { padding: Sides::All(65_535), ..reflected };
    assert_eq!(plan(wide, (9, 9), 0).map(|_| ()), size(131_079, 131_079));
    let zoom = RandomZoomOut { side_range: (4.0, 4.0), p: 1.0, ..RandomZoomOut::default() };
    assert_eq!(plan(zoom, (20_000, 1), 0).map(|_| ()), size(80_000, 4));
    let needed = RandomCrop { pad_if_needed: true, ..RandomCrop::new(60_000) };
    assert_eq!(plan(needed, (9, 9), 0).map(|_| ()), size(119_991, 119_991));
    let huge = plan(RandomResizedCrop::new(65_535), (1, 1), 0).expect("an image");
    assert_eq!(huge.output_size(), (65_535, 65_535));
}

#[test]
fn parameters_of_geometry_out_of_range_are_refused() {
    let check = |json: &str, name: &str, number: f64| {
        let result = Recipe::new(vec![read(json)], U8);
        let Err(RecipeError::Parameter { invalid, .. }) = result else {
            panic!("{json}: {result:?}")
        };
        assert_eq!((invalid.parameter, invalid.value), (name, number.into()), "{json}");
    };
    check(r#"{"op":"resize","size":0}"#, "size", 0.0);
    check(r#"{"op":"resize","size":[0,4]}"#, "size", 0.0);
    check(r#"{"op":"resize","size":[4,65536]}"#, "size", 65_536.0);
    check(r#"{"op":"resize","size":9,"max_size":9}"#, "max_size", 9.0);
    check(r#"{"op":"resize","size":[9,9],"max_size":10}"#, "max_size", 10.0);
    check(r#"{"op":"random_crop","size":[3,0]}"#, "size", 0.0);
    check(r#"{"op":"random_crop","size":[3,9],"padding":65536}"#, "padding", 65_536.0);
    check(r#"{"op":"pad","padding":[1,2,3,70000]}"#, "padding", 70_000.0);
    check(r#"{"op":"pad","padding":1,"fill":256}"#, "fill", 256.0);
    check(r#"{"op":"five_crop","size":[0,9]}"#, "size", 0.0);
    check(r#"{"op":"ten_crop","size":[9,0]}"#, "size", 0.0);
    check(r#"{"op":"random_zoom_out","side_range":[0.5,2.0]}"#, "side_range", 0.5);
    check(r#"{"op":"random_zoom_out","side_range":[3.0,2.0]}"#, "side_range", 2.0);
    check(r#"{"op":"random_vertical_flip","p":-0.5}"#, "p", -0.5);
    check(r#"{"op":"random_shortest_size","min_size":[3,0]}"#, "min_size", 0.0);
    check(
        r#"{"op":"scale_jitter","target_size":[3,3],"scale_range":[0.0,1.0]}"#,
        "scale_range",
        0.0,
    );
    assert!(Recipe::new(vec![read(r#"{"op":"resize"}"#)], U8).is_err(), "no size at all");
    let unknown = serde_json::from_str::<Op>(r#"{"op":"pad","padding":1,"colour":3}"#);
    assert!(unknown.is_err(), "{unknown:?}");
}

#[test]
fn a_crop_between_steps_is_carried_out_before_the_next() {
    let picture = picture(19, 17, &mut Rng::new(3, 0, 0, 0));
    let first = RandomInvert { p: 1.0 };
    let last = RandomAutocontrast { p: 1.0 };
    let crops: [Op; 3] = [
        FiveCrop { size: Size::Side(8) }.into(),
        RandomCrop { size: Size::exact(18, 16), ..RandomCrop::new(16) }.into(),
        CenterCrop { size: Size::exact(19, 16) }.into(),
    ];
    let whole = recipe(vec![last.into()]);
    let mut corners = 0;
    for crop in crops {
        let cut = recipe(vec![first.into(), crop.clone()]);
        let all = recipe(vec![first.into(), crop, last.into()]);
        for sample in 0..40 {
            let draw = Draw { seed: 7, epoch: 1, sample };
            for view in 0..all.views() {
                let made = |recipe: &Recipe, image: &Image| {
                    let mut plan = Plan::whole(1, 1);
                    recipe.plan_view_into(image.size(), draw, view, &mut plan).unwrap();
                    let corner = plan.steps.iter().any(|step| {
                        matches!(step, Step::Pass(pass) if (pass.region.x, pass.region.y) == (0, 0))
                    });
                    (run(&plan, Parity::Pil, image), corner)
                };
                let (part, _) = made(&cut, &picture);
                let (found, corner) = made(&all, &picture);
                corners += usize::from(corner);
                let plan = whole.plan(part.size().0, part.size().1, draw).unwrap();
                assert_eq!(found.pixels(), run(&plan, Parity::Pil, &part).pixels());
            }
        }
    }
    assert!(corners > 40, "{corners} crops from the corner");
}

#[test]
fn operations_of_geometry_print_and_read_what_they_are() {
    let check = |json: &str, expected: &str| {
        let op = read(json);
        assert_eq!(op.to_string(), expected);
        let text = serde_json::to_string(&op).expect("an operation");
        assert_eq!(read(&text), op, "{text}");
    };
    check(r#"{"op":"resize","size":256}"#, "Resize(256, bilinear)");
    check(
        r#"{"op":"resize","size":[2,3],"antialias":false}"#,
        "Resize(3x2, bilinear, no antialiasing on tensors)",
    );
    check(
        r#"{"op":"resize","max_size":9,"interpolation":"nearest_exact"}"#,
        "Resize(at most 9, nearest-exact)",
    );
    check(r#"{"op":"random_crop","size":[3,4]}"#, "RandomCrop(4x3)");
    check(
        r#"{"op":"random_crop","size":[3,4],"padding":[1,2],"padding_mode":"reflect"}"#,
        "RandomCrop(4x3, padding [1, 2], reflect)",
    );
    check(r#"{"op":"pad","padding":2,"fill":[1,2,3]}"#, "Pad(2, fill [1.0, 2.0, 3.0])");
    check(r#"{"op":"random_zoom_out"}"#, "RandomZoomOut(sides 1..4, fill 0, p 0.5)");
    check(r#"{"op":"random_vertical_flip"}"#, "RandomVerticalFlip(p 0.5)");
    check(r#"{"op":"ten_crop","size":[3,4],"vertical_flip":true}"#, "TenCrop(4x3, vertical flip)");
    check(
        r#"{"op":"random_shortest_size","min_size":[4,5],"max_size":9}"#,
        "RandomShortestSize([4, 5], at most 9, bilinear)",
    );
    check(
        r#"{"op":"scale_jitter","target_size":[4,5]}"#,
        "ScaleJitter(within 4x5, times 0.1..2, bilinear)",
    );
}
