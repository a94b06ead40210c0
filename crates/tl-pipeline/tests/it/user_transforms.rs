//! The user's own code in recipes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};
use tl_pipeline::{Epoch, Loader, LoaderConfig, OnError, PipelineError, SampleFault, Work};
use tl_transform::op::{CenterCrop, UserTransform};
use tl_transform::{
    Dtype, Layout, OutputSpec, Recipe, Rng, StepError, UserError, UserFault, UserTransformError,
    UserTransforms,
};

use crate::memory::{bmps, config, loader};

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
    let fill = UserTransform { name: "fill".into(), parameters };
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let recipe = Recipe::new(vec![CenterCrop::new(4).into(), fill.into()], output).unwrap();
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
        let let_go = UserTransform { name: "let_go".into(), parameters: json!({}) };
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
