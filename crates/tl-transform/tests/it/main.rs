//! Recipes from outside: what may be built, what is refused, and that text forms are stable.

use tl_transform::{DecodeMode, Dtype, Interpolation, Layout, Op, OutputSpec, Recipe, RecipeError};

const F32: OutputSpec = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
const U8: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
const FLIP: Op = Op::RandomHorizontalFlip { p: 0.5 };

fn resize(size: u32) -> Op {
    Op::Resize { size, interpolation: Interpolation::Bilinear }
}

fn crop(side: u32) -> Op {
    Op::CenterCrop { width: side, height: side }
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
        let Op::Resize { size, .. } = recipe.ops()[0] else { panic!("{recipe}") };
        size
    };
    // 299 * 8 / 7 = 341.7, 320 * 8 / 7 = 365.7.
    assert_eq!([side(224), side(299), side(1), side(320)], [256, 342, 1, 366]);
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
    let normalize = Op::Normalize { mean: [0.5; 3], std: [0.5; 3] };
    check(vec![FLIP, resize(9)], U8, 1, "Resize", "RandomHorizontalFlip");
    check(vec![resize(9), resize(9)], U8, 1, "Resize", "Resize");
    check(vec![crop(9), crop(9)], U8, 1, "CenterCrop", "CenterCrop");
    check(vec![resize(9), FLIP, FLIP], U8, 2, "RandomHorizontalFlip", "RandomHorizontalFlip");
    check(vec![normalize.clone()], F32, 0, "Normalize", "the decoded image");
    check(vec![resize(9), normalize], F32, 1, "Normalize", "Resize");
    check(vec![Op::ToFloat, FLIP], F32, 1, "RandomHorizontalFlip", "ToFloat");
}

#[test]
fn parameters_out_of_range_are_named() {
    let check = |op: Op, name: &str, number: f64| {
        let result = Recipe::new(vec![op], U8);
        let Err(RecipeError::Parameter { position: 0, parameter, value, .. }) = result else {
            panic!("{result:?}")
        };
        assert_eq!((parameter, value), (name, number));
    };
    let random_crop = |scale, ratio| Op::RandomResizedCrop {
        width: 8,
        height: 8,
        scale,
        ratio,
        interpolation: Interpolation::Bilinear,
    };
    check(resize(0), "size", 0.0);
    check(resize(65_536), "size", 65_536.0);
    check(Op::CenterCrop { width: 0, height: 1 }, "width", 0.0);
    check(random_crop((0.0, 1.0), (1.0, 1.0)), "scale", 0.0);
    check(random_crop((0.5, 0.4), (1.0, 1.0)), "scale", 0.4);
    check(random_crop((0.5, 1.0), (1.0, f64::INFINITY)), "ratio", f64::INFINITY);
    check(Op::RandomHorizontalFlip { p: 1.5 }, "p", 1.5);
    check(Op::Normalize { mean: [0.0; 3], std: [1.0, 0.0, 1.0] }, "std", 0.0);
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
    assert!(json.starts_with(r#"{"ops":[{"op":"random_resized_crop","width":224,"#), "{json}");
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), recipe);
    let absent = json.replace(r#","decode":{"fast":{"decode_margin":2.0}}"#, "");
    assert_ne!(absent, json);
    let exact = recipe.with_decode(DecodeMode::Exact).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&absent).unwrap(), exact);
    assert!(serde_json::to_string(&exact).unwrap().ends_with(r#""decode":"exact"}"#));
    let broken = json.replace("\"p\":0.5", "\"p\":7.0");
    let error = serde_json::from_str::<Recipe>(&broken).unwrap_err();
    assert!(error.to_string().contains("operation 1: p is 7"), "{error}");
}
