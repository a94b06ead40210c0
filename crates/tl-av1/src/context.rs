//! rav1d, which has the interface of dav1d, a library in C.
#![expect(unsafe_code, reason = "rav1d has the interface of a library in C; docs/safety.md")]

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use rav1d::Dav1dResult;
use rav1d::include::dav1d::data::Dav1dData;
use rav1d::include::dav1d::dav1d::{Dav1dContext, Dav1dLogger, Dav1dSettings};
use rav1d::include::dav1d::headers::{
    DAV1D_PIXEL_LAYOUT_I400, DAV1D_PIXEL_LAYOUT_I420, DAV1D_PIXEL_LAYOUT_I422,
    DAV1D_PIXEL_LAYOUT_I444, Dav1dPixelLayout, Dav1dSequenceHeader,
};
use rav1d::include::dav1d::picture::Dav1dPicture;
use rav1d::src::lib::{
    dav1d_close, dav1d_data_create, dav1d_data_unref, dav1d_default_settings, dav1d_flush,
    dav1d_get_picture, dav1d_open, dav1d_parse_sequence_header, dav1d_picture_unref,
    dav1d_send_data,
};

use crate::error::Error;
use crate::picture::{Layout, Picture};

/// An open decoder.
pub(crate) struct Context(Dav1dContext);

// SAFETY: rav1d shares the value behind it among its own threads, as an `Arc` that `thread::spawn`
// takes, so it is `Send` and `Sync`; and every method that uses it takes `&mut self`.
unsafe impl Send for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut context = Some(self.0);
        // SAFETY: it points to a local variable, whose context is of `dav1d_open` and is closed
        // nowhere else.
        unsafe { dav1d_close(Some(NonNull::from(&mut context))) };
    }
}

impl Context {
    /// A decoder of pictures of at most so many samples, without threads of its own and without
    /// messages.
    pub(crate) fn open(max_samples: u32) -> Result<Self, Error> {
        let mut settings = MaybeUninit::<Dav1dSettings>::uninit();
        // SAFETY: it points to room for settings, which the function writes.
        unsafe { dav1d_default_settings(NonNull::from(&mut settings).cast()) };
        // SAFETY: the call above has written all of it.
        let mut settings = unsafe { settings.assume_init() };
        settings.n_threads = 1;
        settings.max_frame_delay = 1;
        settings.all_layers = 0;
        settings.frame_size_limit = max_samples;
        // SAFETY: without a function nothing is called.
        settings.logger = unsafe { Dav1dLogger::new(None, None) };
        let mut context: Option<Dav1dContext> = None;
        // SAFETY: both point to local variables; the function reads the settings once, and has
        // ownership of nothing in them.
        let opened = unsafe {
            dav1d_open(Some(NonNull::from(&mut context)), Some(NonNull::from(&mut settings)))
        };
        check(opened)?;
        context.map(Self).ok_or(Error::OutOfMemory)
    }

    /// Forgets all pictures.
    pub(crate) fn flush(&mut self) {
        // SAFETY: the context is open until it is dropped.
        unsafe { dav1d_flush(self.0) };
    }

    /// Decodes all of `bytes`. A picture may be shown many times by three bytes each, so a second one
    /// is refused before it is copied.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<Option<Picture>, Error> {
        let mut data = Data::copy_of(bytes)?;
        let mut shown = None;
        loop {
            // SAFETY: the context is open until it is dropped, and `data` was made by rav1d.
            let sent = unsafe { dav1d_send_data(Some(self.0), Some(NonNull::from(&mut data.0))) };
            let is_blocked = is_again(sent);
            if !is_blocked {
                check(sent)?;
            }
            let had_one = shown.is_some();
            while let Some(picture) = self.picture()? {
                if shown.is_some() {
                    return Err(Error::SeveralPictures);
                }
                shown = Some(picture.copy()?);
            }
            if data.0.sz == 0 {
                return Ok(shown);
            }
            if is_blocked && shown.is_some() == had_one {
                return Err(Error::Invalid);
            }
        }
    }

    /// The next picture that is decoded.
    fn picture(&mut self) -> Result<Option<Decoded>, Error> {
        let mut picture = Decoded(Dav1dPicture::default());
        // SAFETY: the context is open until it is dropped, and the picture is a local variable that
        // holds nothing yet.
        let got = unsafe { dav1d_get_picture(Some(self.0), Some(NonNull::from(&mut picture.0))) };
        if is_again(got) {
            return Ok(None);
        }
        check(got)?;
        Ok(Some(picture))
    }
}

/// Bytes that rav1d owns.
struct Data(Dav1dData);

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: it is what `dav1d_data_create` made or `dav1d_send_data` left of it.
        unsafe { dav1d_data_unref(Some(NonNull::from(&mut self.0))) };
    }
}

impl Data {
    fn copy_of(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Err(Error::Invalid);
        }
        let mut data = Self(Dav1dData::default());
        // SAFETY: it points to a local variable that holds nothing yet.
        let start = unsafe { dav1d_data_create(Some(NonNull::from(&mut data.0)), bytes.len()) };
        let start = NonNull::new(start).ok_or(Error::OutOfMemory)?;
        // SAFETY: rav1d has allocated as many bytes there, which nothing else refers to yet; the
        // source is another allocation.
        unsafe { start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(data)
    }
}

/// A picture that rav1d owns.
struct Decoded(Dav1dPicture);

impl Drop for Decoded {
    fn drop(&mut self) {
        // SAFETY: it holds nothing, or what `dav1d_get_picture` wrote.
        unsafe { dav1d_picture_unref(Some(NonNull::from(&mut self.0))) };
    }
}

impl Decoded {
    fn copy(&self) -> Result<Picture, Error> {
        let parameters = &self.0.p;
        let layout = layout_of(parameters.layout)?;
        let size = [parameters.w, parameters.h].map(u32::try_from);
        let [Ok(width), Ok(height)] = size else { return Err(Error::Invalid) };
        let bit_depth = u8::try_from(parameters.bpc).map_err(|_| Error::Invalid)?;
        let header = self.0.seq_hdr.ok_or(Error::Invalid)?;
        // SAFETY: the picture counts its sequence header, and nobody writes to it.
        let header = unsafe { header.as_ref() };
        let row_bytes = |columns: u32| columns as usize * if bit_depth > 8 { 2 } else { 1 };
        let y = self.plane(0, row_bytes(width), height)?;
        let mut planes = [y, Vec::new(), Vec::new()];
        if let Some([columns, rows]) = layout.shift() {
            let width = row_bytes(width.div_ceil(1 << columns));
            let height = height.div_ceil(1 << rows);
            planes[1] = self.plane(1, width, height)?;
            planes[2] = self.plane(2, width, height)?;
        }
        let matrix = u8::try_from(header.mtrx).map_err(|_| Error::Invalid)?;
        let full_range = header.color_range != 0;
        Ok(Picture { width, height, bit_depth, layout, matrix, full_range, planes })
    }

    /// The rows of a plane that the picture's parameters say it has.
    fn plane(&self, plane: usize, row_bytes: usize, rows: u32) -> Result<Vec<u8>, Error> {
        let start = self.0.data[plane].ok_or(Error::Invalid)?.cast::<u8>();
        let stride = self.0.stride[plane.min(1)];
        if stride.unsigned_abs() < row_bytes {
            return Err(Error::Invalid);
        }
        let mut samples = Vec::with_capacity(row_bytes * rows as usize);
        for row in 0..rows as isize {
            // SAFETY: the row is one of the plane's, which has a stride of bytes for each and as
            // many rows as the picture, or the picture's half, by the contract of dav1d's pictures.
            let start = unsafe { start.offset(row * stride) };
            // SAFETY: a row has at least its samples, which is not more than the stride, as checked.
            // The picture is counted, and decoded pictures are not written to: a decoder without
            // threads of its own does nothing between its calls.
            samples.extend_from_slice(unsafe { slice::from_raw_parts(start.as_ptr(), row_bytes) });
        }
        Ok(samples)
    }
}

/// The parts of a sequence header that memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) max_width: u32,
    pub(crate) max_height: u32,
    pub(crate) layout: Layout,
    /// Whether samples have more than 8 bits.
    pub(crate) is_deep: bool,
}

impl Header {
    /// The header in a unit of the kind.
    pub(crate) fn parse(unit: &[u8]) -> Result<Self, Error> {
        let mut header = MaybeUninit::<Dav1dSequenceHeader>::uninit();
        let start = NonNull::from(unit).cast::<u8>();
        // SAFETY: there is room for the header in a local variable, and start and length are those
        // of a slice.
        let parsed = unsafe {
            dav1d_parse_sequence_header(
                Some(NonNull::from(&mut header).cast()),
                Some(start),
                unit.len(),
            )
        };
        // One that finds no header is an error as well.
        check(parsed)?;
        // SAFETY: the call has succeeded and written it.
        let header = unsafe { header.assume_init() };
        let size = [header.max_width, header.max_height].map(u32::try_from);
        let [Ok(max_width), Ok(max_height)] = size else { return Err(Error::Invalid) };
        let layout = layout_of(header.layout)?;
        Ok(Self { max_width, max_height, layout, is_deep: header.hbd > 0 })
    }
}

fn layout_of(layout: Dav1dPixelLayout) -> Result<Layout, Error> {
    match layout {
        DAV1D_PIXEL_LAYOUT_I400 => Ok(Layout::Monochrome),
        DAV1D_PIXEL_LAYOUT_I420 => Ok(Layout::Yuv420),
        DAV1D_PIXEL_LAYOUT_I422 => Ok(Layout::Yuv422),
        DAV1D_PIXEL_LAYOUT_I444 => Ok(Layout::Yuv444),
        _ => Err(Error::Unsupported),
    }
}

fn is_again(result: Dav1dResult) -> bool {
    result.0 == -libc::EAGAIN
}

fn check(result: Dav1dResult) -> Result<(), Error> {
    match -result.0 {
        0 => Ok(()),
        libc::EINVAL => Err(Error::Invalid),
        // The limit of samples that was set when the decoder was opened.
        libc::ERANGE => Err(Error::PictureTooLarge),
        libc::ENOPROTOOPT => Err(Error::Unsupported),
        libc::ENOMEM => Err(Error::OutOfMemory),
        number => Err(Error::Other(number)),
    }
}
