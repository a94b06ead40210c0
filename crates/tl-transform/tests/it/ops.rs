//! Every operation as text: JSON and TOML preserve the operation, and every parameter has an
//! effect.

use serde_json::{Map, Value, json};
use tl_transform::{Op, Recipe};

/// Every operation with all its parameters, none of which is the default where that can be.
fn every_op() -> Vec<Value> {
    let flip = || json!({"op": "random_horizontal_flip", "p": 0.25});
    let invert = || json!({"op": "random_invert", "p": 0.75});
    let (filter, fill) = ("bilinear", json!([1.0, 2.0, 3.0]));
    vec![
        json!({"op": "random_resized_crop", "size": [192, 224], "scale": [0.1, 0.9],
            "ratio": [0.5, 2.0], "interpolation": "bicubic", "antialias": true}),
        json!({"op": "resize", "size": 256, "interpolation": "bicubic", "antialias": true}),
        json!({"op": "resize", "size": [256, 128], "interpolation": "lanczos", "antialias": true}),
        json!({"op": "center_crop", "size": [10, 20]}),
        json!({"op": "random_crop", "size": [10, 20], "padding": [1, 2, 3, 4],
            "pad_if_needed": true, "fill": fill, "padding_mode": "constant"}),
        json!({"op": "five_crop", "size": [10, 20]}),
        json!({"op": "ten_crop", "size": [10, 20], "vertical_flip": true}),
        json!({"op": "random_shortest_size", "min_size": [20, 30], "max_size": 60,
            "interpolation": "bicubic", "antialias": true}),
        json!({"op": "scale_jitter", "target_size": [60, 50], "scale_range": [0.5, 1.5],
            "interpolation": "bicubic", "antialias": true}),
        json!({"op": "pad", "padding": [1, 2, 3, 4], "fill": fill, "padding_mode": "constant"}),
        json!({"op": "random_zoom_out", "fill": fill, "side_range": [1.5, 3.0], "p": 0.25}),
        flip(),
        json!({"op": "random_vertical_flip", "p": 0.25}),
        json!({"op": "color_jitter", "brightness": 0.4, "contrast": [0.5, 1.5], "saturation": 0.3,
            "hue": [-0.1, 0.2], "hue_method": "float"}),
        json!({"op": "grayscale", "num_output_channels": 3}),
        json!({"op": "random_grayscale", "p": 0.25}),
        invert(),
        json!({"op": "random_posterize", "bits": 3, "p": 0.25}),
        json!({"op": "random_solarize", "threshold": 100.0, "p": 0.25}),
        json!({"op": "random_adjust_sharpness", "sharpness_factor": 2.0, "p": 0.25}),
        json!({"op": "random_autocontrast", "p": 0.25}),
        json!({"op": "random_equalize", "p": 0.25}),
        json!({"op": "random_channel_permutation"}),
        json!({"op": "random_photometric_distort", "brightness": [0.5, 1.25],
            "contrast": [0.75, 1.5], "saturation": [0.25, 1.5], "hue": [-0.1, 0.2], "p": 0.25,
            "hue_method": "pil"}),
        json!({"op": "gaussian_blur", "kernel_size": [7, 3], "sigma": [0.5, 1.5]}),
        json!({"op": "gaussian_noise", "mean": 0.1, "sigma": 0.2, "clip": true}),
        json!({"op": "random_erasing", "p": 0.25, "scale": [0.1, 0.2], "ratio": [0.5, 2.0],
            "value": [1.0, 2.0, 3.0]}),
        json!({"op": "grid_mask", "p": 0.25, "distance": [9, 20], "ratio": 0.5, "rotate": 90,
            "mode": 0, "value": [1.0, 2.0, 3.0]}),
        json!({"op": "compose", "ops": [flip(), {"op": "compose", "ops": [invert()]}]}),
        json!({"op": "random_apply", "ops": [flip(), invert()], "p": 0.25}),
        json!({"op": "random_choice", "ops": [flip(), invert()], "p": [0.25, 0.5]}),
        json!({"op": "random_order", "ops": [flip(), invert()]}),
        json!({"op": "random_rotation", "degrees": [-10.0, 20.0], "interpolation": filter,
            "expand": true, "center": [5.0, 6.0], "fill": fill}),
        json!({"op": "random_affine", "degrees": 10.0, "translate": [0.1, 0.2],
            "scale": [0.5, 1.5], "shear": [-1.0, 2.0, -3.0, 4.0], "interpolation": filter,
            "fill": fill, "center": [5.0, 6.0]}),
        json!({"op": "random_perspective", "distortion_scale": 0.25, "p": 0.25,
            "interpolation": "nearest", "fill": fill}),
        json!({"op": "elastic_transform", "alpha": [10.0, 20.0], "sigma": [4.0, 3.0],
            "interpolation": "nearest", "fill": fill}),
        json!({"op": "auto_augment", "policy": "svhn", "interpolation": filter, "fill": fill}),
        json!({"op": "rand_augment", "num_ops": 3, "magnitude": 7, "num_magnitude_bins": 11,
            "interpolation": filter, "fill": fill}),
        json!({"op": "trivial_augment_wide", "num_magnitude_bins": 11, "interpolation": filter,
            "fill": fill}),
        json!({"op": "aug_mix", "severity": 5, "mixture_width": 2, "chain_depth": 3, "alpha": 0.5,
            "all_ops": false, "interpolation": "nearest", "fill": fill}),
        json!({"op": "user_transform", "name": "blend", "parameters": {"p": 0.25, "by": ["x", 3]}}),
        json!({"op": "to_float"}),
        json!({"op": "normalize", "mean": [0.5, 0.25, 0.75], "std": [0.1, 0.2, 0.3]}),
    ]
}

/// The names that there are, as the error for any other lists them.
fn names() -> Vec<String> {
    let error = serde_json::from_str::<Op>(r#"{"op": "?"}"#).expect_err("no name").to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// A recipe around an operation.
fn recipe(op: &Value) -> Value {
    let name = op["op"].as_str().unwrap_or_default();
    let ops = match name {
        "normalize" => json!([{"op": "to_float"}, op]),
        "to_float" | "five_crop" | "ten_crop" | "compose" => json!([op]),
        _ => json!([op, {"op": "center_crop", "size": 8}]),
    };
    let dtype = if matches!(name, "to_float" | "normalize") { "f32" } else { "u8" };
    json!({"ops": ops, "output": {"dtype": dtype, "layout": "hwc"}, "decode": "exact",
        "parity": "tensor"})
}

fn read(recipe: &Value) -> Recipe {
    serde_json::from_str(&recipe.to_string()).expect("every operation is one that there is")
}

fn recipes() -> Vec<(Value, Recipe)> {
    let described: Vec<Value> = every_op().iter().map(recipe).collect();
    let read = described.iter().map(read).collect::<Vec<_>>();
    described.into_iter().zip(read).collect()
}

#[test]
fn every_operation_is_here() {
    let here = every_op();
    // Other names of two of them, as `forms.rs` tests.
    let others = ["to_dtype", "to_tensor", "image_net_normalize"];
    for name in names().iter().filter(|name| !others.contains(&name.as_str())) {
        assert!(here.iter().any(|op| op["op"] == *name), "{name}");
    }
    assert!(names().len() > 30, "{:?}", names());
}

/// What is read has all the parameters that were written, and their values.
#[test]
fn json_comes_back_as_it_was() {
    for (described, recipe) in recipes() {
        let text = serde_json::to_string(&recipe).unwrap();
        assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe, "{text}");
        let written: Value = serde_json::from_str(&text).unwrap();
        let (Value::Object(described), Value::Object(written)) =
            (&described["ops"][0], &written["ops"][0])
        else {
            panic!("{text}")
        };
        for (key, value) in described {
            let found = written.get(key);
            assert!(found.is_some_and(|found| same(found, value)), "{key} of {text}");
        }
    }
}

/// Equality of numbers whether or not they have a point.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= 1e-7 * b.abs()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// TOML says the same as JSON.
#[test]
fn toml_is_read_as_json_is() {
    for (described, recipe) in recipes() {
        let Value::Object(table) = &described else { panic!() };
        let text = toml_table(table);
        let read: Recipe = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read, recipe);
        assert_eq!(read.hash(), recipe.hash());
    }
}

/// A table as TOML, everything within it in one line.
fn toml_table(table: &Map<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| format!("{key} = {}\n", toml_value(value));
    table.iter().map(line).collect()
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(table) => {
            let entry = |(key, value)| format!("{key} = {}", toml_value(value));
            format!("{{{}}}", table.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Changes every number, switch and word by itself, as far as a recipe is left.
#[test]
fn every_parameter_changes_the_hash() {
    for (described, recipe) in recipes() {
        for place in 0..leaves(&described["ops"][0]) {
            let mut changed = 0;
            let numbers = [0.5, 2.0, 1.0].map(number);
            let numbers = numbers.iter().map(|change| change as &dyn Fn(&Value) -> Option<Value>);
            for change in numbers.chain([&word as &dyn Fn(&Value) -> Option<Value>]) {
                let mut other = described.clone();
                if !alter(&mut other["ops"][0], &mut place.clone(), change) {
                    continue;
                }
                let Ok(read) = serde_json::from_str::<Recipe>(&other.to_string()) else { continue };
                // A parameter that is not there is unknown, so what was read has it.
                assert_ne!(read.hash(), recipe.hash(), "{other}");
                assert_ne!(read, recipe, "{other}");
                changed += 1;
            }
            let name = &described["ops"][0]["op"];
            // It has one value.
            let only = *name == "grayscale";
            assert!(changed > 0 || only, "leaf {place} of {described}");
        }
    }
}

/// Numbers, switches and words other than the names of operations.
fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(leaves).sum(),
        Value::Object(table) => {
            let parameters = table.iter().filter(|(key, _)| *key != "op");
            parameters.map(|(_, value)| leaves(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

/// Replaces the value of leaf number `place`; false when the tree has fewer leaves.
fn alter(value: &mut Value, place: &mut usize, change: &dyn Fn(&Value) -> Option<Value>) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().any(|item| alter(item, place, change)),
        Value::Object(table) => {
            let mut parameters = table.iter_mut().filter(|(key, _)| *key != "op");
            parameters.any(|(_, value)| alter(value, place, change))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let Some(left) = place.checked_sub(1) else {
                *place = usize::MAX;
                let changed = change(value);
                let found = changed.is_some();
                *value = changed.unwrap_or_else(|| value.clone());
                return found;
            };
            *place = left;
            false
        }
    }
}

/// Numbers times `factor`, or 1 more where that is 1; switches turned.
fn number(factor: f64) -> impl Fn(&Value) -> Option<Value> {
    move |value| match value {
        Value::Bool(on) => Some(json!(!on)),
        Value::Number(number) => {
            let value = number.as_f64()?;
            let other = if factor == 1.0 { value + 1.0 } else { value * factor };
            let whole = number.is_u64() || number.is_i64();
            // Numbers without a point are written without one.
            let other = if whole { other.trunc().to_string() } else { format!("{other:?}") };
            serde_json::from_str(&other).ok().filter(|other| !same(other, &json!(number)))
        }
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Words: others that parameters are called.
fn word(value: &Value) -> Option<Value> {
    let Value::String(word) = value else { return None };
    let others = [
        ("nearest", "bilinear"),
        ("bilinear", "nearest"),
        ("bicubic", "bilinear"),
        ("lanczos", "bilinear"),
        ("constant", "edge"),
        ("float", "pil"),
        ("pil", "float"),
        ("svhn", "cifar10"),
        ("blend", "add"),
        ("x", "y"),
    ];
    others.iter().find(|(from, _)| from == word).map(|(_, to)| json!(to))
}
