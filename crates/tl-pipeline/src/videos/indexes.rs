//! The indexes of videos, read or made when a video is first opened, and kept.

use std::collections::{BTreeMap, HashMap};

use tl_handoff::sync::{Arc, Mutex, lock};
use tl_video::VideoIndex;

use crate::clips::VideoId;
use crate::error::SampleFault;

/// Bytes that an entry takes besides what its index says.
const ENTRY: usize = 256;

/// The indexes that were used last. They follow from the files alone, so that which of them are kept
/// changes no clip.
#[derive(Debug, Default)]
pub(crate) struct VideoIndexes {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By video, with the time of the last use.
    indexes: HashMap<VideoId, Used>,
    /// The videos in the order of their last use.
    uses: BTreeMap<u64, VideoId>,
    /// Counts uses.
    now: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Used {
    at: u64,
    index: Arc<VideoIndex>,
}

impl VideoIndexes {
    pub(crate) fn new(most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self { most, kept: Mutex::default() }
    }

    /// The index of a video, which `open` reads or makes if it is not kept.
    pub(super) fn get(
        &self,
        video: VideoId,
        open: impl FnOnce() -> Result<VideoIndex, SampleFault>,
    ) -> Result<Arc<VideoIndex>, SampleFault> {
        if let Some(index) = lock(&self.kept).get(video) {
            return Ok(index);
        }
        let index = Arc::new(open()?);
        lock(&self.kept).put(video, &index, self.most);
        Ok(index)
    }
}

impl Kept {
    fn get(&mut self, video: VideoId) -> Option<Arc<VideoIndex>> {
        let used = self.indexes.get_mut(&video)?;
        self.uses.remove(&used.at);
        self.now += 1;
        used.at = self.now;
        self.uses.insert(self.now, video);
        Some(Arc::clone(&used.index))
    }

    fn put(&mut self, video: VideoId, index: &Arc<VideoIndex>, most: usize) {
        let need = bytes_of(index);
        if need > most || self.indexes.contains_key(&video) {
            return;
        }
        while self.bytes + need > most {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            if let Some(used) = self.indexes.remove(&oldest) {
                self.bytes -= bytes_of(&used.index);
            }
        }
        self.bytes += need;
        self.now += 1;
        self.indexes.insert(video, Used { at: self.now, index: Arc::clone(index) });
        self.uses.insert(self.now, video);
    }
}

fn bytes_of(index: &VideoIndex) -> usize {
    index.memory() + size_of::<VideoIndex>() + ENTRY
}

#[cfg(test)]
mod tests {
    use tl_video::Limits;

    use super::*;

    #[test]
    fn the_indexes_that_were_used_last_are_kept() {
        let file = tl_testdata::shipped!("video/h264_b.mp4");
        let video = std::fs::read(file).unwrap();
        let limits = Limits::default();
        let open =
            || -> Result<_, SampleFault> { Ok(VideoIndex::open(&video[..], &limits).unwrap()) };
        let index = Arc::new(open().unwrap());
        let videos = VideoIndexes::new(3 * bytes_of(&index) as u64);
        let id = |number| VideoId { shard: 0, number };
        let has = |number| lock(&videos.kept).indexes.contains_key(&id(number));
        for sample in 0..3 {
            assert_eq!(*videos.get(id(sample), open).unwrap(), *index);
        }
        videos.get(id(0), open).unwrap();
        videos.get(id(7), open).unwrap();
        assert_eq!([0, 1, 2, 7].map(has), [true, false, true, true]);
        assert_eq!(lock(&videos.kept).bytes, 3 * bytes_of(&index));
        let none = VideoIndexes::new(1);
        none.get(id(0), open).unwrap();
        assert!(lock(&none.kept).indexes.is_empty());
    }
}
