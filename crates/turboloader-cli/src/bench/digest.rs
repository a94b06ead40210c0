//! The content of batches as hashes: one of a whole epoch, and one of a row.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use tl_pipeline::{Batch, Fields, Loader, LoaderConfig, PipelineError, Work};

use crate::failure::Failure;
use crate::text::Hex;

/// The length that stands for a name or a column that is not there.
const NOT_THERE: u64 = u64::MAX;

/// The SHA-256 of the batches of `epoch`, in order. The byte layout is in the command's help.
pub(super) fn epoch(loader: &Loader, epoch: u32) -> Result<Hex, Failure> {
    let mut hash = Sha256::new();
    for batch in loader.epoch(epoch) {
        let batch = batch?;
        let contents = Contents::of(&batch, loader.config())?;
        (0..batch.len()).for_each(|row| contents.add_image(&mut hash, row));
        for label in batch.labels() {
            hash.update(label.to_le_bytes());
        }
        for index in batch.indices() {
            hash.update(index.to_le_bytes());
        }
        if batch.valid().contains(&false) {
            batch.valid().iter().for_each(|&valid| hash.update([u8::from(valid)]));
        }
        (0..batch.len()).for_each(|row| contents.add_fields(&mut hash, row));
    }
    Ok(Hex(hash.finalize().into()))
}

/// The content of a batch, row by row.
pub(super) struct Contents<'a> {
    batch: &'a Batch,
    /// Those of the device, if the batch is on one.
    images: Cow<'a, [u8]>,
    fields: &'a Fields,
    decoded: bool,
    is_table: bool,
}

impl<'a> Contents<'a> {
    /// Those of a batch of a loader with this configuration.
    ///
    /// # Errors
    /// A device that cannot be read.
    pub(super) fn of(batch: &'a Batch, config: &'a LoaderConfig) -> Result<Self, PipelineError> {
        let images = match batch.device() {
            None => Cow::Borrowed(batch.images()),
            Some(device) => {
                let read = device.buffer().read();
                let mut bytes = read.map_err(|reason| PipelineError::Device { reason })?;
                bytes.truncate(device.image_bytes());
                Cow::Owned(bytes)
            }
        };
        let decoded = matches!(config.work, Work::Images(_));
        let is_table = matches!(config.work, Work::Columns(_) | Work::Tokens(_));
        Ok(Self { batch, images, fields: &config.fields, decoded, is_table })
    }

    /// The SHA-256 of a row: its image, then its fields.
    pub(super) fn row(&self, row: usize) -> Hex {
        let mut hash = Sha256::new();
        self.add_image(&mut hash, row);
        self.add_fields(&mut hash, row);
        Hex(hash.finalize().into())
    }

    fn add_image(&self, hash: &mut Sha256, row: usize) {
        if self.is_table {
            self.batch.columns().for_each(|column| hash.update(self.part_of(column.bytes, row)));
            return;
        }
        hash.update(self.part_of(&self.images, row));
        let Some(sample) = self.batch.sample(row) else { return };
        if self.decoded {
            hash.update(sample.width.to_le_bytes());
            hash.update(sample.height.to_le_bytes());
        } else {
            hash.update((sample.bytes.len() as u64).to_le_bytes());
        }
        hash.update(sample.bytes);
    }

    fn add_fields(&self, hash: &mut Sha256, row: usize) {
        let Self { batch, fields, .. } = self;
        if fields.keys {
            add_bytes(hash, batch.key(row));
        }
        for column in 0..fields.bytes.len() {
            add_bytes(hash, batch.bytes(column, row));
        }
        if fields.boxes.is_some() {
            let boxes = batch.boxes(row);
            hash.update((boxes.len() as u64).to_le_bytes());
            boxes.iter().flatten().for_each(|number| hash.update(number.to_le_bytes()));
            batch.box_labels(row).iter().for_each(|label| hash.update(label.to_le_bytes()));
        }
        for field in 0..fields.keypoints.len() {
            let numbers = batch.keypoints(field, row);
            hash.update((numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|number| hash.update(number.to_le_bytes()));
        }
        if fields.instance_masks.is_some() {
            let masks = batch.instance_masks(row);
            hash.update((masks.len() as u64).to_le_bytes());
            hash.update(masks);
        }
        if fields.mask.is_some() {
            hash.update(self.part_of(batch.masks(), row));
            hash.update(batch.mask(row).unwrap_or_default());
        }
    }

    /// The row's part of what all rows have equally much of.
    fn part_of<'b>(&self, all: &'b [u8], row: usize) -> &'b [u8] {
        let each = all.len() / self.batch.len().max(1);
        &all[row * each..][..each]
    }
}

fn add_bytes(hash: &mut Sha256, bytes: Option<&[u8]>) {
    hash.update(bytes.map_or(NOT_THERE, |bytes| bytes.len() as u64).to_le_bytes());
    hash.update(bytes.unwrap_or_default());
}
