//! The form in which results land in a batch.

use serde::{Deserialize, Serialize};

pub use tl_simd::normalize::{Dtype, Layout, PixelType};

/// The form in which a recipe's results land in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// The type of the numbers: `f32`, `f16`, `bf16`, `u8` or `u16`.
    #[serde(with = "dtype")]
    pub dtype: Dtype,
    /// Their arrangement: `chw` or `hwc`.
    #[serde(with = "layout")]
    pub layout: Layout,
}

/// The channels of the images that a recipe makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    /// Red, green, blue.
    #[default]
    Rgb,
    /// Grey, one channel: images are converted as by Pillow's `convert("L")` when they are decoded.
    ///
    /// Operations get three equal channels, and the first one of their result is the output. All
    /// operations of torchvision do the same to an image of mode `L`.
    Grey,
    /// Red, green, blue and alpha, which is opaque where a file has none. Operations that move pixels
    /// take such images, others refuse them.
    Rgba,
}

impl Channels {
    /// The number of channels of the output.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Rgb => 3,
            Self::Grey => 1,
            Self::Rgba => 4,
        }
    }

    /// The name, such as `rgb`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rgb => "rgb",
            Self::Grey => "grey",
            Self::Rgba => "rgba",
        }
    }

    /// The channels in words, for messages.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Rgb => "RGB",
            Self::Grey => "grey",
            Self::Rgba => "RGBA",
        }
    }
}

/// Declares how recipes hold a type of the kernels: by name.
macro_rules! by_name {
    ($module:ident: $type:ident { $($name:literal => $variant:ident),* }) => {
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            use super::$type;

            pub(crate) fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(match value {
                    $($type::$variant => $name,)*
                })
            }

            pub(crate) fn deserialize<'de, D>(from: D) -> Result<$type, D::Error>
            where
                D: Deserializer<'de>,
            {
                match String::deserialize(from)?.as_str() {
                    $($name => Ok($type::$variant),)*
                    other => Err(D::Error::unknown_variant(other, &[$($name),*])),
                }
            }
        }
    };
}

by_name!(dtype: Dtype { "f32" => F32, "f16" => F16, "bf16" => Bf16, "u8" => U8, "u16" => U16 });
by_name!(pixels: PixelType { "u8" => U8, "u16" => U16, "f32" => F32 });
by_name!(layout: Layout { "chw" => Chw, "hwc" => Hwc });
