//! A trace of what happened when: a bounded list of events, written in the JSON that Perfetto and
//! the trace viewers of browsers read.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use tl_handoff::sync::{Arc, Mutex, lock, process_id};

use crate::stage::Stage;

/// Events a worker keeps before it takes the lock of the trace.
const BUFFERED: usize = 512;

/// The consumer's number among the threads; workers follow.
const CONSUMER: u32 = 0;

/// The first reader's number, above those of all workers.
const FIRST_READER: u32 = 1 << 16;

/// The device's number, above those of all readers.
const DEVICE: u32 = 1 << 30;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// A stage of the work on a sample.
    Stage(Stage),
    /// A worker had to wait until the consumer took a batch.
    WaitForConsumer,
    /// A worker had to wait until its sample was read.
    WaitForReader,
    /// A read of a worker failed for a reason that may pass, and was repeated after a wait.
    Repeat,
    /// The consumer had to wait for a batch.
    WaitForBatch,
    /// The copy of a batch to the device, with its conversion there.
    Copy,
    /// The same with decoding by nvJPEG.
    NvJpegCopy,
    /// The consumer's work on a batch.
    Step,
    /// A number of batches that are ready.
    Ready,
    /// A number of samples that are read and wait for their workers.
    ReadAhead,
}

impl EventKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Stage(stage) => stage.name(),
            Self::WaitForConsumer => "wait for consumer",
            Self::WaitForReader => "wait for reader",
            Self::Repeat => "failed read",
            Self::WaitForBatch => "wait for batch",
            Self::Copy => "copy to the device",
            Self::NvJpegCopy => "copy to the device, nvJPEG",
            Self::Step => "step",
            Self::Ready => "ready batches",
            Self::ReadAhead => "samples read ahead",
        }
    }

    /// The name of the things that its number counts.
    const fn subject(self) -> &'static str {
        match self {
            Self::Stage(Stage::Finish)
            | Self::WaitForConsumer
            | Self::WaitForBatch
            | Self::Copy
            | Self::NvJpegCopy
            | Self::Step => "batch",
            Self::Stage(_) | Self::WaitForReader | Self::Repeat => "sample",
            Self::Ready => "batches",
            Self::ReadAhead => "samples",
        }
    }
}

/// Something that happened, and how long it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    kind: EventKind,
    thread: u32,
    start: Instant,
    time: Duration,
    /// The number of the sample or batch, or a count.
    number: u64,
}

impl Event {
    pub(crate) const fn new(kind: EventKind, start: Instant, time: Duration, number: u64) -> Self {
        Self { kind, thread: CONSUMER, start, time, number }
    }
}

/// The events of one thread that are not in the trace yet.
#[derive(Debug)]
pub(crate) struct EventBuffer {
    trace: Arc<Trace>,
    thread: u32,
    events: Vec<Event>,
}

impl EventBuffer {
    /// Adds an event to the buffer.
    pub(crate) fn push(&mut self, event: Event) {
        self.push_beside(0, event);
    }

    /// Adds an event that has the same time as others of this thread, in a separate lane.
    pub(crate) fn push_beside(&mut self, lane: u32, event: Event) {
        self.events.push(Event { thread: self.thread + lane, ..event });
        if self.events.len() == BUFFERED {
            self.flush();
        }
    }

    /// Moves the buffered events into the trace.
    pub(crate) fn flush(&mut self) {
        self.trace.extend(&self.events);
        self.events.clear();
    }
}

impl Drop for EventBuffer {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The latest events of a loader.
#[derive(Debug)]
pub(crate) struct Trace {
    start: Instant,
    kept: Mutex<Kept>,
    /// The process that the trace is of.
    process: u32,
}

#[derive(Debug)]
struct Kept {
    events: Vec<Event>,
    /// The place of the oldest event once the trace is full.
    oldest: usize,
    capacity: usize,
    dropped: u64,
}

impl Trace {
    /// A trace that keeps the latest `capacity` events.
    pub(crate) fn new(capacity: usize) -> Self {
        let kept = Kept { events: Vec::new(), oldest: 0, capacity, dropped: 0 };
        Self { start: Instant::now(), kept: Mutex::new(kept), process: process_id() }
    }

    /// A buffer for the events of worker `worker`.
    pub(crate) fn worker(self: &Arc<Self>, worker: usize) -> EventBuffer {
        let worker = u32::try_from(worker).expect("at most MAX_WORKERS");
        self.buffer(worker + 1)
    }

    /// A buffer for the events of reader `reader`.
    pub(crate) fn reader(self: &Arc<Self>, reader: usize) -> EventBuffer {
        let reader = u32::try_from(reader).expect("at most MAX_READERS");
        self.buffer(FIRST_READER + reader)
    }

    /// A buffer for the events of the consumer.
    pub(crate) fn consumer(self: &Arc<Self>) -> EventBuffer {
        self.buffer(CONSUMER)
    }

    fn buffer(self: &Arc<Self>, thread: u32) -> EventBuffer {
        let events = Vec::with_capacity(BUFFERED);
        EventBuffer { trace: Arc::clone(self), thread, events }
    }

    /// Adds the copy of a batch, of this kind, which the device began with at `start`.
    pub(crate) fn copy(&self, kind: EventKind, start: Instant, time: Duration, batch: u64) {
        let copy = Event::new(kind, start, time, batch);
        self.extend(&[Event { thread: DEVICE, ..copy }]);
    }

    fn extend(&self, events: &[Event]) {
        if self.process != process_id() {
            // A fork, where a worker may have held the lock and is not there to release it.
            return;
        }
        let mut kept = lock(&self.kept);
        events.iter().for_each(|event| kept.push(*event));
    }

    /// Writes the events as a JSON object in the trace event format.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // A copy, so that nobody waits for the file.
        let (mut events, dropped) = {
            let kept = lock(&self.kept);
            (kept.events.clone(), kept.dropped)
        };
        events.sort_by_key(|event| event.start);
        write!(out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped\":{dropped}}},")?;
        write!(out, "\"traceEvents\":[\n{}", named("process_name", 0, "loader"))?;
        write!(out, ",\n{}", named("thread_name", CONSUMER, "consumer"))?;
        for (threads, name) in [(1..FIRST_READER, "worker"), (FIRST_READER..DEVICE, "reader")] {
            let seen = events.iter().map(|event| event.thread);
            let end =
                seen.filter(|thread| threads.contains(thread)).max().map_or(0, |last| last + 1);
            for thread in threads.start..end {
                let name = format!("{name} {}", thread - threads.start);
                write!(out, ",\n{}", named("thread_name", thread, &name))?;
            }
        }
        if events.iter().any(|event| event.thread == DEVICE) {
            write!(out, ",\n{}", named("thread_name", DEVICE, "device"))?;
        }
        for event in &events {
            self.write_event(event, out)?;
        }
        writeln!(out, "\n]}}")
    }

    fn write_event(&self, event: &Event, out: &mut dyn Write) -> io::Result<()> {
        let Event { kind, thread, start, time, number } = *event;
        let at = micros(start.saturating_duration_since(self.start));
        let name = kind.name();
        let subject = kind.subject();
        let common = format!("\"name\":\"{name}\",\"pid\":1,\"tid\":{thread},\"ts\":{at}");
        match kind {
            EventKind::Ready | EventKind::ReadAhead => {
                write!(out, ",\n{{{common},\"ph\":\"C\",\"args\":{{\"{subject}\":{number}}}}}")
            }
            EventKind::Stage(_)
            | EventKind::WaitForConsumer
            | EventKind::WaitForReader
            | EventKind::Repeat
            | EventKind::WaitForBatch
            | EventKind::Copy
            | EventKind::NvJpegCopy
            | EventKind::Step => {
                let time = micros(time);
                write!(out, ",\n{{{common},\"dur\":{time},\"ph\":\"X\",")?;
                write!(out, "\"args\":{{\"{subject}\":{number}}}}}")
            }
        }
    }
}

impl Kept {
    fn push(&mut self, event: Event) {
        if self.events.len() < self.capacity {
            return self.events.push(event);
        }
        self.dropped += 1;
        if let Some(oldest) = self.events.get_mut(self.oldest) {
            *oldest = event;
            self.oldest = (self.oldest + 1) % self.capacity;
        }
    }
}

/// Microseconds with three decimals, which keep every nanosecond.
fn micros(time: Duration) -> String {
    format!("{}.{:03}", time.as_micros(), time.subsec_nanos() % 1000)
}

/// A line that gives a process or thread its name.
fn named(what: &str, thread: u32, name: &str) -> String {
    let args = format!("\"args\":{{\"name\":\"{name}\"}}");
    format!("{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":1,\"tid\":{thread},{args}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(trace: &Trace) -> serde_json::Value {
        let mut bytes = Vec::new();
        trace.write(&mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn the_latest_events_are_kept() {
        let trace = Arc::new(Trace::new(4));
        let start = trace.start;
        let mut worker = trace.worker(2);
        for number in 0..7 {
            let kind = EventKind::Stage(Stage::Decode);
            let at = start + Duration::from_nanos(1_000_001 * number);
            worker.push(Event::new(kind, at, Duration::from_nanos(2_500), number));
        }
        drop(worker);
        let value = written(&trace);
        let events = value["traceEvents"].as_array().unwrap();
        let complete = events.iter().filter(|event| event["ph"] == "X");
        let found: Vec<(u64, f64)> = complete
            .map(|event| {
                assert_eq!((&event["name"], &event["tid"]), (&"decode".into(), &3.into()));
                assert_eq!(event["dur"].as_f64(), Some(2.5));
                (event["args"]["sample"].as_u64().unwrap(), event["ts"].as_f64().unwrap())
            })
            .collect();
        let expected = [(3, 3_000.003), (4, 4_000.004), (5, 5_000.005), (6, 6_000.006)];
        assert_eq!(found, expected);
        assert_eq!(value["otherData"]["dropped"], 3);
        let names = events.iter().filter(|event| event["name"] == "thread_name");
        let names: Vec<_> = names.map(|event| event["args"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["consumer", "worker 0", "worker 1", "worker 2"]);
    }

    #[test]
    fn a_fork_leaves_the_trace_and_its_lock_alone() {
        let trace = Arc::new(Trace { process: process_id() ^ 1, ..Trace::new(10) });
        let mut consumer = trace.consumer();
        consumer.push(Event::new(EventKind::Step, trace.start, Duration::ZERO, 0));
        drop(consumer);
        assert!(lock(&trace.kept).events.is_empty());
    }

    #[test]
    fn a_trace_of_nothing_is_still_one() {
        let value = written(&Trace::new(0));
        assert_eq!(value["traceEvents"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn counters_have_a_value_and_no_duration() {
        let trace = Arc::new(Trace::new(10));
        let event = Event::new(EventKind::Ready, trace.start, Duration::ZERO, 3);
        trace.consumer().push(event);
        let value = written(&trace);
        let event = &value["traceEvents"][2];
        assert_eq!((&event["ph"], &event["args"]["batches"]), (&"C".into(), &3.into()));
        assert!(event.get("dur").is_none());
    }
}
