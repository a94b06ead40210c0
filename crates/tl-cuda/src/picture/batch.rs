//! The pictures of a batch, gathered for one copy, and their chunks: as many at a time as the scratch
//! memory has room for.

use zerocopy::IntoBytes;

use super::decoder::Threads;
use super::descriptor::Descriptor;
use super::{ALIGNMENT, FileCopy, Picture, RowPicture};

/// Pictures of a launch, at most: rows of a grid are three times as many.
const MAX_PICTURES: usize = 20_000;

/// The copy for a batch: a number for the fault of each picture, the descriptors, the payloads. After
/// it are the files that nvJPEG reads on the host. On the device the payloads of a chunk are where those
/// of the chunk before were.
#[derive(Debug)]
pub(crate) struct Gathering<'a> {
    pictures: &'a [RowPicture<'a>],
    pub(crate) chunks: Vec<Chunk>,
    /// Bytes of the copy.
    pub(crate) bytes: usize,
    /// Bytes of it that are on the device at once.
    pub(crate) device_bytes: usize,
    /// Bytes of the files.
    pub(crate) file_bytes: usize,
    /// Bytes of the scratch memory.
    pub(crate) scratch: usize,
    image: usize,
}

/// Pictures that are decoded at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) first: usize,
    pub(crate) count: usize,
    pub(crate) threads: Threads,
    /// The place of the payloads in the copy, and their bytes.
    pub(crate) payload: usize,
    pub(crate) payload_bytes: usize,
}

/// Bytes of the device's memory for decoding a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Between the kernels.
    pub(crate) scratch: usize,
    /// For payloads.
    pub(crate) payload: usize,
}

/// The places of the parts of the copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) descriptors: usize,
    pub(crate) payloads: usize,
}

impl Places {
    pub(crate) fn of(pictures: usize) -> Self {
        let descriptors = (pictures * size_of::<u32>()).next_multiple_of(ALIGNMENT);
        let payloads = descriptors + pictures * size_of::<Descriptor>();
        Self { descriptors, payloads: payloads.next_multiple_of(ALIGNMENT) }
    }

    /// The place of the descriptor of a picture.
    pub(crate) fn descriptor(&self, picture: usize) -> usize {
        self.descriptors + picture * size_of::<Descriptor>()
    }
}

impl<'a> Gathering<'a> {
    /// Plans the copy for images of `pixels` pixels, in chunks that have room unless a single picture
    /// needs more.
    ///
    /// # Panics
    /// If a picture is empty or makes another number of pixels.
    pub(crate) fn new(pictures: &'a [RowPicture<'a>], pixels: usize, room: Room) -> Self {
        let mut chunks = Vec::new();
        let payloads = Places::of(pictures.len()).payloads;
        let mut bytes = payloads;
        let mut file_bytes = 0;
        let mut scratch = 0;
        let mut chunk = Chunk { payload: bytes, ..Chunk::default() };
        let mut filled = 0;
        for (number, RowPicture { picture, row }) in pictures.iter().enumerate() {
            assert!(!picture.is_empty(), "the picture of row {row} is empty");
            assert_eq!(picture.pixels(), pixels, "pixels of row {row}");
            file_bytes += picture.file.bytes.len();
            let need = picture.scratch.next_multiple_of(ALIGNMENT);
            let payload = picture.payload.len().next_multiple_of(ALIGNMENT);
            let has_room = filled + need <= room.scratch
                && chunk.payload_bytes + payload <= room.payload
                && chunk.count < MAX_PICTURES;
            if !has_room && chunk.count > 0 {
                chunks.push(chunk);
                chunk = Chunk { first: number, payload: bytes, ..Chunk::default() };
                filled = 0;
            }
            filled += need;
            bytes += payload;
            chunk.payload_bytes += payload;
            scratch = scratch.max(filled);
            chunk.count += 1;
            chunk.threads = chunk.threads.max(Threads::of(&picture.descriptor));
        }
        if chunk.count > 0 {
            chunks.push(chunk);
        }
        let most = chunks.iter().map(|chunk| chunk.payload_bytes).max().unwrap_or(0);
        let device_bytes = payloads + most;
        Self { pictures, chunks, bytes, device_bytes, file_bytes, scratch, image: 3 * pixels }
    }

    /// Writes the copy to the front of `to`, and the files after it, which it returns.
    ///
    /// # Panics
    /// If they do not fit.
    pub(crate) fn write(&self, to: &mut [u8]) -> Vec<FileCopy> {
        let Places { descriptors, payloads } = Places::of(self.pictures.len());
        to[..descriptors].fill(0);
        let mut payload = payloads;
        let mut files = Vec::new();
        let mut file_at = self.bytes;
        for chunk in &self.chunks {
            let mut scratch = 0;
            for number in chunk.first..chunk.first + chunk.count {
                let RowPicture { picture, row } = self.pictures[number];
                let descriptor = Descriptor {
                    payload: (payload - chunk.payload + payloads) as u64,
                    scratch: scratch as u64,
                    target: (row * self.image) as u64,
                    ..picture.descriptor
                };
                let at = Places::of(self.pictures.len()).descriptor(number);
                to[at..][..size_of::<Descriptor>()].copy_from_slice(descriptor.as_bytes());
                to[payload..][..picture.payload.len()].copy_from_slice(&picture.payload);
                if let Some(file) = picture.file_copy(number, file_at, scratch) {
                    to[file.at..][..file.len].copy_from_slice(&picture.file.bytes);
                    file_at += file.len;
                    files.push(file);
                }
                payload += picture.payload.len().next_multiple_of(ALIGNMENT);
                scratch += picture.scratch.next_multiple_of(ALIGNMENT);
            }
        }
        files
    }

    /// The first picture for nvJPEG that needs more than so many bytes of scratch memory.
    pub(crate) fn beyond(&self, scratch: usize) -> Option<&'a Picture> {
        let files = self.pictures.iter().map(|row| row.picture);
        files.filter(|picture| !picture.file.bytes.is_empty()).find(|file| file.scratch > scratch)
    }

    /// Whether a picture has entropy-coded rows.
    pub(crate) fn has_rows(&self) -> bool {
        self.pictures.iter().any(|row| row.picture.descriptor.is_sparse == 0)
    }

    /// The numbers of the samples.
    pub(crate) fn samples(&self) -> Vec<u64> {
        self.pictures.iter().map(|row| row.picture.sample).collect()
    }
}
