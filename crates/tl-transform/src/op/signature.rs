//! The signatures of operations: a sentence, and the parameters with torchvision's defaults.

use serde::Serialize;
use serde_json::Value;

/// The signature of an operation, as a binding to another language presents it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Signature {
    /// The name of torchvision's class.
    pub name: &'static str,
    /// A sentence about the operation.
    pub summary: &'static str,
    /// The parameters in torchvision's order.
    pub parameters: Vec<Parameter>,
}

/// A parameter of an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Torchvision's name.
    pub name: &'static str,
    /// The default in torchvision's form: null where the parameter can be left out of a recipe,
    /// none where it is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// Declares an enum of operations by their names, each with a sentence and its parameters in a
/// binding. Bindings write operations without parentheses by hand.
macro_rules! operations {
    (
        $(#[$on_enum:meta])*
        pub enum $Op:ident: dyn $Operation:ident {
            $(
                #[doc = $summary:literal]
                $(#[$on_variant:meta])*
                $name:ident $(($($parameter:ident $(= $default:tt)?),*))?,
            )*
        }
    ) => {
        $(#[$on_enum])*
        pub enum $Op {
            $(#[doc = $summary] $(#[$on_variant])* $name($name),)*
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
                let all = [$($(
                    $crate::op::Signature {
                        name: stringify!($name),
                        summary: $summary.trim_ascii(),
                        parameters: vec![$($crate::op::Parameter {
                            name: stringify!($parameter),
                            default: None::<serde_json::Value>$(.or(Some(serde_json::json!($default))))?,
                        }),*],
                    },
                )?)*];
                all.into()
            }

            fn operation(&self) -> &dyn $Operation {
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
