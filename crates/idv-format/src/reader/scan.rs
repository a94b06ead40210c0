//! Reading all blocks of a column, on several threads.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::read_error::ReadError;
use crate::reader::{Column, Scratch};
use crate::source::ReadAt;
use crate::values::Values;

impl<R: ReadAt + Sync> Column<'_, R> {
    /// Reads every block once and hands it to `visit` with its number, on up to `threads` threads.
    /// Blocks are started in order and may be handed over in any.
    ///
    /// # Errors
    /// The error of the first block that has one, from reading it or from `visit`. Blocks after
    /// it may have been visited or not.
    pub fn scan<E, F>(&self, threads: NonZeroUsize, visit: F) -> Result<(), E>
    where
        E: From<ReadError> + Send,
        F: Fn(u64, Values<'_>) -> Result<(), E> + Sync,
    {
        let count = self.blocks().len() as u64;
        let next = AtomicU64::new(0);
        let failure: Mutex<Option<(u64, E)>> = Mutex::new(None);
        let work = || {
            let mut scratch = Scratch::new();
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= count {
                    return;
                }
                let read = self.read_block(block, &mut scratch).map_err(E::from);
                if let Err(error) = read.and_then(|values| visit(block, values)) {
                    // Nobody starts another block; those started before this one are finished.
                    next.fetch_max(count, Ordering::Relaxed);
                    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    if failure.as_ref().is_none_or(|&(first, _)| block < first) {
                        *failure = Some((block, error));
                    }
                    return;
                }
            }
        };
        let helpers = threads.get().min(usize::try_from(count).unwrap_or(usize::MAX));
        thread::scope(|scope| {
            for worker in 1..helpers {
                let started = thread::Builder::new().spawn_scoped(scope, work);
                if let Err(source) = started {
                    next.fetch_max(count, Ordering::Relaxed);
                    return Err(ReadError::Spawn { worker, workers: helpers, source });
                }
            }
            work();
            Ok(())
        })?;
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }
}
