//! Copies of a part of one array into another one.

/// The place of a part in an array that it is copied into.
pub(super) struct Part<'a> {
    /// The dimensions of the part as it is stored; all of it starts at the first number.
    pub(super) stored: &'a [usize],
    /// The dimensions of what is copied, none larger than that of `stored`.
    pub(super) extent: &'a [usize],
    /// The dimensions of the array.
    pub(super) whole: &'a [usize],
    /// The place of the part's first number in the array.
    pub(super) origin: &'a [usize],
    /// Bytes of a number.
    pub(super) number_bytes: usize,
}

/// Copies the part in `from`, row by row of its last dimensions. False if either is too short.
pub(super) fn copy(from: &[u8], part: &Part<'_>, into: &mut [u8]) -> bool {
    let Part { stored, extent, whole, origin, number_bytes } = *part;
    if extent.contains(&0) {
        return true;
    }
    // The last dimensions that are whole in both lie in sequence.
    let mut outer = extent.len();
    let mut run = number_bytes;
    while outer > 0 {
        outer -= 1;
        run *= extent[outer];
        if extent[outer] != stored[outer] || extent[outer] != whole[outer] {
            break;
        }
    }
    let from_strides = strides(stored, number_bytes);
    let into_strides = strides(whole, number_bytes);
    let first: usize = origin.iter().zip(&into_strides).map(|(at, stride)| at * stride).sum();
    let mut place = vec![0; outer];
    loop {
        let offset = |strides: &[usize]| -> usize {
            place.iter().zip(strides).map(|(at, stride)| at * stride).sum()
        };
        let from_start = offset(&from_strides);
        let into_start = first + offset(&into_strides);
        let found = from.get(from_start..from_start + run);
        let (Some(found), Some(out)) = (found, into.get_mut(into_start..into_start + run)) else {
            return false;
        };
        out.copy_from_slice(found);
        // The next place, the last dimension first.
        let Some(next) = (0..outer).rev().find(|&side| place[side] + 1 < extent[side]) else {
            return true;
        };
        place[next] += 1;
        place[next + 1..].fill(0);
    }
}

/// Bytes between neighbours in each dimension.
fn strides(shape: &[usize], number_bytes: usize) -> Vec<usize> {
    let mut strides = vec![number_bytes; shape.len()];
    for side in (1..shape.len()).rev() {
        strides[side - 1] = strides[side] * shape[side];
    }
    strides
}
