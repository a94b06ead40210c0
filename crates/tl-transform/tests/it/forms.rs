//! Parameters in every form that torchvision takes, and the errors for other forms.

use serde_json::{Value, json};
use tl_transform::op::{
    ElasticTransform, ErasingName, ErasingValue, GridMask, Normalize, RandomErasing,
    RandomResizedCrop, RandomRotation, Range, Resize, ToFloat, UserTransform,
};
use tl_transform::step::{Color, HueMethod};
use tl_transform::{BatchOp, Draw, InvalidValue, Op, Parity, Recipe, RecipeError, Step};

use super::{F32, U8};

fn read(op: &Value) -> Op {
    serde_json::from_value(op.clone()).expect("an operation")
}

#[test]
fn sizes_are_numbers_or_height_and_width() {
    for name in ["random_resized_crop", "center_crop", "random_crop", "five_crop", "ten_crop"] {
        let size = |size: Value| {
            let op = read(&json!({"op": name, "size": size}));
            Recipe::new(vec![op], U8).expect("good parameters").output_size()
        };
        assert_eq!(size(json!(7)), Some((7, 7)), "{name}");
        assert_eq!(size(json!([7])), Some((7, 7)), "{name}");
        assert_eq!(size(json!([5, 7])), Some((7, 5)), "{name}");
        let written = serde_json::to_value(read(&json!({"op": name, "size": [5, 7]}))).unwrap();
        assert_eq!(written["size"], json!([5, 7]));
    }
}

#[test]
fn lists_of_one_and_single_numbers_are_taken_as_by_torchvision() {
    let check = |one: Value, other: Value| assert_eq!(read(&one), read(&other));
    check(json!({"op": "resize", "size": [24]}), json!({"op": "resize", "size": 24}));
    check(json!({"op": "pad", "padding": [1]}), json!({"op": "pad", "padding": 1}));
    check(
        json!({"op": "random_erasing", "value": [7]}),
        json!({"op": "random_erasing", "value": 7}),
    );
    check(
        json!({"op": "random_perspective", "fill": [5]}),
        json!({"op": "random_perspective", "fill": 5}),
    );
    check(
        json!({"op": "elastic_transform", "alpha": [40.0]}),
        json!({"op": "elastic_transform", "alpha": 40.0}),
    );
    check(
        json!({"op": "random_shortest_size", "min_size": 4}),
        json!({"op": "random_shortest_size", "min_size": [4]}),
    );
    check(
        json!({"op": "resize", "size": 24, "interpolation": "nearest-exact"}),
        json!({"op": "resize", "size": 24, "interpolation": "nearest_exact"}),
    );
    let value = json!({"op": "random_erasing", "value": "random"});
    let named = ErasingValue::Named(ErasingName::Random);
    assert_eq!(read(&value), RandomErasing { value: named, ..Default::default() }.into());
}

/// Areas from 0 on, as torchvision takes them.
#[test]
fn crops_can_be_of_any_small_area() {
    let crop = RandomResizedCrop { scale: (0.0, 0.01), ..RandomResizedCrop::new(8) };
    let recipe = Recipe::new(vec![crop.into()], U8).expect("torchvision takes it");
    for sample in 0..200 {
        let plan = recipe.plan(50, 40, Draw { sample, ..Draw::default() }).expect("a crop");
        assert_eq!(plan.output_size(), (8, 8));
    }
}

#[test]
fn other_forms_are_refused_with_what_is_expected() {
    let check = |op: Value, expected: &str| {
        let error = serde_json::from_value::<Op>(op).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(json!({"op": "resize", "size": -1}), "1 to 65535 pixels, or [height, width]");
    check(json!({"op": "center_crop", "size": [1, 2, 3]}), "1 to 65535 pixels, or [height, width]");
    check(json!({"op": "pad", "padding": -1}), "0 to 65535 pixels, or a list of two or four");
    check(json!({"op": "random_erasing", "value": "foo"}), "a number, [r, g, b], or \"random\"");
    check(json!({"op": "color_jitter", "hue": [0.5]}), "a number, or a lower and an upper bound");
    check(json!({"op": "random_affine", "degrees": 1, "shear": [1, 2, 3]}), "two or four bounds");
    check(json!({"op": "random_perspective", "fill": "red"}), "0 to 255, or [r, g, b]");
    check(json!({"op": "gaussian_blur", "kernel_size": []}), "a number, or two of them");
    check(json!({"op": "elastic_transform", "sigma": []}), "one for x and one for y");
    check(json!({"op": "random_shortest_size", "min_size": -4}), "1 to 65535, or a list");
}

#[test]
fn what_was_wrong_is_said_in_words() {
    let check = |op: Value, expected: &str| {
        let error = Recipe::new(vec![read(&op)], U8).unwrap_err().to_string();
        assert_eq!(error, format!("operation 0: {expected}"));
    };
    check(
        json!({"op": "random_rotation", "degrees": 1, "interpolation": "box"}),
        "RandomRotation: interpolation is box, expected nearest, bilinear or bicubic",
    );
    check(
        json!({"op": "elastic_transform", "interpolation": "bicubic"}),
        "ElasticTransform: interpolation is bicubic, expected nearest or bilinear",
    );
    check(
        json!({"op": "grid_mask", "value": "random"}),
        "GridMask: value is random, expected a number, or one for each channel",
    );
    check(json!({"op": "resize"}), "Resize: size is nothing, expected a size or a max_size");
    check(
        json!({"op": "random_shortest_size", "min_size": []}),
        "RandomShortestSize: min_size is empty, expected at least one length",
    );
    check(
        json!({"op": "random_rotation", "degrees": -10}),
        "RandomRotation: degrees is -10, expected 0 or a positive number, or two bounds",
    );
    check(
        json!({"op": "random_rotation", "degrees": [0, 1e300]}),
        "RandomRotation: degrees is 1e300, expected a number from -1000000 to 1000000",
    );
    let elastic = ElasticTransform {
        interpolation: tl_transform::Interpolation::Bicubic,
        ..Default::default()
    };
    let Err(RecipeError::Parameter { invalid, .. }) = Recipe::new(vec![elastic.into()], U8) else {
        panic!("it is refused")
    };
    assert_eq!(invalid.value, InvalidValue::Name("bicubic"));
}

#[test]
fn hashes_are_equal_where_recipes_are() {
    let normalized = |mean: f32| {
        let normalize = Normalize { mean: [mean; 3].into(), std: [1.0; 3].into() };
        Recipe::new(vec![ToFloat {}.into(), normalize.into()], F32).expect("good parameters")
    };
    assert_eq!(normalized(-0.0), normalized(0.0));
    assert_eq!(normalized(-0.0).hash(), normalized(0.0).hash());
    assert_ne!(normalized(0.5).hash(), normalized(0.0).hash());
    let told = |parameters: Value| {
        let op = UserTransform::new("a", parameters);
        Recipe::new(vec![op.into()], U8).expect("good parameters")
    };
    for (one, other) in [
        (json!({"a": 1}), json!({"a": 1.0})),
        (json!(u64::MAX), json!(u64::MAX - 1)),
        (json!(i64::MIN), json!(i64::MIN + 1)),
        (json!(-1), json!(u64::MAX)),
    ] {
        assert_ne!(told(one.clone()), told(other.clone()));
        assert_ne!(told(one.clone()).hash(), told(other).hash(), "{one}");
    }
    assert_eq!(told(json!([-0.0])).hash(), told(json!([0.0])).hash());
}

/// A composition that only erases can follow the conversion. It can also precede it, unless it
/// draws normal deviates.
#[test]
fn erasing_can_be_composed_behind_the_conversion() {
    let random = RandomErasing { p: 1.0, value: ErasingValue::RANDOM, ..Default::default() };
    let black = RandomErasing { value: ErasingValue::All(0.0), ..random };
    let grid = GridMask { p: 1.0, distance: (4, 8), ..Default::default() };
    let within = |name: &str, ops: &[Op]| read(&json!({"op": name, "ops": ops}));
    for name in ["compose", "random_apply", "random_choice", "random_order"] {
        let op = within(name, &[random.into(), within("compose", &[grid.into()])]);
        let recipe = Recipe::new(vec![ToFloat {}.into(), op.clone()], F32).expect("floats");
        let erasures: usize = (0..64)
            .map(|sample| recipe.plan(40, 30, Draw { sample, ..Draw::default() }).unwrap())
            .inspect(|plan| assert!(plan.steps.is_empty(), "{plan:?}"))
            .map(|plan| plan.erasures.len())
            .sum();
        let expected = match name {
            "random_apply" => 32..100,
            "random_choice" => 64..65,
            _ => 128..129,
        };
        assert!(expected.contains(&erasures), "{name}: {erasures}");
        let pixels = Recipe::new(vec![op], U8);
        assert!(matches!(pixels, Err(RecipeError::Order { position: 0, .. })), "{pixels:?}");
        let op = within(name, &[black.into(), grid.into()]);
        Recipe::new(vec![op.clone()], U8).expect("pixels");
        Recipe::new(vec![ToFloat {}.into(), op], F32).expect("floats");
        let mixed = within(name, &[random.into(), RandomRotation::new(5.0).into()]);
        let recipe = Recipe::new(vec![ToFloat {}.into(), mixed], F32);
        assert!(
            matches!(recipe, Err(RecipeError::Nested { op: "RandomErasing", .. })),
            "{recipe:?}"
        );
        let turn = within(name, &[black.into(), RandomRotation::new(5.0).into()]);
        let recipe = Recipe::new(vec![ToFloat {}.into(), turn], F32);
        assert!(matches!(recipe, Err(RecipeError::Order { position: 1, .. })), "{recipe:?}");
        let conversion = within(name, &[ToFloat {}.into()]);
        assert!(matches!(Recipe::new(vec![conversion], F32), Err(RecipeError::Nested { .. })));
    }
}

#[test]
fn steps_of_all_families_have_one_form() {
    let step = json!({"warp": {"perspective": {"coefficients": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        "interpolation": "bilinear", "fill": null}}});
    let read: Step = serde_json::from_value(step.clone()).expect("a step");
    assert_eq!(serde_json::to_value(read).unwrap(), step);
    let color: Step =
        serde_json::from_value(json!({"color": {"brightness": 0.5}})).expect("a step");
    assert_eq!(color, Step::Color(Color::Brightness(0.5)));
}

#[test]
fn batch_operations_are_named_as_other_operations() {
    for (name, class) in [("mix_up", "MixUp"), ("cut_mix", "CutMix"), ("mosaic", "Mosaic")] {
        let op: BatchOp = serde_json::from_value(json!({"op": name})).expect("an operation");
        assert_eq!(op.name(), class);
    }
}

/// A plan says which arithmetic turns hues.
#[test]
fn plans_say_how_hues_are_turned() {
    let check = |op: Value, parity: Parity, expected: HueMethod| {
        let recipe =
            Recipe::new(vec![read(&op)], U8).expect("good parameters").with_parity(parity).unwrap();
        let plan = recipe.plan(9, 8, Draw::default()).expect("a plan");
        let hue = plan.steps.iter().find_map(|step| {
            let Step::Color(Color::Hue { method, .. }) = step else { return None };
            Some(*method)
        });
        assert_eq!(hue, Some(Some(expected)), "{op}");
    };
    for op in [
        json!({"op": "color_jitter", "hue": 0.1}),
        json!({"op": "random_photometric_distort", "p": 1}),
    ] {
        check(op.clone(), Parity::Pil, HueMethod::Pil);
        check(op, Parity::Tensor, HueMethod::Float);
    }
    let named = json!({"op": "color_jitter", "hue": 0.1, "hue_method": "float"});
    check(named, Parity::Pil, HueMethod::Float);
}

#[test]
fn bounds_have_one_type() {
    let jitter = read(&json!({"op": "color_jitter", "brightness": 0.4, "hue": [-0.1, 0.2]}));
    let Op::ColorJitter(jitter) = jitter else { panic!("{jitter:?}") };
    assert_eq!((jitter.brightness, jitter.hue), (Range::Within(0.4), Range::Between(-0.1, 0.2)));
    let Op::RandomRotation(turn) = read(&json!({"op": "random_rotation", "degrees": 9})) else {
        panic!("a rotation")
    };
    assert_eq!(turn.degrees, Range::Within(9.0));
}

#[test]
fn a_size_alone_is_the_shorter_side_of_a_resize() {
    let sized = |size: Value| {
        let recipe = Recipe::new(vec![read(&json!({"op": "resize", "size": size}))], U8).unwrap();
        recipe.plan(40, 20, Draw::default()).unwrap().output_size()
    };
    assert_eq!((sized(json!(10)), sized(json!([10]))), ((20, 10), (20, 10)));
    assert_eq!(sized(json!([10, 11])), (11, 10));
    let whole = Op::from(Resize::new(10));
    assert_eq!(serde_json::to_value(whole).unwrap()["size"], json!(10));
}

#[test]
fn conversions_have_torchvisions_names_too() {
    let op = |json: &str| serde_json::from_str::<Op>(json).expect("an operation");
    for name in ["to_float", "to_dtype", "to_tensor"] {
        assert_eq!(op(&format!(r#"{{"op": "{name}"}}"#)), Op::from(ToFloat {}));
    }
    for name in ["normalize", "image_net_normalize"] {
        assert_eq!(op(&format!(r#"{{"op": "{name}"}}"#)), Op::from(Normalize::IMAGENET));
    }
    let mean = op(r#"{"op": "normalize", "mean": [0, 0, 0]}"#);
    assert_eq!(mean, Normalize { mean: [0.0; 3].into(), ..Normalize::IMAGENET }.into());
}
