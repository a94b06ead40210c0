//! The stores that URLs may name.

use tbl_io::Stores;

/// All stores of this library, by URL scheme. There is none yet, so only paths are opened.
///
/// A store is one line here, behind the feature that builds it.
#[must_use]
pub fn stores() -> Stores {
    Stores::new()
}
