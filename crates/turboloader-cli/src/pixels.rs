//! From a file or a sample to RGB pixels, with errors that say which one it was.

use std::io::{self, Read};
use std::path::Path;

use tbl_format::SampleFormat;
use tl_decode::{
    Damage, DecodeError, DecodeOptions, Decoder, Image, JpegDecoder, JpegRequest, Level,
};

use crate::data_set::Sample;
use crate::failure::{Failure, Subject};

/// The largest encoded image that is read: far above any real one, far below the memory of any
/// machine. The same as the default for samples.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Reads a file that should be an image.
pub(crate) fn read_image_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let failure = |source| Failure::Io { path: path.to_owned(), source };
    let file = tbl_io::open_file(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failure)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(failure(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(bytes)
}

/// Decodes samples one after the other and keeps its memory.
#[derive(Debug)]
pub(crate) struct SampleDecoder {
    decoder: Decoder,
    part: Option<Part>,
    bytes: Vec<u8>,
    damage: Option<Damage>,
}

/// The part of JPEG images to decode, unless it is all of them.
#[derive(Debug)]
struct Part {
    decoder: JpegDecoder,
    request: JpegRequest<'static>,
}

impl SampleDecoder {
    /// A decoder with these options.
    pub(crate) fn new(options: DecodeOptions) -> Self {
        Self { decoder: Decoder::new(options), part: None, bytes: Vec::new(), damage: None }
    }

    /// The same for the part of JPEG images that `request` names, with the instructions of `level`.
    pub(crate) fn of_part(mut self, request: JpegRequest<'static>, level: Level) -> Self {
        let decoder = JpegDecoder::new(self.decoder.options().limits).with_level(level);
        self.part = Some(Part { decoder, request });
        self
    }

    /// The damage in the last image, if damage is kept.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    fn decode(&mut self, image: &mut Image) -> Result<(), DecodeError> {
        if let Some(part) = &mut self.part {
            self.damage = part.decoder.decode(&self.bytes, &part.request, image)?.damage;
        } else {
            self.decoder.decode_into(&self.bytes, image)?;
            self.damage = self.decoder.damage();
        }
        Ok(())
    }

    /// The encoded bytes read last.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the image file at `path`.
    pub(crate) fn file(&mut self, path: &Path, image: &mut Image) -> Result<(), Failure> {
        self.bytes = read_image_file(path)?;
        self.decode(image).map_err(|error| damaged(&Subject::file(path), &error))
    }

    /// Decodes a sample; one of raw pixels is copied.
    pub(crate) fn sample(&mut self, sample: Sample<'_>, image: &mut Image) -> Result<(), Failure> {
        let entry = sample.entry()?;
        sample.read_into(&mut self.bytes)?;
        let of = || sample.subject(&entry);
        if entry.format != SampleFormat::RawU8 {
            return self.decode(image).map_err(|error| damaged(&of(), &error));
        }
        let expected = u64::from(entry.width) * u64::from(entry.height) * 3;
        if expected != self.bytes.len() as u64 {
            let found = self.bytes.len() as u64;
            let of = of();
            let sentence = format_args!("{of}: {found} bytes of raw pixels, expected {expected}");
            return Err(Failure::data(sentence));
        }
        (image.width, image.height, image.channels) = (entry.width, entry.height, 3);
        image.data.clone_from(&self.bytes);
        Ok(())
    }
}

/// The failure of an image that does not decode.
fn damaged(of: &Subject, error: &DecodeError) -> Failure {
    Failure::data(format_args!("{of}: {error}"))
}
