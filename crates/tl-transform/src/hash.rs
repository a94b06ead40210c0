//! The hash of a recipe: what a saved state is compared by.

use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::recipe::Recipe;

/// The SHA-256 of a recipe: equal for equal recipes, on every machine and in every version that has
/// the same operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecipeHash(pub [u8; 32]);

impl fmt::Display for RecipeHash {
    /// Lower-case hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Recipe {
    /// The hash of the whole recipe.
    ///
    /// It covers the recipe's serialised form with keys sorted: `null` is `n`; booleans are `t` and
    /// `f`; an integer is `i` and its 128 bits; another number, `d` and the bits of its `f64`,
    /// those of 0 for -0; a string, `s`, its length and its UTF-8 bytes; a list, `l`, its length
    /// and its items; a table, `m`, its length, and keys (as strings) and values in turn. Lengths
    /// are `u64`, and everything is little-endian.
    #[must_use]
    pub fn hash(&self) -> RecipeHash {
        let value = serde_json::to_value(self).expect("a checked recipe has finite numbers");
        let mut hasher = Sha256::new();
        feed(&value, &mut hasher);
        RecipeHash(hasher.finalize().into())
    }
}

fn feed(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Null => hasher.update(b"n"),
        Value::Bool(value) => hasher.update(if *value { b"t" } else { b"f" }),
        Value::Number(number) => {
            let integer = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
            if let Some(integer) = integer {
                hasher.update(b"i");
                hasher.update(integer.to_le_bytes());
            } else {
                hasher.update(b"d");
                // Adding 0 makes 0 of -0, which equals it.
                let number = number.as_f64().unwrap_or(f64::NAN) + 0.0;
                hasher.update(number.to_le_bytes());
            }
        }
        Value::String(text) => feed_string(text, hasher),
        Value::Array(items) => {
            feed_length(b"l", items.len(), hasher);
            items.iter().for_each(|item| feed(item, hasher));
        }
        Value::Object(table) => {
            feed_length(b"m", table.len(), hasher);
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            for (key, value) in entries {
                feed_string(key, hasher);
                feed(value, hasher);
            }
        }
    }
}

fn feed_string(text: &str, hasher: &mut Sha256) {
    feed_length(b"s", text.len(), hasher);
    hasher.update(text);
}

fn feed_length(tag: &[u8], length: usize, hasher: &mut Sha256) {
    hasher.update(tag);
    hasher.update((length as u64).to_le_bytes());
}
