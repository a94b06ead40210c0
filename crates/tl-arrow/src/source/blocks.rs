//! The pages of images as blocks of samples.

use tbl_io::{ReadError, SampleBlocks, SampleSource};

use super::RowSource;
use crate::codec::Codec;
use crate::file::ParquetFile;
use crate::places::Place;

impl SampleBlocks for RowSource {
    fn ends(&self) -> Result<Vec<u64>, ReadError> {
        let Some(file) = self.file.parquet() else { return Ok(Vec::new()) };
        let leaf = self.roles.image.bytes;
        let mut ends = Vec::new();
        for (group, &start) in (0..file.footer().groups.len()).zip(file.starts()) {
            let slots = file.pages(group, leaf)?;
            if !is_in_dictionary(file, leaf, group)? {
                ends.extend(slots.iter().skip(1).map(|slot| start + u64::from(slot.first_row)));
            }
            ends.push(start + file.footer().groups[group].rows);
        }
        Ok(ends)
    }

    fn unpacked_bytes(&self) -> Result<u64, ReadError> {
        // The other pages are like the first one, as far as the file is the work of one writer.
        let is_read_alone = match self.first_image()? {
            None | Some(Place::InFile { .. }) => true,
            Some(Place::Segmented { .. }) => {
                self.file.map().is_some() && self.compressions() != [Codec::Zstd.name()]
            }
            Some(Place::Decoded(_) | Place::Null { .. }) => false,
        };
        if is_read_alone { Ok(0) } else { self.largest_block() }
    }

    fn unpack_count(&self) -> u64 {
        self.file.parquet().map_or(0, |file| file.decoded_pages(self.roles.image.bytes))
    }

    fn compressions(&self) -> Vec<&'static str> {
        let Some(file) = self.file.parquet() else { return Vec::new() };
        let leaf = self.roles.image.bytes;
        let groups = 0..file.footer().groups.len();
        let codecs = groups.filter_map(|group| file.codec(group, leaf).ok());
        let mut names: Vec<&str> = codecs.map(Codec::name).collect();
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

    /// The mean bytes of a decoded block in the row group where they are largest.
    fn largest_block(&self) -> Result<u64, ReadError> {
        let Some(file) = self.file.parquet() else { return Ok(0) };
        let leaf = self.roles.image.bytes;
        let mut largest = 0;
        for group in 0..file.footer().groups.len() {
            let chunk = file.chunk(group, leaf);
            let pages = file.pages(group, leaf)?.len() as u64;
            let bytes = match is_in_dictionary(file, leaf, group)? {
                true => chunk.decompressed,
                false => chunk.decompressed.div_ceil(pages.max(1)),
            };
            largest = largest.max(bytes);
        }
        Ok(largest)
    }
}

/// Whether a dictionary has most bytes of the images of a row group, so that none is read without it.
fn is_in_dictionary(file: &ParquetFile, leaf: usize, group: usize) -> Result<bool, ReadError> {
    let chunk = file.chunk(group, leaf);
    let first = file.pages(group, leaf)?.first().map_or(chunk.start, |slot| slot.offset);
    Ok(first.saturating_sub(chunk.start) > chunk.bytes / 2)
}
