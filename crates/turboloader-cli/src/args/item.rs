//! Names of samples, rows and nodes.

use uuid::Uuid;

/// A sample, a row or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemName {
    /// By its number.
    Number(u64),
    /// By its id.
    Id(Uuid),
}

/// Reads the number of a sample.
pub(crate) fn sample_number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "expected a number; put a pattern or ranges of file names in quotes")
}

/// Reads a number or a UUID.
pub(crate) fn item_name(text: &str) -> Result<ItemName, &'static str> {
    let number = text.parse().map(ItemName::Number).ok();
    let name = number.or_else(|| Uuid::parse_str(text).ok().map(ItemName::Id));
    name.ok_or(
        "expected a number, or the UUID of a node; put a pattern or ranges of file names in quotes",
    )
}
