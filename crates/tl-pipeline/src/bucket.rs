//! Buckets: which images come into a batch together, so that little has to be added around them.
//!
//! Arithmetic over sizes, nothing else: no threads, no data set, no state. The places of an epoch
//! are cut into *windows* of whole global batches, and within each the samples change places.
//! `docs/pipeline/batches.md` specifies the outcome.

use std::cmp::Ordering;
use std::ops::Range;

use tl_transform::Rng;
use tl_transform::rng::batch_stream;

/// Width and height; 0 where they are not known.
pub(crate) type Size = (u32, u32);

/// The operation whose random numbers windows take; operation 0 of these streams mixes batches.
const STREAM: u8 = 1;

/// The division of an epoch's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Places with a sample that counts, in the order.
    positions: u64,
    /// The number of places: `positions`, or more with padding, or fewer.
    places: u64,
    /// Places of a global batch.
    global_batch: u64,
    /// Places of a window.
    window: u64,
}

impl Windows {
    /// Windows of `window` global batches each, over `places` places of an order of `positions`.
    pub(crate) fn new(positions: u64, places: u64, global_batch: u64, window: u64) -> Self {
        let window = window.max(1).saturating_mul(global_batch.max(1));
        Self { positions, places, global_batch: global_batch.max(1), window }
    }

    /// The number of the window that `place` is in.
    pub(crate) fn of(&self, place: u64) -> u64 {
        if place < self.whole() { place / self.window } else { self.whole().div_ceil(self.window) }
    }

    /// The places of window `number`. The rest after the last whole global batch is a separate
    /// window, in which samples keep their places.
    pub(crate) fn range(&self, number: u64) -> Range<u64> {
        let whole = self.whole();
        match number.cmp(&whole.div_ceil(self.window)) {
            Ordering::Less => number * self.window..whole.min((number + 1) * self.window),
            Ordering::Equal => whole..self.places,
            Ordering::Greater => self.places..self.places,
        }
    }

    /// True if samples change places in window `number`. They do not in one with padding, which is
    /// known by its places.
    pub(crate) fn is_arranged(&self, number: u64) -> bool {
        number < self.whole().div_ceil(self.window)
    }

    /// Places in global batches that are full of samples that count.
    fn whole(&self) -> u64 {
        let whole = self.positions.min(self.places);
        whole - whole % self.global_batch
    }
}

/// The random keys of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    pub(crate) epoch: u32,
    pub(crate) window: u64,
}

/// The samples of one window, arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    first: u64,
    /// For each place of the window, counted from its first, the place whose sample stands there.
    arranged: Box<[u32]>,
    /// Width and height of the images of the samples, in the order before the arrangement.
    sizes: Box<[Size]>,
}

impl Window {
    /// Arranges the samples at `places`, whose images have `sizes`; global batches have
    /// `global_batch` places. Without `draw` they stay as they are.
    ///
    /// # Panics
    /// If the numbers of sizes and places differ, or reach 2^32.
    pub(crate) fn new(
        places: Range<u64>,
        global_batch: u64,
        sizes: Vec<Size>,
        draw: Option<Draw>,
    ) -> Self {
        assert_eq!(places.end - places.start, sizes.len() as u64, "a size for every place");
        let count = u32::try_from(sizes.len()).expect("windows are limited by `LoaderConfig`");
        let mut arranged: Box<[u32]> = (0..count).collect();
        let global_batch = usize::try_from(global_batch).unwrap_or(usize::MAX);
        if let Some(draw) = draw {
            arrange(&mut arranged, &sizes, global_batch, draw);
        }
        Self { first: places.start, arranged, sizes: sizes.into() }
    }

    /// The place in the order before the arrangement whose sample stands at `place`.
    pub(crate) fn source(&self, place: u64) -> u64 {
        self.first + u64::from(self.arranged[self.offset(place)])
    }

    /// Width and height of the image at `place`, 0 where they are not known.
    pub(crate) fn size(&self, place: u64) -> Size {
        self.sizes[self.arranged[self.offset(place)] as usize]
    }

    /// The extent of a batch of the samples at `places`.
    pub(crate) fn extent(&self, places: Range<u64>) -> Extent {
        places.map(|place| self.size(place)).collect()
    }

    /// The extent that the batch would have if samples had kept their places.
    pub(crate) fn extent_before(&self, places: Range<u64>) -> Extent {
        places.map(|place| self.sizes[self.offset(place)]).collect()
    }

    fn offset(&self, place: u64) -> usize {
        usize::try_from(place - self.first).expect("a place of this window")
    }
}

/// The extent of several images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Width and height that all of them fit into.
    pub(crate) size: Size,
    images: u64,
    /// Pixels of the images themselves.
    pub(crate) pixels: u64,
}

impl Extent {
    /// Pixels of all images once each has the common size.
    pub(crate) const fn padded_pixels(&self) -> u64 {
        (self.size.0 as u64 * self.size.1 as u64).saturating_mul(self.images)
    }

    /// The same with sides that are multiples of `multiple`.
    pub(crate) fn rounded(self, multiple: u32) -> Self {
        let round = |side: u32| side.checked_next_multiple_of(multiple).unwrap_or(u32::MAX);
        Self { size: (round(self.size.0), round(self.size.1)), ..self }
    }

    fn add(&mut self, size: Size) {
        self.size = (self.size.0.max(size.0), self.size.1.max(size.1));
        self.images += 1;
        self.pixels = self.pixels.saturating_add(area(size));
    }
}

impl FromIterator<Size> for Extent {
    fn from_iter<I: IntoIterator<Item = Size>>(sizes: I) -> Self {
        let mut extent = Self::default();
        sizes.into_iter().for_each(|size| extent.add(size));
        extent
    }
}

/// The orders by which images are divided into two halves.
const DIVISIONS: [fn(Size, Size) -> Ordering; 4] = [
    // Narrow and high before wide and low.
    |a, b| (u64::from(a.0) * u64::from(b.1)).cmp(&(u64::from(b.0) * u64::from(a.1))),
    |a, b| area(a).cmp(&area(b)),
    |a, b| a.0.cmp(&b.0),
    |a, b| a.1.cmp(&b.1),
];

/// Puts images that are alike side by side, in whole batches, and the batches in a random order.
fn arrange(places: &mut [u32], sizes: &[Size], global_batch: usize, draw: Draw) {
    divide(places, sizes, global_batch);
    let mut rng = Rng::new(draw.seed, draw.epoch, batch_stream(draw.window), STREAM);
    let mut batches: Vec<&[u32]> = places.chunks_exact(global_batch).collect();
    rng.shuffle(&mut batches);
    let shuffled = batches.concat();
    places.copy_from_slice(&shuffled);
    for batch in places.chunks_exact_mut(global_batch) {
        turn(batch, rng.next_u32());
    }
}

/// Halves `places` until batches are left, and those until single images are, so that slices of a
/// batch hold images that are alike too. Each time it is divided in the way that takes the fewest
/// pixels, were both halves padded.
fn divide(places: &mut [u32], sizes: &[Size], global_batch: usize) {
    let middle = match places.len() {
        0 | 1 => return,
        len if len > global_batch => len / global_batch / 2 * global_batch,
        len => len / 2,
    };
    let size = |place: &u32| sizes[*place as usize];
    let by = |division: fn(Size, Size) -> Ordering| {
        move |a: &u32, b: &u32| division(known(size(a)), known(size(b))).then(a.cmp(b))
    };
    let padded = |half: &[u32]| half.iter().map(size).collect::<Extent>().padded_pixels();
    let best = DIVISIONS.into_iter().min_by_key(|&division| {
        places.select_nth_unstable_by(middle, by(division));
        let (front, back) = places.split_at(middle);
        padded(front).saturating_add(padded(back))
    });
    let Some(best) = best else { return };
    places.select_nth_unstable_by(middle, by(best));
    let (front, back) = places.split_at_mut(middle);
    divide(front, sizes, global_batch);
    divide(back, sizes, global_batch);
}

/// Exchanges the halves of a batch, of its halves and so on, each depth as one bit says: otherwise
/// the first rank would always have the smallest images.
fn turn(batch: &mut [u32], bits: u32) {
    let half = batch.len() / 2;
    if half == 0 {
        return;
    }
    if bits & 1 == 1 {
        batch.rotate_left(half);
    }
    // The halves of an odd number differ by one; they have changed places too.
    let middle = if bits & 1 == 1 { batch.len() - half } else { half };
    let (front, back) = batch.split_at_mut(middle);
    turn(front, bits >> 1);
    turn(back, bits >> 1);
}

/// Unknown sides count as one pixel, so that every image has an aspect.
fn known(size: Size) -> Size {
    let (width, height) = size;
    (width.max(1), height.max(1))
}

fn area(size: Size) -> u64 {
    let (width, height) = size;
    u64::from(width) * u64::from(height)
}

#[cfg(test)]
mod tests;
