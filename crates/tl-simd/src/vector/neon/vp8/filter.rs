//! NEON for the loop filters.

use super::Neon;
use crate::vector::jpeg::by_functions;
use crate::vector::vp8::FilterSimd;
use core::arch::aarch64::*;

type Lanes = [uint8x16_t; 2];

impl FilterSimd for Neon {
    type Lanes = Lanes;

    by_functions! {
        fn load_eight(self, samples: &[u8; 8]) -> uint8x16_t;
        fn load_fours(self, fours: [[u8; 4]; 4]) -> uint8x16_t;
        fn splat_lanes(self, lane: u8) -> Lanes;
        fn merge_chroma(self, a: Lanes, b: Lanes) -> Lanes;
        fn zip_lanes(self, a: Lanes, b: Lanes) -> [Lanes; 2];
        fn zip_lane_fours(self, a: Lanes, b: Lanes) -> [Lanes; 2];
        fn zip_lane_eights(self, a: Lanes, b: Lanes) -> [Lanes; 2];
        fn turn_lanes(self, lanes: Lanes) -> Lanes;
        fn and(self, a: Lanes, b: Lanes) -> Lanes;
        fn without(self, a: Lanes, b: Lanes) -> Lanes;
        fn or(self, a: Lanes, b: Lanes) -> Lanes;
        fn centre(self, lanes: Lanes) -> Lanes;
        fn distance(self, a: Lanes, b: Lanes) -> Lanes;
        fn max(self, a: Lanes, b: Lanes) -> Lanes;
        fn at_most(self, a: Lanes, b: Lanes) -> Lanes;
        fn twice_and_half(self, a: Lanes, b: Lanes) -> Lanes;
        fn add_signed(self, a: Lanes, b: Lanes) -> Lanes;
        fn sub_signed(self, a: Lanes, b: Lanes) -> Lanes;
        fn eighth(self, lanes: Lanes) -> Lanes;
        fn half(self, lanes: Lanes) -> Lanes;
        fn weigh(self, lanes: Lanes) -> [Lanes; 3];
    }

    #[inline(always)]
    fn join(self, luma: uint8x16_t, chroma: uint8x16_t) -> Lanes {
        [luma, chroma]
    }

    #[inline(always)]
    fn split(self, lanes: Lanes) -> Lanes {
        lanes
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_eight(samples: &[u8; 8]) -> uint8x16_t {
    // SAFETY: the array has the 8 bytes that are read.
    let samples = unsafe { vld1_u8(samples.as_ptr()) };
    vcombine_u8(samples, vdup_n_u8(0))
}

#[inline]
#[target_feature(enable = "neon")]
fn load_fours([first, second, third, fourth]: [[u8; 4]; 4]) -> uint8x16_t {
    let words = vdupq_n_u32(u32::from_le_bytes(first));
    let words = vsetq_lane_u32::<1>(u32::from_le_bytes(second), words);
    let words = vsetq_lane_u32::<2>(u32::from_le_bytes(third), words);
    vreinterpretq_u8_u32(vsetq_lane_u32::<3>(u32::from_le_bytes(fourth), words))
}

#[inline]
#[target_feature(enable = "neon")]
fn splat_lanes(lane: u8) -> Lanes {
    [vdupq_n_u8(lane); 2]
}

#[inline]
#[target_feature(enable = "neon")]
fn merge_chroma([luma, a]: Lanes, [_, b]: Lanes) -> Lanes {
    [luma, vcombine_u8(vget_low_u8(a), vget_low_u8(b))]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_lanes([a, b]: Lanes, [c, d]: Lanes) -> [Lanes; 2] {
    [[vzip1q_u8(a, c), vzip1q_u8(b, d)], [vzip2q_u8(a, c), vzip2q_u8(b, d)]]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_lane_fours([a, b]: Lanes, [c, d]: Lanes) -> [Lanes; 2] {
    let [luma, luma_last] = super::zip_fours(a, c);
    let [chroma, chroma_last] = super::zip_fours(b, d);
    [[luma, chroma], [luma_last, chroma_last]]
}

#[inline]
#[target_feature(enable = "neon")]
fn zip_lane_eights([a, b]: Lanes, [c, d]: Lanes) -> [Lanes; 2] {
    let [luma, luma_last] = super::zip_eights(a, c);
    let [chroma, chroma_last] = super::zip_eights(b, d);
    [[luma, chroma], [luma_last, chroma_last]]
}

#[inline]
#[target_feature(enable = "neon")]
fn turn_lanes([a, b]: Lanes) -> Lanes {
    const TURN: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
    let places = super::load_samples(&TURN);
    [vqtbl1q_u8(a, places), vqtbl1q_u8(b, places)]
}

#[inline]
#[target_feature(enable = "neon")]
fn and([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vandq_u8(a, c), vandq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn without([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vbicq_u8(a, c), vbicq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn or([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vorrq_u8(a, c), vorrq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn centre([a, b]: Lanes) -> Lanes {
    let middle = vdupq_n_u8(0x80);
    [veorq_u8(a, middle), veorq_u8(b, middle)]
}

#[inline]
#[target_feature(enable = "neon")]
fn distance([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vabdq_u8(a, c), vabdq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn max([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vmaxq_u8(a, c), vmaxq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn at_most([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vcleq_u8(a, c), vcleq_u8(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn twice_and_half([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [vqaddq_u8(vqaddq_u8(a, a), vshrq_n_u8::<1>(c)), vqaddq_u8(vqaddq_u8(b, b), vshrq_n_u8::<1>(d))]
}

#[inline]
#[target_feature(enable = "neon")]
fn add_half(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_s8(vqaddq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)))
}

#[inline]
#[target_feature(enable = "neon")]
fn add_signed([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [add_half(a, c), add_half(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_half(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_s8(vqsubq_s8(vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)))
}

#[inline]
#[target_feature(enable = "neon")]
fn sub_signed([a, b]: Lanes, [c, d]: Lanes) -> Lanes {
    [sub_half(a, c), sub_half(b, d)]
}

#[inline]
#[target_feature(enable = "neon")]
fn eighth([a, b]: Lanes) -> Lanes {
    [
        vreinterpretq_u8_s8(vshrq_n_s8::<3>(vreinterpretq_s8_u8(a))),
        vreinterpretq_u8_s8(vshrq_n_s8::<3>(vreinterpretq_s8_u8(b))),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn half([a, b]: Lanes) -> Lanes {
    [
        vreinterpretq_u8_s8(vrshrq_n_s8::<1>(vreinterpretq_s8_u8(a))),
        vreinterpretq_u8_s8(vrshrq_n_s8::<1>(vreinterpretq_s8_u8(b))),
    ]
}

#[inline]
#[target_feature(enable = "neon")]
fn weigh_half(lanes: uint8x16_t, weight: i8) -> uint8x16_t {
    let lanes = vreinterpretq_s8_u8(lanes);
    let bias = vdupq_n_s16(63);
    let first = vmlal_s8(bias, vget_low_s8(lanes), vdup_n_s8(weight));
    let second = vmlal_high_s8(bias, lanes, vdupq_n_s8(weight));
    vreinterpretq_u8_s8(vshrn_high_n_s16::<7>(vshrn_n_s16::<7>(first), second))
}

#[inline]
#[target_feature(enable = "neon")]
fn weigh([a, b]: Lanes) -> [Lanes; 3] {
    [
        [weigh_half(a, 27), weigh_half(b, 27)],
        [weigh_half(a, 18), weigh_half(b, 18)],
        [weigh_half(a, 9), weigh_half(b, 9)],
    ]
}
