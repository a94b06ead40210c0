//! The list of samples that were not what they should have been, and what became of each.

use std::fmt;

use serde::ser::{Serialize, SerializeStruct, Serializer};
use tbl_io::Escaped;
use tl_handoff::sync::Arc;

use crate::error::SampleError;

/// The most samples that are listed; all are counted.
pub(crate) const LISTED: usize = 10_000;

/// A bad sample in the batches that the consumer has received.
///
/// As JSON it is one flat object: `epoch`, `position`, `outcome`, `replacement` if it has one,
/// `sample`, `key`, `shard`, `offset`, `reason`. Names that are not UTF-8 are written with escapes.
#[derive(Clone, Debug)]
pub struct AuditEntry {
    /// The epoch it was to be in.
    pub epoch: u32,
    /// Its position in the order of that epoch, over all ranks.
    pub position: u64,
    /// The sample and its fault.
    pub error: Arc<SampleError>,
    /// The outcome for its row.
    pub outcome: Outcome,
}

/// The outcome of a bad sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// Its epoch ended there.
    Raised,
    /// Its row was left out.
    Skipped,
    /// Its row has this sample instead.
    Replaced {
        /// The sample's number in the data set.
        by: u64,
    },
    /// Its row has zeros.
    Filled,
    /// It is in its row in spite of damage.
    Kept,
}

impl Outcome {
    /// True if the error budget counts it. A kept sample is in its batch, and a raised one ends the
    /// epoch anyway.
    pub(crate) fn is_counted(self) -> bool {
        match self {
            Self::Skipped | Self::Replaced { .. } | Self::Filled => true,
            Self::Raised | Self::Kept => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::Skipped => "skipped",
            Self::Replaced { .. } => "replaced",
            Self::Filled => "filled",
            Self::Kept => "kept",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if let Self::Replaced { by } = self { write!(f, " by {by}") } else { Ok(()) }
    }
}

impl fmt::Display for AuditEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, position, error, outcome } = self;
        write!(f, "epoch {epoch}, position {position}: {error} ({outcome})")
    }
}

impl Serialize for AuditEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SampleError { index, key, shard, offset, fault, .. } = &*self.error;
        let by = if let Outcome::Replaced { by } = self.outcome { Some(by) } else { None };
        let text = |bytes: &[u8]| Escaped(bytes).to_string();
        let mut entry = serializer.serialize_struct("AuditEntry", 9)?;
        entry.serialize_field("epoch", &self.epoch)?;
        entry.serialize_field("position", &self.position)?;
        entry.serialize_field("outcome", self.outcome.name())?;
        match by {
            Some(by) => entry.serialize_field("replacement", &by)?,
            None => entry.skip_field("replacement")?,
        }
        entry.serialize_field("sample", index)?;
        entry.serialize_field("key", &key.as_deref().map(text))?;
        entry.serialize_field("shard", &text(shard.as_os_str().as_encoded_bytes()))?;
        entry.serialize_field("offset", offset)?;
        entry.serialize_field("reason", &fault.to_string())?;
        entry.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::SampleFault;

    #[test]
    fn an_entry_is_one_flat_object_and_one_line() {
        let fault = SampleFault::RawSize { width: 2, height: 3, need: 18, have: 17 };
        let error = Arc::new(SampleError {
            index: 17,
            key: Some(b"a\n\xFF.jpg".to_vec()),
            shard: "train.tar".into(),
            offset: Some(512),
            fault,
            attempts: 1,
        });
        let outcome = Outcome::Replaced { by: 4 };
        let entry = AuditEntry { epoch: 2, position: 31, error, outcome };
        let expected = r#"{"epoch":2,"position":31,"outcome":"replaced","replacement":4,"sample":17,"key":"a\\x0a\\xff.jpg","shard":"train.tar","offset":512,"reason":"raw image of 2x3 has 17 bytes, expected 18"}"#;
        assert_eq!(serde_json::to_string(&entry).unwrap(), expected);
        let skipped = AuditEntry { outcome: Outcome::Skipped, ..entry.clone() };
        let json = serde_json::to_value(&skipped).unwrap();
        assert_eq!((json["outcome"].as_str(), json.get("replacement")), (Some("skipped"), None));
        let text = entry.to_string();
        assert!(text.starts_with("epoch 2, position 31: train.tar: sample 17"), "{text}");
        assert!(text.ends_with("expected 18 (replaced by 4)"), "{text}");
    }
}
