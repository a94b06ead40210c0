//! The arithmetic that an operation follows where torchvision has two.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The image type of torchvision whose pixels the operations of a recipe give.
///
/// torchvision does the same operation differently on Pillow images and on tensors; a model that
/// was trained with one keeps its accuracy only with that one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Parity {
    /// torchvision on Pillow images, bit for bit: what `ImageFolder` and the reference scripts use.
    #[default]
    Pil,
    /// torchvision v2 on uint8 tensors: equal bits, or within the bound that the operation states.
    Tensor,
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pil => "pil",
            Self::Tensor => "tensor",
        })
    }
}
