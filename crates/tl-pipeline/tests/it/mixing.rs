//! Batches whose images are mixed: which, how, with which labels, and that workers have no part in it.

use tl_pipeline::{Batch, Dataset, Loader, LoaderConfig, Mixed, OnError, PipelineError, Work};
use tl_simd::Level;
use tl_transform::batch_op::{CutMix, MixUp, Mosaic};
use tl_transform::op::{GridMask, Normalize, RandomErasing, RandomResizedCrop, ToFloat};
use tl_transform::{BatchOp, Channels, Dtype, Layout, Mixing, OutputSpec, Recipe};

use crate::content::record;
use crate::memory::{Stored, bmp, bmps, config, dataset, loader, pixels, sample};

fn recipe(batch_ops: Vec<BatchOp>) -> Recipe {
    let output = OutputSpec { dtype: Dtype::F32, layout: Layout::Chw };
    let random =
        RandomErasing { value: tl_transform::op::ErasingValue::RANDOM, ..Default::default() };
    let grid = GridMask { distance: (4, 9), ..GridMask::default() };
    let ops = vec![
        RandomResizedCrop::new(16).into(),
        ToFloat {}.into(),
        Normalize::IMAGENET.into(),
        random.into(),
        grid.into(),
    ];
    Recipe::new(ops, output).unwrap().with_batch_ops(batch_ops).unwrap()
}

fn ways() -> Vec<BatchOp> {
    let num_classes = Some(5);
    vec![
        MixUp { num_classes, ..MixUp::default() }.into(),
        CutMix { num_classes, ..CutMix::default() }.into(),
        Mosaic { p: 0.5, num_classes }.into(),
    ]
}

#[test]
fn labelled_images_are_not_mixed_without_a_number_of_classes() {
    let samples = || (0..8).map(|number| sample(number, tbl_format::SampleFormat::Bmp));
    let unlabelled = || dataset(samples().map(|own| Stored { label: None, ..own }).collect());
    for (op, name) in [
        (BatchOp::from(MixUp::default()), "MixUp"),
        (CutMix::default().into(), "CutMix"),
        (Mosaic::default().into(), "Mosaic"),
    ] {
        let settings = config(Work::Images(recipe(vec![op])));
        let refused = Loader::new(dataset(samples().collect()), settings.clone()).map(drop);
        let message = refused.unwrap_err().to_string();
        let expected = format!("{name} without num_classes mixes images and leaves their labels");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("set num_classes to the number of classes"), "{message}");
        // Without labels, none are wrong.
        let loader = loader(unlabelled(), settings);
        assert!(loader.epoch(0).all(|batch| batch.is_ok_and(|batch| batch.mixed().len() == 1)));
    }
}

#[test]
fn a_data_set_that_names_its_classes_says_how_many_there_are() {
    let root = tempfile::tempdir().unwrap();
    for class in ["ant", "bee", "cat"] {
        let (width, height, pixels) = pixels(1);
        std::fs::create_dir(root.path().join(class)).unwrap();
        std::fs::write(root.path().join(class).join("1.bmp"), bmp(width, height, &pixels)).unwrap();
    }
    let open = || Dataset::open(&[root.path()]).unwrap();
    let settings = |op| config(Work::Images(recipe(vec![op])));
    let refused = Loader::new(open(), settings(CutMix::default().into())).map(drop);
    let message = refused.unwrap_err().to_string();
    assert!(message.ends_with("set num_classes, the data set names 3 classes"), "{message}");
    let cut_mix = CutMix { num_classes: Some(3), ..CutMix::default() };
    assert!(Loader::new(open(), settings(cut_mix.into())).is_ok());
}

#[test]
fn mixed_batches_do_not_depend_on_workers() {
    let work = Work::Images(recipe(ways()));
    let expected = record(&loader(bmps(23), config(work.clone())), 3);
    for (workers, prefetch) in [(1, 4), (2, 2), (3, 1), (7, 3)] {
        let loader = loader(bmps(23), LoaderConfig { workers, prefetch, ..config(work.clone()) });
        assert_ne!(record(&loader, 2), expected);
        assert!(record(&loader, 3) == expected, "{workers} workers, {prefetch} ahead");
    }
}

/// The mixed bytes of a batch that was not mixed.
fn mix(mixing: Mixing, batch: &Batch) -> Vec<u8> {
    let spec = batch.spec().unwrap();
    let (mut images, size) = (batch.images().to_vec(), (spec.width, spec.height));
    mixing.run(Level::Scalar, spec.output, Channels::Rgb, size, &mut images, &mut Vec::new());
    images
}

#[test]
fn batches_are_mixed_as_their_numbers_say_over_the_rows_that_are_there() {
    let (plain, mixed) = (recipe(Vec::new()), recipe(ways()));
    let damaged = || {
        let mut samples: Vec<_> =
            (0..42).map(|number| sample(number, tbl_format::SampleFormat::Bmp)).collect();
        for bad in [3, 4, 16, 17, 18, 19, 30] {
            samples[bad].bytes.truncate(60);
        }
        dataset(samples)
    };
    let settings = |recipe: &Recipe| LoaderConfig {
        on_error: OnError::Skip,
        ..config(Work::Images(recipe.clone()))
    };
    let (plain, loader) =
        (loader(damaged(), settings(&plain)), loader(damaged(), settings(&mixed)));
    let mut kinds = [0; 4];
    for epoch in 0..4 {
        for (batch, plain) in loader.epoch(epoch).zip(plain.epoch(epoch)) {
            let (batch, plain) = (batch.unwrap(), plain.unwrap());
            assert_eq!(plain.mixed(), []);
            assert_eq!((batch.indices(), batch.labels()), (plain.indices(), plain.labels()));
            let mixing = mixed.mixing(loader.config().seed, epoch, batch.number());
            let mixed = mixing.map(|mixing| Mixed { rows: 0..batch.len(), mixing });
            assert_eq!(batch.mixed(), mixed.as_slice());
            let expected = mixing.map_or(plain.images().to_vec(), |mixing| mix(mixing, &plain));
            assert_eq!(batch.images(), expected, "{mixing:?}");
            kinds[match mixing {
                None => 0,
                Some(Mixing::MixUp { .. }) => 1,
                Some(Mixing::CutMix { .. }) => 2,
                Some(_) => 3,
            }] += 1;
        }
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

#[test]
fn soft_labels_are_mixed_like_the_images() {
    const CLASSES: usize = 5;
    for (op, epoch) in ways().into_iter().zip(0..) {
        let recipe = recipe(vec![op]);
        let loader = loader(bmps(23), config(Work::Images(recipe)));
        for batch in loader.epoch(epoch) {
            let batch = batch.unwrap();
            let n = batch.len();
            let weights = batch.mixed().first();
            let weights =
                weights.map_or([1.0, 0.0, 0.0, 0.0], |mixed| mixed.mixing.weights((16, 16)));
            let soft = batch.soft_labels(CLASSES).unwrap();
            assert_eq!(soft.len(), n * CLASSES);
            for (row, soft) in soft.chunks_exact(CLASSES).enumerate() {
                let mut expected = [0.0; CLASSES];
                for (back, weight) in weights.into_iter().enumerate() {
                    let label = batch.labels()[(row + 4 * n - back) % n];
                    expected[usize::try_from(label).unwrap()] += weight;
                }
                for (soft, expected) in soft.iter().zip(expected) {
                    assert!((f64::from(*soft) - expected).abs() < 1e-6, "{soft} {expected}");
                }
            }
            let refused = batch.soft_labels(1);
            assert!(matches!(refused, Err(PipelineError::Label { num_classes: 1, .. })));
        }
    }
}
