//! The values that conditions compare.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use super::{Comparison, Operation};

/// A value of a property, or a literal.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// The sample lacks the property.
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Cow<'a, str>),
    /// The text of a file, which is also a number if it reads as one.
    Field(String),
    /// A list or an object of JSON, equal to nothing.
    Other,
}

impl Value<'_> {
    pub(super) fn of_field(bytes: &[u8]) -> Value<'static> {
        Value::Field(String::from_utf8_lossy(bytes).trim().to_owned())
    }

    pub(super) fn of_json(value: &serde_json::Value) -> Value<'static> {
        match value {
            serde_json::Value::Null => Value::None,
            serde_json::Value::Bool(truth) => Value::Bool(*truth),
            serde_json::Value::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(number), _) => Value::Int(number),
                (None, Some(number)) => Value::Float(number),
                (None, None) => Value::Other,
            },
            serde_json::Value::String(text) => Value::Text(text.clone().into()),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => Value::Other,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Field(text) => Some(text),
            Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Other => None,
        }
    }

    /// The value as a condition; `None` if it cannot be one.
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Self::None => Some(false),
            Self::Bool(truth) => Some(*truth),
            Self::Field(text) => match &*text.to_ascii_lowercase() {
                "true" | "1" => Some(true),
                "false" | "0" | "" => Some(false),
                _ => None,
            },
            Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::Other => None,
        }
    }

    /// The comparison of two values. Values of different kinds are unequal, and none is less.
    pub(super) fn compare(&self, comparison: Comparison, other: &Value<'_>) -> bool {
        let order = self.order(other);
        match comparison {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::Unequal => order != Some(Ordering::Equal),
            Comparison::Less => self.is_some() && order == Some(Ordering::Less),
            Comparison::Greater => self.is_some() && order == Some(Ordering::Greater),
            Comparison::AtMost => self.is_some() && order.is_some_and(Ordering::is_le),
            Comparison::AtLeast => self.is_some() && order.is_some_and(Ordering::is_ge),
        }
    }

    fn is_some(&self) -> bool {
        *self != Self::None
    }

    fn order(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::None, Value::None) => Some(Ordering::Equal),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Field(a), Value::Field(b)) => match (number(a), number(b)) {
                (Some(a), Some(b)) => a.order(&b),
                _ => Some(a.cmp(b)),
            },
            (Value::Field(text), Value::Int(_) | Value::Float(_)) => number(text)?.order(other),
            (Value::Int(_) | Value::Float(_), Value::Field(text)) => self.order(&number(text)?),
            (Value::Field(text), Value::Bool(truth)) => {
                self.truth().filter(|_| !text.is_empty()).map(|found| found.cmp(truth))
            }
            (Value::Bool(_), Value::Field(_)) => other.order(self).map(Ordering::reverse),
            _ => match (self.float(), other.float(), self.text(), other.text()) {
                (Some(a), Some(b), ..) => a.partial_cmp(&b),
                (.., Some(a), Some(b)) => Some(a.cmp(b)),
                _ => None,
            },
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a comparison with a real number")]
    fn float(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Field(text) => number(text)?.float(),
            Self::None | Self::Bool(_) | Self::Text(_) | Self::Other => None,
        }
    }

    /// The result of arithmetic on numbers; none with a value that is not a number.
    pub(super) fn combine(&self, operation: Operation, other: &Value<'_>) -> Value<'static> {
        if let (Value::Int(a), Value::Int(b)) = (self, other) {
            let exact = match operation {
                Operation::Add => a.checked_add(*b),
                Operation::Subtract => a.checked_sub(*b),
                Operation::Multiply => a.checked_mul(*b),
                Operation::Divide => None,
            };
            if let Some(number) = exact {
                return Value::Int(number);
            }
        }
        let (Some(a), Some(b)) = (self.float(), other.float()) else { return Value::None };
        Value::Float(match operation {
            Operation::Add => a + b,
            Operation::Subtract => a - b,
            Operation::Multiply => a * b,
            Operation::Divide => a / b,
        })
    }
}

/// The number that text reads as.
fn number(text: &str) -> Option<Value<'static>> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(Value::Int(number.into()));
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::Float)
}

/// True if `text` is `pattern`, in which `*` is any text and `?` any character.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    let mut of_pattern = 0;
    // The last `*`, and the place in the text that it reaches to.
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(of_pattern) {
            Some('*') => {
                star = Some((of_pattern, at));
                of_pattern += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == text[at] => {
                at += 1;
                of_pattern += 1;
            }
            _ => {
                let Some((last, reached)) = star else { return false };
                star = Some((last, reached + 1));
                at = reached + 1;
                of_pattern = last + 1;
            }
        }
    }
    pattern[of_pattern..].iter().all(|&rest| rest == '*')
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Field(text) => write!(f, "{text:?}"),
            Self::Other => f.write_str("a list or an object"),
        }
    }
}
