//! Decodes JPEG files as the lines on standard input ask, for `testdata/tools/*_jpeg.py`.
//!
//! A line is `DECODER SCALE REGION DAMAGED PATH` with spaces between: a level such as `avx2`, with
//! `+index` to decode by a row index, or the name of another decoder; `1/2`; `x,y,width,height` or
//! `-`; `error` or `keep`; and a path up to the end of the line. The answer is a line `ok WIDTH HEIGHT BYTES` with that many bytes of RGB
//! behind it, or a line `error TEXT`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::panic;

use tl_decode::{
    DecodeError, Image, JpegDecoder, JpegRequest, Level, Limits, OnDamaged, Rect, RowIndex, Scale,
};
use zune_jpeg::zune_core::bytestream::ZCursor;

fn main() -> io::Result<()> {
    let mut server = Server { decoders: Vec::new(), image: Image::new() };
    let mut out = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lines() {
        match server.answer(&line?) {
            Ok(()) => {
                let Image { width, height, data, .. } = &server.image;
                writeln!(out, "ok {width} {height} {}", data.len())?;
                out.write_all(data)?;
            }
            Err(error) => writeln!(out, "error {}", error.replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}

/// A decoder per level, and the image that was decoded last.
struct Server {
    decoders: Vec<(String, JpegDecoder)>,
    image: Image,
}

impl Server {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().ok_or("a request has five words");
        let (decoder, scale, region, damaged, path) = (word()?, word()?, word()?, word()?, word()?);
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let image = &mut self.image;
        match decoder {
            "zune-jpeg" => other(|| zune_jpeg(&bytes, image)),
            "jpeg-decoder" => other(|| jpeg_decoder(&bytes, image)),
            level => {
                let request = JpegRequest {
                    scale: parse_scale(scale)?,
                    region: parse_region(region)?,
                    on_damaged: match damaged {
                        "keep" => OnDamaged::Keep,
                        _ => OnDamaged::Error,
                    },
                    ..JpegRequest::default()
                };
                let plain = level.strip_suffix("+index");
                let by_index = plain.is_some();
                let decoder = at_level(&mut self.decoders, plain.unwrap_or(level))?;
                ours(decoder, &bytes, &request, by_index, image).map_err(|error| error.to_string())
            }
        }
    }
}

fn ours(
    decoder: &mut JpegDecoder,
    bytes: &[u8],
    request: &JpegRequest<'_>,
    by_index: bool,
    image: &mut Image,
) -> Result<(), DecodeError> {
    let mut index = Vec::new();
    let mut request = *request;
    if by_index && decoder.row_index(bytes, &mut index)? {
        request.index = Some(RowIndex::parse(&index)?);
    }
    decoder.decode(bytes, &request, image).map(|_| ())
}

fn parse_scale(text: &str) -> Result<Scale, String> {
    let scale = Scale::HALVINGS.into_iter().find(|scale| scale.to_string() == text);
    scale.ok_or(format!("no scale: {text}"))
}

fn at_level<'a>(
    decoders: &'a mut Vec<(String, JpegDecoder)>,
    name: &str,
) -> Result<&'a mut JpegDecoder, String> {
    let at = match decoders.iter().position(|(known, _)| known == name) {
        Some(at) => at,
        None => {
            let level = Level::available().find(|level| level.to_string() == name);
            let level = level.ok_or(format!("this CPU has no {name}"))?;
            let decoder = JpegDecoder::new(Limits::default()).with_level(level);
            decoders.push((name.to_owned(), decoder));
            decoders.len() - 1
        }
    };
    Ok(&mut decoders[at].1)
}

fn parse_region(text: &str) -> Result<Option<Rect>, String> {
    if text == "-" {
        return Ok(None);
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[x, y, width, height]) => Ok(Some(Rect { x, y, width, height })),
        _ => Err(format!("no region: {text}")),
    }
}

/// Runs a decoder that may panic.
fn other(decode: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    panic::catch_unwind(panic::AssertUnwindSafe(decode)).unwrap_or(Err("panic".to_owned()))
}

fn zune_jpeg(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    let mut decoder = zune_jpeg::JpegDecoder::new(ZCursor::new(bytes));
    image.data = decoder.decode().map_err(|error| format!("{error:?}"))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    set_size(image, width, height)
}

fn jpeg_decoder(bytes: &[u8], image: &mut Image) -> Result<(), String> {
    let mut decoder = jpeg_decoder::Decoder::new(bytes);
    image.data = decoder.decode().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("no header")?;
    set_size(image, info.width.into(), info.height.into())
}

fn set_size(image: &mut Image, width: usize, height: usize) -> Result<(), String> {
    let side = |side: usize| u32::try_from(side).map_err(|error| error.to_string());
    (image.width, image.height) = (side(width)?, side(height)?);
    Ok(())
}
