//! Reads of an object that no thread waits for.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use tbl_io::{BackgroundReads, PartReceiver, UnderWay};

use crate::object::StoredObject;
use crate::read::Need;

/// Cuts the bytes of a range, which arrive in order, into parts.
struct Cutter {
    receiver: Box<dyn PartReceiver>,
    /// The parts that have not arrived; the first one perhaps in part.
    parts: VecDeque<Range<u64>>,
    /// The part that is arriving.
    current: Option<Vec<u8>>,
    /// The place of the next byte in the object.
    at: u64,
}

impl Cutter {
    fn new(parts: VecDeque<Range<u64>>, receiver: Box<dyn PartReceiver>) -> Self {
        let at = parts.front().map_or(0, |part| part.start);
        Self { receiver, parts, current: None, at }
    }

    fn push(&mut self, mut bytes: Bytes) {
        while let Some(part) = self.parts.front() {
            let gap = length(self.at..part.start).min(bytes.len());
            drop(bytes.split_to(gap));
            self.at += gap as u64;
            if bytes.is_empty() {
                return;
            }
            let receiver = &mut self.receiver;
            let len = length(part.clone());
            let current = self.current.get_or_insert_with(|| {
                let mut buffer = receiver.buffer(len);
                buffer.clear();
                buffer
            });
            let taken = bytes.split_to(length(self.at..part.end).min(bytes.len()));
            current.extend_from_slice(&taken);
            self.at += taken.len() as u64;
            if self.at == part.end {
                self.receiver.receive(self.current.take().unwrap_or_default());
                self.parts.pop_front();
            }
        }
    }
}

fn length(range: Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

impl BackgroundReads for StoredObject {
    fn start(
        &self,
        parts: Vec<Range<u64>>,
        needed_in: Option<Duration>,
        receiver: Box<dyn PartReceiver>,
    ) -> UnderWay {
        let Some((first, last)) = parts.first().zip(parts.last()) else {
            return UnderWay::new(());
        };
        let range = first.start..last.end;
        let mut cutter = Cutter::new(parts.into(), receiver);
        if let Some(front) = self.in_front(range.start, length(range.clone())) {
            cutter.push(front);
            return UnderWay::new(());
        }
        let version = self.version.clone();
        let read = self.net.engine().spawn(async move {
            // Parts that are missing in the end are read once more, by someone who gets the reason.
            let need = needed_in.map_or(Need::Unknown, Need::after);
            drop(version.read(range, need, |bytes| cutter.push(bytes)).await);
        });
        // In a fork nothing is requested.
        read.map_or_else(|_| UnderWay::new(()), UnderWay::new)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Kept(Arc<Mutex<Vec<Vec<u8>>>>);

    impl PartReceiver for Kept {
        fn buffer(&mut self, _: usize) -> Vec<u8> {
            vec![9; 3]
        }

        fn receive(&mut self, part: Vec<u8>) {
            self.0.lock().unwrap().push(part);
        }
    }

    proptest! {
        #[test]
        fn parts_are_the_bytes_of_their_ranges(
            steps in prop::collection::vec((0..4u64, 1..6u64), 1..8),
            chunk in 1..9usize,
        ) {
            let mut at = 3;
            let mut parts = Vec::new();
            for (gap, len) in steps {
                parts.push(at + gap..at + gap + len);
                at += gap + len;
            }
            let kept = Kept::default();
            let received = Arc::clone(&kept.0);
            let mut cutter = Cutter::new(parts.clone().into(), Box::new(kept));
            let object: Vec<u8> = (0..=255).collect();
            let bytes = |range: Range<u64>| object[length(0..range.start)..length(0..range.end)].to_vec();
            let start = parts[0].start;
            let end = parts[parts.len() - 1].end;
            for piece in bytes(start..end).chunks(chunk) {
                cutter.push(piece.to_vec().into());
            }
            let expected: Vec<_> = parts.into_iter().map(bytes).collect();
            prop_assert_eq!(&*received.lock().unwrap(), &expected);
        }
    }
}
