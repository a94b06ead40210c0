//! The stores that URLs may name.

use tbl_io::Stores;

/// All stores of this library, by URL scheme, with options from the environment alone. Without the
/// feature `remote` there are none, so only paths are opened.
#[must_use]
pub fn stores() -> Stores {
    let stores = tl_pipeline::stores();
    #[cfg(feature = "remote")]
    let stores = tl_store::RemoteStores::new(tl_store::StoreOptions::default()).add_to(stores);
    stores
}
