//! The end of a batch: bad rows, mixing, and the hand-over.

use tl_handoff::permits::Permit;
use tl_handoff::slab::Complete;
use tl_handoff::sync::Arc;
use tl_simd::Level;

use crate::audit::{AuditEntry, Outcome};
use crate::batch::Filled;
use crate::batch::{Batch, Mixed};
use crate::delivered::Traced;
use crate::error::PipelineError;
use crate::layout::BatchLayout;
use crate::row::{Finding, RowExtras};
use crate::run::{Place, Run};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::work::Work;
use crate::worker::Current;

/// Leaves rows without a sample out, or reports the first that must not be, mixes the others where
/// the recipe says so, and hands the batch over.
pub(super) fn publish(
    run: &Run,
    scratch: &mut Scratch,
    Current { grouping, layout, lease, .. }: &Current,
    place: Place,
    mut complete: Complete<'_, RowExtras>,
) {
    scratch.metrics.lap(Stage::Overhead);
    scratch.metrics.work_on(place.batch);
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
    let mut failed = None;
    let filled = match audit.iter().position(|entry| entry.outcome == Outcome::Raised) {
        Some(raised) => {
            let entry = audit.swap_remove(raised);
            Filled { batch: Err(Arc::clone(&entry.error).into()), rows, audit: vec![entry] }
        }
        None => {
            let charged = lease.permit().map_or(0, Permit::charged);
            let within = run.memory().check(place.epoch, place.batch, charged);
            let batch = Batch::new(Arc::clone(lease), place.batch, len, layout, mixed, left_out);
            let held = batch.held();
            let batch = within.and_then(|()| {
                let shared = run.shared();
                let device = shared.delivered.pinning().and_then(|note| {
                    note.into_iter().for_each(|note| shared.note(note));
                    let trace = shared.trace.as_ref().map(Arc::clone);
                    let traced = trace.map(|trace| Traced { trace, batch: place.batch });
                    shared.delivered.upload(lease, layout, batch.len(), traced)
                });
                let device = device.map_err(|reason| PipelineError::Device { reason })?;
                Ok(batch.with_device(device).with_pinned(shared.delivered.pinned(lease)))
            });
            let batch = batch.and_then(|batch| match &run.config().collate {
                // Nobody receives a batch without a sample.
                _ if batch.is_empty() => Ok(batch),
                Some(collate) => collate.run(&batch).map(|collated| batch.with_collated(collated)),
                None => Ok(batch),
            });
            failed = held.filter(|_| batch.is_err());
            Filled { batch, rows, audit }
        }
    };
    run.ring.publish(place.serial, filled);
    // Not earlier: a thread that takes over its memory would wait for this worker with the ring
    // locked.
    drop(failed);
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
