//! AES-256-GCM over whole regions. The key comes from the caller and is never stored.

use core::fmt;

#[cfg(feature = "encryption")]
use crate::region::Region;

/// A key of 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// Keys do not belong in logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The encryption of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// The key.
    pub key: Key,
    /// A name for the key, stored in the segment.
    pub key_id: [u8; 16],
    /// A number that no other segment under this key has: random, or counted. With one that was
    /// used before, both segments can be read and forged without the key.
    pub nonce: [u8; 11],
}

impl Encryption {
    /// The nonce of a region: the segment's, and the region's code.
    #[cfg(feature = "encryption")]
    pub(crate) fn region_nonce(&self, region: Region) -> [u8; 12] {
        let mut nonce = [0; 12];
        if let Some((code, segment)) = nonce.split_last_mut() {
            segment.copy_from_slice(&self.nonce);
            *code = region.code().unwrap_or(u8::MAX);
        }
        nonce
    }
}

/// Encrypts `bytes` in place and returns the tag; `None` for more than GCM can take (64 GiB).
#[cfg(feature = "encryption")]
pub(crate) fn encrypt(
    key: &Key,
    nonce: [u8; 12],
    associated: &[u8],
    bytes: &mut [u8],
) -> Option<[u8; 16]> {
    use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

    let cipher = Aes256Gcm::new(&key.0.into());
    let tag = cipher.encrypt_inout_detached(&nonce.into(), associated, bytes.into());
    tag.ok().map(Into::into)
}

/// Decrypts `bytes` in place; whether key, nonce, associated data, bytes and tag belong together.
/// Otherwise `bytes` stay encrypted.
#[cfg(feature = "encryption")]
pub(crate) fn decrypt(
    key: &Key,
    nonce: [u8; 12],
    associated: &[u8],
    bytes: &mut [u8],
    tag: [u8; 16],
) -> bool {
    use aes_gcm::{AeadInOut, Aes256Gcm, KeyInit};

    let cipher = Aes256Gcm::new(&key.0.into());
    let decrypted =
        cipher.decrypt_inout_detached(&nonce.into(), associated, bytes.into(), &tag.into());
    decrypted.is_ok()
}
