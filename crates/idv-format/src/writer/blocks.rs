//! Encoding and compressing blocks, on several threads, with results in the order of the jobs.

use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::resume_unwind;
use std::thread;

use crate::codec::{Codec, count};
use crate::compression::Deflater;
use crate::toc::Compression;
use crate::values::Values;
use crate::values::ValuesError;
use crate::write_error::WriteError;

/// Blocks for each thread before their results are written.
const JOBS_PER_THREAD: usize = 4;

/// A block to be made.
#[derive(Debug)]
pub(super) struct Job<'v> {
    pub(super) column: usize,
    pub(super) codec: &'v Codec,
    pub(super) compression: Compression,
    pub(super) values: Values<'v>,
}

/// A block that is ready to be written.
#[derive(Debug)]
pub(super) struct Encoded {
    plain: Vec<u8>,
    /// Empty without compression.
    deflated: Vec<u8>,
    compression: Compression,
    stored_bytes: u32,
    bytes: u32,
}

impl Encoded {
    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// The bytes that go into the file.
    pub(super) fn stored(&self) -> &[u8] {
        if self.compression == Compression::None { &self.plain } else { &self.deflated }
    }

    pub(super) fn stored_bytes(&self) -> u32 {
        self.stored_bytes
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }
}

/// The block of each job with the job's column.
pub(super) type EncodedJobs = Vec<(usize, Result<Encoded, ValuesError>)>;

/// The encoders of blocks, with the memory that they use again.
#[derive(Debug)]
pub(super) struct Encoders {
    /// One for each thread.
    deflaters: Vec<Deflater>,
    spare: Vec<Encoded>,
}

impl Encoders {
    pub(super) fn new(threads: NonZeroUsize) -> Self {
        let deflaters = (0..threads.get()).map(|_| Deflater::default()).collect();
        Self { deflaters, spare: Vec::new() }
    }

    /// How many jobs keep all threads busy.
    pub(super) fn jobs_at_once(&self) -> usize {
        self.deflaters.len() * JOBS_PER_THREAD
    }

    /// Makes blocks. Each comes with the column of its job, in the order of the jobs.
    ///
    /// # Errors
    /// [`WriteError::Spawn`].
    pub(super) fn encode(&mut self, jobs: &[Job<'_>]) -> Result<EncodedJobs, WriteError> {
        let next = AtomicUsize::new(0);
        let mut spare = core::mem::take(&mut self.spare).into_iter();
        let share = spare.len().div_ceil(self.deflaters.len());
        let work = |deflater: &mut Deflater, mut spare: Vec<Encoded>| {
            let mut done = Vec::new();
            while let Some((number, job)) = claim(jobs, &next) {
                let memory = spare.pop();
                done.push((number, encode(deflater, job, memory)));
            }
            done
        };
        let workers = self.deflaters.len().min(jobs.len());
        let mut done = thread::scope(|scope| {
            let mut handles = Vec::new();
            let mut deflaters = self.deflaters.iter_mut();
            let own = deflaters.next();
            let own_spare: Vec<Encoded> = spare.by_ref().take(share).collect();
            for (worker, deflater) in (1..workers).zip(deflaters) {
                let spare = spare.by_ref().take(share).collect();
                let started = thread::Builder::new().spawn_scoped(scope, || work(deflater, spare));
                handles.push(started.map_err(|source| {
                    next.fetch_max(jobs.len(), Ordering::Relaxed);
                    WriteError::Spawn { worker, workers, source }
                })?);
            }
            let mut done = own.map(|deflater| work(deflater, own_spare)).unwrap_or_default();
            for handle in handles {
                done.extend(handle.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            Ok(done)
        })?;
        done.sort_unstable_by_key(|&(number, _)| number);
        let columns = jobs.iter().map(|job| job.column);
        Ok(columns.zip(done).map(|(column, (_, encoded))| (column, encoded)).collect())
    }

    /// Makes the block of one value, compressed where that is smaller.
    pub(super) fn encode_smaller(
        &mut self,
        codec: &Codec,
        values: &Values<'_>,
    ) -> Result<Encoded, ValuesError> {
        let mut deflater = Deflater::default();
        let values = || values.slice(0..values.len());
        let mut job = |compression| {
            encode(&mut deflater, &Job { column: 0, codec, compression, values: values() }, None)
        };
        let plain = job(Compression::None)?;
        let deflated = job(Compression::Deflate)?;
        Ok(if deflated.stored_bytes < plain.stored_bytes { deflated } else { plain })
    }

    /// Takes back the memory of a block that is written.
    pub(super) fn recycle(&mut self, encoded: Encoded) {
        self.spare.push(encoded);
    }
}

/// The job that comes next, for whichever thread asks.
fn claim<'j, 'v>(jobs: &'j [Job<'v>], next: &AtomicUsize) -> Option<(usize, &'j Job<'v>)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(number).map(|job| (number, job))
}

fn encode(
    deflater: &mut Deflater,
    job: &Job<'_>,
    memory: Option<Encoded>,
) -> Result<Encoded, ValuesError> {
    let (mut plain, mut deflated) =
        memory.map(|encoded| (encoded.plain, encoded.deflated)).unwrap_or_default();
    plain.clear();
    job.codec.encode(&job.values, &mut plain)?;
    let bytes = count("bytes of a block", plain.len())?.unsigned_abs();
    let mut stored_bytes = bytes;
    if job.compression != Compression::None {
        deflated.clear();
        deflater.deflate(&plain, &mut deflated);
        stored_bytes = count("bytes of a block", deflated.len())?.unsigned_abs();
    }
    Ok(Encoded { plain, deflated, compression: job.compression, stored_bytes, bytes })
}
