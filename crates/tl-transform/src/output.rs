//! The form in which results land in a batch.

use serde::{Deserialize, Serialize};

pub use tl_simd::normalize::{Dtype, Layout};

/// The form in which a recipe's results land in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// The type of the numbers: `f32`, `f16`, `bf16` or `u8`.
    #[serde(with = "dtype")]
    pub dtype: Dtype,
    /// Their arrangement: `chw` or `hwc`.
    #[serde(with = "layout")]
    pub layout: Layout,
}

/// Declares how recipes hold a type of the kernels: by name.
macro_rules! by_name {
    ($module:ident: $type:ident { $($name:literal => $variant:ident),* }) => {
        mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de::Error};

            use super::$type;

            pub(super) fn serialize<S: Serializer>(value: &$type, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(match value {
                    $($type::$variant => $name,)*
                })
            }

            pub(super) fn deserialize<'de, D>(from: D) -> Result<$type, D::Error>
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

by_name!(dtype: Dtype { "f32" => F32, "f16" => F16, "bf16" => Bf16, "u8" => U8 });
by_name!(layout: Layout { "chw" => Chw, "hwc" => Hwc });
