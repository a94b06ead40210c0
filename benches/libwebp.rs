//! libwebp, compiled from the sources in `libwebp-sys` with its code for SSE4.1 and AVX2.

#![expect(unsafe_code, reason = "a C library")]

use libwebp_sys::{VP8StatusCode, WEBP_CSP_MODE, WebPDecode, WebPDecoderConfig, WebPRGBABuffer};
use tl_simd::resample::Rect;

/// Decodes a good file to RGB, cut to `region` if there is one, and returns the bytes of `out` that
/// this takes. Left and upper edges of a region are even, as libwebp makes them.
///
/// # Panics
/// If `out` is too small for the region, or the file is not good.
pub fn decode(bytes: &[u8], size: (u32, u32), region: Option<Rect>, out: &mut [u8]) -> usize {
    let Rect { x, y, width, height } = region.unwrap_or(Rect::of_size(size.0, size.1));
    assert!(x.is_multiple_of(2) && y.is_multiple_of(2), "even edges");
    let number = |side: u32| i32::try_from(side).expect("a side of at most 16383");
    let stride = 3 * number(width);
    let mut config = WebPDecoderConfig::new().expect("the library that was compiled");
    if region.is_some() {
        config.options.use_cropping = 1;
        config.options.crop_left = number(x);
        config.options.crop_top = number(y);
        config.options.crop_width = number(width);
        config.options.crop_height = number(height);
    }
    config.output.colorspace = WEBP_CSP_MODE::MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA = WebPRGBABuffer { rgba: out.as_mut_ptr(), stride, size: out.len() };
    // SAFETY: `bytes` is given with its length; the output is memory of the caller that is borrowed
    // mutably for the call, with its length, which libwebp checks against the stride and the height.
    let status = unsafe { WebPDecode(bytes.as_ptr(), bytes.len(), &raw mut config) };
    assert_eq!(status, VP8StatusCode::VP8_STATUS_OK, "a good file and a buffer for it");
    3 * width as usize * height as usize
}
