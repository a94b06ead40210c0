use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Signature;
use crate::batch_op::BatchOp;
use crate::op::Op;

/// A value for each required parameter, and the name that recipes have for it.
fn required(parameter: &str) -> (&str, Value) {
    let value = match parameter {
        "transforms" => return ("ops", json!([{"op": "random_invert"}])),
        "target_size" => json!([8, 8]),
        "degrees" => json!(10.0),
        "bits" | "kernel_size" | "min_size" | "padding" | "sharpness_factor" | "size"
        | "threshold" => json!(3),
        other => panic!("a value for the required parameter {other}"),
    };
    (parameter, value)
}

/// The name of an operation in recipes.
fn recipe_name(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

fn check_defaults<T: DeserializeOwned + PartialEq + Debug>(signatures: Vec<Signature>) {
    for Signature { name, parameters, .. } in signatures {
        let mut bare = Map::from_iter([("op".to_owned(), json!(recipe_name(name)))]);
        let needed = parameters.iter().filter(|parameter| parameter.default.is_none());
        bare.extend(needed.map(|parameter| {
            let (name, value) = required(parameter.name);
            (name.to_owned(), value)
        }));
        let mut whole = bare.clone();
        for parameter in &parameters {
            if let Some(value) = parameter.default.as_ref().filter(|value| !value.is_null()) {
                whole.insert(parameter.name.to_owned(), value.clone());
            }
        }
        let read = |map| serde_json::from_value::<T>(Value::Object(map)).expect(name);
        assert_eq!(read(bare), read(whole), "{name}");
    }
}

#[test]
fn defaults_of_signatures_are_those_of_recipes() {
    check_defaults::<Op>(Op::signatures());
    check_defaults::<BatchOp>(BatchOp::signatures());
}

#[test]
fn bindings_have_forms_of_their_own_for_lists_and_for_code_alone() {
    let signatures = Op::signatures();
    let has = |name: &&str| signatures.iter().any(|signature| signature.name == *name);
    let others: Vec<_> = Op::NAMES.iter().filter(|name| !has(name)).collect();
    assert_eq!(others, [&"Compose", &"UserTransform"]);
    assert_eq!(BatchOp::NAMES.len(), BatchOp::signatures().len());
}

#[tl_testdata::needs_checkout("docs/transforms.md")]
#[test]
fn the_documentation_has_every_operation_with_its_parameters() {
    let path = tl_testdata::checkout!("docs/transforms.md");
    let text = std::fs::read_to_string(path).expect("the document exists");
    for Signature { name, parameters, .. } in
        Op::signatures().into_iter().chain(BatchOp::signatures())
    {
        let mut listed = vec![recipe_name(name)];
        let named = parameters.iter().map(|parameter| parameter.name);
        listed.extend(named.map(|name| name.replace("transforms", "ops")));
        let has_all = |line: &str| listed.iter().all(|name| line.contains(&format!("`{name}`")));
        assert!(text.lines().any(has_all), "no line of transforms.md has all of {listed:?}");
    }
}

#[test]
fn every_text_states_the_result_the_counterpart_and_each_parameter() {
    for Signature { name, document, parameters } in
        Op::signatures().into_iter().chain(BatchOp::signatures())
    {
        let (summary, details) = document.split_once("\n\n").expect(name);
        assert!(summary.ends_with('.') && !summary.contains('\n'), "{name}: {summary}");
        let counterpart = details.replace('\n', " ");
        let stated = ["none", &format!("`{name}`"), "`ToTensor`"];
        assert!(
            stated.iter().any(|text| counterpart.contains(&format!("Counterpart: {text}"))),
            "{name}: {details}"
        );
        assert!(details.contains("The result "), "{name}: {details}");
        for parameter in parameters {
            assert!(parameter.document.ends_with('.'), "{name}: {parameter:?}");
        }
    }
}
