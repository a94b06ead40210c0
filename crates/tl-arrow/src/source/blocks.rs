//! The parts of a file that are decoded as a whole, as blocks of samples: the pages of images of Parquet
//! files, and record batches.

use tbl_io::{ReadError, SampleBlocks, SampleSource};

use super::RowSource;
use crate::codec::Codec;
use crate::file::ParquetFile;
use crate::places::Place;

impl SampleBlocks for RowSource {
    fn ends(&self) -> Result<Vec<u64>, ReadError> {
        self.file.block_ends(self.roles.image.bytes)
    }

    fn unpacked_bytes(&self) -> Result<u64, ReadError> {
        // The other blocks are like the first one, as far as the file is the work of one writer.
        let is_read_alone = match self.first_image()? {
            None | Some(Place::InFile { .. }) => true,
            Some(Place::Segmented { .. }) => {
                self.file.map().is_some() && self.compressions() != [Codec::Zstd.name()]
            }
            Some(Place::Decoded(_) | Place::Null { .. }) => false,
        };
        if is_read_alone { Ok(0) } else { self.file.block_bytes(self.roles.image.bytes) }
    }

    fn unpack_count(&self) -> u64 {
        self.file.unpack_count(self.roles.image.bytes)
    }

    fn compressions(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> =
            self.file.codecs(self.roles.image.bytes).into_iter().map(Codec::name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl RowSource {
    /// The place of the first image, if there is one.
    fn first_image(&self) -> Result<Option<Place>, ReadError> {
        let first = (self.sample_count() > 0).then(|| self.image(self.place(0)?));
        first.transpose()
    }
}

impl ParquetFile {
    /// For each page of a leaf, the row after its last one.
    pub(crate) fn page_ends(&self, leaf: usize) -> Result<Vec<u64>, ReadError> {
        let mut ends = Vec::new();
        for (group, &start) in (0..self.footer().groups.len()).zip(self.starts()) {
            let slots = self.pages(group, leaf)?;
            if !self.is_in_dictionary(leaf, group)? {
                ends.extend(slots.iter().skip(1).map(|slot| start + u64::from(slot.first_row)));
            }
            ends.push(start + self.footer().groups[group].rows);
        }
        Ok(ends)
    }

    /// The mean bytes of a decoded page of a leaf in the row group where they are largest; those of the
    /// row group where its dictionary has most of them.
    pub(crate) fn page_bytes(&self, leaf: usize) -> Result<u64, ReadError> {
        let mut largest = 0;
        for group in 0..self.footer().groups.len() {
            let chunk = self.chunk(group, leaf);
            let pages = self.pages(group, leaf)?.len() as u64;
            let bytes = match self.is_in_dictionary(leaf, group)? {
                true => chunk.decompressed,
                false => chunk.decompressed.div_ceil(pages.max(1)),
            };
            largest = largest.max(bytes);
        }
        Ok(largest)
    }

    /// Whether a dictionary has most bytes of a leaf in a row group, so that no value is read without it.
    fn is_in_dictionary(&self, leaf: usize, group: usize) -> Result<bool, ReadError> {
        let chunk = self.chunk(group, leaf);
        let first = self.pages(group, leaf)?.first().map_or(chunk.start, |slot| slot.offset);
        Ok(first.saturating_sub(chunk.start) > chunk.bytes / 2)
    }
}
