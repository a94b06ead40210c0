//! H.265 by the `rusty_h265` crate, which returns pictures in the order of display. A packet has one
//! picture, which is taken from the pictures that the decoder holds as soon as it is whole.

mod parameters;
mod units;

use rusty_h265::ctu::Ablate;
use rusty_h265::nal::NalHeader;
use rusty_h265::slice::SliceHeader;
use rusty_h265::{Decoder, Picture as Decoded, Plane};

use crate::codec::{Coded, Failure};
use crate::error::{CodecError, Limit};
use crate::info::{Color, FrameTimes};
use crate::limits::{Limits, check};
use crate::picture::{Chroma, Picture};
use crate::plan::MAX_REORDERED;
use parameters::{Parameters, memory, reference_count, unsupported};
use units::Units;

/// A slice of which only the bit is there that it is the first of its picture. The decoder ends the
/// picture before it and then refuses the slice, which changes nothing else.
const END: [u8; 3] = [0x02, 0x01, 0x80];

// Kinds of NAL units.
const SEQUENCE_PARAMETERS: u8 = 33;
const PICTURE_PARAMETERS: u8 = 34;
const END_OF_SEQUENCE: u8 = 36;
const END_OF_STREAM: u8 = 37;

/// The end of a sequence, which a CRA picture with other parameters implies.
const END_UNIT: [u8; 2] = [END_OF_SEQUENCE << 1, 1];

/// Slice segments of a picture, which the largest level that is decoded (6.2) bounds.
const MAX_SEGMENTS: u32 = 600;

/// A decoder of H.265.
pub(crate) struct H265 {
    units: Units,
    parameters: Parameters,
    decoder: Decoder,
    /// Whether the parameter sets of the configuration were passed on.
    is_configured: bool,
    /// Whether the next key picture starts a sequence, whatever its kind: it is the first one, or
    /// follows the end of a sequence.
    is_new: bool,
    /// Whether a sequence has ended before the next picture.
    has_ended: bool,
    /// Whether the last key picture started a sequence: pictures that are shown before it then lack
    /// those that they are made of.
    lacks_leading: bool,
    color: Color,
    /// The number of the packet, by which the decoder marks its picture.
    packet: i64,
    /// Pictures that are held until their order of display is known.
    held: u64,
}

/// The picture of a packet while its slices are passed on.
struct Slices {
    starts_group: bool,
    count: u32,
    /// The header of the last slice, which segments that depend on it share.
    last: SliceHeader,
}

impl std::fmt::Debug for H265 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("H265").field("units", &self.units).finish_non_exhaustive()
    }
}

impl H265 {
    /// The decoder of a video with an `hvcC`, or without one.
    pub(crate) fn new(configuration: &[u8], times: FrameTimes) -> Self {
        let held = if times == FrameTimes::Counted { MAX_REORDERED + 1 } else { 0 };
        Self {
            units: Units::new(configuration),
            parameters: Parameters::default(),
            decoder: decoder(),
            is_configured: false,
            is_new: true,
            has_ended: false,
            lacks_leading: true,
            color: Color::default(),
            packet: 0,
            held,
        }
    }

    /// Forgets all pictures.
    pub(crate) fn restart(&mut self) {
        self.parameters = Parameters::default();
        self.decoder = decoder();
        self.is_configured = false;
        self.is_new = true;
        self.has_ended = false;
        self.lacks_leading = true;
    }

    /// Decodes a packet.
    pub(crate) fn decode(
        &mut self,
        packet: &[u8],
        limits: &Limits,
    ) -> Result<Option<Coded>, Failure> {
        let decoded = self.decode_units(packet, limits);
        if decoded.is_err() {
            // The decoder may hold a picture that is damaged.
            self.restart();
        }
        decoded
    }

    fn decode_units(&mut self, packet: &[u8], limits: &Limits) -> Result<Option<Coded>, Failure> {
        if !self.is_configured {
            for unit in self.units.configuration().map_err(failed)? {
                self.unit(&unit, &mut None, limits)?;
            }
            self.is_configured = true;
        }
        self.packet += 1;
        let missing = self.decoder.stats.generated_refs;
        let mut slices = None;
        for unit in self.units.of(packet).map_err(failed)? {
            self.unit(unit, &mut slices, limits)?;
        }
        let Some(slices) = slices else { return Ok(None) };
        if self.decoder.push_nal(&END, None).is_ok() {
            return Err(failed("the decoder took a slice without content"));
        }
        if self.decoder.stats.generated_refs > missing {
            return Err(failed("a picture that this one refers to is missing"));
        }
        self.take(slices.starts_group)
    }

    /// Passes a NAL unit on.
    fn unit(
        &mut self,
        unit: &[u8],
        slices: &mut Option<Slices>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        let Some(kind) = NalHeader::parse(unit) else {
            return Err(failed("a NAL unit without a header"));
        };
        // Other layers add resolution or views to this one.
        if kind.layer_id != 0 {
            return Ok(());
        }
        match kind.nal_type.id() {
            // Slice segments. Kinds that are reserved are passed over, as are hints.
            0..=9 | 16..=21 => return self.slice(unit, &kind, slices, limits),
            SEQUENCE_PARAMETERS => self.parameters.set_sequence(unit).map_err(failed)?,
            PICTURE_PARAMETERS => self.parameters.set_picture(unit).map_err(failed)?,
            END_OF_SEQUENCE | END_OF_STREAM => {
                self.is_new = true;
                self.has_ended = true;
            }
            _ => return Ok(()),
        }
        self.push(unit, None)
    }

    fn slice(
        &mut self,
        unit: &[u8],
        kind: &NalHeader,
        slices: &mut Option<Slices>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        if kind.nal_type.is_rasl() && self.lacks_leading && !self.is_new {
            return Ok(());
        }
        let previous = slices.as_ref().map(|slices| &slices.last);
        let header = self.parameters.slice(unit, kind, previous).map_err(failed)?;
        match (header.first_slice_segment_in_pic, slices.as_mut()) {
            (true, None) => {
                let continues = self.is_new || self.parameters.same_sequence(&header).is_some();
                if kind.nal_type.is_cra() && !continues {
                    self.unit(&END_UNIT, &mut None, limits)?;
                }
                let starts_group = self.start(kind, &header, limits)?;
                *slices = Some(Slices { starts_group, count: 1, last: header });
                self.push(unit, Some(self.packet))
            }
            (true, Some(_)) => Err(failed("unsupported: a packet with two pictures")),
            (false, None) => Err(failed("a packet without the first slice of its picture")),
            (false, Some(slices)) => {
                slices.count += 1;
                if slices.count > MAX_SEGMENTS {
                    return Err(failed(format!(
                        "unsupported: a picture of more than {MAX_SEGMENTS} slice segments"
                    )));
                }
                if !header.dependent_slice_segment {
                    slices.last = header;
                }
                self.push(unit, None)
            }
        }
    }

    /// Checks a picture before its first slice is passed on. Returns whether all pictures before it
    /// are shown before it.
    fn start(
        &mut self,
        kind: &NalHeader,
        header: &SliceHeader,
        limits: &Limits,
    ) -> Result<bool, Failure> {
        let kind = kind.nal_type;
        if self.is_new && !kind.is_irap() {
            return Err(failed("a picture before the first key picture"));
        }
        let starts = kind.is_idr() || kind.is_bla() || self.is_new;
        if kind.is_irap() {
            self.lacks_leading = starts;
        }
        // Pictures that follow a CRA picture can be shown before it, next to those of the group before.
        let starts_group = kind.is_idr() || kind.is_bla() || self.has_ended;
        self.is_new = false;
        self.has_ended = false;
        let sps = if starts {
            let sps = self.parameters.start_sequence(header).map_err(failed)?;
            if let Some(feature) = unsupported(sps) {
                return Err(failed(format!("unsupported: {feature}")));
            }
            let need = memory(sps, self.held);
            check(Limit::DecoderBytes, limits.max_decoder_bytes, need).map_err(Failure::Limit)?;
            let signal = sps.vui.as_ref();
            // Zero is the matrix of RGB, which has no halved colours: the decoder means that none is
            // stated.
            let matrix = signal.map_or(0, |signal| signal.matrix_coeffs);
            self.color = Color {
                matrix: Color::specified(matrix.into()).filter(|matrix| *matrix != 0),
                full_range: Some(signal.is_some_and(|signal| signal.video_full_range_flag)),
            };
            sps
        } else {
            self.parameters.same_sequence(header).ok_or_else(|| {
                failed("unsupported: parameters that change before the next key picture")
            })?
        };
        let references = header.st_rps.num_delta_pocs() + header.long_term.len();
        let max = reference_count(sps);
        if references as u64 > max.into() {
            return Err(failed(format!("a picture that keeps {references} pictures, of {max}")));
        }
        Ok(starts_group)
    }

    fn push(&mut self, unit: &[u8], packet: Option<i64>) -> Result<(), Failure> {
        self.decoder.push_nal(unit, packet).map_err(|error| failed(error.to_string()))
    }

    /// The picture of the packet. `None` if it is not to be shown.
    fn take(&mut self, starts_group: bool) -> Result<Option<Coded>, Failure> {
        // The same pictures in the order of display.
        while self.decoder.next_frame().is_ok() {}
        let last = self.decoder.dpb().last();
        let Some(entry) = last.filter(|entry| entry.pts == Some(self.packet)) else {
            return Err(failed("the decoder does not hold the picture of the packet"));
        };
        if !entry.output_flag {
            return Ok(None);
        }
        let picture = picture_of(&entry.pic, self.color)
            .ok_or_else(|| failed("a picture that is smaller than its frame"))?;
        Ok(Some(Coded { picture, order: entry.poc.into(), starts_group }))
    }
}

/// A decoder that the environment does not change.
fn decoder() -> Decoder {
    let mut decoder = Decoder::new();
    decoder.ablate = Ablate::default();
    decoder
}

fn picture_of(decoded: &Decoded, color: Color) -> Option<Picture> {
    let (left, top, width, height) = decoded.crop;
    let is_deep = decoded.bit_depth_luma > 8;
    let [y, u, v] = &decoded.planes;
    let luma = Area { left, top, width, height };
    let colour = luma.halved();
    Some(Picture {
        width: u32::try_from(width).ok()?,
        height: u32::try_from(height).ok()?,
        bit_depth: decoded.bit_depth_luma,
        chroma: Chroma::Yuv420,
        color,
        planes: [luma.of(y, is_deep)?, colour.of(u, is_deep)?, colour.of(v, is_deep)?],
    })
}

/// The part of a plane that is shown.
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Area {
    /// The part of a plane of half the width and height. All numbers are even.
    fn halved(&self) -> Self {
        Self {
            left: self.left / 2,
            top: self.top / 2,
            width: self.width / 2,
            height: self.height / 2,
        }
    }

    /// The samples, of one or two bytes.
    fn of(&self, plane: &Plane, is_deep: bool) -> Option<Vec<u8>> {
        let bytes = self.width * self.height * if is_deep { 2 } else { 1 };
        let mut samples = Vec::with_capacity(bytes);
        for y in self.top..self.top + self.height {
            let row = plane.data.get(y * plane.stride..)?.get(self.left..self.left + self.width)?;
            if is_deep {
                samples.extend(row.iter().flat_map(|sample| sample.to_le_bytes()));
            } else {
                samples.extend(row.iter().map(|sample| sample.to_le_bytes()[0]));
            }
        }
        Some(samples)
    }
}

fn failed(reason: impl Into<String>) -> Failure {
    Failure::Codec(CodecError { codec: "H.265", reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clip: its configuration, and its packets.
    struct Clip {
        configuration: Vec<u8>,
        packets: Vec<Vec<u8>>,
    }

    impl Clip {
        fn of(bytes: &[u8]) -> Self {
            let index = crate::VideoIndex::open(bytes, &Limits::default()).unwrap();
            let packets = (0..index.packet_count()).map(|number| index.packet(number).unwrap());
            let bytes_of = |packet: crate::Packet| {
                let start = usize::try_from(packet.offset).unwrap();
                bytes[start..][..usize::try_from(packet.bytes).unwrap()].to_vec()
            };
            Self {
                configuration: index.info().configuration.clone(),
                packets: packets.map(bytes_of).collect(),
            }
        }

        /// A clip of 96x64 with key pictures in packets 0, 10 and 19, of which the last has a picture
        /// that is stored after it and shown before it. A packet has one slice.
        fn open() -> Self {
            Self::of(tl_testdata::shipped_bytes!("video/hevc.mp4"))
        }

        /// A clip of 98x66 with closed groups, whose packets have two slices.
        fn closed() -> Self {
            Self::of(tl_testdata::shipped_bytes!("video/hevc_10_bits.mkv"))
        }

        fn decoder(&self) -> H265 {
            H265::new(&self.configuration, FrameTimes::Stored)
        }

        /// Units with start codes and the parameter sets before them.
        fn units(&self, packet: usize) -> Vec<Vec<u8>> {
            let units = Units::new(&self.configuration);
            let mut all = units.configuration().unwrap();
            let of_packet = units.of(&self.packets[packet]).unwrap();
            all.extend(of_packet.into_iter().map(<[u8]>::to_vec));
            all
        }
    }

    /// Units with lengths of four bytes.
    fn packet_of(units: &[Vec<u8>]) -> Vec<u8> {
        let sized = |unit: &Vec<u8>| {
            let size = u32::try_from(unit.len()).unwrap().to_be_bytes();
            [&size[..], unit].concat()
        };
        units.iter().flat_map(sized).collect()
    }

    fn decode(decoder: &mut H265, packet: &[u8]) -> Option<Coded> {
        decoder.decode(packet, &Limits::default()).unwrap()
    }

    fn error(decoder: &mut H265, packet: &[u8]) -> String {
        match decoder.decode(packet, &Limits::default()) {
            Err(Failure::Codec(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_has_its_own_picture_at_once() {
        let clip = Clip::open();
        let mut decoder = clip.decoder();
        let orders = clip.packets.iter().take(10).map(|packet| {
            let coded = decode(&mut decoder, packet).unwrap();
            assert_eq!((coded.picture.width, coded.picture.height), (96, 64));
            coded.order
        });
        // The times of the packets, in frames.
        assert_eq!(orders.collect::<Vec<_>>(), [0, 3, 2, 1, 5, 4, 6, 9, 8, 7]);
    }

    #[test]
    fn leading_pictures_need_the_group_before() {
        let clip = Clip::open();
        let mut decoder = clip.decoder();
        assert!(!decode(&mut decoder, &clip.packets[19]).unwrap().starts_group);
        assert!(decode(&mut decoder, &clip.packets[20]).is_none());
        assert!(decode(&mut decoder, &clip.packets[21]).is_some());
        // In sequence it has its picture.
        let mut decoder = clip.decoder();
        let decoded: Vec<_> =
            clip.packets[..21].iter().map(|packet| decode(&mut decoder, packet)).collect();
        assert!(decoded[20].is_some());
        assert!(decoded[0].as_ref().unwrap().starts_group);
        // After the end of a sequence a key picture starts a group, whatever its kind.
        let mut units = clip.units(19);
        units.insert(0, END_UNIT.to_vec());
        let mut decoder = clip.decoder();
        decode(&mut decoder, &clip.packets[0]).unwrap();
        assert!(decode(&mut decoder, &packet_of(&units)).unwrap().starts_group);
        assert!(decode(&mut decoder, &clip.packets[20]).is_none());
    }

    #[test]
    fn packets_without_their_pictures_are_refused_by_name() {
        let clip = Clip::open();
        let mut decoder = clip.decoder();
        let early = error(&mut decoder, &clip.packets[1]);
        assert_eq!(early, "H.265: a picture before the first key picture");
        let twice = clip.packets[..2].concat();
        let twice = error(&mut decoder, &twice);
        assert_eq!(twice, "H.265: unsupported: a packet with two pictures");
        decode(&mut decoder, &clip.packets[0]).unwrap();
        // The picture of packet 1 is not there.
        let missing = error(&mut decoder, &clip.packets[2]);
        assert_eq!(missing, "H.265: a picture that this one refers to is missing");
        let short = &clip.packets[0][..50];
        let short = error(&mut decoder, short);
        assert_eq!(short, "H.265: the NAL unit at byte 0 of the packet is longer than it");
        let other = H265::new(&[], FrameTimes::Stored);
        let unknown = error(&mut { other }, &[0, 0, 1, 0x28, 1, 0xAF, 9, 9]);
        assert_eq!(unknown, "H.265: invalid data: slice refers to unknown PPS 0");
    }

    #[test]
    fn slices_belong_to_one_picture() {
        let clip = Clip::closed();
        let units = clip.units(0);
        let sets = units.len() - 2;
        let mut decoder = clip.decoder();
        let without = packet_of(&units[sets + 1..]);
        let without = error(&mut decoder, &without);
        assert_eq!(without, "H.265: a packet without the first slice of its picture");
        let mut many = units.clone();
        many.extend(std::iter::repeat_n(units[sets + 1].clone(), 600));
        let many = error(&mut decoder, &packet_of(&many));
        assert_eq!(many, "H.265: unsupported: a picture of more than 600 slice segments");
        // Units of other layers, and those that are reserved, are passed over.
        let mut others = units;
        others.insert(sets, vec![0x03, 0x01, 9]);
        others.insert(sets, vec![22 << 1, 1, 9]);
        let coded = decode(&mut decoder, &packet_of(&others)).unwrap();
        assert_eq!(coded.picture, decode(&mut clip.decoder(), &clip.packets[0]).unwrap().picture);
        let headless = error(&mut decoder, &[0, 0, 0, 1, 0x42]);
        assert_eq!(headless, "H.265: a NAL unit without a header");
    }

    #[test]
    fn parameters_change_at_key_pictures_alone() {
        let open = Clip::open();
        let closed = Clip::closed();
        let mut decoder = open.decoder();
        for packet in &open.packets[..4] {
            decode(&mut decoder, packet).unwrap();
        }
        let other = decode(&mut decoder, &packet_of(&closed.units(0))).unwrap().picture;
        assert_eq!((other.width, other.height, other.bit_depth), (98, 66, 10));
        for packet in &closed.packets[1..] {
            decode(&mut decoder, packet).unwrap();
        }
        // The high tier.
        let changed = |packet| {
            let mut units = open.units(packet);
            let sps = units.iter_mut().find(|unit| unit[0] == SEQUENCE_PARAMETERS << 1).unwrap();
            sps[3] |= 0x20;
            packet_of(&units)
        };
        let mut decoder = open.decoder();
        decode(&mut decoder, &open.packets[0]).unwrap();
        assert_eq!(
            error(&mut decoder, &changed(1)),
            "H.265: unsupported: parameters that change before the next key picture"
        );
        // The decoder can be used afterwards.
        assert!(decode(&mut decoder, &open.packets[0]).is_some());
        // A key picture in an open group ends the sequence with them, and what leads it is lost.
        assert!(decode(&mut decoder, &changed(19)).unwrap().starts_group);
        assert!(decode(&mut decoder, &open.packets[20]).is_none());
    }

    #[test]
    fn what_the_parameters_ask_for_is_charged() {
        let clip = Clip::open();
        let mut decoder = clip.decoder();
        let limits = Limits { max_decoder_bytes: 1000, ..Limits::default() };
        for held in [0, MAX_REORDERED + 1] {
            decoder.held = held;
            // 128x64 samples, with which four other pictures are kept: ten pictures of three bytes and
            // a little motion, those that were returned, and notes.
            let notes = 8192 * 2 + 512 * 37 + 32 * 128;
            let bytes = (8192 * 3 + 32 * 24) * 10 + 8192 * 3 * (1 + held) + notes;
            match decoder.decode(&clip.packets[0], &limits) {
                Err(Failure::Limit(error)) => assert_eq!(
                    error.to_string(),
                    format!("limit exceeded: max_decoder_bytes is 1000, this file needs {bytes}")
                ),
                other => panic!("{other:?}"),
            }
        }
    }
}
