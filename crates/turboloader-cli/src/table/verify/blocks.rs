//! Reading every block of a column of an IDV file, past those that are damaged.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use idv_format::{ReadError, Scratch};

use crate::failure::Failure;
use crate::table::IdvTable;
use crate::threads;

/// The defects of the blocks of a column, in their order.
pub(super) fn damaged_blocks(
    table: &IdvTable,
    column: usize,
    workers: NonZeroUsize,
) -> Result<Vec<ReadError>, Failure> {
    let column = match table.file().column(column) {
        Ok(column) => column,
        // The blocks of a dead column still have a place.
        Err(dead @ ReadError::Dead { .. }) => {
            return Ok(table.blocks(column).err().into_iter().chain([dead]).collect());
        }
        Err(error) => return Ok(vec![error]),
    };
    let count = column.blocks().len() as u64;
    let next = AtomicU64::new(0);
    let errors: Mutex<Vec<(u64, ReadError)>> = Mutex::new(Vec::new());
    let work = || {
        let mut scratch = Scratch::new();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= count {
                return;
            }
            if let Err(error) = column.read_block(block, &mut scratch) {
                errors.lock().unwrap_or_else(PoisonError::into_inner).push((block, error));
            }
        }
    };
    let workers = workers.get().min(usize::try_from(count).unwrap_or(usize::MAX));
    thread::scope(|scope| {
        for worker in 1..workers {
            if let Err(failure) = threads::spawn(scope, worker, workers, work) {
                // Those that run end before the next block.
                next.fetch_max(count, Ordering::Relaxed);
                return Err(failure);
            }
        }
        work();
        Ok(())
    })?;
    let mut errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    errors.sort_unstable_by_key(|&(block, _)| block);
    Ok(errors.into_iter().map(|(_, error)| error).collect())
}
