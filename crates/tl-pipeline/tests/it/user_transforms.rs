//! The user's own code in recipes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};
use tl_pipeline::{
    Batching, BoxField, Buckets, Epoch, Fields, InstanceMaskField, KeypointField, Loader,
    LoaderConfig, MaskField, OnError, PipelineError, SampleFault, Sanitize, ValueFormat, Work,
};
use tl_transform::op::{
    CenterCrop, FiveCrop, RandomApply, Size, UserSize, UserSizeName, UserTransform,
};
use tl_transform::{
    BoxFormat, Dtype, Image, Layout, Mask, Op, OutputSpec, Recipe, Rng, StepError, UserAnnotations,
    UserError, UserFault, UserTransformError, UserTransforms,
};

use crate::fields::{Annotated, batches, dataset, field, masked, recipe, with as with_fields};
use crate::memory::{bmps, config, loader};

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

/// Fills an image with a random sample; what is below a limit is an error or a panic.
struct Fill;

impl tl_transform::UserTransform for Fill {
    fn apply(
        &self,
        pixels: &mut [u8],
        _: (u32, u32),
        rng: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        let [sample, ..] = rng.next_u32().to_le_bytes();
        let below = |name| parameters[name].as_u64().is_some_and(|limit| u64::from(sample) < limit);
        if below("fail") {
            return Err(format!("{sample} is too little").into());
        }
        assert!(!below("panic"), "{sample} is far too little");
        pixels.fill(sample);
        Ok(())
    }
}

fn with(parameters: Value, on_error: OnError) -> LoaderConfig {
    let fill = UserTransform::new("fill", parameters);
    let recipe = Recipe::new(vec![CenterCrop::new(4).into(), fill.into()], PIXELS).unwrap();
    let mut user_transforms = UserTransforms::new();
    user_transforms.insert("fill", Fill);
    LoaderConfig { user_transforms, on_error, ..config(Work::Images(recipe)) }
}

fn images(config: LoaderConfig) -> Vec<Vec<u8>> {
    let loader = loader(bmps(23), config);
    loader.epoch(0).map(|batch| batch.unwrap().images().to_vec()).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_workers() {
    let one = images(LoaderConfig { workers: 1, ..with(json!({}), OnError::Raise) });
    assert!(one.concat().chunks(48).all(|image| image.iter().all(|sample| *sample == image[0])));
    assert!(one.concat().chunks(48).any(|image| image[0] != one[0][0]));
    for workers in [2, 5] {
        assert_eq!(images(LoaderConfig { workers, ..with(json!({}), OnError::Raise) }), one);
    }
}

#[test]
fn failures_are_those_of_their_samples() {
    let good = images(with(json!({}), OnError::Raise)).concat();
    let skipped = good.chunks(48).filter(|image| image[0] < 60).count();
    assert!(skipped > 0);
    for way in ["fail", "panic"] {
        let loader = loader(bmps(23), with(json!({way: 60}), OnError::Skip));
        let left = loader.epoch(0).flat_map(|batch| batch.unwrap().images().to_vec());
        let expected = good.chunks(48).filter(|image| image[0] >= 60).flatten().copied();
        assert!(left.eq(expected), "{way}");
        assert_eq!(loader.stats().skipped, skipped as u64);
    }
    let epoch =
        |way: &str| loader(bmps(1), with(json!({way: 256}), OnError::Raise)).epoch(0).next();
    let fault = |way| {
        let Some(Err(PipelineError::Sample(error))) = epoch(way) else { panic!("{way}") };
        let SampleFault::Step(StepError::UserTransform { source, .. }) = &error.fault else {
            panic!("{error}")
        };
        source.clone()
    };
    let UserFault::Failed(error) = fault("fail") else { panic!() };
    assert!(error.to_string().ends_with("is too little"), "{error}");
    let UserFault::Panicked { message } = fault("panic") else { panic!() };
    assert!(message.ends_with("is far too little"), "{message}");
}

#[test]
fn what_is_not_registered_is_refused_at_once() {
    let config =
        LoaderConfig { user_transforms: UserTransforms::new(), ..with(json!({}), OnError::Skip) };
    match Loader::new(bmps(1), config) {
        Err(PipelineError::UserTransform(error)) => {
            assert_eq!(error, UserTransformError::Unknown { name: "fill".into() });
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a loader without the code"),
    }
}

/// Lets go of what it receives, on the worker that calls it, and says whether that went well.
struct LetGo {
    loaders: Mutex<mpsc::Receiver<(Loader, Epoch)>>,
    is_gone: mpsc::Sender<bool>,
}

impl tl_transform::UserTransform for LetGo {
    fn apply(&self, _: &mut [u8], _: (u32, u32), _: &mut Rng, _: &Value) -> Result<(), UserError> {
        let received = self.loaders.lock().unwrap().recv();
        if let Ok(loader) = received {
            self.is_gone.send(catch_unwind(AssertUnwindSafe(|| drop(loader))).is_ok())?;
        }
        Ok(())
    }
}

#[test]
fn a_loader_is_let_go_of_on_its_own_worker() {
    for workers in [1, 3] {
        let (send, loaders) = mpsc::channel();
        let (is_gone, gone) = mpsc::channel();
        let let_go = UserTransform::new("let_go", json!({}));
        let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
        let recipe = Recipe::new(vec![CenterCrop::new(4).into(), let_go.into()], output).unwrap();
        let mut user_transforms = UserTransforms::new();
        user_transforms.insert("let_go", LetGo { loaders: Mutex::new(loaders), is_gone });
        let config = LoaderConfig { user_transforms, workers, ..config(Work::Images(recipe)) };
        let loader = loader(bmps(23), config);
        let epoch = loader.epoch(0);
        send.send((loader, epoch)).unwrap();
        drop(send);
        assert_eq!(gone.recv(), Ok(true));
    }
}

/// Mirrors images and all that moves with them, or cuts them to a part of the size that its parameters
/// tell.
struct Mirror;

impl tl_transform::UserTransform for Mirror {
    fn moves(&self) -> bool {
        true
    }

    fn change(
        &self,
        image: &mut Image,
        annotations: &mut UserAnnotations,
        _: &mut Rng,
        parameters: &Value,
    ) -> Result<(), UserError> {
        let part = Part::of(image, parameters);
        let pixels = part.mirrored(image.pixels().as_chunks::<3>().0);
        *image = Image::from_pixels(part.width, part.height, pixels.concat());
        let width = f32::from(u16::try_from(part.width)?);
        for edges in annotations.boxes.iter_mut().flatten() {
            let [left, top, right, bottom] = *edges;
            *edges = [width - right, top, width - left, bottom];
            if parameters["drops"] == json!(true) && right - left < 1.0 {
                *edges = [f32::NAN; 4];
            }
        }
        for points in &mut annotations.keypoints {
            let numbers = points.shape[1];
            points.numbers.chunks_exact_mut(numbers).for_each(|point| {
                let is_labelled = numbers == 2 || point[2] > 0.0;
                point[0] = if is_labelled { width - 1.0 - point[0] } else { 0.0 };
            });
        }
        for mask in annotations.masks.iter_mut().flatten() {
            *mask = Mask::new(part.width, part.height, part.mirrored(mask.data()))?;
        }
        if let Some(mask) = &mut annotations.mask {
            mask.numbers = part.mirrored(&mask.numbers);
            mask.size = (part.width, part.height);
        }
        Ok(())
    }
}

/// The top left part of an image of `stride` columns.
struct Part {
    stride: usize,
    width: u32,
    height: u32,
}

impl Part {
    fn of(image: &Image, parameters: &Value) -> Self {
        let (width, height) = image.size();
        let side = |name: &str, side| {
            parameters[name]
                .as_u64()
                .map_or(side, |number| u32::try_from(number).unwrap().min(side))
        };
        let stride = usize::try_from(width).unwrap();
        Self { stride, width: side("width", width), height: side("height", height) }
    }

    fn mirrored<T: Copy>(&self, items: &[T]) -> Vec<T> {
        let rows = items.chunks_exact(self.stride).take(self.height as usize);
        rows.flat_map(|row| row[..self.width as usize].iter().rev().copied()).collect()
    }
}

/// Samples with boxes, keypoints, masks of objects, and a mask.
fn annotated(number: u32) -> Annotated {
    let Annotated { width, height, pixels, mut fields } = masked(number);
    let object = |left: u32, top: u32, label: u32| {
        let (right, bottom) = (width - 6 - left, height - 5 - top);
        json!({
            "bbox": [left, top, right, bottom], "category_id": label,
            "segmentation": [[left, top, right, top, right, bottom]],
            "keypoints": [left, top, 2, right, bottom, 1, 0, 0, 0],
        })
    };
    let empty = json!({
        "bbox": [3, 3, 3, 3], "category_id": 9, "segmentation": [[1, 1, 2, 1, 2, 2]],
        "keypoints": [1, 1, 1, 2, 2, 2, 3, 3, 2],
    });
    let document = json!({
        "annotations": [object(2, 3, 5), empty, object(7, 1, 6)],
        "eyes": [[4.5, 6.0], [width - 3, 2]],
    });
    fields.push(field("json", document.to_string()));
    Annotated { width, height, pixels, fields }
}

/// All kinds of annotations, or none.
fn kinds(sanitize: Option<Sanitize>) -> Fields {
    let joints = ValueFormat::Json("/annotations/*/keypoints".into());
    Fields {
        // The transform gets edges: widths would be rounded on the way there and back.
        boxes: Some(BoxField { sanitize, format: BoxFormat::Xyxy, ..BoxField::coco("json") }),
        keypoints: vec![
            KeypointField::new("joints", "json", joints),
            KeypointField::new("eyes", "json", ValueFormat::Json("/eyes".into())),
        ],
        instance_masks: Some(InstanceMaskField::coco("json")),
        mask: Some(MaskField::new("seg.png")),
        ..Fields::default()
    }
}

/// Coordinates without what is lost on different ways to them: a plan joins operations.
fn rounded(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|number| (f64::from(*number) * 64.0).round() / 64.0 + 0.0).collect()
}

/// Everything that the batches of an epoch have.
fn content(folder: &Path, recipe: &Recipe, fields: Fields, batching: Batching) -> Vec<String> {
    let mut user_transforms = UserTransforms::new();
    user_transforms.insert("mirror", Mirror);
    let work = Work::Images(recipe.clone());
    let config = LoaderConfig { user_transforms, batching, ..with_fields(work, fields) };
    let loader = loader(dataset(folder, annotated), config);
    let mut found = Vec::new();
    for batch in batches(&loader, 1) {
        for row in 0..batch.len() {
            let eyes = batch.column_named("eyes").map(|column| column.numbers::<f32>().unwrap());
            found.push(format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                rounded(batch.boxes(row).as_flattened()),
                (batch.indices()[row], batch.box_labels(row), batch.box_indices(row)),
                rounded(batch.keypoints(0, row)),
                rounded(eyes.unwrap_or_default()),
                batch.instance_masks(row),
                batch.mask(row),
                batch.sample(row).map(|sample| sample.bytes.to_vec()),
                (batch.images(), batch.masks()),
            ));
        }
    }
    found
}

/// Fails at the first place where the rows differ.
fn assert_same(found: &[String], expected: &[String], case: &str) {
    assert_eq!(found.len(), expected.len(), "{case}");
    for (found, expected) in found.iter().zip(expected) {
        let differs = found.bytes().zip(expected.bytes()).position(|(one, other)| one != other);
        let part = |row: &str| row.chars().skip(differs.unwrap_or(0)).take(90).collect::<String>();
        assert!(found == expected, "{case}: {} for {}", part(found), part(expected));
    }
}

fn mirror(parameters: Value) -> UserTransform {
    UserTransform::new("mirror", parameters)
}

#[test]
fn annotations_go_through_a_users_transform() {
    let folder = tempfile::tempdir().unwrap();
    let flip = || json!({"op": "random_horizontal_flip", "p": 1.0});
    let user = || json!(Op::from(mirror(json!({}))));
    let any = || json!(Op::from(mirror(json!({})).with_size(UserSize::Named(UserSizeName::Any))));
    let crop = json!({"op": "random_crop", "size": [30, 28], "padding": 6});
    let resize = json!({"op": "resize", "size": [19, 23], "interpolation": "nearest"});
    let rotate = json!({"op": "random_rotation", "degrees": 40});
    let of = |ops: &[Value], sanitize, batching| {
        let fields = kinds(sanitize);
        content(folder.path(), &recipe(ops), fields, batching)
    };
    let padded = Batching::Buckets(Buckets { window: 2, multiple: 8 });
    let sanitized = Some(Sanitize::default());
    for (before, after, batching) in [
        (vec![], vec![], Batching::InOrder),
        (vec![], vec![], padded),
        (vec![crop.clone()], vec![rotate.clone(), resize.clone()], Batching::InOrder),
        (vec![rotate.clone(), crop.clone()], vec![crop.clone()], Batching::InOrder),
    ] {
        for sanitize in [sanitized, None] {
            let with = |op: Value| [before.clone(), vec![op], after.clone()].concat();
            let expected = of(&with(flip()), sanitize, batching);
            let case = format!("{before:?} {after:?}");
            assert_same(&of(&with(user()), sanitize, batching), &expected, &case);
            if batching == Batching::InOrder {
                assert_same(&of(&with(any()), sanitize, batching), &expected, &case);
            }
        }
    }
    // One after the other.
    let twice = [rotate.clone(), user(), crop.clone(), any(), resize.clone()];
    let flipped = [rotate, flip(), crop, flip(), resize];
    assert_eq!(
        of(&twice, sanitized, Batching::InOrder),
        of(&flipped, sanitized, Batching::InOrder)
    );
    // A box that the transform drops is left out, with all that belongs to its object.
    let drops = json!(Op::from(mirror(json!({"drops": true}))));
    let dropped = of(&[drops], None, Batching::InOrder);
    assert_same(&dropped, &of(&[flip()], sanitized, Batching::InOrder), "dropped");
}

#[test]
fn a_users_transform_may_change_the_size() {
    let folder = tempfile::tempdir().unwrap();
    let part = || mirror(json!({"width": 25, "height": 20}));
    let exact = part().with_size(UserSize::Exact([20, 25]));
    let any = part().with_size(UserSize::Named(UserSizeName::Any));
    let resize = json!({"op": "resize", "size": [11, 12]});
    let of = |user: &UserTransform, fields: Fields| {
        let ops = [json!(Op::from(user.clone())), resize.clone()];
        content(folder.path(), &recipe(&ops), fields, Batching::InOrder)
    };
    assert_eq!(of(&exact, Fields::default()), of(&any, Fields::default()));
    let all = of(&exact, kinds(None));
    assert_eq!(all, of(&any, kinds(None)));
    assert!(all[0].contains("[0, 1, 2])"), "{}", all[0]);
    assert_eq!(recipe(&[json!(Op::from(exact))]).output_size(), Some((25, 20)));
    let any = Op::from(any);
    assert_eq!(recipe(&[json!(any)]).output_size(), None);
    // The recipe says another size, or several images of a sample.
    let config = |recipe: &Recipe, batching| {
        let mut user_transforms = UserTransforms::new();
        user_transforms.insert("mirror", Mirror);
        let work = Work::Images(recipe.clone());
        LoaderConfig { user_transforms, batching, ..config(work) }
    };
    let kept = recipe(&[json!(Op::from(part()))]);
    let loader = loader(dataset(folder.path(), annotated), config(&kept, Batching::InOrder));
    let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("returned an image of 25x20 pixels, expected "), "{error}");
    assert!(error.ends_with(": declare size [20, 25], or size \"any\""), "{error}");
    let padded = Batching::Buckets(Buckets::default());
    let sizes =
        Loader::new(dataset(folder.path(), annotated), config(&recipe(&[json!(any)]), padded));
    let error = sizes.err().unwrap().to_string();
    assert!(error.contains("cannot be combined with the user's transform of any"), "{error}");
    let refused = Recipe::new(vec![any.clone(), FiveCrop { size: Size::Side(8) }.into()], PIXELS)
        .unwrap_err();
    assert!(refused.to_string().contains("one image and not 5"), "{refused}");
    let nested = Op::from(RandomApply { ops: vec![any], p: 0.5 });
    let refused = Recipe::new(vec![nested], PIXELS).unwrap_err();
    let expected = "operation 0: a user's transform of any size cannot be within RandomApply";
    assert_eq!(refused.to_string(), expected);
}
