//! Integration tests of tl-simd.

mod pillow;
