//! The decoders that are measured, each with its buffers, as a loader would keep them.

use tl_benches::paired::{Contender, Workload};
use tl_decode::{Image, JpegDecoder, JpegRequest, Limits, RowIndex, Scale};
use zune_jpeg::zune_core::bytestream::ZCursor;

use crate::work::Job;

/// Our decoder with the row indexes of the jobs.
const BY_INDEX: &str = "here, with row index";

/// Everyone who can do `workload`; libjpeg-turbo, which the ratios refer to, comes first.
pub(crate) fn contenders(workload: &Workload<Job>) -> Vec<Box<dyn Contender<Job>>> {
    let mut found: Vec<Box<dyn Contender<Job>>> = Vec::new();
    #[cfg(feature = "libjpeg-turbo")]
    found.push(Box::new(peer::LibjpegTurbo::new(&workload.jobs)));
    found.push(Box::new(Ours::new("here")));
    if workload.jobs.iter().any(|job| !job.index.is_empty()) {
        found.push(Box::new(Ours::new(BY_INDEX)));
    }
    if workload.jobs.iter().all(|job| job.eighths == 8 && job.region.is_none()) {
        found.push(Box::new(ZuneJpeg::default()));
        found.push(Box::new(JpegDecoderCrate::default()));
    }
    found
}

/// How many jobs our decoder does otherwise than it should: libjpeg-turbo's pixels, or of a crop
/// the pixels of the whole image, as libjpeg-turbo's own crops differ at their left edge.
/// A fast wrong answer is no result.
pub(crate) fn differing(workload: &Workload<Job>) -> usize {
    let mut ours = Ours::new("here");
    let mut by_index = Ours::new(BY_INDEX);
    let mut whole = Ours::new("here");
    #[cfg(feature = "libjpeg-turbo")]
    let mut reference = peer::LibjpegTurbo::new(&workload.jobs);
    let mut agrees = |job: &Job| match job.region {
        Some(region) => {
            let pixels = whole.decode(&job.without_region());
            let stride = job.size.0 as usize * 3;
            let width = region.width as usize * 3;
            let rows = pixels.chunks(stride).skip(region.y as usize).take(region.height as usize);
            rows.map(|row| &row[region.x as usize * 3..][..width])
                .eq(ours.decode(job).chunks(width))
                && ours.image.data == by_index.decode(job)
        }
        #[cfg(feature = "libjpeg-turbo")]
        None => ours.decode(job) == reference.decode(job),
        #[cfg(not(feature = "libjpeg-turbo"))]
        None => !ours.decode(job).is_empty(),
    };
    workload.jobs.iter().filter(|job| !agrees(job)).count()
}

/// This repository's decoder.
struct Ours {
    name: &'static str,
    decoder: JpegDecoder,
    image: Image,
}

impl Ours {
    fn new(name: &'static str) -> Self {
        Self { name, decoder: JpegDecoder::new(Limits::default()), image: Image::new() }
    }
}

impl Contender<Job> for Ours {
    fn name(&self) -> &str {
        self.name
    }

    fn decode(&mut self, job: &Job) -> &[u8] {
        let scale = match job.eighths {
            1 => Scale::EIGHTH,
            2 => Scale::QUARTER,
            4 => Scale::HALF,
            _ => Scale::FULL,
        };
        let index = (self.name == BY_INDEX && !job.index.is_empty())
            .then(|| RowIndex::parse(&job.index).expect("it was just made"));
        let request = JpegRequest { scale, region: job.region, index, ..JpegRequest::default() };
        self.decoder.decode(&job.bytes, &request, &mut self.image).expect("a photograph");
        &self.image.data
    }
}

#[derive(Default)]
struct ZuneJpeg {
    out: Vec<u8>,
}

impl Contender<Job> for ZuneJpeg {
    fn name(&self) -> &str {
        "zune-jpeg 0.5"
    }

    fn decode(&mut self, job: &Job) -> &[u8] {
        let mut decoder = zune_jpeg::JpegDecoder::new(ZCursor::new(job.bytes.as_slice()));
        decoder.decode_headers().expect("a photograph");
        self.out.resize(decoder.output_buffer_size().expect("headers are read"), 0);
        decoder.decode_into(&mut self.out).expect("a photograph");
        &self.out
    }
}

/// The crate `jpeg-decoder`, which always allocates its result.
#[derive(Default)]
struct JpegDecoderCrate {
    out: Vec<u8>,
}

impl Contender<Job> for JpegDecoderCrate {
    fn name(&self) -> &str {
        "jpeg-decoder 0.3"
    }

    fn decode(&mut self, job: &Job) -> &[u8] {
        let mut decoder = jpeg_decoder::Decoder::new(job.bytes.as_slice());
        self.out = decoder.decode().expect("a photograph");
        &self.out
    }
}

#[cfg(feature = "libjpeg-turbo")]
mod peer {
    //! libjpeg-turbo 3.1 with its assembly.

    use tl_benches::libjpeg_turbo;
    use tl_benches::paired::Contender;

    use crate::work::Job;

    pub(super) struct LibjpegTurbo {
        decoder: libjpeg_turbo::LibjpegTurbo,
        out: Vec<u8>,
    }

    impl LibjpegTurbo {
        /// With room for the largest of `jobs`.
        pub(super) fn new(jobs: &[Job]) -> Self {
            let pixels = jobs.iter().map(|job| job.size.0 as usize * job.size.1 as usize).max();
            let out = vec![0; pixels.unwrap_or(0) * 3];
            Self { decoder: libjpeg_turbo::LibjpegTurbo::new(), out }
        }
    }

    impl Contender<Job> for LibjpegTurbo {
        fn name(&self) -> &str {
            "libjpeg-turbo 3.1"
        }

        fn decode(&mut self, job: &Job) -> &[u8] {
            let written = self.decoder.decode(&job.bytes, job.eighths, job.region, &mut self.out);
            &self.out[..written]
        }
    }
}
