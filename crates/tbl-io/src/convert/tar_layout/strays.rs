//! Files that readers pass over: hidden ones, and among images those that look like no sample.

use std::collections::HashSet;

use tbl_format::SampleFormat;

use super::{base_of, group_of};
use crate::grouping::{is_hidden, join_base, last_extension, split_base};
use crate::sample::Field;

/// Counts the samples that readers pass over, by the rule of
/// [`Grouping::new`](crate::grouping::Grouping::new).
#[derive(Debug, Default)]
pub(super) struct Strays {
    hidden: u64,
    has_image: bool,
    /// Extensions of files next to images, in lower case.
    next_to_images: HashSet<Vec<u8>>,
    /// The extensions of each sample without an image.
    without_image: Vec<Vec<Vec<u8>>>,
}

impl Strays {
    /// Takes in the sample called `name` with these fields.
    pub(super) fn add(&mut self, name: &[u8], fields: &[Field]) {
        if name.split(|&byte| byte == b'/').any(is_hidden) {
            self.hidden += 1;
            return;
        }
        let fields = fields.iter().map(|field| join_base(group_of(name), &field.extension));
        let files: Vec<Vec<u8>> = std::iter::once(name.to_vec()).chain(fields).collect();
        let extension = |file: &Vec<u8>| split_base(base_of(file)).1.to_ascii_lowercase();
        if !files.iter().any(|file| SampleFormat::from_file_name(file).is_image()) {
            self.without_image.push(files.iter().map(extension).collect());
            return;
        }
        self.has_image = true;
        for file in &files {
            // `cat.0.txt` next to `cat.0.jpg` has the extension `txt`.
            let last = last_extension(base_of(file)).to_ascii_lowercase();
            for extension in [extension(file), last] {
                if !self.next_to_images.contains(&extension) {
                    self.next_to_images.insert(extension);
                }
            }
        }
    }

    /// The samples that readers pass over.
    pub(super) fn count(&self) -> u64 {
        let is_known = |extension: &Vec<u8>| self.next_to_images.contains(extension);
        let is_sample = |files: &&Vec<Vec<u8>>| files.len() > 1 && files.iter().all(is_known);
        let samples = self.without_image.iter().filter(is_sample).count();
        let strays =
            if self.has_image { self.without_image.len() - samples } else { self.among_videos() };
        self.hidden + strays as u64
    }

    /// The samples that readers pass over because others are videos, where none is an image.
    fn among_videos(&self) -> usize {
        let has_video = |sample: &&Vec<Vec<u8>>| {
            sample.iter().any(|extension| SampleFormat::is_video_name(&join_base(b"", extension)))
        };
        let next_to_videos: HashSet<&Vec<u8>> =
            self.without_image.iter().filter(has_video).flatten().collect();
        if next_to_videos.is_empty() {
            return 0;
        }
        let is_sample = |sample: &&Vec<Vec<u8>>| {
            let is_known = |extension| next_to_videos.contains(extension);
            has_video(sample) || (sample.len() > 1 && sample.iter().all(is_known))
        };
        self.without_image.len() - self.without_image.iter().filter(is_sample).count()
    }
}
