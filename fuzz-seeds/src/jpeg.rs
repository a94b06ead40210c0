//! JPEG: a region holds the pixels of the whole image, every level of instructions gives the same,
//! a row index changes nothing, and the parts for a device fit together.
//!
//! An input is a request in front of a file, or of the description of one ([`jpeg_file`]).

use tl_decode::{
    Color, Image, JpegDecoder, JpegParts, JpegRequest, Level, Limits, OnDamaged, PartStage, Rect,
    RowIndex, Scale,
};

use crate::decode::limits;
use crate::jpeg_file::{Choices, jpeg_file};

/// What became of a request: the image, and the error or the damage in words.
type Outcome = Result<(Image, Option<String>), String>;

/// A request for a part of an image whose size is not known yet.
#[derive(Clone, Copy, Debug)]
struct Wish {
    scale: Scale,
    color: Color,
    on_damaged: OnDamaged,
    /// Position and size of the region, reduced to what the image has.
    region: [u32; 4],
}

impl Wish {
    fn read(choices: &mut Choices<'_>) -> Self {
        let kind = choices.byte();
        // Of the other scales in eighths, one for each way of the bits that are left.
        let eighths = 1 + (kind >> 5 | (kind & 1) << 3);
        let other = Scale::from_eighths(eighths).filter(|_| kind & 16 != 0);
        Self {
            scale: other.unwrap_or(Scale::HALVINGS[usize::from(kind & 3)]),
            color: if kind & 4 == 0 { Color::Rgb } else { Color::Grey },
            on_damaged: if kind & 8 == 0 { OnDamaged::Error } else { OnDamaged::Keep },
            region: std::array::from_fn(|_| choices.word() >> 16),
        }
    }

    fn whole(&self) -> JpegRequest<'static> {
        let Self { scale, color, on_damaged, .. } = *self;
        JpegRequest { scale, color, on_damaged, ..JpegRequest::default() }
    }

    /// The region inside an image of `size` before it is scaled.
    fn region(&self, size: (u32, u32)) -> Rect {
        let (width, height) = (self.scale.apply(size.0), self.scale.apply(size.1));
        let [x, y, across, down] = self.region;
        let (x, y) = (x % width, y % height);
        Rect { x, y, width: across % (width - x) + 1, height: down % (height - y) + 1 }
    }
}

/// Width and height of an image; a header may leave the height open.
fn size(file: &[u8]) -> Option<(u32, u32)> {
    let info = tl_decode::probe(file).ok()?;
    (info.height != 0).then_some((info.width, info.height))
}

fn decoder() -> JpegDecoder {
    JpegDecoder::new(Limits { jpeg_scans: 100, ..limits() })
}

fn decode(level: Option<Level>, file: &[u8], request: &JpegRequest<'_>) -> Outcome {
    let mut decoder = decoder();
    if let Some(level) = level {
        decoder = decoder.with_level(level);
    }
    let mut image = Image::new();
    let decoded = decoder.decode(file, request, &mut image).map_err(|error| error.to_string())?;
    Ok((image, decoded.damage.map(|damage| format!("{damage:?}"))))
}

/// Takes an image in parts, which fit together, and fails as decoding does where it decodes.
fn take_parts(file: &[u8], request: &JpegRequest<'_>, outcome: &Outcome) {
    let mut parts = JpegParts::default();
    for stage in [PartStage::Coefficients, PartStage::EntropyRows] {
        match (decoder().parts(file, request, stage, true, &mut parts), outcome) {
            // Planes of narrow images take more memory than coefficients.
            (Ok(Some(PartStage::Coefficients)), Err(error)) if error.contains("limit") => {}
            (Ok(Some(PartStage::Coefficients)), outcome) => {
                require_coefficients(&parts);
                let damage = parts.decoded.damage.map(|damage| format!("{damage:?}"));
                let expected = outcome.as_ref().map(|(_, damage)| damage);
                assert_eq!(Ok(&damage), expected, "{request:?}");
            }
            (Ok(Some(_)), _) => require_rows(&parts, file.len()),
            (Ok(None), _) => {}
            (Err(error), Err(expected)) => {
                // The index may be wrong in a place that is found earlier.
                if stage == PartStage::Coefficients {
                    assert_eq!(error.to_string(), *expected, "{request:?}");
                }
            }
            // A row that ends before it begins may have pixels all the same.
            (Err(error), Ok(_)) => {
                let error = error.to_string();
                let is_wrong_index = error.ends_with("row index that is not of this file");
                assert!(stage == PartStage::EntropyRows && is_wrong_index, "{request:?}: {error}");
            }
        }
    }
}

/// As many blocks as the components have, whose rows are there.
fn require_coefficients(parts: &JpegParts) {
    let blocks = |rect: Rect| u64::from(rect.width) * u64::from(rect.height);
    let count: u64 = parts.components.iter().map(|component| blocks(component.blocks)).sum();
    let JpegParts { coefficients, .. } = parts;
    assert_eq!(coefficients.blocks.len() as u64, count);
    for packed in &coefficients.blocks {
        let end = (packed >> 8) + (packed & 0xFF).count_ones();
        assert!(end as usize <= coefficients.rows.len(), "{packed:x}");
    }
}

/// Rows inside of the bytes, which are not many more than those of the file.
fn require_rows(parts: &JpegParts, file_bytes: usize) {
    let JpegParts { entropy, .. } = parts;
    assert!(entropy.bytes.len() <= file_bytes + 12 * entropy.rows.len());
    for row in &entropy.rows {
        let rest = &entropy.bytes[row.at as usize..][row.len as usize..];
        assert!(row.at % 4 == 0 && rest[..8] == [0; 8], "{row:?}");
    }
}

/// The pixels of `region` of `image`.
pub(crate) fn cut(image: &Image, region: Rect) -> Vec<u8> {
    let channels = usize::from(image.channels);
    let rows = image.data.chunks(image.width as usize * channels);
    rows.skip(region.y as usize)
        .take(region.height as usize)
        .flat_map(|row| &row[region.x as usize * channels..][..region.width as usize * channels])
        .copied()
        .collect()
}

/// Whether a file may be sequential with several scans. Where its data is damaged, where the next
/// scan begins is a guess, and one that stops below a region guesses from another place.
fn has_sequential_scans(file: &[u8]) -> bool {
    let count = |marker| file.windows(2).filter(|pair| *pair == [0xFF, marker]).count();
    count(0xC2) == 0 && count(0xDA) > 1
}

/// Decodes a region and the whole image: where both succeed, the region's pixels are the image's,
/// and a region of an image without damage decodes.
pub fn jpeg_region_equals_full(data: &[u8]) {
    let mut choices = Choices(data);
    let wish = Wish::read(&mut choices);
    let file = jpeg_file(choices.0);
    let Some(size) = size(&file) else { return };
    let whole = decode(None, &file, &wish.whole());
    let region = wish.region(size);
    let request = JpegRequest { region: Some(region), ..wish.whole() };
    let part = decode(None, &file, &request);
    take_parts(&file, &request, &part);
    match (whole, part) {
        (Ok((image, damage)), Ok((part, seen))) => {
            if damage.is_none() || !has_sequential_scans(&file) {
                assert_eq!(part.data, cut(&image, region), "{request:?}");
            }
            // What lies below the region is not looked at, in each scan.
            assert!(seen.is_none() || damage.is_some(), "{seen:?} {damage:?}");
        }
        (Ok(_), Err(error)) => panic!("{request:?}: {error}"),
        (Err(_), _) => {}
    }
}

/// Decodes with every level that this CPU has: the same pixels, damage and errors.
pub fn jpeg_levels_agree(data: &[u8]) {
    let mut choices = Choices(data);
    let wish = Wish::read(&mut choices);
    let file = jpeg_file(choices.0);
    let Some(size) = size(&file) else { return };
    let region = wish.region(size);
    for request in [wish.whole(), JpegRequest { region: Some(region), ..wish.whole() }] {
        let outcome = |level| {
            decode(Some(level), &file, &request).map(|(image, damage)| (image.data, damage))
        };
        let expected = outcome(Level::Scalar);
        for level in Level::available() {
            assert_eq!(outcome(level), expected, "{level:?} {request:?}");
        }
    }
}

/// Decodes a region by the file's row index, which changes nothing, by a damaged one, which is an
/// error, and by made-up ones whose checksums fit, which ends somehow.
pub fn jpeg_row_index(data: &[u8]) {
    let mut choices = Choices(data);
    let wish = Wish { on_damaged: OnDamaged::Error, ..Wish::read(&mut choices) };
    let (place, change) = (choices.byte(), choices.byte());
    let file = jpeg_file(choices.0);
    let Some(size) = size(&file) else { return };
    let region = wish.region(size);
    let request = JpegRequest { region: Some(region), ..wish.whole() };
    let expected = decode(None, &file, &request).map(|(image, _)| image.data);
    let by = |index: &[u8], request: JpegRequest<'_>| {
        RowIndex::parse(index).map_err(|error| error.to_string()).and_then(|index| {
            let request = JpegRequest { index: Some(index), ..request };
            let outcome = decode(None, &file, &request);
            take_parts(&file, &request, &outcome);
            outcome
        })
    };
    let mut index = Vec::new();
    let indexed = decoder().row_index(&file, &mut index);
    if matches!(indexed, Ok(true)) {
        // An index needs no quantisers; whether they are there is seen later.
        if let Ok(expected) = &expected {
            let (image, _) = by(&index, request).expect("an index changes nothing");
            assert_eq!(image.data, *expected, "{request:?}");
        }

        // Damaged anywhere it is refused; with checksums that fit, only an answer is asked for.
        let at = (usize::from(place) << 8 | usize::from(change)) % index.len();
        index[at] ^= change | 1;
        by(&index, wish.whole()).expect_err("a damaged index");
        forge(&mut index, &file);
        answered(by(&index, wish.whole()));
        answered(by(&index, request));
    }
    // Any bytes behind a right header: only an answer is asked for.
    let header = index.get(..INDEX_HEADER_BYTES).unwrap_or_default();
    let mut hostile = [header, choices.0].concat();
    hostile.truncate(index.len());
    forge(&mut hostile, &file);
    answered(by(&hostile, request));
    answered(by(choices.0, request));
}

/// Version, components, rows, begin and end of the data, checksums of the file and of the index.
const INDEX_HEADER_BYTES: usize = 20;

/// Puts the checksums of a row index right.
fn forge(index: &mut [u8], file: &[u8]) {
    if index.len() >= INDEX_HEADER_BYTES {
        index[12..16].copy_from_slice(&crc32fast::hash(file).to_le_bytes());
        let own = crc32fast::hash(&[&index[..16], &index[20..]].concat());
        index[16..20].copy_from_slice(&own.to_le_bytes());
    }
}

fn answered(_: Outcome) {}
