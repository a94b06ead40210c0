use serde_json::json;

use super::*;
use crate::error::UserTransformError;
use crate::op::{self, Compose, Op, RandomHorizontalFlip};
use crate::recipe::Recipe;
use crate::{
    Draw, Dtype, Invalid, Layout, OutputSpec, Parity, Plan, RecipeError, Runner, StepError,
};

/// Adds `add` to every sample, and writes a random number into the first.
struct Add;

impl UserTransform for Add {
    fn apply(
        &self,
        pixels: &mut [u8],
        size: (u32, u32),
        rng: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        let (width, height) = size;
        assert_eq!(pixels.len(), (width * height * 3) as usize);
        let add = u8::try_from(parameters["add"].as_u64().ok_or("add is missing")?)?;
        pixels.iter_mut().for_each(|sample| *sample = sample.wrapping_add(add));
        pixels[0] = rng.next_u32().to_le_bytes()[0];
        Ok(())
    }

    fn check(&self, parameters: &Value) -> Result<(), UserError> {
        if parameters["add"] == json!("panic") {
            panic!("no number");
        }
        if parameters["add"].is_null() { Err("add is missing".into()) } else { Ok(()) }
    }
}

struct Bad;

impl UserTransform for Bad {
    fn apply(
        &self,
        _: &mut [u8],
        _: (u32, u32),
        _: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        if *parameters == json!("panic") {
            panic!("at {}\nand \u{1b}[1m'caf\u{e9}'", 7);
        }
        Err("x".parse::<u8>().unwrap_err().into())
    }
}

fn recipe(ops: Vec<Op>) -> Recipe {
    Recipe::new(ops, OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc }).unwrap()
}

fn user(name: &str, parameters: Value) -> Op {
    op::UserTransform::new(name, parameters).into()
}

fn registry() -> UserTransforms {
    let mut transforms = UserTransforms::new();
    transforms.insert("add", Add);
    transforms.insert("bad", Bad);
    transforms
}

fn run(recipe: &Recipe, plan: &Plan) -> Result<Image, StepError> {
    let bound = registry().bind(recipe).unwrap();
    let mut image = Image::from_pixels(2, 1, vec![1, 2, 3, 4, 5, 6]);
    let mut runner = Runner::new().with_user_transforms(bound);
    runner.run(&plan.steps, Parity::Pil, &mut image).map(|()| image)
}

/// Also within others, each gets its own parameters and its own numbers.
#[test]
fn transforms_get_their_own_parameters_and_stream() {
    let flip = RandomHorizontalFlip { p: 0.0 };
    let within = Compose { ops: vec![flip.into(), user("add", json!({"add": 10}))] };
    let recipe = recipe(vec![user("add", json!({"add": 1})), within.into()]);
    let draw = Draw { seed: 1, epoch: 2, sample: 3 };
    let plan = recipe.plan(2, 1, draw).unwrap();
    let streams = [0, 3].map(|op| Stream { draw, op });
    assert_eq!(
        plan.steps,
        streams.map(|stream| crate::Step::User(crate::step::User { stream, size: None }))
    );
    let [_, last] = streams.map(|stream| stream.rng().next_u32().to_le_bytes()[0]);
    let image = run(&recipe, &plan).unwrap();
    assert_eq!(image.pixels(), [last, 13, 14, 15, 16, 17]);
}

#[test]
fn what_is_not_registered_is_named() {
    let recipe = recipe(vec![Compose { ops: vec![user("blend", json!({}))] }.into()]);
    let unknown = UserTransformError::Unknown { name: "blend".into() };
    assert_eq!(registry().bind(&recipe).unwrap_err(), unknown);
    let plan = recipe.plan(2, 1, Draw::default()).unwrap();
    let mut image = Image::from_pixels(1, 1, vec![0; 3]);
    let error = Runner::new().run(&plan.steps, Parity::Pil, &mut image);
    assert_eq!(error, Err(StepError::NoUserTransform { position: 0, op: 1 }));
}

#[test]
fn refused_parameters_are_an_error_before_any_sample() {
    let check = |parameters, expected: &str| {
        let error = registry().bind(&recipe(vec![user("add", parameters)])).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(json!({}), "user's transform \"add\": parameters: add is missing");
    check(json!({"add": "panic"}), "user's transform \"add\": parameters: panicked: no number");
}

#[test]
fn errors_and_panics_are_the_samples_own() {
    let check = |parameters, expected: &str| {
        let recipe = recipe(vec![user("add", json!({"add": 1})), user("bad", parameters)]);
        let plan = recipe.plan(2, 1, Draw::default()).unwrap();
        let error = run(&recipe, &plan).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(json!(1), "step 1: user's transform \"bad\": invalid digit found in string");
    check(
        json!("panic"),
        "step 1: user's transform \"bad\": panicked: at 7\\nand \\u{1b}[1m'caf\u{e9}'",
    );
}

#[test]
fn parameters_are_part_of_the_recipe() {
    let of = |parameters| recipe(vec![user("add", parameters)]);
    let with = of(json!({"add": 3, "nested": [null, {"a": "b"}, -0.1]}));
    let json = serde_json::to_string(&with).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&json).unwrap(), with);
    assert_ne!(with.hash(), of(json!({"add": 3, "nested": [null, {"a": "c"}, -0.1]})).hash());
    assert_ne!(with.hash(), recipe(vec![user("sub", json!({"add": 3}))]).hash());
    let absent = r#"{"ops": [{"op": "user_transform", "name": "x"}],
        "output": {"dtype": "u8", "layout": "hwc"}}"#;
    assert_eq!(serde_json::from_str::<Recipe>(absent).unwrap(), recipe(vec![user("x", json!({}))]));
    assert_eq!(of(json!({"add": 3})).to_string(), r#"UserTransform("add", {"add":3}) -> u8 HWC"#);
}

#[test]
fn names_and_parameters_out_of_bounds_are_refused() {
    let refused = |op: Op, parameter: &str, value: f64| {
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        let result = Recipe::new(vec![op], output);
        let Err(RecipeError::Parameter { invalid, .. }) = result else { panic!("{result:?}") };
        let Invalid { parameter: found, value: number, .. } = invalid;
        assert_eq!((found, number), (parameter, value.into()));
    };
    refused(user("", json!({})), "length of name", 0.0);
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    refused(user("a", deep), "depth of parameters", 33.0);
}

#[test]
fn registries_are_equal_when_they_share_their_transforms() {
    let registry = registry();
    assert_eq!(registry.clone(), registry);
    assert_ne!(self::registry(), registry);
    assert_eq!(UserTransforms::new(), UserTransforms::new());
    assert_eq!(format!("{registry:?}"), r#"{"add", "bad"}"#);
}
