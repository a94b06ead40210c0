//! Counts and traces of a reader.

use std::time::{Duration, Instant};

use tl_handoff::sync::Arc;
use tl_handoff::window::Fetched;

use super::counters::ReaderCounters;
use crate::run::Run;
use crate::stage::Stage;
use crate::trace::{Event, EventBuffer, EventKind};

/// Counts and traces what a reader reads.
pub(crate) struct Log {
    counters: Arc<ReaderCounters>,
    events: Option<EventBuffer>,
}

impl Log {
    pub(super) fn new(run: &Run, reader: usize) -> Self {
        let shared = run.shared();
        let events = shared.trace.as_ref().map(|trace| trace.reader(reader));
        Self { counters: Arc::clone(&shared.counters.readers), events }
    }

    /// Records that `sample` was read, from `start` on, in a lane next to those of other reads.
    pub(super) fn read(&mut self, sample: u64, lane: u32, start: Instant, fetched: &Fetched) {
        let now = Instant::now();
        let time = now.saturating_duration_since(start);
        self.counters.read(fetched.bytes.len(), time);
        if let Some(events) = &mut self.events {
            let kind = EventKind::Stage(Stage::Read);
            events.push_beside(lane, Event::new(kind, start, time, sample));
            let ahead = self.counters.window.ready() + 1;
            events.push(Event::new(EventKind::ReadAhead, now, Duration::ZERO, ahead));
            // A reader may sleep for long.
            events.flush();
        }
    }
}
