//! Names of samples, rows and nodes.

use thiserror::Error;
use uuid::Uuid;

/// A sample, a row or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemName {
    /// By its number.
    Number(u64),
    /// By its id.
    Id(Uuid),
}

/// A name that is not understood.
#[derive(Debug, Error)]
pub(crate) enum ItemNameError {
    #[error("expected a number, or the UUID of a node")]
    Item,
    #[error("expected a UUID such as 55c14841-a7dc-11c1-74ca-262430a87aa9")]
    Uuid,
}

/// Reads a number or a UUID.
pub(crate) fn item_name(text: &str) -> Result<ItemName, ItemNameError> {
    let number = text.parse().map(ItemName::Number).ok();
    number.or_else(|| Uuid::parse_str(text).ok().map(ItemName::Id)).ok_or(ItemNameError::Item)
}

/// Reads a UUID.
pub(crate) fn uuid(text: &str) -> Result<Uuid, ItemNameError> {
    Uuid::parse_str(text).map_err(|_| ItemNameError::Uuid)
}
