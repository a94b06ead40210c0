//! The times of a device's events on the clock of the host.

use std::time::{Duration, Instant};

use tl_handoff::sync::Arc;

use crate::driver::Event;

/// The driver counts in `f32` milliseconds: over a second, that is less than a tenth of a microsecond.
const LONGEST: Duration = Duration::from_secs(1);

/// An event, with its time on the clock of the host.
pub(crate) struct Anchor {
    event: Arc<Event>,
    at: Instant,
}

impl Anchor {
    /// The time of `event`, which has happened. The first is taken to have happened now; a later one
    /// that would be in the future shows that this was too late.
    pub(crate) fn place(anchor: &mut Option<Self>, event: &Arc<Event>) -> Instant {
        let now = Instant::now();
        let found = anchor.as_ref().and_then(|anchor| {
            let after = anchor.event.time_until(event).ok()?;
            let at = anchor.at.checked_add(after).filter(|at| *at <= now)?;
            Some(Found { at, is_near: after < LONGEST })
        });
        match found {
            Some(Found { at, is_near: true }) => at,
            found => {
                let at = found.map_or(now, |found| found.at);
                *anchor = Some(Self { event: Arc::clone(event), at });
                at
            }
        }
    }
}

/// A time, and whether it was counted precisely.
struct Found {
    at: Instant,
    is_near: bool,
}
