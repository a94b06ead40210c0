//! Keypoints of objects and of samples, in batches.

use std::path::Path;

use serde_json::{Value, json};
use tl_pipeline::{
    Batch, BoxField, Fields, KeypointField, Loader, LoaderConfig, OnError, PipelineError, Shuffle,
    ValueFormat, Work,
};

use crate::fields::{Annotated, SAMPLES, batches, boxed, dataset, field, recipe, with};
use crate::memory::{bmps, loader, train};

/// Samples of 40 x 36 pixels and more, whose JSON is `document`.
fn samples(document: impl Fn(u32) -> Value) -> impl Fn(u32) -> Annotated {
    move |number| {
        let fields = vec![field("json", document(number).to_string())];
        Annotated { fields, ..boxed(number) }
    }
}

fn json_field(pointer: &str) -> KeypointField {
    KeypointField::new("keypoints", "json", ValueFormat::Json(pointer.into()))
}

fn one(field: KeypointField) -> Fields {
    Fields { keypoints: vec![field], ..Fields::default() }
}

/// All batches of a recipe, in the order of the data set.
fn run(
    folder: &Path,
    document: impl Fn(u32) -> Value,
    fields: Fields,
    ops: &[Value],
) -> Vec<Batch> {
    let config = with(Work::Images(recipe(ops)), fields);
    let config = LoaderConfig { sampler: Shuffle::None.into(), ..config };
    batches(&loader(dataset(folder, samples(document)), config), 0)
}

fn flip() -> Value {
    json!({"op": "random_horizontal_flip", "p": 1.0})
}

#[test]
fn points_of_objects_move_and_go_with_their_boxes() {
    let folder = tempfile::tempdir().unwrap();
    // The first box has no pixel; the second is that of the whole image.
    let document = |number: u32| {
        let Annotated { width, height, .. } = boxed(number);
        json!({"annotations": [
            {"bbox": [3, 3, 0, 0], "category_id": 1, "keypoints": [1, 1, 2, 2, 2, 2]},
            {"bbox": [0, 0, width, height], "category_id": 2,
             "keypoints": [10, 20, 2, width + 5, 7, 1]},
        ]})
    };
    let points = || json_field("/annotations/*/keypoints");
    let fields = Fields { boxes: Some(BoxField::coco("json")), ..one(points()) };
    let with_boxes = run(folder.path(), document, fields, &[flip()]);
    let without = run(folder.path(), document, one(points()), &[flip()]);
    let mut seen = 0;
    for (batch, all) in with_boxes.iter().zip(&without) {
        assert_eq!((batch.keypoint_shape(0), batch.keypoint_shape(1)), (Some([2, 3]), None));
        for row in 0..batch.len() {
            let [_, width] = batch.sizes()[row].map(|side| side as f32);
            // The point beside the image has no label any more.
            let second = [width - 11.0, 20.0, 2.0, 0.0, 0.0, 0.0];
            assert_eq!(batch.box_indices(row), [1]);
            assert_eq!(batch.keypoints(0, row), second);
            let first = [width - 2.0, 1.0, 2.0, width - 3.0, 2.0, 2.0];
            assert_eq!(all.keypoints(0, row), [first, second].concat());
            assert!(batch.keypoints(1, row).is_empty());
            seen += 1;
        }
        assert!(batch.keypoints(0, batch.len()).is_empty());
    }
    assert_eq!(seen, SAMPLES);
}

#[test]
fn points_without_visibility_keep_their_places_outside() {
    let folder = tempfile::tempdir().unwrap();
    let document = |_| json!({"people": [[[10, 20], [200, -4.5]], [[0, 0], [30, 30]]]});
    let crop = [json!({"op": "center_crop", "size": [36, 40]}), flip()];
    let batch = run(folder.path(), document, one(json_field("/people/*")), &crop).remove(0);
    assert_eq!(batch.keypoint_shape(0), Some([2, 2]));
    // Sample 0 has 40 x 36 pixels, so nothing is cut off.
    assert_eq!(batch.keypoints(0, 0), [29.0, 20.0, -161.0, -4.5, 39.0, 0.0, 9.0, 30.0]);
    let flat = |_| json!({"people": [[10, 20, 200, -4.5], [0, 0, 30, 30]]});
    let folder = tempfile::tempdir().unwrap();
    let field = KeypointField { shape: Some([2, 2]), ..json_field("/people/*") };
    let same = run(folder.path(), flat, one(field), &crop).remove(0);
    assert_eq!(same.keypoints(0, 0), batch.keypoints(0, 0));
}

#[test]
fn pairs_change_places_in_mirrored_images_only() {
    let folder = tempfile::tempdir().unwrap();
    let document = |_| json!({"people": [[[1, 1, 2], [2, 2, 1], [3, 3, 0], [4, 4, 2]]]});
    let points = |ops: &[Value]| {
        let flip_pairs = vec![[0, 1], [2, 3]];
        let field = KeypointField { flip_pairs, ..json_field("/people/*") };
        let batch = run(folder.path(), document, one(field), ops).remove(0);
        batch
            .keypoints(0, 0)
            .chunks_exact(3)
            .map(<[f32; 3]>::try_from)
            .collect::<Result<Vec<_>, _>>()
    };
    let down = json!({"op": "random_vertical_flip", "p": 1.0});
    let whole = json!({"op": "random_horizontal_flip", "p": 0.0});
    let check = |ops: &[Value], expected: [[f32; 3]; 4]| assert_eq!(points(ops).unwrap(), expected);
    let none = [0.0; 3];
    check(&[whole], [[1.0, 1.0, 2.0], [2.0, 2.0, 1.0], none, [4.0, 4.0, 2.0]]);
    check(&[flip()], [[37.0, 2.0, 1.0], [38.0, 1.0, 2.0], [35.0, 4.0, 2.0], none]);
    check(
        std::slice::from_ref(&down),
        [[2.0, 33.0, 1.0], [1.0, 34.0, 2.0], [4.0, 31.0, 2.0], none],
    );
    check(&[flip(), down], [[38.0, 34.0, 2.0], [37.0, 33.0, 1.0], none, [35.0, 31.0, 2.0]]);
}

#[test]
fn points_of_samples_are_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let document = |number: u32| json!({"marks": [[number, 0.5], [2, 3], [50, 60]]});
    let fields = one(KeypointField { name: "marks".into(), ..json_field("/marks") });
    let resize = [json!({"op": "resize", "size": [72, 80]}), flip()];
    let mut seen = 0;
    for batch in run(folder.path(), document, fields, &resize) {
        let column = batch.column_named("marks").unwrap();
        assert_eq!(column.spec.shape, [3, 2]);
        for (row, &index) in batch.indices().iter().enumerate() {
            let number = u32::try_from(index).unwrap();
            let Annotated { width, height, .. } = boxed(number);
            #[expect(clippy::cast_possible_truncation, reason = "torchvision's ratios are f32")]
            let ratio = |new: f64, old: u32| (new / f64::from(old)) as f32;
            let across = ratio(80.0, width);
            let down = ratio(72.0, height);
            let expected = [[number as f32, 0.5], [2.0, 3.0], [50.0, 60.0]];
            let expected = expected.map(|[x, y]| [-(x * across - 79.0), y * down]);
            assert_eq!(batch.keypoints(0, row), expected.as_flattened());
            seen += 1;
        }
        for row in [batch.len(), usize::MAX / 6, usize::MAX / 2, usize::MAX] {
            assert!(batch.keypoints(0, row).is_empty());
        }
    }
    assert_eq!(seen, SAMPLES);
}

#[test]
fn a_plain_list_of_a_samples_points_is_one_of_triples_unless_the_shape_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let document = |number: u32| match number {
        // Its list of no points has no shape.
        0 => json!({"marks": []}),
        _ => json!({"marks": [1, 2, 2, 3, 4, 1], "pairs": [1, 2, 2, 3], "lists": [[1, 2], [2, 3]]}),
    };
    let named = |name: &str, shape| {
        let pointer = ValueFormat::Json(format!("/{name}"));
        KeypointField { shape, ..KeypointField::new(name, "json", pointer) }
    };
    let pairs = || named("pairs", Some([2, 2]));
    let keypoints = vec![named("marks", None), pairs(), named("lists", None)];
    let config = with(train(), Fields { keypoints, ..Fields::default() });
    let config = LoaderConfig { on_error: OnError::Skip, ..config };
    let loader = loader(dataset(folder.path(), samples(document)), config);
    let batch = batches(&loader, 0).remove(0);
    let shapes = [0, 1, 2].map(|field| batch.keypoint_shape(field).unwrap());
    assert_eq!(shapes, [[2, 3], [2, 2], [2, 2]]);
    assert_eq!(batch.column_named("marks").unwrap().spec.shape, [2, 3]);
    assert_eq!(batch.keypoints(1, 0), batch.keypoints(2, 0));
    let [only] = &loader.audit()[..] else { panic!("{:?}", loader.audit()) };
    let expected = "sidecar file `json`: values of shape [0], expected [2, 3]";
    assert_eq!((only.error.index, only.error.fault.to_string()), (0, expected.to_owned()));
    // Numbers of another count are an error as before.
    let document = |number: u32| match number {
        3 => json!({"pairs": [1, 2, 2]}),
        _ => json!({"pairs": [1, 2, 2, 3]}),
    };
    let config = LoaderConfig { on_error: OnError::Skip, ..with(train(), one(pairs())) };
    let folder = tempfile::tempdir().unwrap();
    let loader = self::loader(dataset(folder.path(), samples(document)), config);
    batches(&loader, 0);
    let [only] = &loader.audit()[..] else { panic!("{:?}", loader.audit()) };
    let expected = "sidecar file `json`: values of shape [3], expected [2, 2]";
    assert_eq!((only.error.index, only.error.fault.to_string()), (3, expected.to_owned()));
}

#[test]
fn rows_that_were_filled_in_have_no_points() {
    let folder = tempfile::tempdir().unwrap();
    let document = |number: u32| match number {
        3 => json!({"people": 5, "marks": [[1, 2]]}),
        _ => json!({"people": [[[1, 2]]], "marks": [[1, 2]]}),
    };
    let marks = KeypointField { name: "marks".into(), ..json_field("/marks") };
    let fields = Fields { keypoints: vec![json_field("/people/*"), marks], ..Fields::default() };
    let config = LoaderConfig { on_error: OnError::Fill, ..with(train(), fields) };
    let loader = loader(dataset(folder.path(), samples(document)), config);
    for batch in batches(&loader, 0) {
        for (row, &index) in batch.indices().iter().enumerate() {
            assert_eq!(batch.keypoints(0, row).is_empty(), index == 3);
            assert_eq!(batch.keypoints(1, row) == [0.0; 2], index == 3);
        }
    }
}

/// The error of a data set whose sample 3 has another document.
fn fault(bad: &Value, fields: Fields) -> String {
    let folder = tempfile::tempdir().unwrap();
    let good = json!({"annotations": [
        {"bbox": [1, 2, 3, 4], "category_id": 1, "keypoints": [1, 2, 2, 3, 4, 2]}],
        "more": [[[1, 2]]]});
    let document = |number| if number == 3 { bad.clone() } else { good.clone() };
    let config = LoaderConfig { on_error: OnError::Skip, ..with(train(), fields) };
    let loader = loader(dataset(folder.path(), samples(document)), config);
    let rows: usize = batches(&loader, 0).iter().map(Batch::len).sum();
    let [only] = &loader.audit()[..] else { return format!("{rows} rows") };
    assert_eq!((rows, only.error.index), (11, 3));
    only.error.fault.to_string()
}

#[test]
fn points_that_cannot_be_used_are_the_samples_error() {
    let of = |points: Value| json!({"annotations": [{"bbox": [1, 2, 3, 4], "category_id": 1, "keypoints": points}]});
    let points = || one(json_field("/annotations/*/keypoints"));
    let expected =
        "sidecar file `json`: expected 2 points of 3 numbers at `/annotations/0/keypoints`";
    for bad in [
        json!([1, 2, 2, 3, 4]),
        json!([]),
        json!("text"),
        json!([[1, 2], [3, 4]]),
        json!([[1, 2, 2], [3, 4, "a"]]),
        json!([1, 2, 2, 3, 4, 2, 5, 6, 2]),
        Value::Null,
    ] {
        assert_eq!(fault(&of(bad), points()), expected);
    }
    assert_eq!(
        fault(&json!({"annotations": 5}), points()),
        "sidecar file `json`: expected a list of keypoints at `/annotations`"
    );
    assert_eq!(
        fault(&of(json!([1, 2, 2, 3, 4e30, 2])), points()),
        "keypoint 1 has a coordinate that is not a number from -1e20 to 1e20"
    );
    assert_eq!(fault(&json!({"annotations": []}), points()), "12 rows");
    let mut other = of(json!([]));
    other["more"] = json!([]);
    let fields = Fields { boxes: Some(BoxField::coco("json")), ..one(json_field("/more/*")) };
    let expected = "sidecar file `json` has 0 sets of keypoints for 1 boxes";
    assert_eq!(fault(&other, fields), expected);
}

#[test]
fn objects_and_samples_without_points_have_points_without_a_label() {
    let folder = tempfile::tempdir().unwrap();
    let document = |number: u32| {
        let mut object = json!({"bbox": [1, 2, 30, 30], "category_id": 1});
        let points = [json!([1, 2, 2, 3, 4, 2]), Value::Null, json!([])];
        if let Some(points) = points.get(number as usize % 4) {
            object["keypoints"] = points.clone();
        }
        let marks = (number % 2 == 1).then(|| json!([[5, 6, 1]]));
        let mut document = json!({"annotations": [object]});
        if let Some(marks) = marks {
            document["marks"] = marks;
        }
        document
    };
    let filled = |pointer: &str| KeypointField { fills_missing: true, ..json_field(pointer) };
    let marks = KeypointField { name: "marks".into(), ..filled("/marks") };
    let fields = Fields {
        boxes: Some(BoxField::coco("json")),
        keypoints: vec![filled("/annotations/*/keypoints"), marks],
        ..Fields::default()
    };
    let mut number = 0;
    for batch in run(folder.path(), document, fields, &[]) {
        let marks = batch.column_named("marks").unwrap().bytes.as_chunks().0;
        let marks: Vec<f32> = marks.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
        for row in 0..batch.len() {
            let expected = if number % 4 == 0 { [1.0, 2.0, 2.0, 3.0, 4.0, 2.0] } else { [0.0; 6] };
            assert_eq!(batch.keypoints(0, row), expected, "{number}");
            let expected = if number % 2 == 1 { [5.0, 6.0, 1.0] } else { [0.0; 3] };
            assert_eq!(marks[3 * row..3 * row + 3], expected, "{number}");
            number += 1;
        }
    }
    assert_eq!(number, SAMPLES);
    let refused = |field: KeypointField, expected: &str| {
        let dataset = dataset(folder.path(), samples(document));
        let refused = Loader::new(dataset, with(train(), one(field))).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    };
    // A pointer without a value differs from samples without points.
    refused(filled("/annotations/*/points"), "no sample has them");
    let flat = KeypointField { shape: Some([3, 2]), ..filled("/annotations/*/keypoints") };
    refused(flat, "points of two numbers have no visibility");
}

#[test]
fn settings_that_points_cannot_have_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let document = |_| json!({"people": [[[1, 2], [3, 4]]], "odd": [1, 2, 3, 4], "none": []});
    let refused = |field: KeypointField| {
        let dataset = dataset(folder.path(), samples(document));
        let refused = Loader::new(dataset, with(train(), one(field))).unwrap_err();
        assert!(matches!(refused, PipelineError::Unusable(_)));
        refused.to_string()
    };
    let people = || json_field("/people/*");
    let pairs = |flip_pairs: Vec<[usize; 2]>| KeypointField { flip_pairs, ..people() };
    let shape = |shape| KeypointField { shape: Some(shape), ..people() };
    for (field, expected) in [
        (pairs(vec![[0, 2]]), "flip_pairs has point 2, expected numbers below 2"),
        (pairs(vec![[0, 1], [1, 0]]), "flip_pairs has point 1 twice"),
        (pairs(vec![[1, 1]]), "flip_pairs has point 1 twice"),
        (shape([2, 4]), "shape is [2, 4], expected [points, 2], or [points, 3] with visibility"),
        (shape([0, 2]), "shape is [0, 2]"),
        (json_field("/none/*"), "they have no shape: no sample has them"),
        (json_field("/odd"), "shape is [4], expected [points, 2]"),
        (json_field("/none"), "keypoints `keypoints`: they have no shape: no sample has them"),
        (json_field("/nothing"), "keypoints `keypoints`: they have no shape: no sample has them"),
        (json_field("people/*"), "keypoints `keypoints`: invalid pointer `people/*`: expected a"),
        (json_field("marks"), "keypoints `keypoints`: invalid pointer `marks`: expected `/` first"),
        (json_field("/people/*/*"), "expected a JSON pointer with exactly one `*`"),
        (json_field("/nothing/*"), "expected a list of keypoints at `/nothing`"),
    ] {
        let error = refused(field);
        assert!(error.contains(expected), "{error}");
    }
    let error = Loader::new(bmps(4), with(Work::Bytes, one(people()))).unwrap_err().to_string();
    assert!(error.ends_with("not with bytes"), "{error}");
}
