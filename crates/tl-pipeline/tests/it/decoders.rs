//! Decoders of the user's: recipes apply to their images, batches do not depend on workers, and what
//! fails is the sample's error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tbl_format::SampleFormat;
use tl_decode::{CustomError, Decode, Decoders, Image, ImageForm, Limits, PixelType};
use tl_pipeline::{
    CacheConfig, CacheKind, Dataset, DiskCache, Loader, LoaderConfig, MemoryCache, OnError,
    PipelineError, SampleFault, Shard, Shuffle, Work,
};
use tl_transform::Recipe;

use crate::caches::exact;
use crate::content::record;
use crate::memory::{Stored, bmp, config, dataset, loader, pixels, train};

const SAMPLES: u32 = 26;

/// `OWN`, width and height in 32 bits each, then RGB.
struct Own {
    decoded: Arc<AtomicU64>,
}

impl Own {
    fn size(bytes: &[u8]) -> Option<[u32; 2]> {
        let numbers = bytes.get(3..11)?.as_chunks().0;
        Some([numbers.first(), numbers.get(1)].map(|one| one.map_or(0, |n| u32::from_le_bytes(*n))))
    }
}

impl Decode for Own {
    fn takes(&self, extension: &str, bytes: &[u8]) -> bool {
        extension == "own" || bytes.starts_with(b"OWN")
    }

    fn probe(&self, bytes: &[u8]) -> Result<Option<ImageForm>, CustomError> {
        let [width, height] = Self::size(bytes).ok_or("no header")?;
        Ok(Some(ImageForm { width, height, channels: 3, pixels: PixelType::U8 }))
    }

    fn decode(&self, bytes: &[u8], _: &Limits, image: &mut Image) -> Result<(), CustomError> {
        self.decoded.fetch_add(1, Ordering::Relaxed);
        assert!(!bytes.ends_with(b"PANIC"), "injected");
        let [width, height] = Self::size(bytes).ok_or("no header")?;
        (image.width, image.height, image.channels) = (width, height, 3);
        image.data.extend_from_slice(bytes.get(11..).unwrap_or_default());
        Ok(())
    }
}

fn own(number: u32) -> Vec<u8> {
    let (width, height, pixels) = pixels(number);
    let mut bytes = b"OWN".to_vec();
    bytes.extend([width, height].map(u32::to_le_bytes).as_flattened());
    bytes.extend(pixels);
    bytes
}

/// The same images as own files, of which the even ones have the name alone and the odd ones the
/// content, or all of them as BMP files.
fn samples(is_own: bool) -> Vec<Stored> {
    let stored = |number: u32| {
        let (width, height, pixels) = pixels(number);
        let bytes = if is_own { own(number) } else { bmp(width, height, &pixels) };
        let end = if number.is_multiple_of(2) { "own" } else { "x" };
        Stored {
            key: format!("{number:04}.{end}"),
            label: Some(i64::from(number % 3)),
            format: SampleFormat::Unknown,
            size: (0, 0),
            bytes,
        }
    };
    (0..SAMPLES).map(stored).collect()
}

/// Settings with the decoder, and how often it has decoded.
fn with_own(settings: LoaderConfig) -> (LoaderConfig, Arc<AtomicU64>) {
    let decoded = Arc::new(AtomicU64::new(0));
    let decoders = Decoders::new().with("own", 1, Own { decoded: Arc::clone(&decoded) });
    (LoaderConfig { decoders, ..settings }, decoded)
}

fn own_loader(settings: LoaderConfig) -> Loader {
    loader(dataset(samples(true)), with_own(settings).0)
}

#[test]
fn recipes_apply_as_to_the_same_images_in_a_format_that_is_built_in() {
    for work in
        [train(), Work::Images(Recipe::decode()), Work::Images(Recipe::imagenet_eval(16).unwrap())]
    {
        let settings = LoaderConfig { sampler: Shuffle::Full.into(), ..config(work) };
        let expected = record(&loader(dataset(samples(false)), settings.clone()), 1);
        for workers in [1, 2, 5] {
            let found = record(&own_loader(LoaderConfig { workers, ..settings.clone() }), 1);
            assert!(found == expected, "{workers} workers");
        }
    }
}

#[test]
fn ranks_and_resumed_epochs_have_the_same_rows() {
    let settings = LoaderConfig { batch_size: 4, sampler: Shuffle::Full.into(), ..config(train()) };
    for rank in 0..2 {
        let shard = Shard { rank, world: 2, ..Shard::default() };
        let of_rank = LoaderConfig { shard, ..settings.clone() };
        let expected = record(&loader(dataset(samples(false)), of_rank.clone()), 2);
        assert!(record(&own_loader(of_rank), 2) == expected, "rank {rank}");
    }
    let loader = own_loader(settings.clone());
    let mut epoch = loader.epoch(2);
    epoch.next().unwrap().unwrap();
    let state = epoch.state().unwrap();
    let rest = crate::content::record_rest(own_loader(settings.clone()).resume(&state).unwrap());
    let all = record(&loader, 2);
    assert!(!rest.is_empty() && rest[..] == all[1..]);
    // The images of another version are others.
    let (mut other, decoded) = with_own(settings);
    other.decoders = Decoders::new().with("own", 2, Own { decoded });
    let error = crate::memory::loader(dataset(samples(true)), other).resume(&state).err().unwrap();
    assert!(matches!(error, PipelineError::StateMismatch { what: "recipe", .. }), "{error}");
}

#[test]
fn errors_name_the_sample_and_the_decoder() {
    let mut stored = samples(true);
    stored[5].bytes.truncate(40);
    stored[6].bytes.truncate(5);
    stored[7].bytes.extend(b"PANIC");
    stored[8].bytes.splice(3..11, [0xFF; 8]);
    let settings =
        LoaderConfig { on_error: OnError::Skip, sampler: Shuffle::None.into(), ..config(train()) };
    let loader = loader(dataset(stored), with_own(settings).0);
    assert!(loader.epoch(0).all(|batch| batch.is_ok()));
    let audit = loader.audit();
    let found: Vec<_> = audit.iter().map(|entry| entry.error.to_string()).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for (text, expected) in found.iter().zip([
        "sample 5 (0005.x) at byte 500: decoder own: made ",
        "sample 6 (0006.own) at byte 600: decoder own: no header",
        "sample 7 (0007.x) at byte 700: decoder own: panicked: injected",
        "sample 8 (0008.own) at byte 800: decoder own: limit exceeded",
    ]) {
        assert!(text.contains(expected), "{text}");
    }
    assert!(audit.iter().all(|entry| matches!(entry.error.fault, SampleFault::Decoder { .. })));
}

#[test]
fn decoded_images_are_cached_under_the_version_of_their_decoder() {
    let folder = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    for number in 0..6 {
        std::fs::write(root.path().join(format!("{number}.own")), own(number)).unwrap();
    }
    // Entries of files that have just been written are not kept.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    let open = || Dataset::open(&[root.path()]).unwrap();
    let kind = CacheKind::Decoded;
    let memory = Some(MemoryCache { kind, bytes: 1 << 20 });
    let disk = Some(DiskCache { kind, folder: folder.path().into(), bytes: 1 << 20 });
    let expected = record(&Loader::new(open(), with_own(config(exact())).0).unwrap(), 0);
    for (cache, version, decodings) in [
        (CacheConfig { memory, disk: None }, 1, 6),
        (CacheConfig { memory: None, disk: disk.clone() }, 1, 6),
        (CacheConfig { memory: None, disk: disk.clone() }, 1, 0),
        (CacheConfig { memory: None, disk }, 2, 6),
    ] {
        let (mut settings, decoded) = with_own(LoaderConfig { cache, ..config(exact()) });
        let of_version = Own { decoded: Arc::clone(&decoded) };
        settings.decoders = Decoders::new().with("own", version, of_version);
        settings.prefetch_next_epoch = false;
        let loader = Loader::new(open(), settings).unwrap();
        assert!(record(&loader, 0) == expected);
        assert!(record(&loader, 0) == expected);
        assert_eq!(decoded.load(Ordering::Relaxed), decodings, "version {version}");
    }
}

#[test]
fn decoders_are_refused_where_nothing_is_decoded_to_the_host() {
    let refused = |work| {
        let (settings, _) = with_own(config(work));
        Loader::new(dataset(samples(true)), settings).err().map(|error| error.to_string())
    };
    assert!(refused(Work::Bytes).is_some_and(|text| text.contains("decoders")));
    assert_eq!(refused(train()), None);
}
