//! The end of a batch: bad rows, mixing, and the hand-over.

use tl_handoff::permits::HeldBatch;
use tl_handoff::pool::Lease;
use tl_handoff::slab::Complete;
use tl_handoff::sync::Arc;
use tl_simd::Level;

use crate::audit::{AuditEntry, Outcome};
use crate::batch::{Batch, Mixed};
use crate::collate::Collate;
use crate::delivered::Traced;
use crate::error::PipelineError;
use crate::layout::BatchLayout;
use crate::nvjpeg;
use crate::row::{Finding, RowExtras};
use crate::run::{Filled, Place, Run};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::work::Work;
use crate::worker::{Current, checked};

/// Finishes the batch, and hands it over. A user's code for batches gets it first.
pub(super) fn publish(
    run: &Run,
    scratch: &mut Scratch,
    current: &Current,
    place: Place,
    complete: Complete<'_, RowExtras>,
) {
    scratch.metrics.lap(Stage::Overhead);
    scratch.metrics.work_on(place.batch);
    let filled = finish(run, scratch, current, place, complete, None);
    let filled = match &run.config().collate {
        Some(collate) => collated(collate, checked(run, filled)),
        None => filled,
    };
    run.ring.publish(place.serial, filled);
}

/// Leaves rows without a sample out, or reports the first that must not be, mixes the others where
/// the recipe says so, and begins the copy to a device. A batch that is made again is `held`.
pub(super) fn finish(
    run: &Run,
    scratch: &mut Scratch,
    Current { grouping, layout, lease, .. }: &Current,
    place: Place,
    mut complete: Complete<'_, RowExtras>,
    held: Option<Arc<HeldBatch>>,
) -> Filled {
    let group = run.config().mixing_group;
    let mut len = 0;
    let mut audit = Vec::new();
    let mut mixed = Vec::new();
    let mut left_out = Vec::new();
    let rows = complete.rows();
    for first in (0..rows).step_by(group) {
        let start = len;
        for row in first..rows.min(first + group) {
            let extra = complete.extra(row);
            for Finding { outcome, error } in extra.findings.drain(..) {
                let slot = run.slot(grouping.as_deref(), Place { row: row as u64, ..place });
                // A sample repeated as padding is listed only in its own row.
                if slot.valid || outcome == Outcome::Raised {
                    let epoch = place.epoch;
                    let position = slot.position;
                    audit.push(AuditEntry { epoch, position, error, outcome });
                }
            }
            if extra.left_out {
                left_out.push(row);
            } else {
                complete.move_row(row, len);
                len += 1;
            }
        }
        let first = Place { row: first as u64, ..place };
        mixed.extend(mix(run, scratch, layout, first, &mut complete, start..len));
    }
    complete.publish();
    let rows = run.shared().schedule.counted_rows_of(place.batch);
    scratch.metrics.lap(Stage::Finish);
    if let Some(raised) = audit.iter().position(|entry| entry.outcome == Outcome::Raised) {
        let entry = audit.swap_remove(raised);
        let batch = Err(Arc::clone(&entry.error).into());
        return Filled { batch, rows, audit: vec![entry], unchecked: None, held };
    }
    let charged = lease.permit().map_or(0, |permit| permit.charged());
    let within = run.memory().check(place.epoch, place.batch, charged);
    let held = held.or_else(|| lease.permit().map(|permit| Arc::new(permit.publish())));
    let number = place.batch;
    let kept = held.clone();
    let batch = Batch::new(Arc::clone(lease), number, len, layout, mixed, left_out, held);
    let batch = within.and_then(|()| delivered(run, lease, layout, batch));
    let decodes = |batch: &Batch| batch.device().is_some_and(|device| device.decoded() > 0);
    let unchecked = batch.as_ref().is_ok_and(decodes).then_some(place);
    let held = kept.filter(|_| batch.is_err());
    Filled { batch, rows, audit, unchecked, held }
}

/// Begins the copy of a batch to a device, if there is one.
fn delivered(
    run: &Run,
    lease: &Arc<Lease<RowExtras>>,
    layout: &BatchLayout,
    batch: Batch,
) -> Result<Batch, PipelineError> {
    let shared = run.shared();
    let trace = shared.trace.as_ref().map(Arc::clone);
    let traced = trace.map(|trace| Traced { trace, batch: batch.number() });
    let device = shared.delivered.upload(lease, layout, batch.len(), traced).and_then(|device| {
        let note = shared.delivered.pinning()?;
        note.into_iter().for_each(|note| shared.note(note));
        Ok(device)
    });
    let device = device.map_err(|reason| nvjpeg::device_error(run.dataset(), reason))?;
    Ok(batch.with_device(device).with_pinned(shared.delivered.pinned(lease)))
}

/// The batch with the result of a user's code.
fn collated(collate: &Collate, filled: Filled) -> Filled {
    let held = filled.batch.as_ref().ok().and_then(Batch::held);
    let batch = filled.batch.and_then(|batch| {
        // Nobody receives a batch without a sample.
        if batch.is_empty() {
            return Ok(batch);
        }
        collate.run(&batch).map(|collated| batch.with_collated(collated))
    });
    let held = filled.held.or(held.filter(|_| batch.is_err()));
    Filled { batch, held, ..filled }
}

/// Mixes the images in `rows`, what is left of the group that starts at `first`, as the group's
/// number says. Whoever publishes the batch does so, alone and in the order of the rows, so that the
/// result depends on neither.
fn mix(
    run: &Run,
    scratch: &mut Scratch,
    layout: &BatchLayout,
    first: Place,
    complete: &mut Complete<'_, RowExtras>,
    rows: std::ops::Range<usize>,
) -> Option<Mixed> {
    let (Work::Images(recipe), Some(spec)) = (&run.config().work, layout.spec) else {
        return None;
    };
    let place = run.shared().schedule.slot(first.batch, first.row).place;
    let group = place / run.config().mixing_group as u64;
    let mixing = recipe.mixing(run.config().seed, first.epoch, group)?;
    let images = complete.images(rows.clone());
    let size = (spec.width, spec.height);
    let channels = recipe.channels();
    mixing.run(Level::detect(), spec.output, channels, size, images, &mut scratch.unmixed);
    Some(Mixed { rows, mixing })
}
