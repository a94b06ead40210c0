//! Fields: names, sidecar files, boxes and masks, and what the user makes of a batch.

use std::path::Path;

use serde_json::{Value, json};
use tbl_format::SampleFormat;
use tbl_io::{Field, NewSample, StreamWriter, WriteOptions};
use tl_pipeline::{
    Batch, Batching, BoxField, BoxValue, Buckets, Collate, ColumnType, Dataset, Fields, Loader,
    LoaderConfig, MaskField, MaskType, OnError, PipelineError, SampleFault, Sanitize, Shuffle,
    Work,
};
use tl_transform::{BoxFormat, Recipe, UserFault};

use crate::memory::{bmp, bmps, config, loader, train};

pub(crate) const SAMPLES: u32 = 12;

/// A mask of some shapes on a ground of 0: numbers that change from place to place, in both
/// directions, so that no flip or shift goes unseen.
fn mask(number: u32) -> (u32, u32, Vec<u8>) {
    let (width, height) = (40 + number * 7 % 31, 36 + number * 5 % 23);
    let value = |x: u32, y: u32| {
        let inside = x > width / 5 && y > height / 4 && x < width - 4 && y < height - 6;
        let value = 1 + x / 4 * 5 + y / 5 * 31 + number;
        if inside { value.to_le_bytes()[0].max(1) } else { 0 }
    };
    let numbers = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    (width, height, numbers.map(|(x, y)| value(x, y)).collect())
}

/// The rectangle of sample `number`: left, top, right, bottom.
fn rectangle(number: u32) -> [u32; 4] {
    let (width, height, _) = mask(number);
    [width / 4 + number % 3, height / 3, width - width / 4, height - height / 4 + number % 2]
}

fn grey(numbers: &[u8]) -> Vec<u8> {
    numbers.iter().flat_map(|&number| [number; 3]).collect()
}

pub(crate) fn png(width: u32, height: u32, numbers: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Indexed);
    // Colours that are anything but the numbers.
    encoder.set_palette(
        (0..=255u8).flat_map(|number| [255 - number, 7, number / 2]).collect::<Vec<_>>(),
    );
    encoder.write_header().unwrap().write_image_data(numbers).unwrap();
    file
}

/// Sample `number`: an image with its mask and its box.
pub(crate) struct Annotated {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<u8>,
    pub(crate) fields: Vec<Field>,
}

pub(crate) fn field(extension: &str, bytes: impl Into<Vec<u8>>) -> Field {
    Field { extension: extension.into(), bytes: bytes.into() }
}

/// Images that show their masks.
pub(crate) fn masked(number: u32) -> Annotated {
    let (width, height, numbers) = mask(number);
    let fields = vec![
        field("seg.png", png(width, height, &numbers)),
        field("txt", format!("caption {number}")),
    ];
    Annotated { width, height, pixels: grey(&numbers), fields }
}

/// Images that show their box, white on black.
pub(crate) fn boxed(number: u32) -> Annotated {
    let (width, height, _) = mask(number);
    let [left, top, right, bottom] = rectangle(number);
    let white = |x, y| (left..right).contains(&x) && (top..bottom).contains(&y);
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let numbers: Vec<u8> = places.map(|(x, y)| if white(x, y) { 255 } else { 0 }).collect();
    let document = json!({"annotations": [
        {"bbox": [left, top, right - left, bottom - top], "category_id": 100 + number},
        // A point, however it is turned, so it is left out.
        {"bbox": [3, 3, 0, 0], "category_id": 7},
    ]});
    let fields = vec![field("json", document.to_string())];
    Annotated { width, height, pixels: grey(&numbers), fields }
}

pub(crate) fn dataset(folder: &Path, sample: impl Fn(u32) -> Annotated) -> Dataset {
    let path = folder.join("annotated.tbl");
    if path.exists() {
        return Dataset::open(&[path]).unwrap();
    }
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    for number in 0..SAMPLES {
        let Annotated { width, height, pixels, fields } = sample(number);
        let (key, bytes) = (format!("{number:04}.bmp"), bmp(width, height, &pixels));
        let new = NewSample {
            format: SampleFormat::Bmp,
            width,
            height,
            key: Some(key.as_bytes()),
            label: Some(i64::from(number)),
            fields: &fields,
            ..NewSample::new(&bytes)
        };
        writer.write_sample(&new).unwrap();
    }
    writer.finish().unwrap();
    Dataset::open(&[path]).unwrap()
}

pub(crate) fn recipe(ops: &[Value]) -> Recipe {
    let output = json!({"dtype": "u8", "layout": "hwc"});
    serde_json::from_value(json!({"ops": ops, "output": output, "parity": "tensor"})).unwrap()
}

pub(crate) fn with(work: Work, fields: Fields) -> LoaderConfig {
    LoaderConfig { fields, batch_size: 5, ..config(work) }
}

pub(crate) fn batches(loader: &Loader, epoch: u32) -> Vec<Batch> {
    loader.epoch(epoch).map(Result::unwrap).collect()
}

/// The first channel of the images of a batch, and of lists of them.
fn red(batch: &Batch) -> Vec<u8> {
    let lists = (0..batch.len()).filter_map(|row| batch.sample(row)).flat_map(|s| s.bytes.to_vec());
    let all: Vec<u8> = batch.images().iter().copied().chain(lists).collect();
    all.chunks_exact(3).map(|pixel| pixel[0]).collect()
}

/// Every operation that moves pixels, with the nearest pixel taken. Those of the second list keep
/// rectangles upright, and cut nothing off where the third value says so.
fn geometry() -> Vec<Value> {
    vec![
        json!({"op": "resize", "size": [31, 57], "interpolation": "nearest"}),
        json!({"op": "resize", "size": 90, "interpolation": "nearest_exact"}),
        json!({"op": "center_crop", "size": 50}),
        json!({"op": "random_crop", "size": [30, 38], "padding": 6}),
        json!({"op": "random_resized_crop", "size": 32, "interpolation": "nearest"}),
        json!({"op": "random_shortest_size", "min_size": [20, 44, 70], "interpolation": "nearest"}),
        json!({"op": "scale_jitter", "target_size": [48, 48], "interpolation": "nearest"}),
        json!({"op": "pad", "padding": [3, 5, 2, 9]}),
        json!({"op": "pad", "padding": [8, 4, 6, 2], "padding_mode": "reflect"}),
        json!({"op": "random_zoom_out", "p": 0.8}),
        json!({"op": "random_horizontal_flip", "p": 0.6}),
        json!({"op": "random_vertical_flip", "p": 0.6}),
        json!({"op": "random_rotation", "degrees": 40}),
        json!({"op": "random_rotation", "degrees": [20, 70], "expand": true}),
        json!({"op": "random_affine", "degrees": 15, "translate": [0.1, 0.2], "scale": [0.7, 1.3],
            "shear": 12}),
        json!({"op": "random_perspective", "p": 0.9, "interpolation": "nearest"}),
        json!({"op": "elastic_transform", "alpha": 40.0, "sigma": 3.0, "interpolation": "nearest"}),
        json!({"op": "random_apply", "p": 0.5, "ops": [
            {"op": "random_horizontal_flip", "p": 1.0}, {"op": "pad", "padding": 2}]}),
    ]
}

/// Behind each other they go through head, steps and tail of a plan.
pub(crate) fn chains() -> Vec<Vec<Value>> {
    let all = geometry();
    let mut chains: Vec<Vec<Value>> = all.iter().map(|op| vec![op.clone()]).collect();
    let flip = &all[10];
    chains.push(vec![all[12].clone(), all[4].clone(), flip.clone()]);
    chains.push(vec![all[3].clone(), all[14].clone(), all[7].clone(), all[0].clone()]);
    chains.push(vec![all[9].clone(), all[15].clone(), all[11].clone(), all[2].clone()]);
    chains
}

#[test]
fn a_mask_moves_as_an_image_of_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut moved = 0;
    for ops in chains() {
        let fields = Fields { mask: Some(MaskField::new("seg.png")), ..Fields::default() };
        let recipe = recipe(&ops);
        let fixed = recipe.output_size().is_some();
        let loader = loader(dataset(folder.path(), masked), with(Work::Images(recipe), fields));
        for epoch in 0..2 {
            for batch in batches(&loader, epoch) {
                let lists = (0..batch.len()).filter_map(|row| batch.mask(row)).collect::<Vec<_>>();
                let masks = if fixed { batch.masks().to_vec() } else { lists.concat() };
                let images = red(&batch);
                assert_eq!(masks.len(), images.len(), "{ops:?}");
                let differ = masks.iter().zip(&images).filter(|(mask, image)| mask != image);
                assert_eq!(differ.count(), 0, "{ops:?} in epoch {epoch}");
                moved += masks.iter().filter(|number| **number > 0).count();
            }
        }
    }
    assert!(moved > 100_000, "{moved} pixels are no test");
}

/// As `masked`, without a 0, so that a 0 in the batch is a pixel that the recipe left uncovered.
fn covered(number: u32) -> Annotated {
    let (width, height, mut numbers) = mask(number);
    numbers.iter_mut().for_each(|number| *number = (*number).max(1));
    let fields = vec![field("seg.png", png(width, height, &numbers))];
    Annotated { width, height, pixels: grey(&numbers), fields }
}

#[test]
fn the_padding_of_a_mask_is_what_recipes_leave_uncovered() {
    let folder = tempfile::tempdir().unwrap();
    let mut uncovered = 0;
    for ops in chains() {
        let mask = MaskField { padding: Some(200), ..MaskField::new("seg.png") };
        let fields = Fields { mask: Some(mask), ..Fields::default() };
        let recipe = recipe(&ops);
        let fixed = recipe.output_size().is_some();
        let loader = loader(dataset(folder.path(), covered), with(Work::Images(recipe), fields));
        for batch in batches(&loader, 0) {
            let lists = (0..batch.len()).filter_map(|row| batch.mask(row)).collect::<Vec<_>>();
            let masks = if fixed { batch.masks().to_vec() } else { lists.concat() };
            let images = red(&batch);
            uncovered += images.iter().filter(|pixel| **pixel == 0).count();
            let expected = images.iter().map(|&pixel| if pixel == 0 { 200 } else { pixel });
            assert!(masks.iter().copied().eq(expected), "{ops:?}");
        }
    }
    assert!(uncovered > 10_000, "{uncovered} pixels are too few");
}

/// The edges of what is white.
fn extent(image: &[u8], width: usize) -> Option<[f32; 4]> {
    let white = |place: &usize| image[*place] > 127;
    let places: Vec<usize> = (0..image.len()).filter(white).collect();
    let rows = || places.iter().map(|place| place / width);
    let columns = || places.iter().map(|place| place % width);
    let edge = |place: usize| f32::from(u16::try_from(place).unwrap());
    let (left, right) = (columns().min()?, columns().max()? + 1);
    let (top, bottom) = (rows().min()?, rows().max()? + 1);
    Some([edge(left), edge(top), edge(right), edge(bottom)])
}

#[test]
fn a_box_moves_as_an_image_of_it_does() {
    let folder = tempfile::tempdir().unwrap();
    // Pixels of an edge that resampling may round away, and a reflection is not a box.
    let is_box = |op: &Value| op["padding_mode"] != "reflect";
    for ops in chains().into_iter().filter(|ops| ops.iter().all(is_box)) {
        let names: Vec<&str> = ops.iter().filter_map(|op| op["op"].as_str()).collect();
        let warps = ["random_rotation", "random_affine", "random_perspective", "elastic_transform"];
        // The corners of a warp span more than the pixels that remain at the edge.
        let warped = names.iter().any(|name| warps.contains(name));
        let elastic = names.contains(&"elastic_transform");
        let tolerance = if elastic { 4.0 } else { 2.0 };
        let boxes = BoxField { output: BoxFormat::Xyxy, ..BoxField::coco("json") };
        let fields = Fields { boxes: Some(boxes), ..Fields::default() };
        let loader =
            loader(dataset(folder.path(), boxed), with(Work::Images(recipe(&ops)), fields));
        let mut seen = 0;
        for batch in batches(&loader, 0).into_iter().chain(batches(&loader, 1)) {
            let mut images = red(&batch).into_iter();
            for row in 0..batch.len() {
                let [height, width] = batch.sizes()[row].map(|side| side as usize);
                let image: Vec<u8> = images.by_ref().take(width * height).collect();
                let Some(white) = extent(&image, width) else { continue };
                // A sliver of the box may be rounded away.
                let [found] = batch.boxes(row) else {
                    assert!(white[2] - white[0] <= 1.0 || white[3] - white[1] <= 1.0, "{ops:?}");
                    continue;
                };
                assert_eq!(batch.box_labels(row), [100 + batch.labels()[row]]);
                for (edge, (&found, &white)) in found.iter().zip(&white).enumerate() {
                    let outside = if edge < 2 { found - white } else { white - found };
                    assert!(outside <= tolerance, "{ops:?}: {found} of {white}, edge {edge}");
                    let far = (found - white).abs() > tolerance;
                    assert!(warped || !far, "{ops:?}: {found} is not {white}, edge {edge}");
                }
                seen += 1;
            }
        }
        assert!(seen >= SAMPLES, "{ops:?}: {seen}");
    }
}

#[test]
fn boxes_come_in_the_format_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |output, sanitize| {
        let boxes = BoxField { output, sanitize, ..BoxField::coco("json") };
        let fields = Fields { boxes: Some(boxes), ..Fields::default() };
        let flip = [json!({"op": "random_horizontal_flip", "p": 1.0})];
        let work = Work::Images(recipe(&flip));
        let config = LoaderConfig { sampler: Shuffle::None.into(), ..with(work, fields) };
        let loader = loader(dataset(folder.path(), boxed), config);
        let batch = batches(&loader, 0).remove(0);
        (batch.boxes(1).to_vec(), batch.box_labels(1).to_vec())
    };
    // 47 x 41 pixels; the box is 12, 13, 36, 32.
    assert_eq!((mask(1).0, rectangle(1)), (47, [12, 13, 36, 32]));
    let some = Some(Sanitize::default());
    assert_eq!(rows(BoxFormat::Xyxy, some), (vec![[11.0, 13.0, 35.0, 32.0]], vec![101]));
    assert_eq!(rows(BoxFormat::Xywh, some).0, [[11.0, 13.0, 24.0, 19.0]]);
    assert_eq!(rows(BoxFormat::Cxcywh, some).0, [[23.0, 22.5, 24.0, 19.0]]);
    let all = rows(BoxFormat::Xyxy, None);
    assert_eq!(all, (vec![[11.0, 13.0, 35.0, 32.0], [44.0, 3.0, 44.0, 3.0]], vec![101, 7]));
    let large = Some(Sanitize { min_size: 20.0, min_area: 1.0 });
    assert_eq!(rows(BoxFormat::Xyxy, large), (vec![], vec![]));
}

#[test]
fn padded_masks_lie_beside_padded_images() {
    let folder = tempfile::tempdir().unwrap();
    let ops =
        [json!({"op": "random_shortest_size", "min_size": [20, 44], "interpolation": "nearest"})];
    let received = |dtype, workers| {
        let mask = MaskField { dtype, ..MaskField::new("seg.png") };
        let fields = Fields { mask: Some(mask), ..Fields::default() };
        let batching = Batching::Buckets(Buckets { window: 2, multiple: 8 });
        let config = with(Work::Images(recipe(&ops)), fields);
        let config = LoaderConfig { batching, workers, ..config };
        batches(&loader(dataset(folder.path(), masked), config), 0)
    };
    let bytes = received(MaskType::U8, 3);
    for (batch, numbers) in bytes.iter().zip(received(MaskType::I64, 1)) {
        let spec = batch.spec().unwrap();
        let (width, height) = (spec.width as usize, spec.height as usize);
        assert_eq!(batch.masks().len(), batch.len() * width * height);
        for (row, mask) in batch.masks().chunks_exact(width * height).enumerate() {
            let [inner_height, inner_width] = batch.sizes()[row].map(|side| side as usize);
            let image = &red(batch)[row * width * height..];
            for (place, (&number, &pixel)) in mask.iter().zip(image).enumerate() {
                let inside = place % width < inner_width && place / width < inner_height;
                assert_eq!(number, if inside { pixel } else { 255 });
            }
        }
        assert_eq!((batch.mask_type(), batch.masks_i64()), (Some(MaskType::U8), None));
        let widened: Vec<i64> = batch.masks().iter().map(|&number| number.into()).collect();
        assert_eq!(numbers.masks_i64(), Some(widened.as_slice()));
        assert_eq!(numbers.images(), batch.images());
    }
}

#[test]
fn names_and_columns_are_those_of_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let columns = vec!["txt".into(), "json".into(), "seg.png".into()];
    let fields = Fields { keys: true, bytes: columns, ..Fields::default() };
    let sample = |number| {
        let mut fields = masked(number).fields;
        fields.extend((number == 5).then(|| field("json", "{}")));
        Annotated { fields, ..masked(number) }
    };
    for work in [train(), Work::Images(Recipe::decode()), Work::Bytes] {
        let loader = loader(dataset(folder.path(), sample), with(work, fields.clone()));
        for batch in batches(&loader, 0).into_iter().chain(batches(&loader, 1)) {
            for (row, &index) in batch.indices().iter().enumerate() {
                let (width, height, numbers) = mask(u32::try_from(index).unwrap());
                let name = format!("{index:04}.bmp");
                assert_eq!(batch.key(row), Some(name.as_bytes()));
                assert_eq!(batch.bytes(0, row).unwrap(), format!("caption {index}").as_bytes());
                assert_eq!(batch.bytes(1, row), (index == 5).then_some(&b"{}"[..]));
                assert_eq!(batch.bytes(2, row).unwrap(), png(width, height, &numbers));
            }
            assert_eq!((batch.key(batch.len()), batch.bytes(3, 0)), (None, None));
            assert!(batch.masks().is_empty() && batch.boxes(0).is_empty());
        }
    }
}

#[test]
fn without_fields_nothing_is_read_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let batch =
        batches(&loader(dataset(folder.path(), masked), with(train(), Fields::default())), 0);
    assert_eq!((batch[0].key(0), batch[0].bytes(0, 0), batch[0].mask(0)), (None, None, None));
}

/// The faults of sample 3, whose annotations are `fields`.
fn fault(fields: &[Field], config: Fields) -> String {
    let (folder, masks) = (tempfile::tempdir().unwrap(), config.mask.is_some());
    let sample = |number| {
        let good = if masks { masked(number) } else { boxed(number) };
        let fields = if number == 3 { fields.to_vec() } else { good.fields };
        Annotated { fields, ..good }
    };
    let config = LoaderConfig { on_error: OnError::Skip, ..with(train(), config) };
    let loader = loader(dataset(folder.path(), sample), config);
    let rows: usize = batches(&loader, 0).iter().map(Batch::len).sum();
    let skipped = loader.audit();
    let [only] = &skipped[..] else { return format!("{rows} rows, {} skipped", skipped.len()) };
    assert_eq!((rows, only.error.index), (11, 3));
    assert!(matches!(only.error.fault, SampleFault::Annotation(_)));
    only.error.fault.to_string()
}

#[test]
fn annotations_that_cannot_be_used_are_the_samples_error() {
    let boxes = |field: &str, expected: &str| {
        let fields = Fields { boxes: Some(BoxField::coco("json")), ..Fields::default() };
        let stored = vec![Field { extension: b"json".to_vec(), bytes: field.into() }];
        assert_eq!(fault(&stored, fields), expected);
    };
    let of = |what: &str| {
        format!(r#"{{"annotations": [{{"bbox": [1,2,3,4], "category_id": 1}}, {what}]}}"#)
    };
    boxes("{", "sidecar file `json`: EOF while parsing an object at line 1 column 1");
    boxes("{}", "sidecar file `json`: expected a list of boxes at `/annotations`");
    boxes(
        &of(r#"{"bbox": [1, 2, 3]}"#),
        "sidecar file `json`: expected a box of four numbers at `/annotations/1/bbox`",
    );
    boxes(
        &of(r#"{"bbox": [1, 2, 3, 1e300]}"#),
        "sidecar file `json`: expected a label of a whole number at `/annotations/1/category_id`",
    );
    boxes(
        &of(r#"{"bbox": [1, 2, 3, 1e300], "category_id": 0}"#),
        "box 1 has a coordinate that is not a number from -1e20 to 1e20",
    );
    boxes(
        &of(r#"{"bbox": [1, 2, 3, 4], "category_id": 1.5}"#),
        "sidecar file `json`: expected a label of a whole number at `/annotations/1/category_id`",
    );
    boxes(r#"{"annotations": []}"#, "12 rows, 0 skipped");

    let lists = BoxField { labels: Some("/labels/*".into()), ..BoxField::new("json", "/boxes/*") };
    let fields = Fields { boxes: Some(lists), ..Fields::default() };
    let stored = vec![field("json", r#"{"boxes": [[1, 2, 3, 4]], "labels": [1, 2]}"#)];
    let folder = tempfile::tempdir().unwrap();
    let sample = |number| Annotated { fields: stored.clone(), ..boxed(number) };
    let failing = loader(dataset(folder.path(), sample), with(train(), fields));
    let error = failing.epoch(0).next().unwrap().unwrap_err().to_string();
    assert!(error.ends_with("sidecar file `json` has 2 labels for 1 boxes"), "{error}");

    let mask = |stored: &[Field], expected: &str| {
        let mask = Some(MaskField::new("seg.png"));
        assert_eq!(fault(stored, Fields { mask, ..Fields::default() }), expected);
    };
    mask(&[], "no sidecar file `seg.png`");
    mask(&[field("seg.png", png(3, 2, &[0; 6]))], "mask `seg.png` has 3x2 pixels, the image 61x51");
    let colours = [field("seg.png", bmp(61, 51, &[0; 61 * 51 * 3]))];
    mask(
        &colours,
        "sidecar file `seg.png`: unsupported: mask in a BMP file of 3 channels of 8 bits",
    );
}

#[test]
fn what_cannot_be_annotated_is_refused_by_name() {
    let boxes =
        |pointer: &str| Fields { boxes: Some(BoxField::new("json", pointer)), ..Fields::default() };
    let refused = |work, fields| Loader::new(bmps(4), with(work, fields)).unwrap_err().to_string();
    let error = refused(Work::Bytes, boxes("/a/*"));
    assert!(error.ends_with("not with bytes"), "{error}");
    let five = recipe(&[json!({"op": "five_crop", "size": 9})]);
    let error = refused(Work::Images(five), boxes("/a/*"));
    assert!(error.contains("FiveCrop"), "{error}");
    assert_eq!(
        refused(train(), boxes("/a")),
        "invalid pointer `/a`: expected a JSON pointer with exactly one `*`"
    );
    let sanitize = Some(Sanitize { min_size: 0.5, min_area: 1.0 });
    let small = BoxField { sanitize, ..BoxField::new("json", "/a/*") };
    let error = refused(train(), Fields { boxes: Some(small), ..Fields::default() });
    assert!(error.starts_with("min_size is 0.5"), "{error}");
    let mask = Some(MaskField { dtype: MaskType::I64, ..MaskField::new("png") });
    let error = refused(Work::Images(Recipe::decode()), Fields { mask, ..Fields::default() });
    assert!(error.contains("masks of their own sizes are bytes"), "{error}");
}

#[test]
fn what_the_user_makes_of_a_batch_comes_with_it() {
    let collate = Collate::new(|batch: &Batch| {
        let sum: i64 = batch.labels().iter().sum();
        Ok((batch.number(), sum))
    });
    for workers in [1, 4] {
        let collate = Some(collate.clone());
        let config = LoaderConfig { collate, workers, ..config(train()) };
        for batch in batches(&loader(bmps(23), config), 2) {
            let expected = (batch.number(), batch.labels().iter().sum::<i64>());
            assert_eq!(batch.collated::<(u64, i64)>(), Some(&expected));
            assert_eq!(batch.collated::<String>(), None);
        }
    }
}

#[test]
fn a_batch_that_cannot_be_collated_is_the_epochs_error() {
    let at_two = |fails: fn() -> Result<(), tl_transform::UserError>| {
        let code = move |batch: &Batch| if batch.number() == 2 { fails() } else { Ok(()) };
        let config = LoaderConfig { collate: Some(Collate::new(code)), ..config(train()) };
        let loader = loader(bmps(23), config);
        let mut epoch = loader.epoch(0);
        assert!(epoch.next().unwrap().is_ok() && epoch.next().unwrap().is_ok());
        let error = epoch.next().unwrap().unwrap_err();
        assert!(epoch.next().is_none());
        error
    };
    let error = at_two(|| Err("too odd".into()));
    assert_eq!(error.to_string(), "batch 2 cannot be collated: too odd");
    let error = at_two(|| panic!("far\ntoo odd"));
    let PipelineError::Collate { batch: 2, fault: UserFault::Panicked { message } } = error else {
        panic!("{error}")
    };
    assert_eq!(message, r"far\x0atoo odd");
}

/// A row without a sample has no pixel of any class.
#[test]
fn masks_of_rows_that_were_filled_in_are_padding() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |number| {
        let good = masked(number);
        Annotated { fields: if number == 3 { Vec::new() } else { good.fields }, ..good }
    };
    let dataset = || dataset(folder.path(), sample);
    for dtype in [MaskType::U8, MaskType::I64] {
        let mask = MaskField { dtype, ..MaskField::new("seg.png") };
        let fields = Fields { mask: Some(mask), keys: true, ..Fields::default() };
        let on_error = OnError::Fill;
        let loader = loader(dataset(), LoaderConfig { on_error, ..with(train(), fields) });
        for batch in batches(&loader, 0) {
            for (row, &index) in batch.indices().iter().enumerate() {
                let numbers = match batch.masks_i64() {
                    Some(numbers) => numbers[row * 256..][..256].to_vec(),
                    None => batch.masks()[row * 256..][..256].iter().map(|&n| n.into()).collect(),
                };
                assert_eq!(numbers.iter().all(|&number| number == 255), index == 3);
                assert_eq!(
                    (batch.valid()[row], batch.key(row).is_some()),
                    (index != 3, index != 3)
                );
            }
        }
    }
}

#[test]
fn numbers_of_boxes_go_with_the_boxes_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |number| {
        let Annotated { width, height, pixels, .. } = boxed(number);
        let document = json!({"boxes": [
            {"at": [1, 1, 1, 1], "area": 0.5, "crowd": true},
            {"at": [0, 0, width, height], "area": number, "crowd": false},
        ]});
        let fields = vec![field("json", document.to_string())];
        Annotated { width, height, pixels, fields }
    };
    let value = |pointer: &str, number| BoxValue { pointer: pointer.into(), number };
    let values =
        vec![value("/boxes/*/area", ColumnType::F32), value("/boxes/*/crowd", ColumnType::Bool)];
    let boxes = BoxField { values, ..BoxField::new("json", "/boxes/*/at") };
    let with_fields = |boxes: BoxField| {
        let fields = Fields { boxes: Some(boxes), ..Fields::default() };
        let resize = recipe(&[json!({"op": "resize", "size": [20, 20]})]);
        loader(dataset(folder.path(), sample), with(Work::Images(resize), fields))
    };
    for batch in batches(&with_fields(boxes.clone()), 0) {
        for (row, &index) in batch.indices().iter().enumerate() {
            assert_eq!(batch.boxes(row), [[0.0, 0.0, 20.0, 20.0]]);
            assert_eq!(batch.box_indices(row), [1]);
            assert_eq!(batch.box_values(0, row), (index as f32).to_ne_bytes());
            assert_eq!(batch.box_values(1, row), [0]);
            assert!(batch.box_values(2, row).is_empty());
        }
    }
    for batch in batches(&with_fields(BoxField { sanitize: None, ..boxes.clone() }), 0) {
        assert_eq!(batch.box_indices(0), [0, 1]);
        assert_eq!(batch.box_values(1, 0), [1, 0]);
    }
    let whole = BoxField { values: vec![value("/boxes/*/area", ColumnType::I64)], ..boxes };
    let error = with_fields(whole).epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.ends_with("expected a number that the type has at `/boxes/0/area`"), "{error}");
}

#[test]
fn boxes_beyond_the_edge_are_cut_and_reversed_ones_refused() {
    let check = |at: Value, format, expected: Result<[f32; 4], &str>| {
        let folder = tempfile::tempdir().unwrap();
        let sample = |number| {
            let Annotated { width, height, pixels, .. } = boxed(number);
            let fields = vec![field("json", json!({"boxes": [at]}).to_string())];
            Annotated { width, height, pixels, fields }
        };
        let boxes = BoxField { format, ..BoxField::new("json", "/boxes/*") };
        let fields = Fields { boxes: Some(boxes), ..Fields::default() };
        let flip = recipe(&[json!({"op": "random_horizontal_flip", "p": 0.0})]);
        let config =
            LoaderConfig { sampler: Shuffle::None.into(), ..with(Work::Images(flip), fields) };
        let first = loader(dataset(folder.path(), sample), config).epoch(0).next().unwrap();
        match (first, expected) {
            (Ok(batch), Ok(expected)) => assert_eq!(batch.boxes(0), [expected]),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    };
    // Sample 0 has 40 x 36 pixels.
    check(json!([-0.5, 3, 20, 36.01]), BoxFormat::Xyxy, Ok([0.0, 3.0, 20.0, 36.0]));
    check(json!([30, 3, 10.001, 4]), BoxFormat::Xywh, Ok([30.0, 3.0, 40.0, 7.0]));
    check(json!([30, 3, 10, 4]), BoxFormat::Xyxy, Err("COCO's boxes have format xywh"));
    check(json!([30, 3, -1, 4]), BoxFormat::Xywh, Err("width and height are 0 or more"));
}
