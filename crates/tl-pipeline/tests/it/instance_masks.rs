//! Masks of objects in batches, beside masks of the whole image with the same pixels.

use std::path::Path;

use serde_json::{Value, json};
use tl_decode::{DecodeOptions, Limits};
use tl_pipeline::{
    Batch, Batching, BoxField, Buckets, ErrorBudget, Fields, InstanceMaskField, KeypointField,
    LoaderConfig, MaskField, OnError, SampleFault, Shuffle, ValueFormat, Work,
};
use tl_transform::{Recipe, Segmentation};

use crate::fields::{
    Annotated, SAMPLES, batches, boxed, chains, dataset, field, png, recipe, with,
};
use crate::memory::{loader, train};

/// The outline of an object, and the run lengths of another, of an image of this size.
fn segmentations(width: u32, height: u32) -> [Value; 2] {
    let (right, bottom) = (width - 4, height - 6);
    let polygon = json!([[3.5, 4, right, 7.25, width / 2, bottom], [1, 1, 6, 1, 6, 5]]);
    let rows = height * (width / 2);
    let runs = [rows, height / 2, 5, height, width * height - rows - height / 2 - 5 - height];
    [polygon, json!({"size": [height, width], "counts": runs})]
}

/// Samples with two objects, whose masks are also in `0.png` and `1.png`.
fn sample(number: u32) -> Annotated {
    let Annotated { width, height, pixels, .. } = boxed(number);
    let objects = segmentations(width, height);
    let drawn = objects.each_ref().map(|object| {
        let object: Segmentation = serde_json::from_value(object.clone()).unwrap();
        png(width, height, object.mask(width, height).unwrap().data())
    });
    let [first, second] = objects;
    let document = json!({"annotations": [
        {"bbox": [0, 0, width, height], "category_id": 1, "segmentation": first},
        {"bbox": [3, 3, 0, 0], "category_id": 2, "segmentation": "a box without a pixel"},
        {"bbox": [0, 0, width, height], "category_id": 3, "segmentation": second},
    ], "masks": [first, second], "three": [[], [], []]});
    let [one, other] = drawn;
    let fields =
        vec![field("json", document.to_string()), field("0.png", one), field("1.png", other)];
    Annotated { width, height, pixels, fields }
}

fn mask(column: &str) -> Fields {
    let mask = MaskField { padding: Some(0), ..MaskField::new(column) };
    Fields { mask: Some(mask), ..Fields::default() }
}

fn instances(pointer: &str) -> Fields {
    let field = InstanceMaskField::new("json", pointer);
    Fields { instance_masks: Some(field), ..Fields::default() }
}

/// The masks of each row.
fn rows(folder: &Path, ops: &[Value], batching: Batching, fields: Fields) -> Vec<Vec<u8>> {
    let whole = fields.mask.is_some();
    let config = LoaderConfig { batching, ..with(Work::Images(recipe(ops)), fields) };
    let mut rows = Vec::new();
    for batch in batches(&loader(dataset(folder, sample), config), 1) {
        let each = batch.masks().len() / batch.len();
        for row in 0..batch.len() {
            rows.push(match batch.mask(row) {
                Some(mask) => mask.to_vec(),
                None if whole => batch.masks()[row * each..][..each].to_vec(),
                None => batch.instance_masks(row).to_vec(),
            });
        }
    }
    rows
}

#[test]
fn masks_of_objects_move_as_those_of_images_do() {
    let folder = tempfile::tempdir().unwrap();
    let padded = Batching::Buckets(Buckets { window: 2, multiple: 8 });
    let shortest =
        json!({"op": "random_shortest_size", "min_size": [20, 44], "interpolation": "nearest"});
    let cases = chains().into_iter().map(|ops| (ops, Batching::default()));
    let mut inside = 0;
    for (ops, batching) in cases.chain([(vec![shortest], padded)]) {
        let of = |fields| rows(folder.path(), &ops, batching, fields);
        let both = of(instances("/masks/*"));
        let objects = [of(mask("0.png")), of(mask("1.png"))];
        assert_eq!(both.len(), SAMPLES as usize);
        for (row, masks) in both.iter().enumerate() {
            let expected = objects.each_ref().map(|rows| &rows[row][..]).concat();
            assert!(*masks == expected, "{ops:?}, row {row}");
            inside += expected.iter().filter(|&&pixel| pixel == 1).count();
        }
    }
    assert!(inside > 100_000, "{inside} pixels are too few");
}

#[test]
fn masks_of_objects_go_with_their_boxes() {
    let folder = tempfile::tempdir().unwrap();
    let ops = [json!({"op": "resize", "size": [24, 30]})];
    let masks = InstanceMaskField::coco("json");
    let boxes = Some(BoxField::coco("json"));
    let fields = Fields { boxes, instance_masks: Some(masks), ..Fields::default() };
    let found = rows(folder.path(), &ops, Batching::default(), fields);
    let all = rows(folder.path(), &ops, Batching::default(), instances("/masks/*"));
    // The box in the middle is left out, and its mask is never drawn.
    assert_eq!(found, all);
    assert!(found.iter().all(|masks| masks.len() == 2 * 24 * 30));
}

/// The error of a data set whose sample 3 has another document.
fn fault(bad: &Value, fields: Fields) -> String {
    let folder = tempfile::tempdir().unwrap();
    let sample = |number| {
        let good = sample(number);
        let other = vec![field("json", bad.to_string())];
        Annotated { fields: if number == 3 { other } else { good.fields }, ..good }
    };
    let config = LoaderConfig { on_error: OnError::Skip, ..with(train(), fields) };
    let loader = loader(dataset(folder.path(), sample), config);
    let rows: usize = batches(&loader, 0).iter().map(Batch::len).sum();
    let [only] = &loader.audit()[..] else { return format!("{rows} rows") };
    assert_eq!((rows, only.error.index), (11, 3));
    only.error.fault.to_string()
}

#[test]
fn masks_that_cannot_be_drawn_are_the_samples_error() {
    let masks = |mask: Value| fault(&json!({"masks": [mask]}), instances("/masks/*"));
    // Sample 3 has 61 x 51 pixels.
    let Annotated { width, height, .. } = boxed(3);
    assert_eq!((width, height), (61, 51));
    for (bad, expected) in [
        (json!({"masks": 5}), "expected a list of masks at `/masks`"),
        (json!({"masks": [[]]}), "12 rows"),
        (json!({"masks": []}), "12 rows"),
    ] {
        assert!(fault(&bad, instances("/masks/*")).ends_with(expected));
    }
    for (bad, expected) in [
        (json!(5), "sidecar file `json`: invalid type: integer `5`, expected a list of polygons"),
        (json!({"size": [51, 61], "counts": "\u{1}"}), "invalid compressed run lengths at"),
        (json!([[1, 2, 3, 4, 5]]), "`/masks/0`: segmentation: a polygon has an odd number of"),
        (json!({"size": [61, 51], "counts": [3111]}), "the mask has 51 x 61 pixels, expected 61 x"),
        (json!({"size": [51, 61], "counts": [3110]}), "the run lengths cover 3110 pixels"),
    ] {
        let error = masks(bad);
        assert!(error.contains(expected), "{error}");
    }
    let fewer = json!({"annotations": [{"bbox": [0, 0, 9, 9], "category_id": 1}], "three": []});
    let fields = Fields { boxes: Some(BoxField::coco("json")), ..instances("/three/*") };
    assert_eq!(fault(&fewer, fields), "sidecar file `json` has 0 masks for 1 boxes");
}

#[test]
fn masks_beyond_the_limit_are_refused_before_they_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |number| {
        let good = sample(number);
        let masks: Vec<Value> =
            (0..if number == 3 { 50_000 } else { 2 }).map(|_| json!([])).collect();
        let fields = vec![field("json", json!({"masks": masks}).to_string())];
        Annotated { fields, ..good }
    };
    let limits = Limits { max_decoded_bytes: 1 << 20, ..Limits::default() };
    for (memory_budget, max_decoded_bytes) in [(None, 1 << 20), (Some(200 << 20), 512 << 20)] {
        let limits = Limits { max_decoded_bytes, ..limits };
        let decode = DecodeOptions { limits, ..DecodeOptions::default() };
        let on_error = OnError::Skip;
        let work = Work::Images(recipe(&[json!({"op": "resize", "size": [64, 64]})]));
        let config = with(work, instances("/masks/*"));
        let config = LoaderConfig { decode, on_error, memory_budget, ..config };
        let loader = loader(dataset(folder.path(), sample), config);
        let rows: usize = batches(&loader, 0).iter().map(Batch::len).sum();
        let [only] = &loader.audit()[..] else { panic!("{:?}", loader.audit()) };
        assert_eq!((rows, only.error.index), (11, 3));
        let error = only.error.fault.to_string();
        let expected = "50000 masks of 64x64 pixels have 204800000 bytes, memory_budget and \
            max_decoded_bytes leave ";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn pointers_and_work_without_masks_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |work, pointer| {
        let config = with(work, instances(pointer));
        let config = LoaderConfig { sampler: Shuffle::None.into(), ..config };
        tl_pipeline::Loader::new(dataset(folder.path(), sample), config).unwrap_err().to_string()
    };
    assert!(refused(train(), "/masks").starts_with("invalid pointer `/masks`"));
    assert!(refused(Work::Bytes, "/masks/*").ends_with("not with bytes"));
    let own_sizes = with(Work::Images(Recipe::decode()), instances("/masks/*"));
    let batch = batches(&loader(dataset(folder.path(), sample), own_sizes), 0).remove(0);
    let [height, width] = batch.sizes()[0].map(|side| side as usize);
    assert_eq!(batch.instance_masks(0).len(), 2 * width * height);
    assert!(batch.instance_masks(batch.len()).is_empty());
}

/// Documents of COCO with a damaged byte, a wild number, or the end cut off, never panic and never
/// take more than their limit.
#[test]
fn damaged_documents_are_errors_of_their_samples() {
    const WILD: [&str; 8] =
        ["0", "-1", "1e300", "-1e19", "4294967295", "2147483648", "65536", "0.49999999"];
    let mut rng = Rng(18);
    let mut outcomes = [0, 0];
    for round in 0..150 {
        let folder = tempfile::tempdir().unwrap();
        let damaged: Vec<Annotated> = (0..SAMPLES)
            .map(|number| {
                let mut good = document(number);
                let text = &mut good.fields[0].bytes;
                let at = rng.below(text.len());
                match rng.below(4) {
                    0 => text[at] ^= 1 << rng.below(8),
                    1 if round % 3 == 0 => text.truncate(at),
                    _ => {
                        let is_digit = |&place: &usize| text[place].is_ascii_digit();
                        let place = (at..text.len()).find(is_digit).unwrap_or(0);
                        let wild = WILD[rng.below(WILD.len())].bytes();
                        text.splice(place..=place, wild);
                    }
                }
                good
            })
            .collect();
        let sample = |number: u32| {
            let Annotated { width, height, pixels, fields } = &damaged[number as usize];
            let fields = fields.clone();
            Annotated { width: *width, height: *height, pixels: pixels.clone(), fields }
        };
        let points = KeypointField {
            shape: Some([3, 3]),
            ..KeypointField::new(
                "keypoints",
                "json",
                ValueFormat::Json("/annotations/*/keypoints".into()),
            )
        };
        let fields = Fields {
            boxes: Some(BoxField::coco("json")),
            keypoints: vec![points],
            instance_masks: Some(InstanceMaskField::coco("json")),
            ..Fields::default()
        };
        let error_budget = ErrorBudget { count: Some(1000), rate: None };
        let on_error = OnError::Fill;
        let config = LoaderConfig { on_error, error_budget, ..with(train(), fields) };
        let loader = loader(dataset(folder.path(), sample), config);
        for batch in batches(&loader, round) {
            outcomes[0] += batch.valid().iter().filter(|valid| **valid).count();
        }
        for entry in loader.audit() {
            outcomes[1] += 1;
            let fault = &entry.error.fault;
            assert!(matches!(fault, SampleFault::Annotation(_)), "{fault}");
            assert!(fault.to_string().len() < 400, "{fault}");
        }
    }
    assert!(outcomes.iter().all(|&count| count > 300), "{outcomes:?}");
}

/// A sample with three objects as COCO lists them.
fn document(number: u32) -> Annotated {
    let Annotated { width, height, pixels, .. } = boxed(number);
    let [polygon, runs] = segmentations(width, height);
    let of = |segmentation: &Value| {
        json!({"bbox": [1, 2, 30, 20.5], "category_id": 7, "segmentation": segmentation,
            "keypoints": [1, 2, 2, 30.5, 20, 1, 0, 0, 0]})
    };
    let text = json!({"annotations": [of(&polygon), of(&runs), of(&polygon)]}).to_string();
    Annotated { width, height, pixels, fields: vec![field("json", text)] }
}

/// `SplitMix64`.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }
}
