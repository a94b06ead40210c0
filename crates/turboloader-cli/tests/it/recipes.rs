//! Recipe files and `explain`: a file does what it describes, and `explain` describes what is done.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tl_transform::{Draw, Plan, Recipe, Step};

use crate::support::{files_below, json_lines, photos, tl, write};

fn explain(recipe: &Path, more: &[&str]) -> Value {
    let fixed = ["explain".as_ref(), recipe.as_os_str(), "--json".as_ref()];
    let run = tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())));
    json_lines(&run.text()).remove(0)
}

fn digest(recipe: &Path, more: &[&str]) -> Value {
    let photos = photos();
    let fixed = ["bench".as_ref(), photos.as_os_str(), "--recipe".as_ref(), recipe.as_os_str()];
    let more = [&["--seconds", "0", "--json", "--digest", "--batch-size", "5"], more].concat();
    let run = tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())));
    json_lines(&run.text()).remove(0)["digest"].clone()
}

fn file(folder: &Path, name: &str, recipe: &Recipe) -> PathBuf {
    let text = serde_json::to_string_pretty(recipe).expect("a recipe serialises");
    write(folder, name, text.as_bytes())
}

#[test]
fn a_file_is_as_good_as_a_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = Recipe::imagenet_train(32).expect("a valid size");
    let path = file(folder.path(), "train.json", &recipe);
    let built_in = digest(Path::new("imagenet-train"), &["--size", "32"]);
    assert!(built_in.is_string());
    assert_eq!(digest(&path, &[]), built_in);
    assert_ne!(digest(&path, &["--decode", "exact"]), built_in);
    let toml = "decode = {fast = {decode_margin = 2.0}}\n\
        output = {dtype = 'f32', layout = 'chw'}\n\
        [[ops]]\nop = 'random_resized_crop'\nsize = 32\n\
        [[ops]]\nop = 'random_horizontal_flip'\n[[ops]]\nop = 'to_float'\n\
        [[ops]]\nop = 'normalize'\nmean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]\n";
    let toml = write(folder.path(), "train.toml", toml.as_bytes());
    assert_eq!(digest(&toml, &[]), built_in);
    let sheet = folder.path().join("sheet.png");
    let photos = photos();
    let preview = ["preview".as_ref(), photos.as_os_str(), "-n1".as_ref(), "-o".as_ref()];
    tl(preview.into_iter().chain([sheet.as_ref(), "--recipe".as_ref(), toml.as_os_str()])).good();
}

#[test]
fn what_is_wrong_with_a_recipe_is_said_with_its_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = Recipe::imagenet_eval(32).expect("a valid size");
    let path = file(folder.path(), "eval.json", &recipe);
    let check = |path: &Path, more: &[&str], words: &[&str]| {
        let fixed = ["explain".as_ref(), path.as_os_str()];
        let line = tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref()))).error(2);
        words.iter().for_each(|word| assert!(line.contains(word), "{word} in {line}"));
    };
    let text = std::fs::read_to_string(&path).expect("it is there");
    let wrong =
        write(folder.path(), "a.json", text.replace("\"size\": 32", "\"sise\": 32").as_bytes());
    check(&wrong, &[], &["a.json: unknown field `sise`", "at line 13 column 4"]);
    let wrong = write(folder.path(), "b.json", text.replace(": 32", ": 0").as_bytes());
    check(&wrong, &[], &["b.json: operation 1: CenterCrop: size is 0"]);
    check(Path::new("imagenet-tain"), &[], &["no such file", "decode, raw, imagenet-train"]);
    check(folder.path(), &[], &["a directory"]);
    check(&write(folder.path(), "c.txt", b"{}"), &[], &[".json or .toml"]);
    check(Path::new("raw"), &[], &["has no operations to explain"]);
    check(&path, &["--epoch", "1"], &["--sample"]);
    check(&path, &["--size", "5"], &["500x375"]);
    check(&path, &["--size", "0x5"], &["image of 0x5 pixels"]);
    let photos = photos();
    let bench = ["bench".as_ref(), photos.as_os_str(), "--recipe".as_ref(), path.as_os_str()];
    let line = tl(bench.into_iter().chain(["--size", "9"].map(AsRef::as_ref))).error(2);
    assert!(line.contains("--size is for the imagenet recipes"), "{line}");
}

#[test]
fn operations_are_placed_where_their_plans_have_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let places = |ops: Value| {
        let text = json!({"ops": ops, "output": {"dtype": "u8", "layout": "hwc"}}).to_string();
        let found = explain(&write(folder.path(), "a.json", text.as_bytes()), &[]);
        let ops = found["ops"].as_array().expect("a list").clone();
        ops.into_iter().map(|op| op["places"].clone()).collect::<Vec<_>>()
    };
    let crop = |side: u32| json!({"op": "center_crop", "size": side});
    let resize = |size: u32| json!({"op": "resize", "size": size});
    assert_eq!(
        places(
            json!([resize(200), crop(100), resize(50), {"op": "random_horizontal_flip", "p": 1.0}])
        ),
        [
            json!({"decoding": 1.0}),
            json!({"decoding": 1.0}),
            json!({"final_pass": 1.0}),
            json!({"final_pass": 1.0})
        ]
    );
    assert_eq!(
        places(json!([resize(200), resize(100), resize(50)])),
        [json!({"decoding": 1.0}), json!({"scratch": 1.0}), json!({"final_pass": 1.0})]
    );
    assert_eq!(places(json!([resize(375)])), [json!({"nowhere": 1.0})]);
    let train = explain(Path::new("imagenet-train"), &[]);
    assert_eq!(train["ops"][3]["places"], json!({"final_pass": 1.0}));
    assert_eq!(train["scratch_pixels"], 0);
    let flipped = train["ops"][1]["places"]["decoding"].as_f64().expect("a share");
    assert!((0.4..0.6).contains(&flipped), "{flipped}");
}

/// Nothing is claimed of wide pixels that is true of 8-bit ones alone.
#[test]
fn wide_recipes_are_explained_as_they_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let explained = |recipe: Value| {
        let path = write(folder.path(), "wide.json", recipe.to_string().as_bytes());
        let text = tl(["explain".as_ref(), path.as_os_str()]).text();
        (text, explain(&path, &[])["scratch_bytes"].as_u64().expect("a number"))
    };
    let resize = json!({"op": "resize", "size": [200, 300]});
    let floats = json!([resize, {"op": "center_crop", "size": 100}, {"op": "to_float"}]);
    let floats = json!({
        "pixels": "u16", "channels": "grey", "ops": floats, "decode": {"fast": {"decode_margin": 1.0}},
        "output": {"dtype": "f32", "layout": "chw"},
    });
    let (text, bytes) = explained(floats.clone());
    let recipe: Recipe = serde_json::from_value(floats).expect("a recipe");
    let plan = recipe.plan(500, 375, Draw::default()).expect("a plan");
    assert_eq!(bytes, recipe.scratch_bytes(&plan).expect("moves"));
    // An image of the crop, and rows of the columns that it is made of.
    assert!(bytes > 100 * 100 * 2 + 150 * 64, "{bytes}");
    let scratch = format!("at most {} KB of pixels and rows", bytes.div_ceil(1000));
    for words in [
        "pixels   16-bit grey, the numbers of the files\n",
        "not for these pixels, which are decoded exactly\n",
        "Pillow's mode I;16, channel by channel",
        "one pass over the decoded image",
        &scratch,
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
    for words in ["smallest scale", "row by row", "from the decoder to the batch", "as each row"] {
        assert!(!text.contains(words), "{words} in {text}");
    }
    let crop = json!([{"op": "center_crop", "size": 100}]);
    let output = json!({"dtype": "u8", "layout": "hwc"});
    let (text, bytes) = explained(json!({"channels": "rgba", "ops": crop, "output": output}));
    assert!(text.contains("8-bit RGBA\n") && text.contains("scratch  none"), "{text}");
    assert_eq!(bytes, 0);
    let pad = json!({"op": "pad", "padding": 4, "padding_mode": "reflect"});
    let ops = json!([resize, pad, resize]);
    let (text, bytes) = explained(json!({"channels": "rgba", "ops": ops, "output": output}));
    let multiplied = 4 * (500 * 375 + 208 * 308);
    assert_eq!(bytes, multiplied + 2 * 4 * 208 * 308);
    assert!(text.contains("two images"), "{text}");
}

/// The output for a sample is what training draws, and can be carried out again.
#[test]
fn the_plan_of_a_sample_is_the_one_of_training() {
    let recipe = Recipe::imagenet_train(224).expect("a valid size");
    let draw = Draw { seed: 42, epoch: 3, sample: 7 };
    let more = ["--sample", "7", "--epoch", "3", "--seed", "42"];
    let found = explain(Path::new("imagenet-train"), &[&more[..], &["--size", "640x480"]].concat());
    let plan = recipe.plan(640, 480, draw).expect("a size of a photograph");
    assert_eq!(found["hash"], recipe.hash().to_string());
    let again: Plan = serde_json::from_value(found["sample"]["plan"].clone()).expect("a plan");
    assert_eq!(again, plan);
    let steps: Vec<Step> =
        serde_json::from_value(found["sample"]["plan"]["steps"].clone()).expect("steps");
    assert_eq!(steps, plan.steps);
    // The size comes from the data set when that is named: sample 7 is 512x512.
    let photos = photos();
    let named = [&more[..], &[photos.to_str().expect("the path is text")]].concat();
    let found = explain(Path::new("imagenet-train"), &named);
    let plan = recipe.plan(512, 512, draw).expect("a size of a photograph");
    assert_eq!(found["sample"]["plan"], serde_json::to_value(&plan).expect("a plan serialises"));
    let text = tl(["explain", "imagenet-train", "--sample", "7"]).text();
    let region = recipe.plan(500, 375, Draw { seed: 0, epoch: 0, sample: 7 }).expect("a size");
    let region = region.head.region;
    let crop = format!("crop {}x{}+{}+{}", region.width, region.height, region.x, region.y);
    assert!(text.contains(&crop), "{crop} in {text}");
}

/// The mixing of a batch is printed as the loader draws it, with the weights of its labels.
#[test]
fn the_mixing_of_a_batch_is_the_one_of_training() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = json!({
        "ops": [{"op": "resize", "size": [32, 32]}, {"op": "to_float"}],
        "output": {"dtype": "f32", "layout": "chw"},
        "batch_ops": [{"op": "mix_up", "alpha": 0.2}, {"op": "cut_mix"}, {"op": "mosaic", "p": 0.5}],
    });
    let path = write(folder.path(), "mixed.json", recipe.to_string().as_bytes());
    let recipe: Recipe = serde_json::from_value(recipe).expect("a recipe");
    for batch in 0..12 {
        let number = batch.to_string();
        let found = explain(&path, &["--batch", &number, "--epoch", "2", "--seed", "9"]);
        let mixing = recipe.mixing(9, 2, batch);
        let expected = serde_json::to_value(mixing).expect("a mixing serialises");
        assert_eq!(found["batch"]["mixing"], expected, "batch {batch}");
        let args = ["explain".as_ref(), path.as_os_str(), "--batch".as_ref(), number.as_ref()];
        let text = tl(args).text();
        let mixed = recipe.mixing(0, 0, batch).is_some();
        assert_eq!(text.contains("stay as they are"), !mixed, "batch {batch}");
        assert!(text.contains("one of these, each as likely"), "{text}");
    }
}

#[tl_testdata::needs_checkout("examples/recipes")]
#[test]
fn the_examples_are_recipes_that_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let examples = tl_testdata::checkout!("examples/recipes");
    let mut hashes = Vec::new();
    for (name, _) in files_below(&examples) {
        let path = examples.join(&name);
        let found = explain(&path, &["--sample", "3"]);
        hashes.push(found["hash"].as_str().expect("a hash").to_owned());
        let (photos, sheet) = (photos(), folder.path().join("sheet.png"));
        let args = [photos.as_os_str(), "-o".as_ref(), sheet.as_os_str(), "--recipe".as_ref()];
        let args = ["preview".as_ref()].into_iter().chain(args).chain([path.as_os_str()]);
        let run = tl(args.chain(["-fn1", "--draws=2"].map(AsRef::as_ref)));
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{name}");
    }
    hashes.sort();
    hashes.dedup();
    assert!(hashes.len() >= 5, "{hashes:?}");
}
