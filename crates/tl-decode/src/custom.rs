//! Decoders of the caller's own, for formats that this crate does not know.

mod fit;

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thiserror::Error;

use crate::error::{DecodeError, Limit};
use crate::image::{Image, PixelType};
use crate::limits::{Limits, check};
use crate::options::{Color, DecodeOptions};

/// The error of a caller's decoder: any type.
pub type CustomError = Box<dyn Error + Send + Sync>;

/// A decoder for a format that is not built in.
///
/// A loader asks it for the files that it [takes](Self::takes), before the built-in formats. Recipes
/// apply to its images as to others. Its images must follow from the bytes alone: then batches do not
/// depend on threads. It is called on several threads at once, and a panic is an error of its sample.
///
/// ```
/// use tl_decode::{CustomError, Decode, DecodeOptions, Decoders, Image, Limits};
///
/// /// Two bytes of width and height, then grey pixels.
/// struct Tiny;
///
/// impl Decode for Tiny {
///     fn takes(&self, extension: &str, _bytes: &[u8]) -> bool {
///         extension == "tiny"
///     }
///
///     fn decode(&self, bytes: &[u8], _: &Limits, image: &mut Image) -> Result<(), CustomError> {
///         let [width, height, pixels @ ..] = bytes else { return Err("no header".into()) };
///         (image.width, image.height, image.channels) = ((*width).into(), (*height).into(), 1);
///         image.data.extend_from_slice(pixels);
///         Ok(())
///     }
/// }
///
/// let decoders = Decoders::new().with("tiny", 1, Tiny);
/// let file = [2, 1, 7, 9];
/// let decoder = decoders.find(b"a/b.TINY", &file)?.ok_or("no decoder takes it")?;
/// let mut image = Image::new();
/// decoder.decode(&file, &DecodeOptions::default(), &mut image)?;
/// assert_eq!(image.data, [7, 7, 7, 9, 9, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Decode: Send + Sync {
    /// Whether it decodes this file. `extension` is what follows the last dot of its name, in small
    /// letters, and empty without a name; `bytes` is the whole file.
    fn takes(&self, extension: &str, bytes: &[u8]) -> bool;

    /// The form of the image, from the file's header, if it can be told without decoding. It is then
    /// compared with the limits before [`Decode::decode`] is called. `None` by default.
    ///
    /// # Errors
    /// Any error that makes the file unusable.
    fn probe(&self, bytes: &[u8]) -> Result<Option<ImageForm>, CustomError> {
        let _ = bytes;
        Ok(None)
    }

    /// Decodes the file into `image`, which is empty and keeps its capacity: rows from top to bottom
    /// without padding, of 1, 3 or 4 channels (grey, RGB, RGBA), in [`Image::pixels`] of 8 or 16 bits
    /// or floats in the machine's byte order.
    ///
    /// A decoder that allocates for numbers from the file compares them with `limits` first, by
    /// [`ImageForm::charge`], and returns its error as it is: a loader with a memory budget then
    /// repeats the sample with larger limits. The image is checked after the call.
    ///
    /// # Errors
    /// Any error that makes the file unusable.
    fn decode(&self, bytes: &[u8], limits: &Limits, image: &mut Image) -> Result<(), CustomError>;
}

/// Size and pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageForm {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Samples of a pixel: 1 for grey, 3 for RGB, 4 for RGBA.
    pub channels: u8,
    /// The type of the samples.
    pub pixels: PixelType,
}

impl ImageForm {
    fn of(image: &Image) -> Self {
        let Image { width, height, channels, pixels, .. } = *image;
        Self { width, height, channels, pixels }
    }

    /// Compares it with the limits, and returns the bytes of the image.
    ///
    /// # Errors
    /// [`DecodeError::LimitExceeded`].
    pub fn charge(&self, limits: &Limits) -> Result<u64, DecodeError> {
        let Self { width, height, channels, pixels } = *self;
        let pixel = u64::from(channels) * pixels.bytes() as u64;
        let bytes = limits.charge_pixels(width, height)?.saturating_mul(pixel);
        check(Limit::DecodedBytes, limits.max_decoded_bytes, bytes)?;
        Ok(bytes)
    }

    /// As [`charge`](Self::charge), of an image that a batch can have.
    fn checked(&self, limits: &Limits) -> Result<u64, CustomFault> {
        if self.width == 0 || self.height == 0 {
            return Err(CustomFault::Empty { form: *self });
        }
        if !matches!(self.channels, 1 | 3 | 4) {
            return Err(CustomFault::Channels { form: *self });
        }
        Ok(self.charge(limits)?)
    }
}

impl fmt::Display for ImageForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, channels, pixels } = self;
        write!(f, "{width}x{height} pixels of {channels} channels of {}", pixels.name())
    }
}

/// The reason why a caller's decoder gave no image.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum CustomFault {
    /// It returned an error.
    #[error("{}", OneLine(.0.to_string()))]
    Failed(#[source] Arc<dyn Error + Send + Sync>),
    /// It panicked.
    #[error("panicked: {}", OneLine(.message.clone()))]
    Panicked { message: String },
    /// Its image has no pixels.
    #[error("made an image without pixels: {form}")]
    Empty { form: ImageForm },
    /// Its image has another number of channels than images have.
    #[error("made {form}, expected 1, 3 or 4 channels")]
    Channels { form: ImageForm },
    /// Its image has more or fewer bytes than its size needs.
    #[error("made {form} in {bytes} bytes, expected {need}")]
    Form { form: ImageForm, bytes: u64, need: u64 },
    /// Its image differs from its probe.
    #[error("made {made}, its probe said {probed}")]
    Probe { made: ImageForm, probed: ImageForm },
    /// Its image has pixels that the recipe's cannot be made of.
    #[error("made {form}, which cannot become {} of {}", noun(*color), pixels.name())]
    Pixels { form: ImageForm, color: Color, pixels: PixelType },
    /// Its image is larger than the limits allow.
    #[error("{0}")]
    Limit(Arc<DecodeError>),
}

impl From<DecodeError> for CustomFault {
    fn from(error: DecodeError) -> Self {
        Self::Limit(Arc::new(error))
    }
}

const fn noun(color: Color) -> &'static str {
    match color {
        Color::Rgb => "RGB",
        Color::Grey => "grey",
        Color::Rgba => "RGBA",
    }
}

/// Text with its control characters escaped.
struct OneLine(String);

impl fmt::Display for OneLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if character.is_control() {
                write!(f, "{}", character.escape_default())
            } else {
                write!(f, "{character}")
            }
        })
    }
}

/// The decoders of a caller, by name, in the order in which they are asked.
#[derive(Clone, Default)]
pub struct Decoders(Vec<Arc<CustomDecoder>>);

/// A caller's decoder with its name and version.
pub struct CustomDecoder {
    name: String,
    version: u32,
    decoder: Box<dyn Decode>,
}

impl Decoders {
    /// No decoders.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a decoder, which replaces one of the same name. Name and version stand for its images in
    /// the states of loaders and in caches: raise the version when images change.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        version: u32,
        decoder: impl Decode + 'static,
    ) -> Self {
        let name = name.into();
        self.0.retain(|other| other.name != name);
        self.0.push(Arc::new(CustomDecoder { name, version, decoder: Box::new(decoder) }));
        self
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decoders, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &CustomDecoder> {
        self.0.iter().map(|decoder| &**decoder)
    }

    /// The first decoder that takes the file `bytes` called `name`, which may be empty. `None` if none
    /// does.
    ///
    /// # Errors
    /// The name of a decoder that panicked, and [`CustomFault::Panicked`].
    pub fn find(&self, name: &[u8], bytes: &[u8]) -> Result<Option<&CustomDecoder>, FindError> {
        let extension = extension(name);
        for decoder in self.iter() {
            let takes = guard(|| Ok(decoder.decoder.takes(&extension, bytes)));
            match takes {
                Ok(true) => return Ok(Some(decoder)),
                Ok(false) => {}
                Err(fault) => return Err(FindError { decoder: decoder.name.clone(), fault }),
            }
        }
        Ok(None)
    }

    /// Bytes that differ if names, versions or order do; empty without decoders.
    #[must_use]
    pub fn identity(&self) -> Vec<u8> {
        let mut identity = Vec::new();
        for CustomDecoder { name, version, .. } in self.iter() {
            identity.extend_from_slice(&(name.len() as u64).to_le_bytes());
            identity.extend_from_slice(name.as_bytes());
            identity.extend_from_slice(&version.to_le_bytes());
        }
        identity
    }
}

/// A caller's decoder that panicked when it was asked whether it takes a file.
#[derive(Clone, Debug, Error)]
#[error("decoder {decoder}: {fault}")]
pub struct FindError {
    /// Its name.
    pub decoder: String,
    /// The panic.
    #[source]
    pub fault: CustomFault,
}

impl PartialEq for Decoders {
    /// Whether both are the very same decoders in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|(one, other)| Arc::ptr_eq(one, other))
    }
}

impl fmt::Debug for Decoders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl CustomDecoder {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Decodes a file into `image`, in the channels and pixels that `options` name.
    ///
    /// Grey becomes equal channels, RGB of 8 bits becomes grey as Pillow's `convert("L")` makes it, and
    /// alpha is dropped, or opaque where 8-bit pixels have none. Samples of 8 and 16 bits become floats
    /// of the same numbers.
    ///
    /// # Errors
    /// [`CustomFault`]; the contents of `image` are unspecified then.
    pub fn decode(
        &self,
        bytes: &[u8],
        options: &DecodeOptions,
        image: &mut Image,
    ) -> Result<(), CustomFault> {
        let limits = &options.limits;
        let probed = guard(|| self.decoder.probe(bytes))?;
        if let Some(form) = &probed {
            form.checked(limits)?;
        }
        image.data.clear();
        (image.width, image.height, image.channels) = (0, 0, 0);
        image.pixels = PixelType::U8;
        guard(|| self.decoder.decode(bytes, limits, image))?;
        let form = ImageForm::of(image);
        if let Some(probed) = probed.filter(|probed| *probed != form) {
            return Err(CustomFault::Probe { made: form, probed });
        }
        let need = form.checked(limits)?;
        let has_bytes = image.data.len() as u64;
        if need != has_bytes {
            return Err(CustomFault::Form { form, bytes: has_bytes, need });
        }
        fit::fit(image, options)
    }
}

impl fmt::Debug for CustomDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (version {})", self.name, self.version)
    }
}

/// The part of a file's name after its last dot, in small letters; empty without a dot.
fn extension(name: &[u8]) -> String {
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    match base.iter().rposition(|&byte| byte == b'.').and_then(|dot| base.get(dot + 1..)) {
        Some(extension) => String::from_utf8_lossy(extension).to_ascii_lowercase(),
        None => String::new(),
    }
}

/// Makes a fault of an error and of a panic. The decoder is shared and has to cope with having been
/// interrupted; the image is not used after a fault.
fn guard<T>(call: impl FnOnce() -> Result<T, CustomError>) -> Result<T, CustomFault> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(match error.downcast::<DecodeError>() {
            Ok(error) if matches!(*error, DecodeError::LimitExceeded { .. }) => (*error).into(),
            Ok(error) => CustomFault::Failed(Arc::new(*error)),
            Err(error) => CustomFault::Failed(Arc::from(error)),
        }),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(CustomFault::Panicked { message: text.unwrap_or_default() })
        }
    }
}

#[cfg(test)]
mod tests;
