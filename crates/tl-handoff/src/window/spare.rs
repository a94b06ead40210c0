//! Buffers on their way back from workers to readers.

/// Buffers above this size are not kept for another sample.
pub const SPARE_BYTES: usize = 4 << 20;

/// The largest total capacity of the buffers that are kept for other samples.
pub const ALL_SPARE_BYTES: usize = 16 << 20;

/// The largest number of buffers that are kept.
const SPARE_BUFFERS: usize = 256;

/// Buffers that were given back. Samples vary in size, and an allocator that gets and frees buffers
/// of thousands of sizes searches its lists for as long as copying the bytes takes.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// In the order of their capacities.
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    /// Chooses the buffer that makes room for another.
    turn: usize,
}

impl Spare {
    /// The smallest buffer with this much room, unless it has more than half as much again.
    pub(super) fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let place = self.buffers.partition_point(|buffer| buffer.capacity() < len);
        if self.buffers.get(place)?.capacity() > len.saturating_add(len / 2) {
            return None;
        }
        Some(self.remove(place))
    }

    fn remove(&mut self, place: usize) -> Vec<u8> {
        let buffer = self.buffers.remove(place);
        self.bytes -= buffer.capacity();
        buffer
    }

    /// Keeps a buffer and returns the ones dropped to make room for it. Any size is dropped in turn,
    /// so that buffers that fit no sample any more do not stay.
    pub(super) fn add(&mut self, buffer: Vec<u8>) -> Vec<Vec<u8>> {
        let size = buffer.capacity();
        if size == 0 || size > SPARE_BYTES {
            return vec![buffer];
        }
        let mut freed = Vec::new();
        while self.buffers.len() == SPARE_BUFFERS || self.bytes + size > ALL_SPARE_BYTES {
            self.turn += 1;
            freed.push(self.remove(self.turn % self.buffers.len()));
        }
        self.bytes += size;
        let place = self.buffers.partition_point(|other| other.capacity() < size);
        self.buffers.insert(place, buffer);
        freed
    }
}

/// A capacity for `len` bytes, at most an eighth larger, of which there are eight from one power of
/// two to the next, so that buffers of one sample fit many others.
pub(super) fn room_for(len: usize) -> usize {
    let step = (len.checked_next_power_of_two().unwrap_or(len) / 16).max(1);
    len.checked_next_multiple_of(step).unwrap_or(len)
}

#[cfg(test)]
#[cfg(not(any(feature = "shuttle", feature = "loom")))]
mod tests {
    use super::*;
    use crate::sync::lock;
    use crate::window::Window;

    #[test]
    fn buffers_come_back_unless_there_are_too_many() {
        let window = Window::new(0..1, 1);
        for size in [3_000, 1_000, 2_000] {
            window.give_back(Vec::with_capacity(size));
        }
        let taken = [1_001, 1_001, 1_001].map(|len| window.buffer(len));
        let capacities = taken.map(|buffer| buffer.capacity());
        assert_eq!(capacities, [1_024; 3], "2000 bytes are too many for 1001");
        assert_eq!([2_900, 1_400].map(|len| window.buffer(len).capacity()), [3_000, 2_000]);
        window.give_back(Vec::with_capacity(SPARE_BYTES + 1));
        assert_eq!(lock(&window.spare).bytes, 1_000);
        for _ in 0..10 {
            window.give_back(Vec::with_capacity(SPARE_BYTES / 2));
        }
        assert!((ALL_SPARE_BYTES / 2..=ALL_SPARE_BYTES).contains(&lock(&window.spare).bytes));
        for size in [10, 0] {
            (0..1_000).for_each(|_| window.give_back(Vec::with_capacity(size)));
        }
        assert_eq!(lock(&window.spare).buffers.len(), SPARE_BUFFERS);
        window.give_back(Vec::with_capacity(1_500));
        assert_eq!(window.buffer(1_400).capacity(), 1_500, "the latest one has room");
    }

    #[test]
    fn buffers_have_few_sizes_and_little_more_than_their_samples() {
        let mut rooms: Vec<_> = (65_537..=131_072).map(room_for).collect();
        rooms.dedup();
        assert_eq!(rooms.len(), 8);
        for len in (0..200_000).chain([usize::MAX - 1, usize::MAX]) {
            let room = room_for(len);
            assert!(room >= len && room - len <= len / 8, "{room} for {len}");
        }
    }
}
