//! A segment that is being written.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tbf_format::{
    BuildOptions, Compression, Dtype, Encryption, Key, Node, Relation, SegmentBuilder,
    SegmentWriteError, SegmentWriter,
};
use tbl_io::{AtomicFile, Location, Placement};

use super::error::SegmentError;

/// The settings of a segment to be written.
#[derive(Clone, Debug)]
pub struct SegmentSettings {
    /// The type of stored vector components. Default: `f32`.
    pub dtype: Dtype,
    /// The compression of regions that become smaller. Default: none.
    pub compression: Compression,
    /// The key of an encrypted segment. Default: no encryption. An encrypted segment is in memory
    /// until it is complete.
    pub key: Option<Key>,
    /// A name for the key, stored in the segment. Default: zeros.
    pub key_id: [u8; 16],
    /// Whether to add trees over ids and timestamps. Default: yes.
    pub index: bool,
    /// Whether to add the edges by target. Default: no.
    pub reverse: bool,
    /// A number for the segment. Default: 0.
    pub segment_id: u64,
    /// The time of creation in nanoseconds since 1970. Default: now.
    pub created_at: Option<u64>,
    /// Whether to replace the destination if it exists. Default: no.
    pub overwrite: bool,
    /// Whether to wait until the data is on the disk. Default: yes.
    pub sync: bool,
}

impl Default for SegmentSettings {
    fn default() -> Self {
        Self {
            dtype: Dtype::F32,
            compression: Compression::None,
            key: None,
            key_id: [0; 16],
            index: true,
            reverse: false,
            segment_id: 0,
            created_at: None,
            overwrite: false,
            sync: true,
        }
    }
}

impl SegmentSettings {
    /// The key with a nonce that no other segment has.
    fn encryption(&self, location: &Location) -> Result<Option<Encryption>, SegmentError> {
        let Some(key) = self.key.clone() else { return Ok(None) };
        let mut nonce = [0; 11];
        getrandom::fill(&mut nonce).map_err(|error| SegmentError::Random {
            location: location.clone(),
            message: error.to_string(),
        })?;
        Ok(Some(Encryption { key, key_id: self.key_id, nonce }))
    }
}

/// The result of writing a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentSummary {
    /// Nodes of the segment.
    pub nodes: u64,
    /// Edges of the segment.
    pub edges: u64,
    /// Size of the file.
    pub file_bytes: u64,
}

/// A segment under construction, which appears under its name when it is
/// [finished](Self::finish). Dropping it discards the file.
///
/// Memory holds about 40 bytes of each node, its text, and 16 bytes of each edge; vectors go to the
/// file as they come. With a key all of the segment is in memory.
///
/// ```
/// use turboloader::{NodeOutcome, SegmentFile, SegmentNode, SegmentSettings};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("nodes.tbf");
/// let mut file = SegmentFile::create(&path, &SegmentSettings::default(), 2)?;
/// let node = SegmentNode {
///     id: [1; 16],
///     timestamp: 0,
///     context_hash: 0,
///     confidence: 1.0,
///     outcome: NodeOutcome::Pending,
///     text: Some("first"),
/// };
/// file.push(&node, &[0.5, -0.5])?;
/// assert_eq!(file.finish()?.nodes, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentFile {
    draft: AtomicFile,
    location: Location,
    sink: Sink,
    is_synced: bool,
    nodes: u64,
    edges: u64,
}

/// The destination of nodes.
#[derive(Debug)]
enum Sink {
    File(Box<SegmentWriter<BufWriter<File>>>),
    /// Of an encrypted segment, whose tags cover counts that are known at the end.
    Memory(Box<SegmentBuilder>),
}

impl SegmentFile {
    /// Starts the segment that will be called `path`, with vectors of `dim` components; 0 for none.
    ///
    /// # Errors
    /// [`SegmentError::Write`] if the file exists or the system refuses; [`SegmentError::Random`].
    pub fn create(path: &Path, settings: &SegmentSettings, dim: u32) -> Result<Self, SegmentError> {
        Self::create_as(path, settings, dim, false)
    }

    /// As [`create`](Self::create), of the result of a merge if `is_compacted`.
    pub(super) fn create_as(
        path: &Path,
        settings: &SegmentSettings,
        dim: u32,
        is_compacted: bool,
    ) -> Result<Self, SegmentError> {
        let location = Location::new(path);
        let refused = |source| SegmentError::Write { location: location.clone(), source };
        let placement = Placement { overwrite: settings.overwrite, sync: settings.sync };
        let draft = AtomicFile::create(path, placement).map_err(refused)?;
        let encryption = settings.encryption(&location)?;
        let is_encrypted = encryption.is_some();
        let options = BuildOptions {
            segment_id: settings.segment_id,
            created_at: settings.created_at.unwrap_or_else(now),
            dim,
            dtype: settings.dtype,
            is_compacted,
            index: settings.index,
            reverse: settings.reverse,
            compression: settings.compression,
            encryption,
        };
        let sink = if is_encrypted {
            Sink::Memory(Box::new(SegmentBuilder::new(options)))
        } else {
            let file = draft.file().try_clone().map_err(refused)?;
            let writer = SegmentWriter::new(BufWriter::new(file), options)
                .map_err(|error| SegmentError::write(&location, error))?;
            Sink::File(Box::new(writer))
        };
        Ok(Self { draft, location, sink, is_synced: settings.sync, nodes: 0, edges: 0 })
    }

    /// Adds a node with its vector and returns its row.
    ///
    /// # Errors
    /// [`SegmentError::Build`] for a vector of another length, a component that its type cannot hold
    /// or too many nodes, and then the node is not added; [`SegmentError::Write`].
    pub fn push(&mut self, node: &Node<'_>, vector: &[f32]) -> Result<u32, SegmentError> {
        let row = match &mut self.sink {
            Sink::File(writer) => writer.push(node, vector),
            Sink::Memory(builder) => builder.push(node, vector).map_err(SegmentWriteError::from),
        };
        self.added(row)
    }

    /// Adds a node with a vector as another segment stores it and returns its row.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_stored(&mut self, node: &Node<'_>, vector: &[u8]) -> Result<u32, SegmentError> {
        let row = match &mut self.sink {
            Sink::File(writer) => writer.push_stored(node, vector),
            Sink::Memory(builder) => {
                builder.push_stored(node, vector).map_err(SegmentWriteError::from)
            }
        };
        self.added(row)
    }

    fn added(&mut self, row: Result<u32, SegmentWriteError>) -> Result<u32, SegmentError> {
        let row = row.map_err(|error| SegmentError::write(&self.location, error))?;
        self.nodes += 1;
        Ok(row)
    }

    /// Adds an edge. Its nodes may be added later.
    pub fn push_edge(&mut self, source: u32, target: u32, relation: Relation, weight: f32) {
        match &mut self.sink {
            Sink::File(writer) => writer.push_edge(source, target, relation, weight),
            Sink::Memory(builder) => builder.push_edge(source, target, relation, weight),
        }
        self.edges += 1;
    }

    /// Nodes so far.
    #[must_use]
    pub fn node_count(&self) -> u64 {
        self.nodes
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// [`SegmentError::Build`] for an edge from or to a node that does not exist and for an id that
    /// two nodes have; [`SegmentError::Write`]. No file is left then.
    pub fn finish(self) -> Result<SegmentSummary, SegmentError> {
        self.finish_if(|| Ok(()))
    }

    /// As [`finish`](Self::finish), if `is_wanted` agrees when all is written.
    pub(super) fn finish_if(
        self,
        is_wanted: impl FnOnce() -> Result<(), SegmentError>,
    ) -> Result<SegmentSummary, SegmentError> {
        let Self { draft, location, sink, is_synced, nodes, edges } = self;
        match sink {
            Sink::File(writer) => {
                let written = writer.finish(|_| Ok(()));
                written.map_err(|error| SegmentError::write(&location, error))?;
            }
            Sink::Memory(builder) => {
                write_whole(*builder, draft.file())
                    .map_err(|error| SegmentError::write(&location, error))?;
            }
        }
        let refused = |source| SegmentError::Write { location: location.clone(), source };
        let file_bytes = draft.file().metadata().map_err(refused)?.len();
        if is_synced {
            // Waiting for the disk takes long, and what is wanted may change meanwhile.
            draft.file().sync_all().map_err(refused)?;
        }
        is_wanted()?;
        draft.commit().map_err(refused)?;
        Ok(SegmentSummary { nodes, edges, file_bytes })
    }
}

fn write_whole(builder: SegmentBuilder, file: &File) -> Result<(), SegmentWriteError> {
    let segment = builder.finish()?;
    segment.write_draft(BufWriter::new(file))?;
    segment.complete(file)?;
    Ok(())
}

/// Nanoseconds since 1970; 0 for clocks that are set before.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
