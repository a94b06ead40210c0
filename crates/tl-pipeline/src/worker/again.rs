//! Batches that a device has decoded by row indexes: they are made again where an index was wrong.

use tl_cuda::DeviceReason;
use tl_handoff::permits::{HeldBatch, Permit};
use tl_handoff::sync::Arc;

use super::publish::finish;
use super::{Current, fill};
use crate::batch::Batch;
use crate::error::PipelineError;
use crate::fetch::ReadRow;
use crate::note::LoaderNote;
use crate::run::{Filled, Place, Run};

/// Waits until a device has decoded the rows of a batch's images, if it does. Where an index was not
/// that of its file, the batch is made again by the calling thread, by entropy decoding on the host,
/// so that it has the images or the errors of the host.
pub(crate) fn checked(run: &Run, mut filled: Filled) -> Filled {
    let Some(place) = filled.unchecked.take() else { return filled };
    let Ok(batch) = filled.batch else { return filled };
    match wrong_index(&batch) {
        Ok(None) => Filled { batch: Ok(batch), ..filled },
        Ok(Some(sample)) => {
            let reason = DeviceReason::RowIndex { sample };
            run.shared().delivered.distrust_indexes();
            run.shared().note(LoaderNote::Device {
                wanted: "decoding by stored row indexes on the device",
                used: "entropy decoding on the CPU instead, for all samples",
                reason: reason.clone(),
            });
            make_again(run, batch, place, &reason)
        }
        Err(reason) => {
            let held = batch.held();
            Filled { batch: Err(PipelineError::Device { reason }), held, ..filled }
        }
    }
}

fn wrong_index(batch: &Batch) -> Result<Option<u64>, DeviceReason> {
    batch.device().map_or(Ok(None), |device| device.buffer().wrong_index())
}

/// Makes the batch at `place` again, with the permit that it has.
fn make_again(run: &Run, batch: Batch, place: Place, reason: &DeviceReason) -> Filled {
    let held = batch.held();
    let permit = batch.permit();
    // Its memory of the device is free for the new one.
    drop(batch);
    if let Some(permit) = &permit {
        permit.discharge();
    }
    let made = make(run, place, permit, held.clone(), reason).and_then(|filled| {
        let wrong = filled.batch.as_ref().map_or(Ok(None), wrong_index);
        match wrong.map(|wrong| wrong.map(|sample| DeviceReason::RowIndex { sample })) {
            Ok(None) => Ok(Filled { unchecked: None, ..filled }),
            Ok(Some(reason)) | Err(reason) => Err(PipelineError::Device { reason }),
        }
    });
    made.unwrap_or_else(|error| {
        let rows = run.shared().schedule.counted_rows_of(place.batch);
        Filled { batch: Err(error), rows, audit: Vec::new(), unchecked: None, held }
    })
}

fn make(
    run: &Run,
    place: Place,
    permit: Option<Arc<Permit>>,
    held: Option<Arc<HeldBatch>>,
    reason: &DeviceReason,
) -> Result<Filled, PipelineError> {
    let shared = run.shared();
    let epoch = run.order(place.epoch);
    let grouping = run.grouping(&epoch, place)?;
    let layout = run.layout(grouping.as_deref(), place)?;
    let slab = run.slab(place, &layout)?;
    let lease = Arc::new(match permit {
        Some(permit) => slab.with_permit(permit),
        None => slab,
    });
    let current = Current { serial: place.serial, epoch, grouping, layout, lease };
    let scratch = &mut shared.new_scratch();
    let first = place.run_row - place.row;
    for row in 0..shared.schedule.rows_of(place.batch) {
        let place = Place { run_row: first + row, row, ..place };
        if let Some(complete) = fill::fill(run, scratch, &current, place, ReadRow::taken()) {
            return Ok(finish(run, scratch, &current, place, complete, held));
        }
    }
    // The run is over, and nobody receives the batch.
    Err(PipelineError::Device { reason: reason.clone() })
}
