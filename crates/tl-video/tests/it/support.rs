//! The clips of `testdata/video`, and what FFmpeg finds in them.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tl_video::{Limits, VideoError, VideoIndex};

/// A clip and its expectations.
pub(crate) struct Clip {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Value,
}

impl Clip {
    pub(crate) fn all() -> Vec<Self> {
        let expected = fs::read(folder().join("expected.json")).unwrap();
        let expected: serde_json::Map<String, Value> = serde_json::from_slice(&expected).unwrap();
        let clip = |(name, expected): (String, Value)| {
            let bytes = fs::read(folder().join(&name)).unwrap();
            Self { name, bytes, expected }
        };
        expected.into_iter().map(clip).collect()
    }

    pub(crate) fn of(name: &str) -> Self {
        Self::all().into_iter().find(|clip| clip.name == name).unwrap()
    }

    pub(crate) fn index(&self) -> VideoIndex {
        open(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub(crate) fn is_avi(&self) -> bool {
        self.name.ends_with(".avi")
    }
}

pub(crate) fn open(bytes: &[u8]) -> Result<VideoIndex, VideoError> {
    VideoIndex::open(bytes, &Limits::default())
}

fn folder() -> PathBuf {
    tl_testdata::shipped!("video")
}
