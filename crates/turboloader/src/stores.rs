//! The stores that URLs may name.

use tbl_io::Stores;

/// All stores of this library, by URL scheme. It is empty, so only paths are opened.
///
/// A store is one line here, with the feature that builds it.
#[must_use]
pub fn stores() -> Stores {
    Stores::new()
}
