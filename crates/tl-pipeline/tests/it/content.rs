//! The contents of batches, and their order.

use tbl_format::SampleFormat;
use tl_pipeline::{
    Batch, Dataset, Epoch, Loader, LoaderConfig, OnError, Order, Renderer, Shard, Shuffle, Tail,
    Work,
};
use tl_transform::{Draw, Dtype, Layout, OutputSpec, Recipe};

use crate::memory::{bmp, bmps, config, dataset, loader, pixels, sample, train};

/// Everything that reaches the consumer with a batch.
#[derive(Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) indices: Vec<u64>,
    pub(crate) labels: Vec<i64>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn record(loader: &Loader, epoch: u32) -> Vec<Record> {
    record_rest(loader.epoch(epoch))
}

/// The batches that an epoch still has.
pub(crate) fn record_rest(epoch: Epoch) -> Vec<Record> {
    let batches = epoch.map(|batch| batch.unwrap());
    batches
        .map(|batch| {
            let mut bytes = batch.images().to_vec();
            for row in 0..batch.len() {
                if let Some(sample) = batch.sample(row) {
                    bytes
                        .extend([sample.width, sample.height].map(u32::to_le_bytes).as_flattened());
                    bytes.extend_from_slice(sample.bytes);
                }
            }
            let (indices, labels) = (batch.indices().to_vec(), batch.labels().to_vec());
            Record { number: batch.number(), indices, labels, bytes }
        })
        .collect()
}

#[test]
fn batches_do_not_depend_on_workers_prefetch_or_earlier_epochs() {
    let pixels = Recipe::imagenet_train(16).unwrap().into_pixels(Layout::Hwc);
    for work in [train(), Work::Images(Recipe::decode()), Work::Bytes, Work::Images(pixels)] {
        let expected = record(&loader(bmps(23), config(work.clone())), 3);
        assert_eq!(expected.len(), 6);
        for (workers, prefetch) in [(1, 1), (1, 4), (2, 2), (3, 1), (7, 3)] {
            let loader =
                loader(bmps(23), LoaderConfig { workers, prefetch, ..config(work.clone()) });
            assert_ne!(record(&loader, 2), expected);
            assert!(record(&loader, 3) == expected, "{workers} workers, {prefetch} ahead");
        }
    }
}

#[test]
fn a_batch_holds_what_its_plan_gives() {
    let recipe = Recipe::imagenet_train(16).unwrap();
    let order = Order::shuffled(23, 42, 5);
    let mut renderer = Renderer::new(&recipe);
    let mut position = 0;
    for batch in loader(bmps(23), config(train())).epoch(5) {
        let batch = batch.unwrap();
        assert_eq!(batch.shape().as_deref(), Some(&[batch.len(), 3, 16, 16][..]));
        for (row, image) in batch.images().chunks_exact(16 * 16 * 3 * 4).enumerate() {
            let index = order.sample_at(position).unwrap();
            assert_eq!((batch.indices()[row], batch.labels()[row]), (index, index as i64 % 5));
            let (width, height, pixels) = pixels(u32::try_from(index).unwrap());
            let plan =
                recipe.plan(width, height, Draw { seed: 42, epoch: 5, sample: index }).unwrap();
            let mut expected = vec![0; image.len()];
            renderer.render(&plan, &pixels, width, height, &mut expected).unwrap();
            assert_eq!(image, expected);
            position += 1;
        }
    }
    assert_eq!(position, 23);
}

#[test]
fn decoded_batches_hold_each_image_in_its_size() {
    let work = Work::Images(Recipe::decode());
    let loader = loader(bmps(6), LoaderConfig { sampler: Shuffle::None.into(), ..config(work) });
    let batches: Vec<Batch> = loader.epoch(0).map(Result::unwrap).collect();
    assert_eq!(batches[1].indices(), [4, 5]);
    let (width, height, bytes) = pixels(5);
    let sample = batches[1].sample(1).unwrap();
    assert_eq!((sample.width, sample.height, sample.bytes), (width, height, &bytes[..]));
    assert_eq!(
        (batches[1].sample(2), batches[1].spec(), batches[1].images()),
        (None, None, &[][..])
    );
}

#[test]
fn raw_and_encoded_samples_of_the_same_pixels_are_equal() {
    let raw = dataset((0..9).map(|number| sample(number, SampleFormat::RawU8)).collect());
    let (raw, encoded) = (loader(raw, config(train())), loader(bmps(9), config(train())));
    assert_eq!(record(&raw, 1), record(&encoded, 1));
}

#[test]
fn bytes_are_the_stored_ones() {
    let loader =
        loader(bmps(3), LoaderConfig { sampler: Shuffle::None.into(), ..config(Work::Bytes) });
    let batch = loader.epoch(0).next().unwrap().unwrap();
    let (width, height, rgb) = pixels(2);
    let sample = batch.sample(2).unwrap();
    assert_eq!((sample.width, sample.bytes), (0, &bmp(width, height, &rgb)[..]));
}

#[test]
fn lengths_are_exact() {
    let check = |samples, batch_size, drop_last, expected: &[usize]| {
        let tail = Some(if drop_last { Tail::Drop } else { Tail::Uneven });
        let shard = Shard { tail, ..Shard::default() };
        let config = LoaderConfig { batch_size, shard, ..config(Work::Bytes) };
        let loader = loader(bmps(samples), config);
        assert_eq!(loader.len(), expected.len() as u64);
        let lens: Vec<usize> = loader.epoch(0).map(|batch| batch.unwrap().len()).collect();
        assert_eq!(lens, expected);
    };
    check(1, 4, false, &[1]);
    check(8, 4, false, &[4, 4]);
    check(9, 4, false, &[4, 4, 1]);
    check(9, 4, true, &[4, 4]);
}

#[test]
fn every_output_form_starts_at_a_cache_line() {
    for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for layout in [Layout::Chw, Layout::Hwc] {
            let recipe = Recipe::imagenet_eval(10).unwrap();
            let recipe = recipe.with_output(OutputSpec { dtype, layout }).unwrap();
            let loader = loader(bmps(5), config(Work::Images(recipe)));
            for batch in loader.epoch(0) {
                let batch = batch.unwrap();
                assert_eq!(batch.images().len(), batch.len() * 300 * dtype.bytes());
                assert_eq!(batch.images_f32().is_some(), dtype == Dtype::F32);
                for address in [
                    batch.images().as_ptr().addr(),
                    batch.labels().as_ptr().addr(),
                    batch.indices().as_ptr().addr(),
                ] {
                    assert_eq!(address % 64, 0);
                }
            }
        }
    }
}

#[test]
fn pointers_lead_to_the_fields() {
    let loader = loader(bmps(5), config(train()));
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        let pointers = batch.pointers();
        assert_eq!(pointers.images.cast_const(), batch.images().as_ptr());
        assert_eq!(pointers.masks.addr() % 64, 0);
        assert_eq!(pointers.sizes.cast_const(), batch.sizes().as_ptr());
        assert_eq!(pointers.labels.cast_const(), batch.labels().as_ptr());
        assert_eq!(pointers.indices.cast_const(), batch.indices().as_ptr());
        assert_eq!(pointers.valid.cast_const(), batch.valid().as_ptr().cast());
    }
}

#[test]
fn a_view_keeps_its_batch_while_others_come_and_go() {
    let loader = loader(bmps(64), config(train()));
    let mut epoch = loader.epoch(0);
    let first = epoch.next().unwrap().unwrap();
    let (view, before) = (first.clone(), first.images().to_vec());
    drop(first);
    for batch in epoch {
        batch.unwrap();
    }
    assert_eq!(view.images(), before);
    drop(loader);
    assert_eq!(view.images(), before);
}

#[test]
fn memory_is_recycled() {
    let loader = loader(bmps(64), LoaderConfig { prefetch: 2, ..config(train()) });
    for epoch in 0..5 {
        assert_eq!(loader.epoch(epoch).count(), 16);
    }
    let stats = loader.stats();
    // Two in flight, one with the consumer, and one for each worker that the system suspends right
    // after its last row. Of 80 batches.
    assert!(stats.slabs <= 3 + stats.workers as u64, "{stats:?}");
    assert_eq!((stats.batches, stats.samples, stats.skipped), (80, 320, 0));
}

#[test]
fn shards_follow_each_other_and_empty_ones_are_passed_over() {
    let shard = |numbers: std::ops::Range<u32>| -> Box<dyn tbl_io::SampleSource> {
        let samples = numbers.map(|number| sample(number, SampleFormat::Bmp)).collect();
        Box::new(crate::memory::Memory { samples })
    };
    let shards = vec![shard(0..0), shard(0..4), shard(4..4), shard(4..23), shard(0..0)];
    let dataset = Dataset::from_sources(shards).unwrap();
    assert_eq!((dataset.len(), dataset.locate(4).unwrap().1), (23, 0));
    assert!(dataset.locate(23).is_err());
    let config = LoaderConfig { on_error: OnError::Skip, ..config(train()) };
    assert_eq!(record(&loader(dataset, config.clone()), 0), record(&loader(bmps(23), config), 0));
}
