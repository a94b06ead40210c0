//! Looking at every byte of a segment.

use alloc::vec;
use alloc::vec::Vec;

use crate::bloom::BloomKey;
use crate::checksum::crc32c;
use crate::columns::column_offsets;
use crate::edges::Adjacency;
use crate::error::FormatError;
use crate::region::{Dialect, Region};
use crate::segment::{Oddity, Segment, if_present};

impl Segment<'_> {
    /// Checks checksums, padding and the contents of all regions that are not packed, and returns
    /// what had to be tolerated.
    ///
    /// In a segment with a footer any damage is found. The reference's writer makes no checksums,
    /// so in its files only damage that contradicts something else is.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn verify(&self) -> Result<Vec<Oddity>, FormatError> {
        let (oddities, damage) = self.verify_all();
        damage.into_iter().next().map_or(Ok(oddities), Err)
    }

    /// As [`verify`](Self::verify), but continues after defects: returns what had to be
    /// tolerated, and the damage. Of each region that is its checksum, the first byte of the gap
    /// after it, and the first thing wrong with its contents.
    pub fn verify_all(&self) -> (Vec<Oddity>, Vec<FormatError>) {
        let mut oddities: Vec<Oddity> = self.oddities().collect();
        let mut damage = self.verify_checksums();
        oddities.extend(self.verify_gaps(&mut damage));
        for region in Region::DATA {
            let checked = self.region(region).map(|_| self.verify_region(region));
            match checked.flatten() {
                Ok(oddity) => oddities.extend(oddity),
                Err(FormatError::Packed { region: packed }) if packed == region => {
                    oddities.push(Oddity::NotUnpacked { region });
                }
                Err(FormatError::Absent { region: absent }) if absent == region => {}
                Err(error) => damage.push(error),
            }
        }
        (oddities, damage)
    }

    /// Checksums of the regions as they are stored.
    fn verify_checksums(&self) -> Vec<FormatError> {
        let mut damage = Vec::new();
        let Some(footer) = &self.layout().footer else { return damage };
        for region in Region::DATA {
            let place = self.layout().extent(region).zip(footer.entry(region));
            let Some((extent, entry)) = place else { continue };
            let stored_bytes = self.bytes().get(extent.range.clone()).unwrap_or_default();
            let stored = entry.stored_checksum.get();
            let computed = crc32c(stored_bytes);
            let raw = if entry.is_plain() { entry.raw_checksum.get() } else { stored };
            let wrong = [stored, raw].into_iter().find(|&stored| stored != computed);
            damage.extend(wrong.map(|stored| FormatError::RegionChecksum {
                region,
                stored,
                computed,
            }));
        }
        damage
    }

    /// Gaps between regions hold zeros; after the last region there may be anything.
    fn verify_gaps(&self, damage: &mut Vec<FormatError>) -> Option<Oddity> {
        let (parts, count) = self.layout().in_order();
        let parts = parts.get(..count).unwrap_or_default();
        for ((region, before), (_, after)) in parts.iter().zip(parts.iter().skip(1)) {
            let gap = self.bytes().get(before.end..after.start).unwrap_or_default();
            damage.extend(check_zero(*region, before.len(), gap).err());
        }
        let end = parts.last().map_or(0, |(_, range)| range.end);
        let bytes = self.bytes().len().saturating_sub(end) as u64;
        (bytes > 0).then_some(Oddity::TrailingBytes { bytes })
    }

    fn verify_region(&self, region: Region) -> Result<Option<Oddity>, FormatError> {
        match region {
            Region::Nodes => self.verify_columns().map(|()| None),
            Region::Embeddings => self.verify_embeddings().map(|()| None),
            Region::Edges => self.verify_edges(),
            Region::Bloom => self.verify_bloom().map(|()| None),
            Region::Strings => self.strings()?.verify().map(|()| None),
            Region::Index => self.verify_index().map(|()| None),
            Region::Header | Region::Footer => Ok(None),
        }
    }

    fn verify_columns(&self) -> Result<(), FormatError> {
        let region = self.region(Region::Nodes)?;
        let columns = self.columns()?;
        let (starts, end) = column_offsets(self.node_count()).unwrap_or(([0; 5], 0));
        let ends = [
            columns.ids().as_bytes().len(),
            columns.timestamps().as_bytes().len(),
            columns.context_hashes().as_bytes().len(),
            columns.confidences().as_bytes().len(),
            columns.outcomes().len(),
        ];
        let nexts = starts.iter().skip(1).chain([&end]);
        for ((&start, len), &next) in starts.iter().zip(ends).zip(nexts) {
            // The columns lie inside the region, so their places fit.
            let gap_start = usize::try_from(start).unwrap_or(0) + len;
            let next = usize::try_from(next).unwrap_or(0);
            let gap = region.get(gap_start..next).unwrap_or_default();
            check_zero(Region::Nodes, gap_start, gap)?;
        }
        Ok(())
    }

    fn verify_embeddings(&self) -> Result<(), FormatError> {
        let embeddings = self.embeddings()?;
        let strides = embeddings.as_bytes().chunks_exact(embeddings.stride().max(1));
        for (row, vector) in strides.enumerate() {
            let used = embeddings.vector_bytes(row).unwrap_or_default().len();
            let padding = vector.get(used..).unwrap_or_default();
            check_zero(Region::Embeddings, row * embeddings.stride() + used, padding)?;
        }
        Ok(())
    }

    fn verify_edges(&self) -> Result<Option<Oddity>, FormatError> {
        let outgoing = self.outgoing()?;
        let targets = outgoing.verify(self.node_count())?;
        if let Some((edge, target)) = targets.first {
            if self.is_strict() || self.dialect() == Dialect::Published {
                let node_count = self.node_count();
                return Err(FormatError::EdgeTarget { edge, target, node_count });
            }
            return Ok(Some(Oddity::EdgeTargets { count: targets.count, edge, target }));
        }
        if let Some(incoming) = if_present(self.incoming())? {
            let region = self.region(Region::Edges)?;
            let forward = outgoing.byte_len();
            let reverse = incoming.byte_len();
            let gap = region.len().saturating_sub(reverse);
            check_zero(Region::Edges, forward, region.get(forward..gap).unwrap_or_default())?;
            verify_transposed(&outgoing, &incoming, self.node_count())?;
        }
        Ok(None)
    }

    fn verify_bloom(&self) -> Result<(), FormatError> {
        let bloom = self.bloom()?;
        if self.is_packed(Region::Nodes) {
            return Ok(());
        }
        for (row, id) in self.columns()?.ids().iter().enumerate() {
            if !bloom.may_contain(&BloomKey::new(&id)) {
                return Err(FormatError::NotInBloom { row: row as u64 });
            }
        }
        Ok(())
    }

    fn verify_index(&self) -> Result<(), FormatError> {
        let index = self.index()?;
        if self.is_packed(Region::Nodes) {
            return Ok(());
        }
        let columns = self.columns()?;
        index.ids().verify(columns.ids(), "id")?;
        index.timestamps().verify(columns.timestamps(), "timestamp")
    }
}

fn check_zero(region: Region, start: usize, padding: &[u8]) -> Result<(), FormatError> {
    match padding.iter().position(|&byte| byte != 0) {
        Some(at) => Err(FormatError::NotZero { region, offset: (start + at) as u64 }),
        None => Ok(()),
    }
}

/// Whether `incoming` holds the edges of `outgoing` by target, in the order of their sources.
fn verify_transposed(
    outgoing: &Adjacency<'_>,
    incoming: &Adjacency<'_>,
    node_count: u64,
) -> Result<(), FormatError> {
    incoming.verify(node_count)?;
    let stated = outgoing.edges().len() as u64;
    let found = incoming.edges().len() as u64;
    if stated != found {
        return Err(FormatError::Contradiction { what: "count of reverse edges", stated, found });
    }
    let mut seen = vec![0usize; outgoing.rows()];
    for source in 0..outgoing.rows() {
        for edge in outgoing.row(source)? {
            // Targets were checked before.
            let target = usize::try_from(edge.target()).unwrap_or(usize::MAX);
            let Some(seen) = seen.get_mut(target) else { continue };
            let reverse = incoming.row(target)?.get(*seen);
            let same = reverse.is_some_and(|reverse| {
                reverse.target() as usize == source
                    && reverse.relation() == edge.relation()
                    && reverse.weight().to_bits() == edge.weight().to_bits()
            });
            if !same {
                let start = incoming.pointers().get(target).unwrap_or(0);
                return Err(FormatError::ReverseEdge { edge: start + *seen as u64 });
            }
            *seen += 1;
        }
    }
    Ok(())
}
