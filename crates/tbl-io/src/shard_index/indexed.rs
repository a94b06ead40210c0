//! An object of a store that was opened by a shard index.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Kept;
use crate::location::Location;
use crate::ranges::{BackgroundReads, Part, PartFault, Pin, RangeFault, Ranges};
use crate::source::Source;

/// An object whose first reads are answered from its part in a shard index, and whose errors name
/// that index.
pub(super) struct Indexed {
    object: Arc<dyn Ranges>,
    index: Location,
    /// The bytes that opening the container reads, until it is open.
    kept: Mutex<Option<Vec<Kept>>>,
    others: Others,
}

/// Reads of bytes that are not kept, while the container is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// The part in the index is damaged.
    Refused,
    /// They depend on options.
    Read,
}

impl Indexed {
    pub(super) fn new(
        object: Arc<dyn Ranges>,
        index: Location,
        kept: Option<Vec<Kept>>,
        others: Others,
    ) -> Self {
        Self { object, index, kept: Mutex::new(kept), others }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Vec<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault, with the index if the object is not the one that was indexed, or is gone.
    fn fault(&self, fault: RangeFault) -> RangeFault {
        let index = self.index.clone();
        if let RangeFault::Refused { status: 404, .. } = fault {
            return RangeFault::MissingSinceIndexed { index };
        }
        if let RangeFault::Changed { found } = fault {
            RangeFault::ChangedSinceIndexed { found, index }
        } else {
            fault
        }
    }
}

/// Fills `bytes` with kept ones.
///
/// # Errors
/// [`RangeFault::Short`] if some of them are not kept.
fn fill(kept: &[Kept], offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
    let len = bytes.len();
    let found = kept.iter().find_map(|kept| {
        let start = usize::try_from(offset.checked_sub(kept.offset)?).ok()?;
        kept.bytes.get(start..)?.get(..len)
    });
    bytes.copy_from_slice(found.ok_or(RangeFault::Short { received: 0 })?);
    Ok(())
}

impl Ranges for Indexed {
    fn len(&self) -> u64 {
        self.object.len()
    }

    fn pin(&self) -> &Pin {
        self.object.pin()
    }

    fn hidden(&self) -> &str {
        self.object.hidden()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        if let Some(kept) = &*self.kept() {
            let filled = fill(kept, offset, bytes);
            if filled.is_ok() || self.others == Others::Refused {
                return filled;
            }
        }
        self.object.read_exact_at(offset, bytes).map_err(|fault| self.fault(fault))
    }

    fn read_parts(&self, parts: &mut [Part<'_>]) -> Result<(), PartFault> {
        let read = self.object.read_parts(parts);
        read.map_err(|PartFault { part, fault }| PartFault { part, fault: self.fault(fault) })
    }

    fn will_need(&self, offset: u64, len: u64) {
        self.object.will_need(offset, len);
    }

    fn dont_need(&self, offset: u64, len: u64) {
        if offset == 0 && len == self.len() {
            *self.kept() = None;
        }
        self.object.dont_need(offset, len);
    }

    fn local(&self) -> Option<Source> {
        self.object.local()
    }

    fn background(&self) -> Option<&dyn BackgroundReads> {
        self.object.background()
    }
}

/// An object whose reads are noted with their bytes, for its part in a shard index.
#[derive(Debug)]
pub(super) struct Noted {
    object: Arc<dyn Ranges>,
    reads: Mutex<Vec<Kept>>,
}

impl Noted {
    pub(super) fn new(object: Arc<dyn Ranges>) -> Self {
        Self { object, reads: Mutex::default() }
    }

    /// The reads until now.
    pub(super) fn take(&self) -> Vec<Kept> {
        std::mem::take(&mut *self.reads.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ranges for Noted {
    fn len(&self) -> u64 {
        self.object.len()
    }

    fn pin(&self) -> &Pin {
        self.object.pin()
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        self.object.read_exact_at(offset, bytes)?;
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if fill(&reads, offset, &mut bytes.to_vec()).is_err() {
            reads.push(Kept { offset, bytes: bytes.to_vec() });
        }
        Ok(())
    }
}

impl fmt::Debug for Indexed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexed").field("object", &self.object).field("index", &self.index).finish()
    }
}
