//! The order in which kernels that wait for memory read it.

/// The number of places that are read in turn, each in its own part of the data.
///
/// A core keeps more lines in flight for several streams than for one. Neighbouring rows do not act
/// as such streams: reading four of them in turn was slower than in sequence.
pub(crate) const STREAMS: usize = 4;

/// The places below `len`, a step of all streams at a time. Places from `len` on are to be left
/// out.
#[inline(always)]
pub(crate) fn places(len: usize) -> impl Iterator<Item = [usize; STREAMS]> {
    let steps = len.div_ceil(STREAMS);
    (0..steps).map(
        #[inline(always)]
        move |step| [step, step + steps, step + 2 * steps, step + 3 * steps],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_comes_once() {
        for len in 0..100 {
            let mut seen: Vec<usize> = places(len).flatten().filter(|&place| place < len).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..len), "{len}");
        }
    }
}
