//! The place of a user's transform in a recipe.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::forms::forms;
use super::{FixedSizes, Operation};
use crate::bounds::{require, require_size};
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::step::{Step, User};
use crate::stream::Stream;

/// Does what the user's transform of this name does, like torchvision's `Lambda`.
///
/// The code is looked up by the name when a loader or renderer is made
/// ([`UserTransforms`](crate::UserTransforms)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserTransform {
    /// The name it was registered under.
    pub name: String,
    /// The parameters of the code; an empty table when left out. In TOML nothing in it can be null.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
    /// The size of its results; that of the image when left out.
    #[serde(default, skip_serializing_if = "UserSize::is_same")]
    pub size: UserSize,
}

/// The size of the results of a user's transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum UserSize {
    /// Both sides of every result.
    Side(u32),
    /// Height and width of every result, in torchvision's order.
    Exact([u32; 2]),
    /// A size that is not the same for all images.
    Named(UserSizeName),
}

forms!(
    UserSize: Side(u32), Exact([_; 2]), Named(UserSizeName);
    "a size is 1 to 65535 pixels, [height, width] of such, \"same\" or \"any\""
);

/// The names among the sizes of [`UserTransform`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UserSizeName {
    /// That of the image.
    Same,
    /// One that nothing tells before the code has run. Operations after it are planned then, so it
    /// stands in the recipe's own list, and the recipe makes one image of a sample.
    Any,
}

impl Default for UserSize {
    /// That of the image.
    fn default() -> Self {
        Self::Named(UserSizeName::Same)
    }
}

impl UserSize {
    /// Whether only the code tells the size.
    #[must_use]
    pub fn is_any(self) -> bool {
        self == Self::Named(UserSizeName::Any)
    }

    fn is_same(&self) -> bool {
        *self == Self::default()
    }

    /// Width and height of results for an image of `size`; `None` where only the code tells.
    #[must_use]
    pub fn of(self, size: (u32, u32)) -> Option<(u32, u32)> {
        if self.is_any() { None } else { self.exact().or(Some(size)) }
    }

    /// Width and height of every result.
    pub(crate) fn exact(self) -> Option<(u32, u32)> {
        match self {
            Self::Side(side) => Some((side, side)),
            Self::Exact([height, width]) => Some((width, height)),
            Self::Named(_) => None,
        }
    }
}

impl UserTransform {
    /// The transform of this name, whose results have the size of the image.
    #[must_use]
    pub fn new(name: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), parameters, size: UserSize::default() }
    }

    /// The same with results of this size.
    #[must_use]
    pub fn with_size(self, size: UserSize) -> Self {
        Self { size, ..self }
    }
}

fn no_parameters() -> Value {
    Value::Object(Map::new())
}

/// The longest name.
const MAX_NAME: usize = 255;

/// The deepest nesting of lists and tables in parameters.
const MAX_DEPTH: u32 = 32;

impl Operation for UserTransform {
    fn check(&self) -> Result<(), Invalid> {
        let length = self.name.len();
        let bytes = f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        require((1..=MAX_NAME).contains(&length), "length of name", bytes, "1 to 255 bytes")?;
        if let Some((width, height)) = self.size.exact() {
            require_size("size", height)?;
            require_size("size", width)?;
        }
        check_value(&self.parameters, 0)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        if self.size.is_any() {
            return Err(PlanError::UserSize { name: self.name.clone() });
        }
        drawing.step(Step::User(User { stream, size: self.size.exact() }))
    }

    fn output_size(&self, before: Option<(u32, u32)>, _: &FixedSizes) -> Option<(u32, u32)> {
        if self.size.is_any() { None } else { self.size.exact().or(before) }
    }
}

fn check_value(value: &Value, depth: u32) -> Result<(), Invalid> {
    let parameter = "depth of parameters";
    require(depth <= MAX_DEPTH, parameter, f64::from(depth), "at most 32 lists in lists")?;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, depth + 1)),
        Value::Object(table) => table.values().try_for_each(|item| check_value(item, depth + 1)),
    }
}

impl fmt::Display for UserTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({:?}, {}", self.name, self.parameters)?;
        match self.size {
            UserSize::Named(UserSizeName::Same) => f.write_str(")"),
            UserSize::Named(UserSizeName::Any) => f.write_str(", any size)"),
            UserSize::Side(side) => write!(f, ", {side}x{side})"),
            UserSize::Exact([height, width]) => write!(f, ", {width}x{height})"),
        }
    }
}
