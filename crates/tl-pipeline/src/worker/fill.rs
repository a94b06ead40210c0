//! One row of a batch: the sample that stands there, or the reason why there is none.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tbl_io::ReadError;
use tl_decode::{DecodeError, Image};
use tl_transform::Draw;

use crate::batch::Extra;
use crate::dataset::Dataset;
use crate::error::{SampleError, SampleFault};
use crate::run::{Place, Run};
use crate::slab::{Complete, Identity, Parts};
use crate::stage::Stage;
use crate::sync::Arc;
use crate::worker::process::{Processed, process};
use crate::worker::{Current, Scratch};

/// How many rows ahead the system is told what will be read: enough to keep a disk busy while a few
/// samples are decoded, and at 100 KB a sample a few megabytes of page cache.
const READ_AHEAD: u64 = 32;

/// Puts the sample at `place` into its row, or the reason why not. Returns the batch when this was
/// its last row.
pub(super) fn fill<'a>(
    run: &Run,
    scratch: &mut Scratch,
    Current { epoch, form, lease, .. }: &'a Current,
    place: Place,
) -> Option<Complete<'a, Extra>> {
    let slot = run.slot(epoch, place);
    let index = epoch.order.sample_at(slot.position).expect("a position is below their number");
    // Telling what will be read takes the system's time, and belongs to reading.
    scratch.tally.lap(Stage::Overhead);
    scratch.tally.work_on(index);
    if run.window().is_none()
        && let Some(ahead) = run.ahead(epoch, place, READ_AHEAD)
        && let Some(sample) = epoch.order.sample_at(ahead.position)
        && !run.caches().expects(sample)
    {
        run.dataset().will_need(sample);
    }
    let row = usize::try_from(place.row).expect("a row is below the batch size");
    let mut row = lease.claim(row).expect("a row is claimed once");
    let Parts { image, mask, extra } = row.parts();
    (extra.error, extra.damage, extra.view_of) = (None, None, None);
    let seed = epoch.order.seed_at(slot.position);
    let draw = Draw { seed, epoch: epoch.number, sample: index };
    let work = AssertUnwindSafe(|| {
        let parts = Parts { image, mask, extra: &mut *extra };
        process(run, scratch, (draw, place.run_row), form, parts)
    });
    let result = catch_unwind(work).unwrap_or_else(|panic| {
        // Whatever the panic interrupted is in an unknown state.
        scratch.renew(run);
        extra.image = Image::new();
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = tbl_io::Escaped(text.unwrap_or_default().as_bytes()).to_string();
        Err(SampleFault::Panicked { message })
    });
    if let Some(window) = run.window() {
        window.discard(place.run_row);
    }
    scratch.tally.process();
    scratch.trim();
    let (label, size) = match result {
        Ok(Processed { label, size, damage }) => {
            extra.damage = damage.map(|damage| {
                let fault = DecodeError::from(damage).into();
                Arc::new(identify(run.dataset(), index, fault))
            });
            (label, size)
        }
        Err(fault) => {
            extra.error = Some(Arc::new(identify(run.dataset(), index, fault)));
            (None, [0; 2])
        }
    };
    let label = label.unwrap_or(-1);
    row.identify(Identity { label, index, size, valid: slot.valid });
    row.finish()
}

/// Says which sample it was, as far as its index can still be read.
fn identify(dataset: &Dataset, index: u64, fault: SampleFault) -> SampleError {
    let shard = dataset.locate(index).map(|(source, _)| source.path().to_path_buf());
    let (key, offset) = match dataset.entry(index) {
        Ok(entry) => (entry.key.map(Cow::into_owned), Some(entry.offset)),
        Err(ReadError::Sample { key, .. }) => (key, None),
        Err(_) => (None, None),
    };
    SampleError { index, key, shard: shard.unwrap_or_default(), offset, fault }
}
