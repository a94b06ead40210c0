//! The index of a video: its frames in order of display, and the packets that hold them.

use crate::container::Container;
use crate::error::{Name, VideoError};
use crate::info::VideoInfo;
use crate::limits::Limits;
use crate::packed::Column;
use crate::packets::Packets;
use crate::read::{ReadAt, Reader};
use crate::{avi, matroska, mp4};

/// The index of the frames of a video, in a few bytes for each.
///
/// ```
/// # let clip = tl_testdata::shipped_bytes!("video/h264_b.mp4");
/// let index = tl_video::VideoIndex::open(&clip[..], &tl_video::Limits::default())?;
/// assert_eq!(index.frame_count(), 40);
/// // The frame that is on display after one second, and the packets that decode it.
/// let frame = index.frame_at(1.0).expect("the video is longer");
/// let plan = index.cost(&[frame])?;
/// assert_eq!(frame, 25);
/// assert_eq!(plan.runs[0].packets, 24..27);
/// # Ok::<(), tl_video::VideoError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoIndex {
    container: Container,
    info: VideoInfo,
    /// Of packets, in the order in which they are decoded.
    offsets: Column,
    sizes: Column,
    pts: Column,
    /// The numbers of packets that start groups.
    keys: Column,
    /// The number of the packet of each frame, in order of display.
    order: Column,
    end_pts: i64,
}

/// A frame of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The time of display, in ticks of the time base.
    pub pts: i64,
    /// The number of the packet that holds the frame.
    pub packet: u64,
}

/// A packet: a coded picture, with hidden ones that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The place in the file.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The time of display, in ticks of the time base. Packets that are not shown have one too: a
    /// decoder's pictures are told apart by it.
    pub pts: i64,
    /// Whether decoding can start here.
    pub is_key: bool,
}

impl VideoIndex {
    /// Makes the index of the first video track of a file: of MP4 and MOV from `moov`, and from
    /// `moof` if the file is fragmented; of AVI from its index; of Matroska and WebM from the
    /// headers of all blocks.
    ///
    /// # Errors
    /// Any [`VideoError`] except `NoFrame`.
    pub fn open(source: &(impl ReadAt + ?Sized), limits: &Limits) -> Result<Self, VideoError> {
        let source: &dyn ReadAt = &source;
        let mut reader = Reader::open(source, limits)?;
        let (info, packets) = match reader.container {
            Container::Mp4 => mp4::read(&mut reader)?,
            Container::Matroska => matroska::read(&mut reader)?,
            Container::Avi => avi::read(&mut reader)?,
        };
        Self::pack(reader.container, info, packets)
    }

    fn pack(container: Container, info: VideoInfo, packets: Packets) -> Result<Self, VideoError> {
        let mut found = packets.found;
        let numbers = (0_u32..).zip(&found);
        let mut order: Vec<u32> =
            numbers.filter(|(_, packet)| packet.is_shown).map(|(number, _)| number).collect();
        let place =
            |number: &u32| found.get(*number as usize).map(|packet| (packet.edit, packet.pts));
        order.sort_by_key(place);
        // Edits may overlap by a frame; times never run backwards.
        let mut latest = i64::MIN;
        for number in &order {
            if let Some(packet) = found.get_mut(*number as usize) {
                packet.pts = packet.pts.max(latest);
                latest = packet.pts;
            }
        }
        let last = order.last().and_then(|number| found.get(*number as usize));
        let Some(last) = last.copied() else {
            let part = "frame that is shown";
            let what = Name::Text("the video track");
            return Err(VideoError::Missing { container, part, what, offset: 0 });
        };
        let keys = (0_i64..).zip(&found).filter(|(_, packet)| packet.is_key);
        Ok(Self {
            container,
            offsets: Column::pack(found.iter().map(|packet| packet.offset.cast_signed())),
            sizes: Column::pack(found.iter().map(|packet| packet.bytes.cast_signed())),
            pts: Column::pack(found.iter().map(|packet| packet.pts)),
            keys: Column::pack(keys.map(|(number, _)| number)),
            order: Column::pack(order.iter().map(|number| i64::from(*number))),
            end_pts: last.pts.saturating_add(last.duration.max(1)),
            info,
        })
    }

    /// The index of these parts, which [`columns`](Self::columns) lists.
    pub(crate) fn from_columns(
        container: Container,
        info: VideoInfo,
        columns: [Column; 5],
        end_pts: i64,
    ) -> Self {
        let [offsets, sizes, pts, keys, order] = columns;
        Self { container, info, offsets, sizes, pts, keys, order, end_pts }
    }

    /// Offsets, sizes and times of packets, the numbers of key packets, and the packets of frames.
    pub(crate) fn columns(&self) -> [&Column; 5] {
        [&self.offsets, &self.sizes, &self.pts, &self.keys, &self.order]
    }

    /// The container of the file.
    pub fn container(&self) -> Container {
        self.container
    }

    /// The properties of the video.
    pub fn info(&self) -> &VideoInfo {
        &self.info
    }

    /// How many frames are shown, at least one.
    pub fn frame_count(&self) -> u64 {
        self.order.len() as u64
    }

    /// How many packets the index has, those included that are decoded and not shown.
    pub fn packet_count(&self) -> u64 {
        self.offsets.len() as u64
    }

    /// A frame by its number in order of display.
    pub fn frame(&self, number: u64) -> Option<Frame> {
        let packet = self.order.get(usize::try_from(number).ok()?)?.cast_unsigned();
        Some(Frame { pts: self.packet_pts(packet)?, packet })
    }

    /// A packet by its number in the order in which packets are decoded.
    pub fn packet(&self, number: u64) -> Option<Packet> {
        let at = usize::try_from(number).ok()?;
        Some(Packet {
            offset: self.offsets.get(at)?.cast_unsigned(),
            bytes: self.sizes.get(at)?.cast_unsigned(),
            pts: self.pts.get(at)?,
            is_key: self.key_before(number) == Some(number),
        })
    }

    /// The time at which the first frame is shown, in ticks of the time base.
    pub fn first_pts(&self) -> i64 {
        self.frame(0).map_or(0, |frame| frame.pts)
    }

    /// The time at which the last frame ends, in ticks of the time base.
    pub fn end_pts(&self) -> i64 {
        self.end_pts
    }

    /// The seconds from the start of the first frame to the end of the last one.
    pub fn duration(&self) -> f64 {
        self.info.time_base.seconds(self.end_pts.saturating_sub(self.first_pts()))
    }

    /// Frames a second, on average.
    pub fn average_fps(&self) -> f64 {
        self.frame_count() as f64 / self.duration()
    }

    /// The number of the frame that is on display at a time: the last one that has started.
    /// `None` before the first frame and after the end of the last one. Ties and rounding are those
    /// of torchcodec's `get_frame_played_at`.
    pub fn frame_at(&self, seconds: f64) -> Option<u64> {
        let base = self.info.time_base;
        let is_inside =
            seconds >= base.seconds(self.first_pts()) && seconds < base.seconds(self.end_pts);
        if !is_inside {
            return None;
        }
        let mut low = 0;
        let mut high = self.frame_count();
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let start = base.seconds(self.frame(middle)?.pts);
            if start <= seconds {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The bytes of memory that the index takes, besides its own size.
    pub fn memory(&self) -> usize {
        let columns: usize = self.columns().iter().map(|column| column.memory()).sum();
        columns + self.info.configuration.capacity() + self.info.codec_name.capacity()
    }

    pub(crate) fn packet_pts(&self, packet: u64) -> Option<i64> {
        self.pts.get(usize::try_from(packet).ok()?)
    }

    pub(crate) fn packet_size(&self, packet: u64) -> Option<u64> {
        Some(self.sizes.get(usize::try_from(packet).ok()?)?.cast_unsigned())
    }

    /// The number of the last packet up to `packet` at which decoding can start.
    pub(crate) fn key_before(&self, packet: u64) -> Option<u64> {
        Some(self.keys.get(self.keys_up_to(packet).checked_sub(1)?)?.cast_unsigned())
    }

    /// The number of the first packet after `packet` at which decoding can start, or that after the
    /// last packet.
    pub(crate) fn key_after(&self, packet: u64) -> u64 {
        self.keys.get(self.keys_up_to(packet)).map_or(self.packet_count(), i64::cast_unsigned)
    }

    /// How many packets up to `packet` are those at which decoding can start.
    fn keys_up_to(&self, packet: u64) -> usize {
        let mut low = 0;
        let mut high = self.keys.len();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.keys.get(middle).is_some_and(|key| key.cast_unsigned() <= packet) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
