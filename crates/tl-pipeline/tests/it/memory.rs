//! Data sets in memory: encoded images, raw pixels, and samples that misbehave on purpose.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use tbl_format::SampleFormat;
use tbl_io::{Entry, Location, ReadError, SampleBlocks, SampleSource, SourceKind};
use tl_pipeline::{Dataset, Loader, LoaderConfig, Shuffle, Work};
use tl_transform::Recipe;

/// Bytes whose reading panics.
pub(crate) const PANIC: &[u8] = b"panic";

#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: String,
    pub(crate) label: Option<i64>,
    pub(crate) format: SampleFormat,
    pub(crate) size: (u32, u32),
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) samples: Vec<Stored>,
}

impl Memory {
    fn stored(&self, index: u64) -> Result<&Stored, ReadError> {
        let place = usize::try_from(index).expect("test data is small");
        self.samples.get(place).ok_or_else(|| ReadError::SampleOutOfRange {
            location: self.location().clone(),
            index,
            sample_count: self.sample_count(),
        })
    }
}

static IN_MEMORY: LazyLock<Location> = LazyLock::new(|| Location::new("in memory"));

impl SampleSource for Memory {
    fn location(&self) -> &Location {
        &IN_MEMORY
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.samples.len() as u64
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let stored = self.stored(index)?;
        Ok(Entry {
            key: Some(Cow::Borrowed(stored.key.as_bytes())),
            label: stored.label,
            format: stored.format,
            width: stored.size.0,
            height: stored.size.1,
            offset: 100 * index,
            stored_bytes: stored.bytes.len() as u64,
            bytes: stored.bytes.len() as u64,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let stored = self.stored(index)?;
        assert_ne!(stored.bytes, PANIC, "injected\npanic");
        bytes.clear();
        bytes.extend_from_slice(&stored.bytes);
        Ok(())
    }
}

/// Samples in memory that can be kept on disk. Something happens whenever one is read or announced.
struct Watched {
    memory: Memory,
    on_read: Box<dyn Fn() + Send + Sync>,
    on_announce: Box<dyn Fn() + Send + Sync>,
    on_entry: Box<OnEntry>,
    /// The sample after each block.
    block_ends: Vec<u64>,
}

impl SampleBlocks for Watched {
    fn ends(&self) -> Result<Vec<u64>, ReadError> {
        Ok(self.block_ends.clone())
    }

    fn unpacked_bytes(&self) -> Result<u64, ReadError> {
        Ok(1000)
    }

    fn unpack_count(&self) -> u64 {
        0
    }

    fn compressions(&self) -> Vec<&'static str> {
        vec!["none"]
    }
}

/// The hook of a request for an index entry.
type OnEntry = dyn Fn(u64) -> Result<(), ReadError> + Send + Sync;

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(f)
    }
}

impl SampleSource for Watched {
    fn location(&self) -> &Location {
        self.memory.location()
    }

    fn kind(&self) -> SourceKind {
        self.memory.kind()
    }

    fn sample_count(&self) -> u64 {
        self.memory.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        (self.on_entry)(index)?;
        self.memory.entry(index)
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        id.extend_from_slice(&index.to_le_bytes());
        Ok(true)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        (self.on_read)();
        self.memory.read_into(index, bytes)
    }

    fn will_need(&self, _: u64) {
        (self.on_announce)();
    }

    fn blocks(&self) -> Option<&dyn SampleBlocks> {
        Some(self).filter(|source| !source.block_ends.is_empty()).map(|source| source as _)
    }
}

/// A data set of `samples` in blocks that end at `block_ends`.
pub(crate) fn in_blocks(samples: Vec<Stored>, block_ends: Vec<u64>) -> Dataset {
    let (on_read, on_announce) = (Box::new(|| ()), Box::new(|| ()));
    let on_entry = Box::new(|_| Ok(()));
    let memory = Memory { samples };
    let source = Watched { memory, on_read, on_announce, on_entry, block_ends };
    Dataset::from_sources(vec![Box::new(source)]).unwrap()
}

/// A data set of `samples` that calls `on_read` before a read, and `on_announce` for a hint.
pub(crate) fn watched(
    samples: Vec<Stored>,
    on_read: impl Fn() + Send + Sync + 'static,
    on_announce: impl Fn() + Send + Sync + 'static,
) -> Dataset {
    let (on_read, on_announce) = (Box::new(on_read), Box::new(on_announce));
    let on_entry = Box::new(|_| Ok(()));
    let (memory, block_ends) = (Memory { samples }, Vec::new());
    let source = Watched { memory, on_read, on_announce, on_entry, block_ends };
    Dataset::from_sources(vec![Box::new(source)]).unwrap()
}

/// A data set of `samples` whose index answers after `on_entry` has.
pub(crate) fn indexed(
    samples: Vec<Stored>,
    on_entry: impl Fn(u64) -> Result<(), ReadError> + Send + Sync + 'static,
) -> Dataset {
    let (on_read, on_announce, on_entry) = (Box::new(|| ()), Box::new(|| ()), Box::new(on_entry));
    let (memory, block_ends) = (Memory { samples }, Vec::new());
    let source = Watched { memory, on_read, on_announce, on_entry, block_ends };
    Dataset::from_sources(vec![Box::new(source)]).unwrap()
}

/// The pixels of test image `number`, RGB: sizes and values vary with it.
pub(crate) fn pixels(number: u32) -> (u32, u32, Vec<u8>) {
    let (width, height) = (20 + number * 7 % 31, 17 + number * 5 % 23);
    let mut state = number.wrapping_mul(2_654_435_761) | 1;
    let noise = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    });
    (width, height, noise.take((width * height * 3) as usize).collect())
}

/// A 24-bit BMP file of RGB pixels: rows bottom up, blue first, padded to four bytes.
pub(crate) fn bmp(width: u32, height: u32, pixels: &[u8]) -> Vec<u8> {
    let row = width as usize * 3;
    let padding = vec![0; row.next_multiple_of(4) - row];
    let mut file = b"BM".to_vec();
    let size = 54 + (width * 3).next_multiple_of(4) * height;
    for word in [size, 0, 54, 40, width, height, 24 << 16 | 1, 0, 0, 2_835, 2_835, 0, 0] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for row in pixels.chunks_exact(row).rev() {
        file.extend(row.chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
        file.extend_from_slice(&padding);
    }
    file
}

/// A grey JPEG file of this side, a multiple of 8, without a bit of detail: 6 bits a block.
pub(crate) fn flat_jpeg(side: u16) -> Vec<u8> {
    let [high, low] = side.to_be_bytes();
    let mut file = b"\xFF\xD8\xFF\xDB\0\x43\0".to_vec();
    file.extend([1; 64]);
    file.extend([0xFF, 0xC0, 0, 11, 8, high, low, high, low, 1, 1, 0x11, 0]);
    file.extend(b"\xFF\xDA\0\x08\x01\x01\0\0\x3F\0");
    // The standard tables: DC 00 for no difference, AC 1010 for the end of the block.
    let blocks = (usize::from(side) / 8).pow(2);
    file.extend([0b0010_1000, 0b1010_0010, 0b1000_1010].iter().cycle().take(blocks * 6 / 8));
    file.extend(b"\xFF\xD9");
    file
}

/// A JPEG file among other samples.
pub(crate) fn jpeg(key: &str, bytes: Vec<u8>) -> Stored {
    Stored { key: key.into(), label: None, format: SampleFormat::Jpeg, size: (0, 0), bytes }
}

/// Sample `number` as a BMP file, or raw.
pub(crate) fn sample(number: u32, format: SampleFormat) -> Stored {
    let (width, height, pixels) = pixels(number);
    let raw = format == SampleFormat::RawU8;
    let bytes = if raw { pixels } else { bmp(width, height, &pixels) };
    let label = Some(i64::from(number % 5));
    Stored { key: format!("{number:04}.bmp"), label, format, size: (width, height), bytes }
}

pub(crate) fn dataset(samples: Vec<Stored>) -> Dataset {
    Dataset::from_sources(vec![Box::new(Memory { samples })]).unwrap()
}

pub(crate) fn bmps(count: u32) -> Dataset {
    dataset((0..count).map(|number| sample(number, SampleFormat::Bmp)).collect())
}

pub(crate) fn train() -> Work {
    Work::Images(Recipe::imagenet_train(16).unwrap())
}

/// Shuffled batches of 4 under seed 42.
pub(crate) fn config(work: Work) -> LoaderConfig {
    LoaderConfig {
        batch_size: 4,
        sampler: Shuffle::Full.into(),
        seed: 42,
        workers: 2,
        ..LoaderConfig::new(work)
    }
}

pub(crate) fn loader(dataset: Dataset, config: LoaderConfig) -> Loader {
    Loader::new(dataset, config).unwrap()
}
