//! Writing a segment whose vectors go out as they come, so that memory does not hold them.

use alloc::vec::Vec;
use std::io::{self, Seek, SeekFrom, Write};

use super::encoded::Part;
use super::{BuildOptions, Node, SegmentBuilder};
use crate::build_error::BuildError;
use crate::checksum::RunningCrc;
use crate::codec;
use crate::edges::Relation;
use crate::header::{Fields, FileHeader, Flags};
use crate::region::Region;

/// The reason why a segment cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SegmentWriteError {
    /// The input does not form a segment.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The destination failed.
    #[error("writing the segment: {source}")]
    Io {
        #[from]
        source: io::Error,
    },
    /// Encrypted regions are bound to a header that is only known at the end.
    #[error("streamed vectors cannot be encrypted")]
    Encryption,
    /// An earlier error left the segment incomplete.
    #[error("the segment cannot be continued after an error")]
    Failed,
}

/// Writes a segment, its vectors first and as they come.
///
/// Memory holds the other columns, the texts and the edges until the end, about 40 bytes for each
/// node and 16 for each edge, and one block of vectors. What is written is marked as partial until
/// it is complete. [`SegmentBuilder`] has the whole segment in memory, in the published order.
///
/// ```
/// use std::io::Cursor;
///
/// use tbf_format::{BuildOptions, Node, Outcome, Segment, SegmentWriter};
///
/// let options = BuildOptions { dim: 3, ..BuildOptions::default() };
/// let mut writer = SegmentWriter::new(Cursor::new(Vec::new()), options)?;
/// let node = Node {
///     id: [1; 16],
///     timestamp: 1000,
///     context_hash: 0,
///     confidence: 1.0,
///     outcome: Outcome::Success,
///     text: None,
/// };
/// writer.push(&node, &[1.0, 0.0, 0.0])?;
/// // A file would be synced here.
/// let file = writer.finish(|_| Ok(()))?.into_inner();
/// assert_eq!(Segment::open(&file)?.node_count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentWriter<W> {
    sink: W,
    /// The offset of the segment in the destination.
    start: u64,
    /// Everything but the vectors that are written.
    builder: SegmentBuilder,
    raw: RunningCrc,
    stored: RunningCrc,
    blocks: Vec<u8>,
    failed: bool,
}

impl<W: Write + Seek> SegmentWriter<W> {
    /// Starts a segment where `sink` stands.
    ///
    /// # Errors
    /// [`SegmentWriteError::Encryption`], [`BuildError::Unsupported`], [`SegmentWriteError::Io`].
    pub fn new(mut sink: W, options: BuildOptions) -> Result<Self, SegmentWriteError> {
        if options.encryption.is_some() {
            return Err(SegmentWriteError::Encryption);
        }
        if let Some(feature) = codec::missing_feature(options.compression) {
            return Err(BuildError::Unsupported { feature }.into());
        }
        let start = sink.stream_position()?;
        let nothing = FileHeader::new(&Fields {
            segment_id: options.segment_id,
            created_at: options.created_at,
            node_count: 0,
            edge_count: 0,
            embedding_dim: options.dim,
            embedding_dtype: options.dtype,
            compression: options.compression,
            flags: Flags::NONE,
            offsets: [0; Region::DATA.len()],
            footer_offset: 0,
        });
        sink.write_all(&nothing.partial().to_bytes())?;
        let builder = SegmentBuilder::new(options);
        let raw = RunningCrc::new();
        let stored = RunningCrc::new();
        Ok(Self { sink, start, builder, raw, stored, blocks: Vec::new(), failed: false })
    }

    /// Adds a node with its vector and returns its row.
    ///
    /// # Errors
    /// As for [`SegmentBuilder::push`], and then the node is not added; [`SegmentWriteError::Io`],
    /// after which the segment cannot be finished.
    pub fn push(&mut self, node: &Node<'_>, vector: &[f32]) -> Result<u32, SegmentWriteError> {
        self.add(|builder| builder.push(node, vector))
    }

    /// Adds a node with a vector as another segment stores it and returns its row.
    ///
    /// # Errors
    /// As for [`SegmentBuilder::push_stored`], and then the node is not added;
    /// [`SegmentWriteError::Io`], after which the segment cannot be finished.
    pub fn push_stored(
        &mut self,
        node: &Node<'_>,
        vector: &[u8],
    ) -> Result<u32, SegmentWriteError> {
        self.add(|builder| builder.push_stored(node, vector))
    }

    /// Adds a node and writes whole blocks of vectors.
    fn add(
        &mut self,
        push: impl FnOnce(&mut SegmentBuilder) -> Result<u32, BuildError>,
    ) -> Result<u32, SegmentWriteError> {
        if self.failed {
            return Err(SegmentWriteError::Failed);
        }
        let row = push(&mut self.builder)?;
        let have = self.builder.vectors.len();
        let whole = have - have % codec::BLOCK_BYTES as usize;
        self.failed = true;
        self.write_vectors(whole)?;
        self.failed = false;
        Ok(row)
    }

    /// Adds an edge. Its nodes may be added later.
    pub fn push_edge(&mut self, source: u32, target: u32, relation: Relation, weight: f32) {
        self.builder.push_edge(source, target, relation, weight);
    }

    /// Writes what is left, lets `sync` bring it to the disk, and takes the mark of a partial
    /// segment away. Hands back the destination, after the segment.
    ///
    /// # Errors
    /// As for [`SegmentBuilder::finish`]; [`SegmentWriteError::Io`], [`SegmentWriteError::Failed`].
    pub fn finish(
        mut self,
        sync: impl FnOnce(&mut W) -> io::Result<()>,
    ) -> Result<W, SegmentWriteError> {
        if self.failed {
            return Err(SegmentWriteError::Failed);
        }
        self.write_vectors(self.builder.vectors.len())?;
        let stored_bytes = self.stored.bytes();
        let written = FileHeader::SIZE as u64 + stored_bytes;
        let compression = self.builder.options.compression;
        let vectors = Part::written(Region::Embeddings, compression, self.raw, self.stored);
        let vectors = (stored_bytes > 0).then_some(vectors);
        let segment = self.builder.encode(vectors)?;
        segment.write_regions(&mut self.sink, written)?;
        self.sink.flush()?;
        sync(&mut self.sink)?;
        self.sink.seek(SeekFrom::Start(self.start))?;
        self.sink.write_all(&segment.header().to_bytes())?;
        self.sink.seek(SeekFrom::Start(self.start + segment.byte_len()))?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// Writes the first `count` bytes of the vectors that are in memory.
    fn write_vectors(&mut self, count: usize) -> io::Result<()> {
        let Some(raw) = self.builder.vectors.get(..count).filter(|raw| !raw.is_empty()) else {
            return Ok(());
        };
        self.raw.update(raw);
        self.blocks.clear();
        let stored =
            if codec::append_blocks(&mut self.blocks, raw, self.builder.options.compression) {
                &self.blocks
            } else {
                raw
            };
        self.stored.update(stored);
        self.sink.write_all(stored)?;
        self.builder.vectors.drain(..count);
        Ok(())
    }
}
