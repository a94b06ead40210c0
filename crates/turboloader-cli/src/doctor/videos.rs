//! Videos: what their frames cost, and what shorter groups of pictures would make of it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tl_pipeline::Dataset;
use tl_video::VideoIndex;
use turboloader::sheet::evenly_spaced;
use turboloader::video::VideoBytes;

use crate::data_set::Sample;
use crate::failure::Failure;
use crate::figures::rounded;

/// Goes up with every change that a reader of the JSON could stumble over.
const SCHEMA: &str = "tl.doctor.videos/1";

/// Videos whose index is read.
const LOOKED_AT: usize = 200;

/// The packets that a random frame takes where every second one starts a group, as LeRobot encodes.
const PACKETS_OF_SHORT_GROUPS: f64 = 1.5;

/// Groups are long if a random frame takes this many times the packets of short ones.
const LONG: f64 = 2.0;

/// The figures of the videos of a data set.
#[derive(Debug, Default, Serialize)]
pub(super) struct VideoFindings {
    schema: &'static str,
    videos: u64,
    /// Videos whose index was read.
    looked_at: u64,
    /// Of these, those that cannot be read.
    bad: u64,
    frames: u64,
    seconds: f64,
    codecs: BTreeMap<String, u64>,
    /// Packets of the longest group.
    longest_group: u64,
    /// Packets that are decoded for a random frame, itself included.
    decoded_per_frame: f64,
    /// Bytes that are read for it.
    bytes_per_frame: f64,
    advice: Option<String>,
}

impl VideoFindings {
    /// Looks at the indexes of some videos of a data set; `None` if its first sample is not a video.
    pub(super) fn look(dataset: &Dataset) -> Result<Option<Self>, Failure> {
        // A first sample that cannot be read is among the findings on other data sets.
        let is_image = dataset.facts(0).is_ok_and(|facts| facts.format.is_image());
        if is_image || !is_video(dataset, 0).unwrap_or(false) {
            return Ok(None);
        }
        let mut findings = Self { schema: SCHEMA, videos: dataset.len(), ..Self::default() };
        let mut packets = 0.0;
        let mut bytes = 0.0;
        for sample in evenly_spaced(dataset.len(), LOOKED_AT) {
            findings.looked_at += 1;
            let Ok(index) = open(dataset, sample) else {
                findings.bad += 1;
                continue;
            };
            let cost = index.frame_cost();
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            let frames = index.frame_count() as f64;
            packets += cost.mean_packets * frames;
            bytes += cost.mean_bytes * frames;
            findings.frames += index.frame_count();
            findings.seconds += index.duration();
            findings.longest_group = findings.longest_group.max(index.groups().longest);
            *findings.codecs.entry(index.info().codec.to_string()).or_default() += 1;
        }
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let frames = findings.frames.max(1) as f64;
        findings.seconds = rounded(findings.seconds, 3);
        findings.decoded_per_frame = rounded(packets / frames, 2);
        findings.bytes_per_frame = rounded(bytes / frames, 0);
        findings.advice = advice(packets / frames);
        Ok(Some(findings))
    }
}

/// The advice for videos of which a random frame takes this many packets.
fn advice(packets: f64) -> Option<String> {
    let times = packets / PACKETS_OF_SHORT_GROUPS;
    (times >= LONG).then(|| {
        format!(
            "groups of pictures are long: a random frame decodes {:.1} others on average; with a key \
             frame every 2nd frame (ffmpeg -g 2) it decodes 0.5, {times:.1} times fewer pictures in \
             all, from larger files",
            packets - 1.0
        )
    })
}

/// Whether a sample begins as a video does.
fn is_video(dataset: &Dataset, sample: u64) -> Result<bool, Failure> {
    let Sample { source, local, .. } = Sample::of(dataset, sample)?;
    if let Some(video) = VideoBytes::of_sample(source, local)? {
        return Ok(video.is_video()?);
    }
    let mut bytes = Vec::new();
    dataset.read_into(sample, &mut bytes)?;
    Ok(turboloader::video::is_video(&bytes))
}

fn open(dataset: &Dataset, sample: u64) -> Result<VideoIndex, Failure> {
    let Sample { source, local, .. } = Sample::of(dataset, sample)?;
    if let Some(video) = VideoBytes::of_sample(source, local)? {
        return Ok(video.index()?);
    }
    let mut bytes = Vec::new();
    dataset.read_into(sample, &mut bytes)?;
    let index = VideoIndex::open(&bytes, &tl_video::Limits::default());
    index.map_err(|error| Failure::data(format_args!("{}: {error}", source.location())))
}

impl fmt::Display for VideoFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { videos, looked_at, bad, frames, seconds, codecs, .. } = self;
        writeln!(f, "videos    {videos}, {looked_at} of them looked at")?;
        if *bad > 0 {
            writeln!(f, "          {bad} could not be read (tl verify --decode names them)")?;
        }
        let codecs: Vec<_> =
            codecs.iter().map(|(codec, count)| format!("{codec} {count}")).collect();
        writeln!(f, "codecs    {}", codecs.join(", "))?;
        writeln!(f, "frames    {frames} in {seconds:.1} s")?;
        writeln!(f, "groups    of up to {} pictures", self.longest_group)?;
        writeln!(
            f,
            "random    a frame decodes {:.1} others on average; {:.1} KB read",
            self.decoded_per_frame - 1.0,
            self.bytes_per_frame / 1e3
        )?;
        match &self.advice {
            Some(advice) => write!(f, "\n{advice}"),
            None => write!(f, "\ngroups of pictures are short enough for random frames"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn long_groups_are_named_with_the_ratio_that_follows() {
        assert_eq!(advice(1.5), None);
        assert_eq!(advice(2.9), None);
        let text = advice(61.5).unwrap();
        assert!(text.contains("decodes 60.5 others on average"), "{text}");
        assert!(text.contains("it decodes 0.5, 41.0 times fewer pictures"), "{text}");
    }
}
