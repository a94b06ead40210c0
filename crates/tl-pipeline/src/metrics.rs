//! The counters of one thread in its own memory: the time of stages, samples and bytes of a worker,
//! the waits of the consumer. They are shared when a batch is done.

use std::mem;
use std::time::{Duration, Instant};

use crate::reader::Waits;
use crate::stage::{Stage, StageTimes};
use crate::trace::{Event, EventBuffer, EventKind};

/// The counts of a worker since the last call.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Samples, good or bad.
    pub(crate) processed: u64,
    pub(crate) bytes_read: u64,
    /// Time slept, for want of room in front of the consumer.
    pub(crate) asleep: Duration,
    pub(crate) waits: Waits,
    pub(crate) stages: StageTimes,
}

/// The counts of one worker, and its stopwatch.
///
/// The time is split into laps, each of which belongs to the stage that it ends. A lap reads the
/// clock once, so all of a worker's time is somewhere, and a sample costs as many readings as it has
/// stages.
#[derive(Debug)]
pub(crate) struct WorkerMetrics {
    last: Instant,
    counted: Counted,
    /// The sample that is worked on, or the batch that is finished; for the trace.
    subject: u64,
    /// `None` where no trace is wanted.
    events: Option<EventBuffer>,
}

impl WorkerMetrics {
    /// Starts counting, and tracing if `events` is given.
    pub(crate) fn start(events: Option<EventBuffer>) -> Self {
        Self { last: Instant::now(), counted: Counted::default(), subject: 0, events }
    }

    /// The laps to come belong to the sample or the batch of this number.
    pub(crate) fn work_on(&mut self, subject: u64) {
        self.subject = subject;
    }

    /// So many bytes of a sample were read.
    pub(crate) fn read(&mut self, bytes: usize) {
        self.counted.bytes_read += bytes as u64;
    }

    /// A sample is done with.
    pub(crate) fn process(&mut self) {
        self.counted.processed += 1;
    }

    /// The time since the last lap went to `stage`.
    pub(crate) fn lap(&mut self, stage: Stage) {
        let (start, time) = self.pass();
        self.counted.stages[stage] += time;
        if let (Some(events), true) = (&mut self.events, stage != Stage::Overhead) {
            events.push(Event::new(EventKind::Stage(stage), start, time, self.subject));
        }
    }

    /// The time since the last lap was spent asleep, before batch `batch` could be entered.
    pub(crate) fn lap_asleep(&mut self, batch: u64) {
        let (start, time) = self.pass();
        self.counted.asleep += time;
        if let Some(events) = &mut self.events {
            events.push(Event::new(EventKind::WaitForConsumer, start, time, batch));
        }
    }

    /// The time since the last lap was spent waiting for a reader.
    pub(crate) fn lap_waiting(&mut self) {
        let (start, time) = self.pass();
        self.counted.waits.wait += time;
        if let Some(events) = &mut self.events {
            events.push(Event::new(EventKind::WaitForReader, start, time, self.subject));
        }
    }

    /// The time since the last lap went to reading a sample that no reader had begun with.
    pub(crate) fn lap_late(&mut self) {
        let start = self.last;
        self.lap(Stage::Read);
        self.counted.waits.late += 1;
        self.counted.waits.late_time += self.last.saturating_duration_since(start);
    }

    /// The time since the last lap went to a read that failed, and the wait before it is repeated.
    pub(crate) fn lap_repeating(&mut self) {
        let (start, time) = self.pass();
        self.counted.stages[Stage::Read] += time;
        if let Some(events) = &mut self.events {
            events.push(Event::new(EventKind::Repeat, start, time, self.subject));
        }
    }

    /// Returns the counts since the last call, and adds its events to the trace.
    pub(crate) fn take(&mut self) -> Counted {
        if let Some(events) = &mut self.events {
            events.flush();
        }
        mem::take(&mut self.counted)
    }

    /// Starts a lap; when the last one began and how long it was.
    fn pass(&mut self) -> (Instant, Duration) {
        let now = Instant::now();
        let start = mem::replace(&mut self.last, now);
        (start, now.saturating_duration_since(start))
    }
}

/// The consumer's stopwatch: when it asks for a batch, and when it has it.
#[derive(Debug)]
pub(crate) struct ConsumerWatch {
    /// The time at which it received its last batch of the epoch.
    received: Option<Instant>,
    events: Option<EventBuffer>,
}

/// A consumer that waits for a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    asked: Instant,
    busy: Duration,
}

impl ConsumerWatch {
    pub(crate) fn new(events: Option<EventBuffer>) -> Self {
        Self { received: None, events }
    }

    /// The consumer asks for batch `batch`, while `ready` of them are.
    pub(crate) fn ask(&mut self, batch: u64, ready: u64) -> Asking {
        let asked = Instant::now();
        let before = self.received.unwrap_or(asked);
        let busy = asked.saturating_duration_since(before);
        if let Some(events) = &mut self.events {
            if self.received.is_some() {
                events.push(Event::new(EventKind::Step, before, busy, batch.saturating_sub(1)));
            }
            events.push(Event::new(EventKind::Ready, asked, Duration::ZERO, ready));
        }
        Asking { asked, busy }
    }

    /// The consumer has batch `batch`, or none yet. How long it waited, and what it did before.
    pub(crate) fn receive(&mut self, asking: Asking, batch: u64) -> (Duration, Duration) {
        let now = Instant::now();
        self.received = Some(now);
        let wait = now.saturating_duration_since(asking.asked);
        if let Some(events) = &mut self.events {
            events.push(Event::new(EventKind::WaitForBatch, asking.asked, wait, batch));
            events.flush();
        }
        (wait, asking.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_cover_all_time_that_passes() {
        let mut metrics = WorkerMetrics::start(None);
        let start = metrics.last;
        for stage in Stage::ALL {
            metrics.lap(stage);
        }
        metrics.lap_asleep(0);
        metrics.lap_waiting();
        metrics.lap_late();
        let Counted { stages, asleep, waits, .. } = metrics.take();
        assert_eq!(stages.total() + asleep + waits.wait, metrics.last - start);
        assert!(waits.late == 1 && waits.late_time <= stages[Stage::Read]);
        assert_eq!(metrics.take().stages, StageTimes::default());
    }

    #[test]
    fn waiting_and_working_of_the_consumer_cover_an_epoch() {
        let mut watch = ConsumerWatch::new(None);
        let first = watch.ask(0, 0);
        assert_eq!(first.busy, Duration::ZERO);
        let (mut covered, _) = watch.receive(first, 0);
        for batch in 1..4 {
            let asking = watch.ask(batch, 1);
            let (wait, busy) = watch.receive(asking, batch);
            covered += wait + busy;
        }
        assert_eq!(Some(first.asked + covered), watch.received);
    }
}
