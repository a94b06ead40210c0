//! The decoder of frames: carries out plans over the packets of a file.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::codec::{Codec, Coded, Failure};
use crate::error::{CodecError, Limit, VideoError};
use crate::index::{Packet, VideoIndex};
use crate::info::{Color, FrameTimes};
use crate::limits::{Limits, check};
use crate::picture::Picture;
use crate::plan::{DecodePlan, MAX_REORDERED, Run};
use crate::read::ReadAt;

/// A decoder of the frames of one video, with its buffers and its state between runs.
///
/// ```
/// use tl_video::{FrameDecoder, Limits, VideoIndex};
///
/// # let clip = tl_testdata::shipped_bytes!("video/h264_b.mp4");
/// let limits = Limits::default();
/// let index = VideoIndex::open(&clip[..], &limits)?;
/// let mut decoder = FrameDecoder::new(&index, &limits)?;
/// let plan = index.cost(&[3, 17])?;
/// let mut frames = Vec::new();
/// decoder.decode(&index, &plan, &clip[..], &mut |frame, picture| {
///     assert_eq!((picture.width, picture.height), (96, 64));
///     frames.push(frame);
/// })?;
/// assert_eq!(frames, [3, 17]);
/// # Ok::<(), tl_video::VideoError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    limits: Limits,
    codec: Codec,
    /// The colours as the container states them.
    color: Color,
    packet: Vec<u8>,
    /// The packets that the state of the codec is the result of.
    decoded: Option<Range<u64>>,
}

/// The reason why a run stopped.
enum Stop {
    Failed(VideoError),
    Replaced,
    /// The run starts in an open group, and pictures before its key picture are wanted or cannot be
    /// told from those after it. The key picture before has this packet.
    OpenGroup(u64),
}

impl From<VideoError> for Stop {
    fn from(error: VideoError) -> Self {
        Self::Failed(error)
    }
}

impl FrameDecoder {
    /// A decoder of the frames of `index`.
    ///
    /// # Errors
    /// [`VideoError::NoDecoder`] for a codec that is not decoded.
    pub fn new(index: &VideoIndex, limits: &Limits) -> Result<Self, VideoError> {
        let info = index.info();
        let container = index.container();
        let no_decoder = || VideoError::NoDecoder {
            container,
            codec: info.codec,
            name: info.codec_name.clone(),
        };
        let codec = Codec::of(info, limits).ok_or_else(no_decoder)?;
        let color = info.color;
        Ok(Self { limits: *limits, codec, color, packet: Vec::new(), decoded: None })
    }

    /// Decodes a plan of `index`, for which the decoder was made, and passes each frame that is kept
    /// to `sink`, with its number. Frames of a run arrive in the order in which they are decoded.
    ///
    /// Packets that the run before has decoded are not decoded again, where that gives the same
    /// frames.
    ///
    /// # Errors
    /// [`VideoError::Read`], [`Decode`](VideoError::Decode), [`NoPicture`](VideoError::NoPicture),
    /// [`TooManyPictures`](VideoError::TooManyPictures) and
    /// [`LimitExceeded`](VideoError::LimitExceeded). The decoder can be used afterwards.
    pub fn decode(
        &mut self,
        index: &VideoIndex,
        plan: &DecodePlan,
        source: &(impl ReadAt + ?Sized),
        sink: &mut dyn FnMut(u64, Picture),
    ) -> Result<(), VideoError> {
        self.check_pictures(plan.packet_count())?;
        for run in &plan.runs {
            let mut wanted = Wanted::new(index, run)?;
            let mut packets = run.packets.clone();
            let mut earlier = packets.start.checked_sub(1).and_then(|last| index.key_before(last));
            loop {
                match self.run(index, &packets, earlier, &source, &mut wanted, sink) {
                    Ok(()) => break,
                    Err(Stop::Replaced) => wanted.restart(packets.start),
                    Err(Stop::OpenGroup(key)) => {
                        packets.start = key;
                        earlier = None;
                        self.check_pictures(packets.end - packets.start)?;
                        wanted.restart(packets.start);
                    }
                    Err(Stop::Failed(error)) => {
                        self.decoded = None;
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn check_pictures(&self, need: u64) -> Result<(), VideoError> {
        let max = self.limits.max_pictures;
        if need > max { Err(VideoError::TooManyPictures { need, max }) } else { Ok(()) }
    }

    /// Decodes packets. `earlier` is the key picture at which to start instead if the group is open.
    fn run(
        &mut self,
        index: &VideoIndex,
        packets: &Range<u64>,
        earlier: Option<u64>,
        source: &dyn ReadAt,
        wanted: &mut Wanted,
        sink: &mut dyn FnMut(u64, Picture),
    ) -> Result<(), Stop> {
        let is_counted = index.info().times == FrameTimes::Counted;
        let first = wanted.first_packet();
        let is_usable = |decoded: &Range<u64>| {
            let reach = decoded.start..=first.min(decoded.end);
            !is_counted && reach.contains(&packets.start) && decoded.end <= first
        };
        let kept = self.decoded.take().filter(is_usable);
        if kept.is_none() {
            self.codec.restart();
        }
        let start = kept.as_ref().map_or(packets.start, |kept| kept.start);
        let from = kept.map_or(packets.start, |kept| kept.end);
        let start_pts = index.packet_pts(start).unwrap_or(i64::MIN);
        // Of the key picture of an open group, while pictures before it can follow.
        let mut key_order: Option<i64> = None;
        for number in from..packets.end {
            let Some(packet) = index.packet(number) else { break };
            self.read(source, &packet)?;
            // Pictures before the first one of an open group lack those that they are made of.
            let is_leading = packet.pts < start_pts || key_order.is_some();
            let decoded = self.decode_packet();
            // Without its order, a picture without its group is taken for one before the key picture only
            // where nothing comes before.
            if key_order.is_some()
                && let (Ok(None) | Err(Failure::Codec(_)), Some(key)) = (&decoded, earlier)
            {
                return Err(Stop::OpenGroup(key));
            }
            let coded = match decoded {
                Ok(coded) => coded,
                Err(Failure::Replaced) => return Err(Stop::Replaced),
                Err(Failure::Limit(error)) => return Err(error.into()),
                // A decoder that refuses them can lack them afterwards, if others refer to them.
                Err(Failure::Codec(_)) if is_leading && self.codec.replace() => {
                    return Err(Stop::Replaced);
                }
                Err(Failure::Codec(_)) if is_leading => None,
                Err(Failure::Codec(source)) => {
                    let offset = packet.offset;
                    return Err(VideoError::Decode { packet: number, offset, source }.into());
                }
            };
            match coded {
                Some(coded) if is_counted => {
                    let is_open = number == packets.start && number > 0 && !coded.starts_group;
                    if let Some(key) = earlier
                        && is_open
                        && wanted.may_lead()
                    {
                        return Err(Stop::OpenGroup(key));
                    }
                    let key = if is_open { Some(coded.order) } else { key_order };
                    let may_lead =
                        |key: &i64| coded.order <= *key && (is_open || !coded.starts_group);
                    key_order = key.filter(may_lead);
                    wanted.count(coded, sink);
                }
                None if key_order.is_some() => wanted.skip(),
                Some(coded) => wanted.show(number, coded.picture, sink),
                None if wanted.has(number) || (is_counted && !is_leading) => {
                    let offset = packet.offset;
                    return Err(VideoError::NoPicture { packet: number, offset }.into());
                }
                None => {}
            }
        }
        wanted.drain(sink);
        if is_counted && wanted.passed < wanted.packets.len() {
            let packet = packets.end - 1;
            let offset = index.packet(packet).map_or(0, |packet| packet.offset);
            return Err(VideoError::NoPicture { packet, offset }.into());
        }
        self.decoded = Some(start..packets.end);
        Ok(())
    }

    fn read(&mut self, source: &dyn ReadAt, packet: &Packet) -> Result<(), VideoError> {
        let bytes = packet.bytes;
        check(Limit::PacketBytes, self.limits.max_packet_bytes, bytes)?;
        self.packet.resize(usize::try_from(bytes).unwrap_or(usize::MAX), 0);
        let read = source.read_exact_at(packet.offset, &mut self.packet);
        read.map_err(|source| VideoError::Read { offset: packet.offset, bytes, source })
    }

    /// Decodes the packet that was read. A panic of the decoders of H.264, H.265 and VP9 is an error of the
    /// packet; one of rav1d, whose functions are those of a C library, ends the process.
    fn decode_packet(&mut self) -> Result<Option<Coded>, Failure> {
        let codec = &mut self.codec;
        let name = codec.name();
        let packet = &self.packet;
        let limits = &self.limits;
        let decoded = catch_unwind(AssertUnwindSafe(|| codec.decode(packet, limits)));
        let failed = |reason: &str| {
            Err(Failure::Codec(CodecError { codec: name, reason: reason.to_owned() }))
        };
        match decoded {
            Ok(Ok(Some(coded))) if !coded.picture.is_whole() => failed("planes of another size"),
            Ok(Ok(Some(mut coded))) => {
                coded.picture.color = codec.colors(coded.picture.color, self.color);
                Ok(Some(coded))
            }
            Ok(other) => other,
            Err(_) => {
                codec.restart();
                failed("the decoder panicked")
            }
        }
    }
}

/// The frames of a run that are kept.
#[derive(Debug)]
struct Wanted {
    /// The packets of the frames with their numbers, in the order in which they are decoded.
    packets: Vec<(u64, u64)>,
    /// How many frames `sink` has already.
    passed: usize,
    /// How many frames were decoded, if a run is decoded anew.
    seen: usize,
    /// Pictures whose place in the order of display is not known yet.
    held: Vec<Coded>,
    /// The number of the next frame of a video whose frames are counted.
    frame: u64,
    /// The packet at which decoding starts: that of the run, or one before.
    start: u64,
    run_start: u64,
}

impl Wanted {
    fn new(index: &VideoIndex, run: &Run) -> Result<Self, VideoError> {
        let mut packets = Vec::with_capacity(run.frames.len());
        for frame in &run.frames {
            let no_frame = VideoError::NoFrame { frame: *frame, count: index.frame_count() };
            packets.push((index.frame(*frame).ok_or(no_frame)?.packet, *frame));
        }
        packets.sort_unstable();
        let start = run.packets.start;
        let held = Vec::new();
        Ok(Self { packets, passed: 0, seen: 0, held, frame: start, start, run_start: start })
    }

    /// Begins anew at a packet.
    fn restart(&mut self, start: u64) {
        self.seen = 0;
        self.held.clear();
        self.start = start;
        self.frame = start;
    }

    /// Whether a frame can be one that is shown before the key picture of the run, which needs the
    /// group before. All pictures of that group are shown before it.
    fn may_lead(&self) -> bool {
        self.start == self.run_start && self.first_packet() < self.start + MAX_REORDERED
    }

    /// Counts a picture that is not wanted and has no picture: it lacks those before the run.
    fn skip(&mut self) {
        self.frame += 1;
    }

    fn first_packet(&self) -> u64 {
        self.packets.first().map_or(0, |(packet, _)| *packet)
    }

    fn has(&self, packet: u64) -> bool {
        self.packets.binary_search_by_key(&packet, |(packet, _)| *packet).is_ok()
    }

    /// Passes the picture of a packet on, if it is kept.
    fn show(&mut self, packet: u64, picture: Picture, sink: &mut dyn FnMut(u64, Picture)) {
        let found = self.packets.binary_search_by_key(&packet, |(packet, _)| *packet);
        let Some((_, frame)) = found.ok().and_then(|at| self.packets.get(at)) else { return };
        self.seen += 1;
        if self.seen > self.passed {
            self.passed = self.seen;
            sink(*frame, picture);
        }
    }

    /// Holds a picture until the order of display up to it is known.
    fn count(&mut self, coded: Coded, sink: &mut dyn FnMut(u64, Picture)) {
        if coded.starts_group {
            self.drain(sink);
        }
        let after = self.held.partition_point(|held| held.order <= coded.order);
        self.held.insert(after, coded);
        if self.held.len() as u64 > MAX_REORDERED {
            let first = self.held.remove(0);
            self.show_next(first, sink);
        }
    }

    fn drain(&mut self, sink: &mut dyn FnMut(u64, Picture)) {
        for held in std::mem::take(&mut self.held) {
            self.show_next(held, sink);
        }
    }

    fn show_next(&mut self, coded: Coded, sink: &mut dyn FnMut(u64, Picture)) {
        // Where frames are counted, the number of a frame is that of a packet.
        let frame = self.frame;
        self.frame += 1;
        self.show(frame, coded.picture, sink);
    }
}
