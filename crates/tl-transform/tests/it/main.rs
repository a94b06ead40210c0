//! Recipes from outside: what may be built, what is refused, and that text forms are stable.

mod annotations;
mod color;
mod erasing;
mod forms;
mod geometry;
mod goldens;
mod keypoints;
mod ops;
mod segmentation;
mod warp;
mod warp_annotations;
mod wide;

use tl_transform::op::{
    CenterCrop, Normalize, RandomHorizontalFlip, RandomResizedCrop, Resize, Size, ToFloat,
};
use tl_transform::step::{Elastic, Warp};
use tl_transform::{
    DecodeMode, Draw, Dtype, Fill, Interpolation, Invalid, Layout, Op, OutputSpec, Padding, Parity,
    Pass, Plan, Recipe, RecipeError, Step, Stream,
};

const F32: OutputSpec = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
const U8: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const FLIP: Op = Op::RandomHorizontalFlip(RandomHorizontalFlip { p: 0.5 });

fn resize(size: u32) -> Op {
    Resize::new(size).into()
}

fn crop(side: u32) -> Op {
    CenterCrop::new(side).into()
}

/// `SplitMix64` in counter mode, as the generators of `testdata` have it.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let word = |counter: u64| {
        let z = seed.wrapping_add(counter.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (1..).flat_map(|counter| word(counter).to_le_bytes()).take(len).collect()
}

/// Displacements that are none.
fn still() -> Step {
    Step::Warp(Warp::Elastic(Elastic {
        alpha: (0.0, 0.0),
        sigma: (5.0, 5.0),
        stream: Stream::default(),
        interpolation: Interpolation::Bilinear,
        fill: Some(Fill::BLACK),
    }))
}

/// The plan of an image that goes through one step and nothing else.
fn plan_of(step: Step, size: (u32, u32)) -> Plan {
    let (width, height) = step.output_size(size);
    let tail = Pass::whole(width, height);
    Plan { steps: vec![step], tail, ..Plan::whole(size.0, size.1) }
}

#[test]
fn recipes_print_what_they_do() {
    let check = |recipe: Recipe, expected| assert_eq!(recipe.to_string(), expected);
    check(
        Recipe::imagenet_train(224).unwrap(),
        "Decode(fast, margin 2) -> RandomResizedCrop(224x224, scale 0.08..1, ratio 0.7500..1.3333, bilinear) -> \
         RandomHorizontalFlip(p 0.5) -> ToFloat -> \
         Normalize(mean [0.485, 0.456, 0.406], std [0.229, 0.224, 0.225]) -> f32 CHW",
    );
    check(Recipe::decode(), "u8 HWC");
    check(
        Recipe::imagenet_eval(224).unwrap().into_pixels(Layout::Hwc),
        "Resize(256, bilinear) -> CenterCrop(224x224) -> u8 HWC",
    );
}

#[test]
fn the_evaluation_side_keeps_the_ratio_of_256_to_224() {
    let side = |size| {
        let recipe = Recipe::imagenet_eval(size).unwrap();
        let Op::Resize(Resize { size, .. }) = recipe.ops()[0] else { panic!("{recipe}") };
        size
    };
    // 299 * 8 / 7 = 341.7, 320 * 8 / 7 = 365.7.
    let sides = [256, 342, 1, 366].map(|side| Some(Size::Side(side)));
    assert_eq!([side(224), side(299), side(1), side(320)], sides);
}

#[test]
fn output_size_is_known_when_the_recipe_fixes_it() {
    assert_eq!(Recipe::imagenet_train(176).unwrap().output_size(), Some((176, 176)));
    assert_eq!(Recipe::decode().output_size(), None);
    assert_eq!(Recipe::new(vec![resize(256)], U8).unwrap().output_size(), None);
}

#[test]
fn operations_out_of_place_are_named() {
    let check = |ops: Vec<Op>, output, position, op, after| {
        assert_eq!(Recipe::new(ops, output), Err(RecipeError::Order { position, op, after }));
    };
    let normalize = Op::Normalize(Normalize { mean: [0.5; 3].into(), std: [0.5; 3].into() });
    let to_float = Op::ToFloat(ToFloat {});
    check(vec![normalize.clone()], F32, 0, "Normalize", "the decoded image");
    check(vec![resize(9), normalize], F32, 1, "Normalize", "Resize");
    check(vec![to_float.clone(), to_float.clone()], F32, 1, "ToFloat", "ToFloat");
    check(vec![to_float, FLIP], F32, 1, "RandomHorizontalFlip", "ToFloat");
}

#[test]
fn parameters_out_of_range_are_named() {
    let check = |op: Op, name: &str, number: f64| {
        let result = Recipe::new(vec![op], U8);
        let Err(RecipeError::Parameter { position: 0, invalid, .. }) = result else {
            panic!("{result:?}")
        };
        let Invalid { parameter, value, .. } = invalid;
        assert_eq!((parameter, value), (name, number.into()));
    };
    let random_crop =
        |scale, ratio| RandomResizedCrop { scale, ratio, ..RandomResizedCrop::new(8) }.into();
    check(resize(0), "size", 0.0);
    check(resize(65_536), "size", 65_536.0);
    check(CenterCrop { size: Size::exact(0, 1) }.into(), "size", 0.0);
    check(random_crop((-0.1, 1.0), (1.0, 1.0)), "scale", -0.1);
    check(random_crop((0.5, 0.4), (1.0, 1.0)), "scale", 0.4);
    check(random_crop((0.5, 1.0), (1.0, f64::INFINITY)), "ratio", f64::INFINITY);
    check(RandomHorizontalFlip { p: 1.5 }.into(), "p", 1.5);
    check(Normalize { mean: [0.0; 3].into(), std: [1.0, 0.0, 1.0].into() }.into(), "std", 0.0);
    assert!(matches!(Recipe::imagenet_train(0), Err(RecipeError::Parameter { .. })));
    assert!(matches!(Recipe::imagenet_eval(60_000), Err(RecipeError::Parameter { .. })));
}

#[test]
fn output_types_must_fit_the_operations() {
    let wrong = |dtype, to_float| Err(RecipeError::OutputType { dtype, to_float });
    assert_eq!(Recipe::imagenet_train(8).unwrap().with_output(U8), wrong("u8", true));
    assert_eq!(Recipe::decode().with_output(F32), wrong("f32", false));
}

#[test]
fn reading_a_recipe_checks_it_again() {
    let recipe = Recipe::imagenet_train(224).unwrap();
    let json = serde_json::to_string(&recipe).unwrap();
    assert!(json.starts_with(r#"{"ops":[{"op":"random_resized_crop","size":224,"#), "{json}");
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
    let absent = json.replace(r#","decode":{"fast":{"decode_margin":2.0}}"#, "");
    assert_ne!(absent, json);
    let exact = recipe.with_decode(DecodeMode::Exact).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&absent).unwrap(), exact);
    assert!(
        serde_json::to_string(&exact).unwrap().ends_with(r#""decode":"exact","parity":"pil"}"#)
    );
    let broken = json.replace("\"p\":0.5", "\"p\":7.0");
    let error = serde_json::from_str::<Recipe>(&broken).unwrap_err();
    assert!(error.to_string().contains("operation 1: RandomHorizontalFlip: p is 7"), "{error}");
}

#[test]
fn parameters_left_out_have_torchvisions_defaults() {
    let json = r#"{"ops": [{"op": "random_resized_crop", "size": 224},
        {"op": "random_horizontal_flip"}, {"op": "to_float"}],
        "output": {"dtype": "f32", "layout": "chw"}}"#;
    let recipe: Recipe = serde_json::from_str(json).unwrap();
    let ops = vec![RandomResizedCrop::new(224).into(), FLIP, ToFloat {}.into()];
    assert_eq!(recipe, Recipe::new(ops, F32).unwrap());
    let unknown =
        json.replace("\"random_horizontal_flip\"", "\"random_horizontal_flip\", \"q\": 1");
    let error = serde_json::from_str::<Recipe>(&unknown).unwrap_err().to_string();
    assert!(error.contains("unknown field `q`"), "{error}");
}

#[test]
fn the_hash_changes_with_everything_and_stays_otherwise() {
    let recipe = Recipe::imagenet_train(224).unwrap();
    let json = serde_json::to_string(&recipe).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap().hash(), recipe.hash());
    let mut hashes = vec![
        recipe.hash(),
        Recipe::imagenet_train(225).unwrap().hash(),
        Recipe::imagenet_eval(224).unwrap().hash(),
        recipe.clone().with_parity(Parity::Tensor).unwrap().hash(),
        recipe.clone().with_decode(DecodeMode::Exact).unwrap().hash(),
        recipe.clone().with_decode(DecodeMode::Fast { decode_margin: 1.5 }).unwrap().hash(),
        recipe.with_output(OutputSpec { dtype: Dtype::F16, ..F32 }).unwrap().hash(),
    ];
    hashes.sort_by_key(|hash| hash.0);
    hashes.dedup();
    assert_eq!(hashes.len(), 7);
}

/// What cannot be done in one pass over the rows becomes a head, steps and a tail.
#[test]
fn passes_are_merged_where_no_bit_changes() {
    let plan =
        |ops: Vec<Op>| Recipe::new(ops, U8).unwrap().plan(500, 375, Draw::default()).unwrap();
    let always = || Op::from(RandomHorizontalFlip { p: 1.0 });
    let one = plan(vec![crop(300), resize(200), crop(210), always(), always()]);
    assert!(one.is_one_pass(), "{one:?}");
    assert_eq!((one.head.region.width, one.head.resized), (300, (200, 200)));
    assert_eq!(one.head.padding, Padding { left: 5, top: 5, right: 5, bottom: 5 });
    let two = plan(vec![resize(200), crop(100), resize(50)]);
    assert_eq!((two.head.output_size(), two.steps.len()), ((100, 100), 0));
    assert_eq!(
        two.tail,
        Pass { resized: (50, 50), window: one_window(50), ..Pass::whole(100, 100) }
    );
    let flipped = plan(vec![always(), crop(100), crop(9)]);
    assert!(flipped.head.flip && flipped.is_one_pass(), "{flipped:?}");
    assert_eq!(flipped.output_size(), (9, 9));
}

fn one_window(side: u32) -> tl_simd::resample::Rect {
    tl_simd::resample::Rect::of_size(side, side)
}
