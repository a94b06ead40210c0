//! The decoders that are measured, each with its buffers, as a loader would keep them.

use std::io::Cursor;

use tl_benches::paired::{Contender, Workload};
use tl_decode::{Image, Level, Limits, WebpDecoder, WebpRequest};

use crate::work::Job;

/// Everyone who can do `workload`; libwebp, which the ratios refer to, comes first.
pub(crate) fn contenders(workload: &Workload<Job>) -> Vec<Box<dyn Contender<Job>>> {
    let has_regions = workload.jobs.iter().any(|job| job.region.is_some());
    let mut found: Vec<Box<dyn Contender<Job>>> = Vec::new();
    #[cfg(feature = "libwebp")]
    {
        found.push(Box::new(peer::LibWebp::new(&workload.jobs, "libwebp 1.6")));
        if has_regions {
            found.push(Box::new(peer::LibWebp::new(&workload.jobs, peer::CROPPING)));
        }
    }
    // The scalar level is for tests alone.
    let levels = Level::available().skip(1);
    found.extend(levels.map(|level| Box::new(Ours::new(level)) as Box<dyn Contender<Job>>));
    if !has_regions {
        found.push(Box::new(ImageWebp::default()));
    }
    found
}

/// How many jobs our decoder does otherwise than libwebp, at any level; without libwebp, than the
/// crate `image-webp`. A crop has to have the pixels of the whole image.
pub(crate) fn differing(workload: &Workload<Job>) -> usize {
    let mut ours: Vec<Ours> = Level::available().map(Ours::new).collect();
    #[cfg(feature = "libwebp")]
    let mut reference = peer::LibWebp::new(&workload.jobs, "libwebp 1.6");
    #[cfg(not(feature = "libwebp"))]
    let mut reference = ImageWebp::default();
    let mut agrees = |job: &Job| {
        let pixels = cut(reference.decode(job), job);
        ours.iter_mut().all(|ours| ours.decode(job) == pixels)
    };
    workload.jobs.iter().filter(|job| !agrees(job)).count()
}

/// What `job` asks for of the whole image.
fn cut(whole: &[u8], job: &Job) -> Vec<u8> {
    let Some(region) = job.region else { return whole.to_vec() };
    let rows = whole.chunks(job.size.0 as usize * 3);
    let rows = rows.skip(region.y as usize).take(region.height as usize);
    rows.flat_map(|row| &row[region.x as usize * 3..][..region.width as usize * 3])
        .copied()
        .collect()
}

/// This repository's decoder.
struct Ours {
    name: String,
    decoder: WebpDecoder,
    image: Image,
}

impl Ours {
    fn new(level: Level) -> Self {
        let decoder = WebpDecoder::new(Limits::default()).with_level(level);
        Self { name: format!("here, {level}"), decoder, image: Image::new() }
    }
}

impl Contender<Job> for Ours {
    fn name(&self) -> &str {
        &self.name
    }

    fn decode(&mut self, job: &Job) -> &[u8] {
        let request = WebpRequest { region: job.region, ..WebpRequest::default() };
        self.decoder.decode(&job.bytes, &request, &mut self.image).expect("a photograph");
        &self.image.data
    }
}

/// The crate `image-webp`, which decodes whole files.
#[derive(Default)]
struct ImageWebp {
    out: Vec<u8>,
}

impl Contender<Job> for ImageWebp {
    fn name(&self) -> &str {
        "image-webp 0.2"
    }

    fn decode(&mut self, job: &Job) -> &[u8] {
        let mut decoder =
            image_webp::WebPDecoder::new(Cursor::new(&job.bytes)).expect("a photograph");
        self.out.resize(decoder.output_buffer_size().expect("a size that fits"), 0);
        decoder.read_image(&mut self.out).expect("a photograph");
        &self.out
    }
}

#[cfg(feature = "libwebp")]
mod peer {
    //! libwebp 1.6, on one thread.

    use tl_benches::libwebp;
    use tl_benches::paired::Contender;
    use tl_simd::resample::Rect;

    use crate::work::Job;

    /// With libwebp's own cropping, which other programs seldom use.
    pub(super) const CROPPING: &str = "libwebp 1.6, cropping";

    pub(super) struct LibWebp {
        name: &'static str,
        out: Vec<u8>,
    }

    impl LibWebp {
        /// With room for the largest of `jobs`.
        pub(super) fn new(jobs: &[Job], name: &'static str) -> Self {
            let pixels = jobs.iter().map(|job| job.size.0 as usize * job.size.1 as usize).max();
            Self { name, out: vec![0; pixels.unwrap_or(0) * 3] }
        }
    }

    impl Contender<Job> for LibWebp {
        fn name(&self) -> &str {
            self.name
        }

        fn decode(&mut self, job: &Job) -> &[u8] {
            let region = job.region.filter(|_| self.name == CROPPING).map(even);
            let written = libwebp::decode(&job.bytes, job.size, region, &mut self.out);
            &self.out[..written]
        }
    }

    /// The region from even edges on, which libwebp decodes for it.
    fn even(region: Rect) -> Rect {
        let Rect { x, y, width, height } = region;
        Rect { x: x & !1, y: y & !1, width: width + (x & 1), height: height + (y & 1) }
    }
}
