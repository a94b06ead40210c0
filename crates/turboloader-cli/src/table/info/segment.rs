//! The output of `tl info` for a TBF segment.

use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use tbf_format::{Compression, Dialect, FileHeader, Flags, FormatError, Oddity, Region, Segment};
use turboloader::DateTime;
use uuid::Uuid;

use super::idv::aligned;
use crate::failure::Failure;
use crate::info::counts::row;
use crate::table::{SegmentFile, dtype_name, oddity_text};
use crate::text::{json_text, printable};

/// Everything that header and footer of a segment say.
#[derive(Debug, Serialize)]
pub(super) struct SegmentFacts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    dialect: &'static str,
    segment_id: u64,
    /// Nanoseconds since 1970.
    created_at: u64,
    nodes: u64,
    edges: u64,
    /// `null` without vectors.
    embeddings: Option<EmbeddingFacts>,
    flags: Vec<&'static str>,
    /// Whether the segment was not written to its end.
    partial: bool,
    compression: &'static str,
    encrypted: bool,
    /// The writer's name for the key, as hexadecimal digits; `null` without encryption.
    key_id: Option<String>,
    file_bytes: u64,
    /// Empty for a partial segment, of which only the header counts.
    regions: Vec<RegionFacts>,
    /// Oddities that had to be tolerated.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct EmbeddingFacts {
    dim: u32,
    dtype: &'static str,
    /// Bytes from one vector to the next.
    stride: u64,
}

#[derive(Debug, Serialize)]
struct RegionFacts {
    region: String,
    offset: u64,
    stored_bytes: u64,
    bytes: u64,
    compression: &'static str,
    encrypted: bool,
}

const FLAGS: [(Flags, &str); 6] = [
    (Flags::HAS_OUTCOMES, "has_outcomes"),
    (Flags::HAS_EMBEDDINGS, "has_embeddings"),
    (Flags::IS_COMPACTED, "is_compacted"),
    (Flags::IS_ENCRYPTED, "is_encrypted"),
    (Flags::IS_PARTIAL, "is_partial"),
    (Flags::HAS_REVERSE, "has_reverse"),
];

impl SegmentFacts {
    /// Looks at header and footer. A segment that was not written to its end has an answer too.
    pub(super) fn collect(file: &SegmentFile) -> Result<Self, Failure> {
        let bytes = file.bytes()?;
        let segment = match Segment::open(bytes) {
            Ok(segment) => Some(segment),
            Err(FormatError::Partial) => None,
            Err(error) => return Err(file.failure(error)),
        };
        let header = FileHeader::parse(bytes).map_err(|error| file.failure(error))?;
        let mut facts = Self::of_header(file, header, bytes.len() as u64);
        if let Some(segment) = segment {
            facts.edges = segment.edge_count();
            facts.key_id = segment.key_id().map(|id| Uuid::from_bytes(id).simple().to_string());
            facts.regions = regions(&segment);
            // The first line of the facts says the dialect.
            let odd = segment.oddities().filter(|oddity| *oddity != Oddity::ReferenceDialect);
            facts.notes = odd.map(|oddity| oddity_text(&oddity)).collect();
        }
        file.check_unchanged()?;
        Ok(facts)
    }

    fn of_header(file: &SegmentFile, header: &FileHeader, file_bytes: u64) -> Self {
        let dim = header.embedding_dim();
        let dtype = header.embedding_dtype();
        let flags = header.flags();
        let embeddings = header.has_embeddings().then(|| EmbeddingFacts {
            dim,
            dtype: dtype_name(dtype),
            stride: dtype.stride(dim),
        });
        Self {
            schema: "tl.info.tbf/1",
            path: json_text(file.path().as_os_str().as_bytes()).into_owned(),
            kind: "tbf",
            dialect: match header.dialect() {
                Dialect::Reference => "reference",
                Dialect::Published | _ => "published",
            },
            segment_id: header.segment_id(),
            created_at: header.created_at(),
            nodes: header.node_count(),
            edges: header.edge_count(),
            embeddings,
            flags: FLAGS.iter().filter(|(flag, _)| flags.contains(*flag)).map(|f| f.1).collect(),
            partial: flags.contains(Flags::IS_PARTIAL),
            compression: compression_name(header.compression()),
            encrypted: header.dialect() == Dialect::Published
                && flags.contains(Flags::IS_ENCRYPTED),
            key_id: None,
            file_bytes,
            regions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether the segment was not written to its end.
    pub(super) fn is_partial(&self) -> bool {
        self.partial
    }
}

fn regions(segment: &Segment<'_>) -> Vec<RegionFacts> {
    let all = [Region::Header].into_iter().chain(Region::DATA).chain([Region::Footer]);
    let facts = all.filter_map(|region| {
        let stored = segment.stored(region)?;
        Some(RegionFacts {
            region: region.to_string(),
            offset: stored.offset,
            stored_bytes: stored.stored_bytes,
            bytes: stored.bytes,
            compression: compression_name(stored.compression),
            encrypted: stored.is_encrypted,
        })
    });
    facts.collect()
}

fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
        _ => "other",
    }
}

impl fmt::Display for SegmentFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        row(f, "kind", self.kind)?;
        row(f, "dialect", self.dialect)?;
        if self.partial {
            row(f, "partial", "yes: the segment was not written to its end")?;
        }
        if (self.segment_id, self.created_at) != (0, 0) {
            row(f, "segment id", self.segment_id)?;
            row(f, "created", format_args!("{}Z", DateTime::from_unix(self.created_at)))?;
        }
        row(f, "nodes", self.nodes)?;
        row(f, "edges", self.edges)?;
        match &self.embeddings {
            None => row(f, "embeddings", "none")?,
            Some(EmbeddingFacts { dim, dtype, stride }) => {
                row(f, "embeddings", format_args!("{dim} x {dtype}, every {stride} bytes"))?;
            }
        }
        if !self.flags.is_empty() {
            row(f, "flags", self.flags.join(", "))?;
        }
        row(f, "compression", self.compression)?;
        if self.encrypted {
            row(f, "encryption", "AES-256-GCM")?;
            if let Some(key_id) = &self.key_id {
                write!(f, ", key id {key_id}")?;
            }
        }
        row(f, "file", self.file_bytes)?;
        for note in &self.notes {
            row(f, "note", note)?;
        }
        if self.regions.is_empty() {
            return Ok(());
        }
        let heading = ["region", "offset", "stored", "bytes", "compression", "encrypted"];
        let mut lines = vec![heading.map(str::to_owned)];
        lines.extend(self.regions.iter().map(|region| {
            [
                region.region.clone(),
                region.offset.to_string(),
                region.stored_bytes.to_string(),
                region.bytes.to_string(),
                region.compression.to_owned(),
                if region.encrypted { "yes" } else { "no" }.to_owned(),
            ]
        }));
        f.write_str("\n")?;
        aligned(f, &lines, [false, true, true, true, false, false])
    }
}
