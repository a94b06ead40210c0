//! Several segments as one: the newest node of each id, with the edges of that node.

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tbf_format::{Compression, Dtype, FormatError, Key, Node, Outcome, Region, Segment};
use tbl_io::Location;

use super::error::SegmentError;
use super::input::{MergeSource, SegmentInput};
use super::output::{SegmentFile, SegmentSettings, SegmentSummary};
use super::set::segment_files;

/// The result of merging segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// The segment that was written.
    pub written: SegmentSummary,
    /// Segments that were read.
    pub segments: u64,
    /// Nodes that a later segment replaces.
    pub replaced: u64,
    /// Edges left out: those of replaced nodes, and those that lead to no node.
    pub edges_left_out: u64,
}

/// The place of the node that stands for an id.
#[derive(Clone, Copy, Debug)]
struct Place {
    segment: usize,
    row: usize,
    /// The row in the merged segment.
    merged: u32,
}

/// The parts that the merged segment has if one of its sources has them.
#[derive(Debug, Default)]
struct Shape {
    vectors: Option<(Location, Dtype, u32)>,
    compression: Compression,
    key_id: Option<[u8; 16]>,
    is_compacted: bool,
    index: bool,
    reverse: bool,
    segment_id: u64,
}

/// Merges segments into one at `destination`, in their order.
///
/// Of several nodes with one id, the one of the last segment counts, with its edges. Edges to a
/// replaced node lead to the one that replaces it. Vectors are copied as they are stored, so all
/// segments need the same type and number of components. The result is marked as compacted. It has an
/// index, a reverse index, or compression if a source has, or if `settings` say so. `settings.key` is the
/// key of encrypted sources, and encrypts the result. `on_node` receives the number of nodes so far
/// and of all, and may end the work.
///
/// Memory holds about 140 bytes for each node, the texts, 16 bytes for each edge, and the unpacked
/// regions of one segment. One source is open at a time.
///
/// # Errors
/// [`SegmentError`], such as [`SegmentError::Changed`] if a source is replaced meanwhile. There is no new
/// file then.
pub fn merge_segments(
    sources: &[PathBuf],
    destination: &Path,
    settings: &SegmentSettings,
    on_node: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Merged, SegmentError> {
    let is_destination =
        |source: &&PathBuf| fs::canonicalize(source).ok() == fs::canonicalize(destination).ok();
    if destination.exists()
        && let Some(source) = sources.iter().find(is_destination)
    {
        return Err(SegmentError::SourceIsDestination { location: Location::new(source) });
    }
    merge_as(&versions(sources)?, destination, settings, on_node)
}

/// Writes one segment again, with other compression, encryption or indexes, as `settings` say.
/// `key` is that of the source. Its mark stays.
#[cfg(feature = "parquet")]
pub(crate) fn copy_segment(
    source: &Path,
    key: Option<&Key>,
    destination: &Path,
    settings: &SegmentSettings,
    on_node: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Merged, SegmentError> {
    let sources = [MergeSource::new(source)?];
    let is_compacted = Shape::of(&sources)?.is_compacted;
    let target = Target { path: destination, settings, is_compacted };
    write_merged(&sources, key, &target, on_node)
}

/// The segment to write.
struct Target<'a> {
    path: &'a Path,
    settings: &'a SegmentSettings,
    is_compacted: bool,
}

/// Replaces the segments of a folder by one, which has the name of the last of them.
///
/// The merged segment takes the place of the last one in one step, and then the others are removed,
/// the oldest first. A crash in between leaves nodes twice, but loses none, and finding and compacting
/// give the same answers as before. A folder of one segment that is compacted is left as it is: `None`.
///
/// The merged segment is on the disk before a source is removed, even if `settings.sync` is off.
/// `settings.overwrite` has no effect.
///
/// Nothing else may replace these segments meanwhile. Directly before a file is replaced or removed, this
/// function checks that it is still the one that was read.
///
/// # Errors
/// As for [`merge_segments`]; [`SegmentError::OtherFile`] for a folder that has more than segments;
/// [`SegmentError::Write`] or [`SegmentError::Changed`] if an earlier segment cannot be removed or was
/// replaced after the merged one got its name.
pub fn compact_segments(
    folder: &Path,
    settings: &SegmentSettings,
    on_node: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<Merged>, SegmentError> {
    let sources = versions(&segment_files(folder)?)?;
    let Some((last, earlier)) = sources.split_last() else {
        return Err(SegmentError::NoSegments { location: Location::new(folder) });
    };
    if earlier.is_empty() {
        let input = last.open()?;
        if input.segment(&[], None)?.header().flags().contains(tbf_format::Flags::IS_COMPACTED) {
            return Ok(None);
        }
    }
    let merged = merge_as(&sources, last.path(), &of_compaction(settings), on_node)?;
    for source in earlier {
        source.check()?;
        let location = Location::new(source.path());
        fs::remove_file(source.path())
            .map_err(|source| SegmentError::Write { location, source })?;
    }
    Ok(Some(merged))
}

/// The settings of a segment whose sources are removed: it must be on the disk by then.
fn of_compaction(settings: &SegmentSettings) -> SegmentSettings {
    SegmentSettings { overwrite: true, sync: true, ..settings.clone() }
}

fn versions(paths: &[PathBuf]) -> Result<Vec<MergeSource>, SegmentError> {
    paths.iter().map(|path| MergeSource::new(path)).collect()
}

/// Merges `sources` with what one of them has or `settings` say.
fn merge_as(
    sources: &[MergeSource],
    destination: &Path,
    settings: &SegmentSettings,
    on_node: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Merged, SegmentError> {
    let settings = Shape::of(sources)?.settings(settings);
    let target = Target { path: destination, settings: &settings, is_compacted: true };
    write_merged(sources, settings.key.as_ref(), &target, on_node)
}

/// Merges `sources`, of which one at a time is open. `key` is theirs.
fn write_merged(
    sources: &[MergeSource],
    key: Option<&Key>,
    target: &Target<'_>,
    on_node: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Merged, SegmentError> {
    let shape = Shape::of(sources)?;
    let places = newest(sources, key)?;
    let dim = shape.vectors.as_ref().map_or(0, |&(_, _, dim)| dim);
    let mut file = SegmentFile::create_as(target.path, target.settings, dim, target.is_compacted)?;
    let total = places.len() as u64;
    let mut left = Left::default();
    for (number, source) in sources.iter().enumerate() {
        let input = &source.open()?;
        let regions = [Region::Nodes, Region::Embeddings, Region::Edges, Region::Strings];
        let segment = input.segment(&regions, key)?;
        let copy = Copy { number, input, segment: &segment, places: &places };
        copy.run(&mut file, &mut left, &mut |done| match on_node(done, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(SegmentError::Stopped { location: Location::new(target.path) })
            }
        })?;
        input.check()?;
    }
    let segments = sources.len() as u64;
    let written = file.finish_if(|| sources.iter().try_for_each(MergeSource::check))?;
    Ok(Merged { written, segments, replaced: left.nodes, edges_left_out: left.edges })
}

/// The parts that are left out.
#[derive(Debug, Default)]
struct Left {
    nodes: u64,
    edges: u64,
}

impl Shape {
    fn of(sources: &[MergeSource]) -> Result<Self, SegmentError> {
        let mut shape = Self::default();
        for source in sources {
            shape.add(&source.open()?)?;
        }
        Ok(shape)
    }

    /// Takes what the header of a segment says.
    fn add(&mut self, input: &SegmentInput) -> Result<(), SegmentError> {
        let segment = input.segment(&[], None)?;
        let header = segment.header();
        if self.compression == Compression::None {
            self.compression = header.compression();
        }
        self.key_id = self.key_id.or(segment.key_id());
        self.is_compacted |= header.flags().contains(tbf_format::Flags::IS_COMPACTED);
        self.index |= segment.has(Region::Index);
        self.reverse |= header.has_reverse();
        self.segment_id = self.segment_id.max(header.segment_id());
        if segment.node_count() == 0 {
            return Ok(());
        }
        let dim = if header.has_embeddings() { header.embedding_dim() } else { 0 };
        let dtype = header.embedding_dtype();
        let Some((first, expected, count)) = &self.vectors else {
            self.vectors = Some((input.location().clone(), dtype, dim));
            return Ok(());
        };
        if *count == dim && (dim == 0 || *expected == dtype) {
            return Ok(());
        }
        let text = |dim: u32, dtype: Dtype| format!("{dim} x {dtype:?}").to_ascii_lowercase();
        Err(SegmentError::Vectors {
            location: input.location().clone(),
            found: text(dim, dtype),
            expected: text(*count, *expected),
            first: first.clone(),
        })
    }

    /// The settings of the merged segment.
    fn settings(&self, settings: &SegmentSettings) -> SegmentSettings {
        let is_plain = settings.compression == Compression::None;
        SegmentSettings {
            dtype: self.vectors.as_ref().map_or(settings.dtype, |&(_, dtype, _)| dtype),
            compression: if is_plain { self.compression } else { settings.compression },
            key_id: self.key_id.unwrap_or(settings.key_id),
            index: settings.index || self.index,
            reverse: settings.reverse || self.reverse,
            segment_id: settings.segment_id.max(self.segment_id),
            ..settings.clone()
        }
    }
}

/// The newest node of each id. Of several in one segment it is the first, as a search finds it.
fn newest(
    sources: &[MergeSource],
    key: Option<&Key>,
) -> Result<HashMap<[u8; 16], Place>, SegmentError> {
    let mut places: HashMap<[u8; 16], Place> = HashMap::new();
    for (number, source) in sources.iter().enumerate() {
        let input = source.open()?;
        let segment = input.segment(&[Region::Nodes], key)?;
        let columns = segment.columns().map_err(|error| input.fault(error))?;
        for (row, id) in columns.ids().iter().enumerate() {
            let place = Place { segment: number, row, merged: 0 };
            let found = places.entry(id).or_insert(place);
            if found.segment != number {
                *found = place;
            }
        }
        input.check()?;
    }
    let mut merged = 0_u32;
    for (number, source) in sources.iter().enumerate() {
        let input = source.open()?;
        let segment = input.segment(&[Region::Nodes], key)?;
        let columns = segment.columns().map_err(|error| input.fault(error))?;
        for (row, id) in columns.ids().iter().enumerate() {
            let place = places.get_mut(&id);
            if let Some(place) = place.filter(|place| place.is(number, row)) {
                place.merged = merged;
                // The writer refuses more nodes.
                merged = merged.saturating_add(1);
            }
        }
        input.check()?;
    }
    Ok(places)
}

impl Place {
    fn is(&self, segment: usize, row: usize) -> bool {
        self.segment == segment && self.row == row
    }
}

/// A segment on its way into the merged one.
struct Copy<'a> {
    number: usize,
    input: &'a SegmentInput,
    segment: &'a Segment<'a>,
    places: &'a HashMap<[u8; 16], Place>,
}

impl Copy<'_> {
    fn run(
        &self,
        file: &mut SegmentFile,
        left: &mut Left,
        on_node: &mut dyn FnMut(u64) -> Result<(), SegmentError>,
    ) -> Result<(), SegmentError> {
        let fault = |error| self.input.fault(error);
        let columns = self.segment.columns().map_err(fault)?;
        let vectors = if self.segment.has(Region::Embeddings) {
            Some(self.segment.embeddings().map_err(fault)?)
        } else {
            None
        };
        let strings = if self.segment.has(Region::Strings) {
            Some(self.segment.strings().map_err(fault)?)
        } else {
            None
        };
        let edges = self.segment.outgoing().map_err(fault)?;
        for (row, id) in columns.ids().iter().enumerate() {
            let Some(place) = self.places.get(&id).filter(|place| place.is(self.number, row))
            else {
                left.nodes += 1;
                left.edges += edges.row(row).map_err(fault)?.len() as u64;
                continue;
            };
            let no_row =
                || FormatError::NoRow { row: row as u64, node_count: self.segment.node_count() };
            let absent = || fault(no_row());
            let node = Node {
                id,
                timestamp: columns.timestamps().get(row).ok_or_else(absent)?,
                context_hash: columns.context_hashes().get(row).ok_or_else(absent)?,
                confidence: columns.confidences().get(row).ok_or_else(absent)?,
                outcome: Outcome::from_code(*columns.outcomes().get(row).ok_or_else(absent)?),
                text: strings.map(|strings| strings.row(row)).transpose().map_err(fault)?,
            };
            let vector = vectors.as_ref().map(|vectors| vectors.vector_bytes(row));
            let vector = vector.map_or(Ok(&[][..]), |found| found.ok_or_else(absent))?;
            let merged = file.push_stored(&node, vector)?;
            if merged != place.merged {
                return Err(absent());
            }
            for edge in edges.row(row).map_err(fault)? {
                let target = usize::try_from(edge.target()).ok();
                let target = target.and_then(|target| columns.ids().get(target));
                match target.and_then(|id| self.places.get(&id)) {
                    Some(target) => {
                        file.push_edge(merged, target.merged, edge.relation(), edge.weight());
                    }
                    None => left.edges += 1,
                }
            }
            on_node(file.node_count())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_that_replaces_its_sources_is_synced() {
        let settings = SegmentSettings { sync: false, segment_id: 7, ..SegmentSettings::default() };
        let found = of_compaction(&settings);
        assert!(found.sync && found.overwrite && found.segment_id == 7);
    }
}
