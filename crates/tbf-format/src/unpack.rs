//! Compressed and encrypted regions, unpacked into memory.

use crate::aligned::AlignedBytes;
use crate::checksum::crc32c;
use crate::codec;
use crate::encryption::Key;
use crate::error::FormatError;
use crate::footer::RegionEntry;
use crate::header::Compression;
use crate::region::Region;
use crate::segment::Segment;

/// The options of unpacking regions.
#[derive(Clone, Copy, Debug)]
pub struct UnpackOptions<'k> {
    /// The key of an encrypted segment.
    pub key: Option<&'k Key>,
    /// The most bytes that one region may take in memory.
    pub max_bytes: u64,
}

impl Default for UnpackOptions<'_> {
    /// No key, and 4 GiB: a region of that size holds more than two million vectors of 384
    /// components.
    fn default() -> Self {
        Self { key: None, max_bytes: 4 << 30 }
    }
}

impl Segment<'_> {
    /// Makes a region readable that is compressed or encrypted, by unpacking it into memory. One
    /// that is stored as it is stays where it is.
    ///
    /// # Errors
    /// [`FormatError::Absent`]; [`FormatError::KeyNeeded`] or [`FormatError::Decryption`];
    /// [`FormatError::Unsupported`] when this build lacks a feature; [`FormatError::Limit`];
    /// otherwise what is wrong with the stored bytes.
    pub fn unpack(
        &mut self,
        region: Region,
        options: &UnpackOptions<'_>,
    ) -> Result<(), FormatError> {
        match self.region(region) {
            Err(FormatError::Packed { .. }) => {}
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
        let layout = self.layout();
        let footer = layout.footer.as_ref();
        let entry = footer.and_then(|footer| Some((footer.entry(region)?, footer.summary)));
        let (entry, summary) = entry.ok_or(FormatError::Absent { region })?;
        let extent = layout.extent(region).ok_or(FormatError::Absent { region })?;
        let stored = self.bytes().get(extent.range.clone()).unwrap_or_default();
        let need = entry.raw_bytes.get();
        if need > options.max_bytes {
            return Err(FormatError::Limit { region, need, limit: options.max_bytes });
        }
        let decrypted = if summary.is_encrypted {
            Some(self.decrypt(region, entry, stored, options)?)
        } else {
            None
        };
        let unpacked = match (entry.compression(), decrypted) {
            (Compression::None, Some(decrypted)) => decrypted,
            (compression, decrypted) => {
                let stored = decrypted.as_ref().map_or(stored, AlignedBytes::as_bytes);
                codec::decompress(stored, compression, region, need, summary.block_bytes)?
            }
        };
        if !summary.is_encrypted {
            let stored = entry.raw_checksum.get();
            let computed = crc32c(unpacked.as_bytes());
            if stored != computed {
                return Err(FormatError::RegionChecksum { region, stored, computed });
            }
        }
        self.keep(region, unpacked)
    }

    /// Unpacks every region that is packed.
    ///
    /// # Errors
    /// As for [`unpack`](Self::unpack).
    pub fn unpack_all(&mut self, options: &UnpackOptions<'_>) -> Result<(), FormatError> {
        for region in Region::DATA {
            if self.has(region) {
                self.unpack(region, options)?;
            }
        }
        Ok(())
    }

    #[cfg(feature = "encryption")]
    fn decrypt(
        &self,
        region: Region,
        entry: &RegionEntry,
        stored: &[u8],
        options: &UnpackOptions<'_>,
    ) -> Result<AlignedBytes, FormatError> {
        let key = options.key.ok_or(FormatError::KeyNeeded { region })?;
        let failed = FormatError::Decryption { region };
        if entry.nonce.last().copied() != region.code() {
            return Err(failed);
        }
        let mut bytes = AlignedBytes::copy_of(stored);
        let associated = self.header().checked_bytes();
        let place = bytes.as_mut_bytes();
        if crate::encryption::decrypt(key, entry.nonce, associated, place, entry.tag) {
            Ok(bytes)
        } else {
            Err(failed)
        }
    }

    #[cfg(not(feature = "encryption"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn decrypt(
        &self,
        region: Region,
        _: &RegionEntry,
        _: &[u8],
        _: &UnpackOptions<'_>,
    ) -> Result<AlignedBytes, FormatError> {
        Err(FormatError::Unsupported { region, feature: "encryption" })
    }
}
