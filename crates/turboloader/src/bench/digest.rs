//! One hash over every batch of an epoch.

use sha2::{Digest, Sha256};
use tl_pipeline::{Batch, Loader, Work};

use crate::failure::Failure;
use crate::text::Hex;

/// The SHA-256 of the batches of `epoch`, in order. The byte layout is in the command's help.
pub(super) fn epoch(loader: &Loader, epoch: u32) -> Result<Hex, Failure> {
    let decoded = !matches!(loader.config().work, Work::Bytes | Work::Views);
    let mut hash = Sha256::new();
    for batch in loader.epoch(epoch) {
        add(&mut hash, &batch?, decoded);
    }
    Ok(Hex(hash.finalize().into()))
}

fn add(hash: &mut Sha256, batch: &Batch, decoded: bool) {
    hash.update(batch.images());
    for sample in (0..batch.len()).filter_map(|row| batch.sample(row)) {
        if decoded {
            hash.update(sample.width.to_le_bytes());
            hash.update(sample.height.to_le_bytes());
        } else {
            hash.update((sample.bytes.len() as u64).to_le_bytes());
        }
        hash.update(sample.bytes);
    }
    for label in batch.labels() {
        hash.update(label.to_le_bytes());
    }
    for index in batch.indices() {
        hash.update(index.to_le_bytes());
    }
}
