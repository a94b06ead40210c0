//! The filters of an edge, each line of samples a vector.

use crate::kernels::vp8::LUMA;
use crate::vector::vp8::FilterSimd;

/// The numbers of a [`Filter`](crate::vp8::Filter), in every lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<T> {
    pub(super) outer: T,
    pub(super) inner: T,
    pub(super) interior: T,
    pub(super) high_variance: T,
}

/// An edge between macroblocks, of the four lines before it and the four after it.
#[inline(always)]
pub(super) fn filter_outer<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    before: &mut [S::Lanes; 4],
    after: &mut [S::Lanes; 4],
) {
    let flat = is_flat(simd, limits.outer, before[2], before[3], after[0], after[1]);
    if SIMPLE {
        [before[3], after[0]] = change_two(simd, flat, before[2], before[3], after[0], after[1]);
        return;
    }
    let mask = simd.and(flat, is_even(simd, limits, before, after));
    let steady = is_steady(simd, limits, before[2], before[3], after[0], after[1]);
    let [p2, p1, p0] = [simd.centre(before[1]), simd.centre(before[2]), simd.centre(before[3])];
    let [q0, q1, q2] = [simd.centre(after[0]), simd.centre(after[1]), simd.centre(after[2])];
    let step = three_steps(simd, simd.sub_signed(p1, q1), p0, q0);
    let step = simd.and(step, mask);
    let [first, second] = nearest(simd, simd.without(step, steady));
    let [most, more, some] = simd.weigh(simd.and(step, steady));
    before[1] = simd.centre(simd.add_signed(p2, some));
    before[2] = simd.centre(simd.add_signed(p1, more));
    before[3] = simd.centre(simd.add_signed(p0, simd.or(first, most)));
    after[0] = simd.centre(simd.sub_signed(q0, simd.or(second, most)));
    after[1] = simd.centre(simd.sub_signed(q1, more));
    after[2] = simd.centre(simd.sub_signed(q2, some));
}

/// The edges between the blocks of a macroblock, given all its lines. Of chroma there are eight.
#[inline(always)]
pub(super) fn filter_inner<S: FilterSimd, const SIMPLE: bool>(
    simd: S,
    limits: &Limits<S::Lanes>,
    lines: &mut [S::Lanes; LUMA],
) {
    let luma = simd.join(simd.splat_sample(255), simd.splat_sample(0));
    filter_inner_edge::<S, SIMPLE, 4>(simd, limits, simd.splat_lanes(255), lines);
    filter_inner_edge::<S, SIMPLE, 8>(simd, limits, luma, lines);
    filter_inner_edge::<S, SIMPLE, 12>(simd, limits, luma, lines);
}

/// The edge before line `AT`, in the lanes of `mask`.
#[inline(always)]
fn filter_inner_edge<S: FilterSimd, const SIMPLE: bool, const AT: usize>(
    simd: S,
    limits: &Limits<S::Lanes>,
    mask: S::Lanes,
    lines: &mut [S::Lanes; LUMA],
) {
    let [p3, p2, p1, p0] = [lines[AT - 4], lines[AT - 3], lines[AT - 2], lines[AT - 1]];
    let [q0, q1, q2, q3] = [lines[AT], lines[AT + 1], lines[AT + 2], lines[AT + 3]];
    let mask = simd.and(mask, is_flat(simd, limits.inner, p1, p0, q0, q1));
    if SIMPLE {
        [lines[AT - 1], lines[AT]] = change_two(simd, mask, p1, p0, q0, q1);
        return;
    }
    let mask = simd.and(mask, is_even(simd, limits, &[p3, p2, p1, p0], &[q0, q1, q2, q3]));
    let steady = is_steady(simd, limits, p1, p0, q0, q1);
    let [p1, p0] = [simd.centre(p1), simd.centre(p0)];
    let [q0, q1] = [simd.centre(q0), simd.centre(q1)];
    let wide = simd.without(simd.sub_signed(p1, q1), steady);
    let step = simd.and(three_steps(simd, wide, p0, q0), mask);
    let [first, second] = nearest(simd, step);
    let beyond = simd.and(simd.half(second), steady);
    lines[AT - 2] = simd.centre(simd.add_signed(p1, beyond));
    lines[AT - 1] = simd.centre(simd.add_signed(p0, first));
    lines[AT] = simd.centre(simd.sub_signed(q0, second));
    lines[AT + 1] = simd.centre(simd.sub_signed(q1, beyond));
}

/// Lanes whose step across the edge is at most `limit`.
#[inline(always)]
fn is_flat<S: FilterSimd>(
    simd: S,
    limit: S::Lanes,
    p1: S::Lanes,
    p0: S::Lanes,
    q0: S::Lanes,
    q1: S::Lanes,
) -> S::Lanes {
    let step = simd.twice_and_half(simd.distance(p0, q0), simd.distance(p1, q1));
    simd.at_most(step, limit)
}

/// Lanes whose steps on both sides are at most the interior limit.
#[inline(always)]
fn is_even<S: FilterSimd>(
    simd: S,
    limits: &Limits<S::Lanes>,
    before: &[S::Lanes; 4],
    after: &[S::Lanes; 4],
) -> S::Lanes {
    let far = simd.max(simd.distance(before[0], before[1]), simd.distance(after[3], after[2]));
    let middle = simd.max(simd.distance(before[1], before[2]), simd.distance(after[2], after[1]));
    let near = simd.max(simd.distance(before[2], before[3]), simd.distance(after[1], after[0]));
    simd.at_most(simd.max(far, simd.max(middle, near)), limits.interior)
}

/// Lanes without high variance.
#[inline(always)]
fn is_steady<S: FilterSimd>(
    simd: S,
    limits: &Limits<S::Lanes>,
    p1: S::Lanes,
    p0: S::Lanes,
    q0: S::Lanes,
    q1: S::Lanes,
) -> S::Lanes {
    let step = simd.max(simd.distance(p1, p0), simd.distance(q1, q0));
    simd.at_most(step, limits.high_variance)
}

/// `wide` and three times the step across the edge, of centred samples.
#[inline(always)]
fn three_steps<S: FilterSimd>(simd: S, wide: S::Lanes, p0: S::Lanes, q0: S::Lanes) -> S::Lanes {
    let step = simd.sub_signed(q0, p0);
    simd.add_signed(simd.add_signed(simd.add_signed(wide, step), step), step)
}

/// The changes of the samples before the edge and after it.
#[inline(always)]
fn nearest<S: FilterSimd>(simd: S, step: S::Lanes) -> [S::Lanes; 2] {
    let first = simd.eighth(simd.add_signed(step, simd.splat_lanes(3)));
    [first, simd.eighth(simd.add_signed(step, simd.splat_lanes(4)))]
}

/// The samples before the edge and after it, filtered in the lanes of `mask`.
#[inline(always)]
fn change_two<S: FilterSimd>(
    simd: S,
    mask: S::Lanes,
    p1: S::Lanes,
    p0: S::Lanes,
    q0: S::Lanes,
    q1: S::Lanes,
) -> [S::Lanes; 2] {
    let wide = simd.sub_signed(simd.centre(p1), simd.centre(q1));
    let [p0, q0] = [simd.centre(p0), simd.centre(q0)];
    let [first, second] = nearest(simd, simd.and(three_steps(simd, wide, p0, q0), mask));
    [simd.centre(simd.add_signed(p0, first)), simd.centre(simd.sub_signed(q0, second))]
}
