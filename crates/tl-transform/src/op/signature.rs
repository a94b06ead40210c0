//! The signatures of operations: a text, and the parameters with torchvision's defaults.

use serde::Serialize;
use serde_json::Value;

/// The signature of an operation, as a binding to another language presents it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signature {
    /// The name of torchvision's class.
    pub name: &'static str,
    /// The text about the operation: a sentence, an empty line, the size of the result and the
    /// counterpart in torchvision.
    pub document: String,
    /// The parameters in torchvision's order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Torchvision's name.
    pub name: &'static str,
    /// The forms of its values.
    pub kind: ParameterKind,
    /// The text about it, with its range.
    pub document: String,
    /// The default in torchvision's form: null where the parameter can be left out of a recipe,
    /// none where it is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The forms that the values of a parameter have in a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ParameterKind {
    /// Whether shrinking takes all pixels into account.
    Antialias,
    /// A number for all channels, or one for each.
    Channels,
    /// A whole number.
    Count,
    /// A whole number or two.
    CountOrPair,
    /// A list of whole numbers, or one.
    Counts,
    /// The value of erased pixels.
    ErasingValue,
    /// A colour.
    Fill,
    /// The filter of resampling.
    Filter,
    /// A switch.
    Flag,
    /// Two bounds.
    Interval,
    /// A number.
    Number,
    /// A size, or none.
    OptionalSize,
    /// The look of a border.
    PaddingMode,
    /// Two whole numbers.
    Pair,
    /// A place in an image.
    Point,
    /// The name of a policy.
    Policy,
    /// A probability.
    Probability,
    /// An amount or bounds.
    Range,
    /// Widths of a border.
    Sides,
    /// Both sides of a result.
    Size,
    /// Operations.
    Transforms,
    /// The filter of warps.
    WarpFilter,
    /// A number for each operation.
    Weights,
}

impl ParameterKind {
    /// The usual text about parameters of this kind, for those without a text of their own.
    const fn document(self) -> &'static str {
        match self {
            Self::Antialias => {
                "Whether shrinking takes all pixels into account, as it always does on Pillow \
                 images."
            }
            Self::Fill => {
                "The colour outside the image: a number for all channels or (red, green, blue), 0 \
                 to 255; None for black."
            }
            Self::Filter => {
                "The filter of resampling: nearest, nearest_exact, box, bilinear, hamming, bicubic \
                 or lanczos; also torchvision's `InterpolationMode` or Pillow's number."
            }
            Self::PaddingMode => {
                "The border: constant for `fill`, edge for the outermost pixels, reflect or \
                 symmetric for a mirrored image without or with these."
            }
            Self::Probability => "The probability, 0 to 1.",
            Self::Size => {
                "The size of the result: one number for both sides, or (height, width), 1 to 65535 \
                 pixels each."
            }
            Self::Transforms => {
                "Transforms or functions of an image, also those of torchvision; at least one."
            }
            Self::WarpFilter => {
                "The filter: nearest, bilinear or bicubic; also torchvision's `InterpolationMode` or \
                 Pillow's number."
            }
            Self::Channels
            | Self::Count
            | Self::CountOrPair
            | Self::Counts
            | Self::ErasingValue
            | Self::Flag
            | Self::Interval
            | Self::Number
            | Self::OptionalSize
            | Self::Pair
            | Self::Point
            | Self::Policy
            | Self::Range
            | Self::Sides
            | Self::Weights => "",
        }
    }
}

impl Signature {
    /// A signature; none for an operation without a list of parameters.
    pub(crate) fn new(
        name: &'static str,
        lines: &[&str],
        parameters: Option<Vec<Parameter>>,
    ) -> Option<Self> {
        Some(Self { name, document: joined(lines), parameters: parameters? })
    }
}

impl Parameter {
    /// A parameter with its own text, or without one with that of its kind.
    pub(crate) fn new(
        name: &'static str,
        kind: ParameterKind,
        lines: &[&str],
        default: Option<Value>,
    ) -> Self {
        let own = joined(lines).replace('\n', " ");
        let document = if own.is_empty() { kind.document().to_owned() } else { own };
        Self { name, kind, document, default }
    }
}

/// The text of the lines of a comment.
fn joined(lines: &[&str]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| line.trim_ascii()).collect();
    lines.join("\n")
}

/// Declares an enum of operations by their names, each with a text and its parameters in a binding.
/// Bindings write operations without parentheses by hand. Recipes read the names after `also`, too.
macro_rules! operations {
    (
        $(#[$on_enum:meta])*
        pub enum $Op:ident: dyn $Operation:ident {
            $(
                $(#[doc = $line:literal])+
                $name:ident $(($(
                    $(#[doc = $about:literal])*
                    $parameter:ident: $kind:ident $(= $default:tt)?
                ),*))? $(also $($alias:literal)+)?,
            )*
        }
    ) => {
        $(#[$on_enum])*
        pub enum $Op {
            $($(#[doc = $line])+ $(#[serde($(alias = $alias),+)])? $name($name),)*
        }

        impl $Op {
            /// The names of all operations.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// The name, as torchvision's class has it.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                }
            }

            /// The signatures of the operations that have one.
            #[must_use]
            pub fn signatures() -> Vec<$crate::op::Signature> {
                let all = [$($crate::op::Signature::new(
                    stringify!($name),
                    &[$($line),+],
                    None::<Vec<$crate::op::Parameter>>$(.or(Some(vec![$(
                        $crate::op::Parameter::new(
                            stringify!($parameter),
                            $crate::op::ParameterKind::$kind,
                            &[$($about),*],
                            None::<serde_json::Value>$(.or(Some(serde_json::json!($default))))?,
                        )
                    ),*])))?,
                )),*];
                all.into_iter().flatten().collect()
            }

            pub(crate) fn operation(&self) -> &dyn $Operation {
                match self {
                    $(Self::$name(op) => op,)*
                }
            }
        }

        $(impl From<$name> for $Op {
            fn from(op: $name) -> Self {
                Self::$name(op)
            }
        })*
    };
}

pub(crate) use operations;

#[cfg(test)]
mod tests;
