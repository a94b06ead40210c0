//! The scans of a frame, one after the other, into its planes.

use tl_simd::Level;

use super::entropy_data::EntropyData;
use super::frame::{Frame, PlaneColor, Process};
use super::geometry::Geometry;
use super::header::Reader;
use super::index::RowIndex;
use super::marker;
use super::progressive::{Grid, Progressive};
use super::request::{Decoded, JpegRequest};
use super::scan::{BlockSink, Damage, MAX_COMPONENTS, OnDamaged, Scan, ScanEnd};
use super::sequential::{Request, SequentialDecoder};
use super::tables::Quantizer;
use crate::error::{DecodeError, Defect, Feature};
use crate::limits::Limits;

const SECOND_SCAN: &str = "second scan of a component";

/// A sink of the blocks of a frame, with the facts that its scans need.
pub(super) trait FrameSink: BlockSink {
    /// The samples that are wanted.
    fn geometry(&self) -> &Geometry;

    /// Bytes of memory that hold the result.
    fn bytes(&self) -> u64;

    /// The quantisers by component. Each is set when the first scan of its component begins.
    fn quantizers(&mut self) -> &mut [Quantizer; MAX_COMPONENTS];

    /// Ends the frame after its last block.
    fn finish(&mut self);
}

/// The entropy decoders, with what they keep from image to image.
#[derive(Debug, Default)]
pub(super) struct EntropyDecoders {
    sequential: SequentialDecoder,
    progressive: Progressive,
}

impl EntropyDecoders {
    pub(super) fn kept_bytes(&self) -> usize {
        self.sequential.kept_bytes() + self.progressive.kept_bytes()
    }
}

/// An image up to its first scan.
#[derive(Debug)]
pub(super) struct Opened<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) reader: Reader<'a>,
    pub(super) frame: Frame,
    pub(super) first_scan: Scan,
}

impl<'a> Opened<'a> {
    /// Reads the header of an image that can be decoded. Where damage is kept, the file may be much
    /// too short for its size: `limits` alone bound what that costs.
    pub(super) fn new(
        bytes: &'a [u8],
        on_damaged: OnDamaged,
        limits: &Limits,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes)?;
        let first_scan = reader.next_scan(limits)?.ok_or(marker::missing("a scan"))?;
        let frame = reader.prologue.require_frame()?;
        frame.require_supported()?;
        limits.charge_pixels(frame.width.into(), frame.height.into())?;
        if on_damaged == OnDamaged::Error {
            frame.require_plausible(bytes.len())?;
        }
        Ok(Self { bytes, reader, frame, first_scan })
    }

    /// The colour space of the components.
    pub(super) fn color(&self) -> Result<PlaneColor, DecodeError> {
        let color = self.reader.prologue.color(&self.frame);
        color.ok_or(Feature::JpegComponents(self.frame.component_count).into())
    }

    /// The quantiser of a component that is in force at this place.
    pub(super) fn quantizer(&self, component: usize) -> Result<Quantizer, DecodeError> {
        let number = usize::from(self.frame.components()[component].quantizer);
        let table = self.reader.tables.quantizers.get(number).copied().flatten();
        table.ok_or(marker::missing("the quantiser of a component"))
    }

    /// Whether one scan holds all there is, so that rows are complete as they come.
    pub(super) fn is_one_scan(&self) -> bool {
        self.frame.process == Process::Sequential
            && self.first_scan.count == self.frame.components().len()
    }
}

/// The decoding of one image.
pub(super) struct Scans<'a, 'b> {
    image: Opened<'a>,
    limits: &'b Limits,
    level: Level,
    on_damaged: OnDamaged,
    index: Option<RowIndex<'b>>,
    /// The first damage that was passed over.
    damage: Option<Damage>,
}

impl<'a, 'b> Scans<'a, 'b> {
    pub(super) fn new(
        image: Opened<'a>,
        request: &JpegRequest<'b>,
        level: Level,
        limits: &'b Limits,
    ) -> Self {
        let JpegRequest { on_damaged, index, .. } = *request;
        Self { image, limits, level, on_damaged, index, damage: None }
    }

    /// Decodes everything that `output` needs.
    pub(super) fn decode(
        mut self,
        decoders: &mut EntropyDecoders,
        output: &mut impl FrameSink,
    ) -> Result<Decoded, DecodeError> {
        if self.image.frame.process == Process::Progressive {
            self.progressive(&mut decoders.progressive, output)?;
        } else {
            self.sequential(&mut decoders.sequential, output)?;
        }
        output.finish();
        let orientation = self.image.reader.prologue.orientation();
        Ok(Decoded { orientation, damage: self.damage })
    }

    /// Adds the row index of a file that can have one to `out`.
    pub(super) fn row_index(
        mut self,
        decoders: &mut EntropyDecoders,
        out: &mut Vec<u8>,
    ) -> Result<bool, DecodeError> {
        if !self.image.is_one_scan() {
            return Ok(false);
        }
        let Opened { bytes, reader, first_scan, .. } = &self.image;
        self.charge_data(first_scan, 0)?;
        let specs = reader.tables.sequential();
        let Some(end) =
            decoders.sequential.row_index(self.level, bytes, first_scan, &specs, out)?
        else {
            return Ok(false);
        };
        self.image.reader.go_to(end);
        self.require_end()?;
        Ok(true)
    }

    fn sequential(
        &mut self,
        decoder: &mut SequentialDecoder,
        output: &mut impl FrameSink,
    ) -> Result<(), DecodeError> {
        let mut missing = MissingComponents::of(&self.image.frame);
        let mut scan = self.image.first_scan;
        loop {
            missing.require_each(&scan)?;
            self.take_quantizers(&scan, &missing, output.quantizers())?;
            self.charge_data(&scan, output.bytes())?;
            let window = output.geometry().window(&scan);
            let request = Request {
                file: self.image.bytes,
                scan: &scan,
                specs: &self.image.reader.tables.sequential(),
                window: &window,
                on_damaged: self.on_damaged,
                index: self.index.filter(|_| self.image.is_one_scan()),
            };
            let end = match decoder.decode(self.level, &request, output) {
                Ok(end) => end,
                // Nothing of the scan can be decoded, and the next one is looked for.
                Err(damage) if self.on_damaged == OnDamaged::Keep => {
                    ScanEnd { at: None, damage: Some(damage) }
                }
                Err(damage) => return Err(damage.into()),
            };
            self.damage = self.damage.or(end.damage);
            missing.remove(&scan);
            match end.at {
                Some(at) => self.image.reader.go_to(at),
                // Nothing below the region is looked at.
                None if missing.is_empty() => return Ok(()),
                None => {
                    let skipped = self.image.reader.skip_entropy_coded();
                    if self.keep(skipped)?.is_none() {
                        return Ok(());
                    }
                }
            }
            if missing.is_empty() {
                return self.require_end();
            }
            match self.next_scan()? {
                Some(next) => scan = next,
                None => {
                    return missing.report(
                        &mut self.damage,
                        self.on_damaged,
                        self.image.reader.at(),
                    );
                }
            }
        }
    }

    fn progressive(
        &mut self,
        decoder: &mut Progressive,
        output: &mut impl FrameSink,
    ) -> Result<(), DecodeError> {
        let frame = self.image.frame;
        let count = frame.components().len();
        let mut grids = [Grid::default(); MAX_COMPONENTS];
        for (grid, component) in grids.iter_mut().zip(frame.components()) {
            let (columns, rows) = frame.blocks(component);
            let across = component.across.into();
            let down = component.down.into();
            *grid = Grid { across, down, columns, rows, counted_down: down };
        }
        let mut mcus = frame.mcus();
        if let [only] = &mut grids[..count] {
            // Its factors cancel out, as they do in the geometry: a block is an MCU.
            (only.across, only.down) = (1, 1);
            mcus = (only.columns, only.rows);
        }
        let window = output.geometry().frame_window();
        // The data of a DC scan is in memory alone, that of the AC scans at the same time.
        let other_bytes = output.bytes() + EntropyData::memory(self.image.bytes.len());
        let grids = &grids[..count];
        decoder.begin(grids, mcus, &window, self.on_damaged, other_bytes, self.limits)?;
        let mut missing = MissingComponents::of(&frame);
        let mut next = Some(self.image.first_scan);
        while let Some(scan) = next {
            self.take_quantizers(&scan, &missing, output.quantizers())?;
            missing.remove(&scan);
            let specs = &self.image.reader.tables.huffman;
            decoder.add_scan(self.level, self.image.bytes, &scan, specs, self.limits)?;
            let skipped = self.image.reader.skip_entropy_coded();
            next = match self.keep(skipped)? {
                Some(()) => self.next_scan()?,
                None => None,
            };
        }
        missing.report(&mut self.damage, self.on_damaged, self.image.reader.at())?;
        let quantizers = *output.quantizers();
        let quantizers = quantizers.each_ref();
        let damage = decoder.finish(self.level, self.image.bytes, &quantizers[..count], output)?;
        self.damage = self.damage.or(damage);
        Ok(())
    }

    /// Charges the data of the first scan of a sequential image in addition to the result, as decoding
    /// it begins.
    pub(super) fn charge_first(&self, result_bytes: u64) -> Result<(), DecodeError> {
        if self.image.frame.process == Process::Progressive {
            return Ok(());
        }
        self.charge_data(&self.image.first_scan, result_bytes)
    }

    /// Charges what the data of a sequential scan may take in addition to the result.
    fn charge_data(&self, scan: &Scan, result_bytes: u64) -> Result<(), DecodeError> {
        let rest = self.image.bytes.len().saturating_sub(scan.data_at);
        self.limits.charge_working(result_bytes.saturating_add(EntropyData::memory(rest)))
    }

    /// A component is dequantised with the table that is in force at its first scan.
    fn take_quantizers(
        &self,
        scan: &Scan,
        missing: &MissingComponents,
        quantizers: &mut [Quantizer; MAX_COMPONENTS],
    ) -> Result<(), DecodeError> {
        for part in scan.components().iter().filter(|part| missing.0[part.component]) {
            quantizers[part.component] = self.image.quantizer(part.component)?;
        }
        Ok(())
    }

    /// The next scan; none after the last or, if damage is kept, where the file cannot be read on.
    fn next_scan(&mut self) -> Result<Option<Scan>, DecodeError> {
        let next = self.image.reader.next_scan(self.limits);
        Ok(self.keep(next)?.flatten())
    }

    /// Reads on to the end of the image, which has to be there; every component has had its scan.
    fn require_end(&mut self) -> Result<(), DecodeError> {
        if let Some(scan) = self.next_scan()? {
            self.keep::<()>(Err(marker::stray(SECOND_SCAN, scan.data_at)))?;
        }
        Ok(())
    }

    /// Passes over a fault of the file's structure, if damage is kept.
    fn keep<T>(&mut self, result: Result<T, DecodeError>) -> Result<Option<T>, DecodeError> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        if self.on_damaged == OnDamaged::Error {
            return Err(error);
        }
        let DecodeError::Malformed(defect) = &error else { return Err(error) };
        let here = self.image.reader.at() as u64;
        let (what, offset) = match *defect {
            Defect::Truncated { what, offset, .. }
            | Defect::Stray { what, offset, .. }
            | Defect::ValueAt { what, offset, .. } => (what, offset),
            Defect::Value { what, .. }
            | Defect::Missing { what, .. }
            | Defect::ShortOutput { what, .. } => (what, here),
            Defect::UnknownFormat { .. } | Defect::Codec(_) => return Err(error),
        };
        let damage = Damage { what, offset };
        self.damage.get_or_insert(damage);
        Ok(None)
    }
}

/// The components of which no scan has been seen.
#[derive(Debug)]
struct MissingComponents([bool; MAX_COMPONENTS]);

impl MissingComponents {
    fn of(frame: &Frame) -> Self {
        let mut missing = [false; MAX_COMPONENTS];
        missing[..frame.components().len()].fill(true);
        Self(missing)
    }

    fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    fn remove(&mut self, scan: &Scan) {
        for part in scan.components() {
            self.0[part.component] = false;
        }
    }

    /// Refuses a scan of a component that has had one.
    fn require_each(&self, scan: &Scan) -> Result<(), DecodeError> {
        if scan.components().iter().any(|part| !self.0[part.component]) {
            return Err(marker::stray(SECOND_SCAN, scan.data_at));
        }
        Ok(())
    }

    fn report(
        &self,
        damage: &mut Option<Damage>,
        on_damaged: OnDamaged,
        at: usize,
    ) -> Result<(), DecodeError> {
        let what = "a scan of every component";
        match on_damaged {
            _ if self.is_empty() => {}
            OnDamaged::Error => return Err(marker::missing(what)),
            OnDamaged::Keep => {
                damage.get_or_insert(Damage::at("a component has no scan", at));
            }
        }
        Ok(())
    }
}
