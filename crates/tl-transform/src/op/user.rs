//! The place of a user's transform in a recipe.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Operation;
use crate::bounds::require;
use crate::draw::Drawing;
use crate::error::{Invalid, PlanError};
use crate::step::{Step, User};
use crate::stream::Stream;

/// Does what the user's transform of this name does, like torchvision's `Lambda`.
///
/// The code is looked up by the name when a loader or renderer is made
/// ([`UserTransforms`](crate::UserTransforms)). The image keeps its size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserTransform {
    /// The name it was registered under.
    pub name: String,
    /// The parameters of the code; an empty table when left out. In TOML nothing in it can be null.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
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
        check_value(&self.parameters, 0)
    }

    fn draw(&self, stream: Stream, drawing: &mut Drawing<'_>) -> Result<(), PlanError> {
        drawing.step(Step::User(User { stream }))
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
        write!(f, "({:?}, {})", self.name, self.parameters)
    }
}
