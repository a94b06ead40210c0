//! Masks of objects as COCO writes them: polygons and run lengths, drawn as pycocotools draws them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use tl_simd::resample::Rect;

use super::Mask;
use crate::bounds::area;
use crate::error::AnnotationError;

/// The `segmentation` of an annotation of COCO; `null` has no polygons.
///
/// ```
/// use tl_transform::Segmentation;
///
/// let square: Segmentation = serde_json::from_str("[[1, 1, 3, 1, 3, 3, 1, 3]]")?;
/// assert_eq!(square.mask(4, 3)?.data(), [0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Segmentation {
    /// Polygons whose union is the mask: alternating x and y.
    Polygons(Vec<Vec<f64>>),
    /// Run lengths of pixels outside and inside, column by column.
    Counts {
        /// Rows of the mask.
        height: u32,
        /// Pixels of a row.
        width: u32,
        /// The lengths, beginning outside.
        counts: Vec<u32>,
    },
}

/// Points that pycocotools takes on each pixel's width.
const SCALE: f64 = 5.0;

/// The most points along all edges of a mask's polygons: those of an outline of 2^16 pixels that goes
/// over the whole image 200 times.
const MAX_POINTS: u64 = 1 << 26;

/// The most points for each pixel of the mask, so that the time follows from its size: an outline goes
/// over all pixels six times.
const POINTS_OF_PIXEL: u64 = 32;

/// Points that small masks have in any case.
const FREE_POINTS: u64 = 1 << 16;

/// The most pixels of a mask, which pycocotools numbers by `int`.
const MAX_PIXELS: u64 = i32::MAX as u64;

impl Segmentation {
    /// The mask of an image of this size: 1 inside, 0 outside.
    ///
    /// # Errors
    /// [`AnnotationError::Segmentation`] for run lengths that do not cover the image, polygons with
    /// an odd number of coordinates, too few points, or coordinates far outside, and images that
    /// are too large.
    pub fn mask(&self, width: u32, height: u32) -> Result<Mask, AnnotationError> {
        let pixels = checked((width, height))?;
        let mut data = vec![0; usize::try_from(pixels).unwrap_or(usize::MAX)];
        self.draw((width, height), Rect::of_size(width, height), &mut data)?;
        Mask::new(width, height, data)
    }

    /// Sets to 1 what is inside of a part of an image of this size. `out` has the pixels of the part,
    /// row by row.
    ///
    /// # Errors
    /// As [`Segmentation::mask`].
    ///
    /// # Panics
    /// When the part is not in the image, or `out` is not exactly as long as it.
    pub fn draw(
        &self,
        size: (u32, u32),
        part: Rect,
        out: &mut [u8],
    ) -> Result<(), AnnotationError> {
        let (width, height) = size;
        let pixels = checked(size)?;
        assert!(part.fits(width, height), "the part is in the image");
        assert_eq!(out.len(), part.width as usize * part.height as usize, "a byte per pixel");
        match self {
            Self::Counts { height: rows, width: columns, counts } => {
                if (*columns, *rows) != (width, height) {
                    return Err(AnnotationError::Segmentation {
                        reason: format!("the mask has {columns} x {rows} pixels"),
                        expected: format!("{width} x {height} as the image"),
                    });
                }
                let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
                if total != pixels {
                    return Err(AnnotationError::Segmentation {
                        reason: format!("the run lengths cover {total} pixels"),
                        expected: format!("{pixels}"),
                    });
                }
                draw(counts, size, part, out);
            }
            Self::Polygons(polygons) => {
                // pycocotools looks at the first polygon alone.
                if polygons.first().is_some_and(|first| first.len() <= 4) {
                    return Err(invalid("a polygon has fewer than three points"));
                }
                let most = pixels.saturating_mul(POINTS_OF_PIXEL).saturating_add(FREE_POINTS);
                let mut left = most.min(MAX_POINTS);
                for polygon in polygons {
                    draw(&counts_of(polygon, size, &mut left)?, size, part, out);
                }
            }
        }
        Ok(())
    }
}

/// The pixels of an image of this size, if it can have a mask.
fn checked(size: (u32, u32)) -> Result<u64, AnnotationError> {
    let pixels = area(size);
    if pixels > MAX_PIXELS { Err(invalid("the image has 2^31 pixels or more")) } else { Ok(pixels) }
}

fn invalid(reason: &str) -> AnnotationError {
    AnnotationError::Segmentation {
        reason: reason.to_owned(),
        expected: "polygons or run lengths as COCO writes them".to_owned(),
    }
}

/// Sets the pixels inside to 1, as far as they are in the part.
fn draw(counts: &[u32], size: (u32, u32), part: Rect, out: &mut [u8]) {
    let rows = size.1 as usize;
    let total = size.0 as usize * rows;
    let width = part.width as usize;
    let left = part.x as usize;
    let columns = left..left + width;
    let above = part.y as usize;
    let below = above + part.height as usize;
    let mut at = 0_usize;
    for (number, &count) in counts.iter().enumerate() {
        let end = (at + count as usize).min(total);
        let mut start = if number % 2 == 1 { at } else { end };
        while start < end {
            let column = start / rows;
            let next = end.min((column + 1) * rows);
            if columns.contains(&column) {
                let top = (start % rows).max(above);
                let bottom = (next - column * rows).min(below);
                for row in top..bottom {
                    out[(row - above) * width + column - left] = 1;
                }
            }
            start = next;
        }
        at = end;
    }
}

/// A point on the outline, five to a pixel.
#[derive(Clone, Copy)]
struct Point {
    u: i64,
    v: i64,
}

/// The run lengths of a polygon: `rleFrPoly` of maskApi.c.
///
/// The outline is followed in steps of a fifth of a pixel. Where it goes over the middle between two
/// columns, the mask changes in the right one from that row on.
///
/// Its points count off those `left`.
fn counts_of(
    polygon: &[f64],
    size: (u32, u32),
    left: &mut u64,
) -> Result<Vec<u32>, AnnotationError> {
    let (width, height) = size;
    let (points, []) = polygon.as_chunks::<2>() else {
        return Err(invalid("a polygon has an odd number of coordinates"));
    };
    let vertices: Vec<Point> =
        points.iter().map(|[x, y]| Point { u: fifths(*x), v: fifths(*y) }).collect();
    let Some(&first) = vertices.first() else { return Err(invalid("a polygon has no point")) };
    let ends = || vertices.iter().skip(1).chain([&first]);
    let steps = |(a, b): (&Point, &Point)| a.u.abs_diff(b.u).max(a.v.abs_diff(b.v)) + 1;
    let total = vertices.iter().zip(ends()).map(steps).fold(0, u64::saturating_add);
    *left = left.checked_sub(total).ok_or_else(|| {
        invalid("the outlines of the polygons are too long for an image of this size")
    })?;
    let mut changes = Vec::new();
    let mut previous = None;
    for (&from, &to) in vertices.iter().zip(ends()) {
        along(from, to, |point| {
            if let Some(before) = previous.replace(point) {
                changes.extend(change(before, point, width, height));
            }
        });
    }
    changes.push(width * height);
    changes.sort_unstable();
    let mut counts = Vec::with_capacity(changes.len());
    let mut at = 0;
    // Two changes of one pixel are none.
    let mut differences = changes.iter().map(|&change| {
        let difference = change - at;
        at = change;
        difference
    });
    counts.extend(differences.next());
    while let Some(difference) = differences.next() {
        if difference > 0 {
            counts.push(difference);
        } else if let (Some(last), Some(next)) = (counts.last_mut(), differences.next()) {
            *last += next;
        }
    }
    Ok(counts)
}

/// A coordinate in fifths of a pixel, rounded as C rounds.
#[expect(clippy::cast_possible_truncation, reason = "saturates; longer outlines are refused")]
fn fifths(coordinate: f64) -> i64 {
    (SCALE * coordinate + 0.5) as i64
}

/// Calls `take` with each point of an edge.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "edges have at most 2^26 points"
)]
fn along(from: Point, to: Point, mut take: impl FnMut(Point)) {
    let across = (to.u - from.u).abs();
    let down = (to.v - from.v).abs();
    let is_flat = across >= down;
    let is_back = (is_flat && from.u > to.u) || (!is_flat && from.v > to.v);
    let start = if is_back { to } else { from };
    let end = if is_back { from } else { to };
    let length = across.max(down);
    let slope = if is_flat {
        (end.v - start.v) as f64 / across as f64
    } else {
        (end.u - start.u) as f64 / down as f64
    };
    for step in 0..=length {
        let step = if is_back { length - step } else { step };
        let other = |start: i64| (start as f64 + slope * step as f64 + 0.5) as i64;
        take(if is_flat {
            Point { u: step + start.u, v: other(start.v) }
        } else {
            Point { u: other(start.u), v: step + start.v }
        });
    }
}

/// The pixel, counted column by column, from which on the mask differs because the outline goes from
/// one point to the next.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "compared with the mask's size, which is below 2^31"
)]
fn change(before: Point, point: Point, width: u32, height: u32) -> Option<u32> {
    if point.u == before.u {
        return None;
    }
    let u = if point.u < before.u { point.u } else { point.u - 1 };
    let x = (u as f64 + 0.5) / SCALE - 0.5;
    if x.floor() != x || x < 0.0 || x > f64::from(width) - 1.0 {
        return None;
    }
    let y = (before.v.min(point.v) as f64 + 0.5) / SCALE - 0.5;
    let y = y.max(0.0).min(f64::from(height)).ceil();
    Some(x as u32 * height + y as u32)
}

impl<'de> Deserialize<'de> for Segmentation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SegmentationVisitor;
        impl<'de> Visitor<'de> for SegmentationVisitor {
            type Value = Segmentation;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of polygons, or an object with `counts` and `size`")
            }

            fn visit_unit<E: Error>(self) -> Result<Segmentation, E> {
                Ok(Segmentation::Polygons(Vec::new()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Segmentation, A::Error> {
                let mut polygons = Vec::new();
                while let Some(polygon) = seq.next_element()? {
                    polygons.push(polygon);
                }
                Ok(Segmentation::Polygons(polygons))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Segmentation, A::Error> {
                let mut counts = None;
                let mut size: Option<[u32; 2]> = None;
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "counts" => counts = Some(map.next_value::<Counts>()?),
                        "size" => size = Some(map.next_value()?),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let Counts(counts) = counts.ok_or_else(|| A::Error::missing_field("counts"))?;
                let [height, width] = size.ok_or_else(|| A::Error::missing_field("size"))?;
                Ok(Segmentation::Counts { height, width, counts })
            }
        }
        deserializer.deserialize_any(SegmentationVisitor)
    }
}

/// Run lengths as a list, or as the text that pycocotools compresses them to.
struct Counts(Vec<u32>);

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountsVisitor;
        impl<'de> Visitor<'de> for CountsVisitor {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of run lengths or a compressed one")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Counts, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = seq.next_element()? {
                    counts.push(count);
                }
                Ok(Counts(counts))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Counts, E> {
                let counts = decompress(text.as_bytes());
                counts.map(Counts).ok_or_else(|| E::custom("invalid compressed run lengths"))
            }
        }
        deserializer.deserialize_any(CountsVisitor)
    }
}

/// Run lengths from their text: `rleFrString` of maskApi.c. Six bits in a character, five of them a
/// part of a number; from the fourth number on, differences to the one before the last.
fn decompress(text: &[u8]) -> Option<Vec<u32>> {
    let mut counts: Vec<u32> = Vec::new();
    let mut number = 0_i64;
    let mut bits = 0_u32;
    for byte in text {
        let part = byte.checked_sub(b'0').filter(|&part| part < 64)?;
        // A run has fewer than 2^31 pixels.
        if bits > 35 {
            return None;
        }
        number |= i64::from(part & 0x1f) << bits;
        bits += 5;
        if part & 0x20 != 0 {
            continue;
        }
        if part & 0x10 != 0 {
            number |= -1 << bits;
        }
        if counts.len() > 2 {
            number += i64::from(counts[counts.len() - 2]);
        }
        counts.push(u32::try_from(number).ok()?);
        number = 0;
        bits = 0;
    }
    (bits == 0).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Segmentation {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn compressed_and_listed_run_lengths_are_the_same() {
        // pycocotools.mask.frUncompressedRLE gives this text for these lengths.
        let listed = parse(r#"{"size": [10, 20], "counts": [21, 4, 6, 4, 6, 4, 155]}"#);
        let compressed = parse(r#"{"counts": "e046000e4", "size": [10, 20]}"#);
        assert_eq!(listed, compressed);
        let mask = listed.mask(20, 10).unwrap();
        let ones: Vec<usize> = (0..200).filter(|&at| mask.data()[at] == 1).collect();
        let expected = (1..5).flat_map(|row| (2..5).map(move |column| row * 20 + column));
        assert_eq!(ones, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_polygon_covers_the_pixels_whose_centres_it_has() {
        let mask = parse("[[1.2, 0.8, 4.6, 0.8, 4.6, 2.9, 1.2, 2.9]]").mask(6, 4).unwrap();
        assert_eq!(
            mask.data(),
            [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
        );
        let outside = parse("[[-50, -50, -10, -50, -10, -10]]").mask(6, 4).unwrap();
        assert!(outside.data().iter().all(|&pixel| pixel == 0));
        let all = parse("[[-50, -50, 50, -50, 50, 50, -50, 50]]").mask(6, 4).unwrap();
        assert!(all.data().iter().all(|&pixel| pixel == 1));
        for nothing in ["[]", "null"] {
            assert!(parse(nothing).mask(6, 4).unwrap().data().iter().all(|&pixel| pixel == 0));
        }
    }

    #[test]
    fn a_part_of_a_mask_has_its_pixels() {
        let polygon = parse("[[1.2, 0.8, 9.6, 2.8, 7.6, 9.9, 3.2, 6.9], [0, 0, 3, 0, 3, 12]]");
        let runs = parse(r#"{"size": [12, 11], "counts": [5, 30, 2, 40, 1, 54]}"#);
        for segmentation in [polygon, runs] {
            let whole = segmentation.mask(11, 12).unwrap();
            for (x, y, width, height) in
                [(0, 0, 11, 12), (2, 3, 5, 4), (10, 11, 1, 1), (4, 0, 1, 12)]
            {
                let mut part = vec![0; width * height];
                let rect = |side: usize| u32::try_from(side).unwrap();
                let rect =
                    Rect { x: rect(x), y: rect(y), width: rect(width), height: rect(height) };
                segmentation.draw((11, 12), rect, &mut part).unwrap();
                let rows = whole.data().chunks_exact(11).skip(y).take(height);
                let expected: Vec<u8> = rows.flat_map(|row| &row[x..x + width]).copied().collect();
                assert_eq!(part, expected);
            }
        }
    }

    #[test]
    fn the_time_of_an_outline_follows_from_the_image() {
        let far = parse("[[0, 0, 1300000, 0, 0, 0, 1300000, 0, 0, 0, 1300000, 1]]");
        let long = parse(&format!("[{}[0, 0, 3000, 0, 0, 1]]", "[0, 0, 3000, 0, 0, 1],".repeat(6)));
        for segmentation in [&far, &long] {
            let error = segmentation.mask(64, 64).unwrap_err().to_string();
            assert!(error.contains("too long for an image of this size"), "{error}");
        }
        assert!(long.mask(3000, 64).is_ok());
        let outline = parse("[[-60, -60, 300, -60, 300, 300, -60, 300]]").mask(64, 64).unwrap();
        assert!(outline.data().iter().all(|&pixel| pixel == 1));
    }

    #[test]
    fn damage_is_an_error_and_memory_is_bounded() {
        for json in [
            "[[1, 2, 3]]",
            "[[]]",
            "[[1e300, 0, 0, 0, 5, 5]]",
            "[[0, 0, 4, 4], [1, 2, 3, 4, 5, 6]]",
            "[[0, 0, 4, 4, 5, 6], []]",
            r#"{"size": [4, 6], "counts": [24, 1]}"#,
            r#"{"size": [4, 6], "counts": [23]}"#,
            r#"{"size": [6, 4], "counts": [24]}"#,
            r#"{"size": [4, 6], "counts": [4294967295, 4294967295]}"#,
        ] {
            let error = parse(json).mask(6, 4).unwrap_err();
            assert!(matches!(error, AnnotationError::Segmentation { .. }), "{json}");
        }
        assert!(parse("[[0, 0, 4, 4, 5, 6]]").mask(65_535, 65_535).is_err());
        for json in [
            "3",
            r#"{"size": [4, 6]}"#,
            r#"{"counts": [24]}"#,
            r#"{"size": [4], "counts": [24]}"#,
            r#"{"size": [4, 6], "counts": [-1]}"#,
            r#"{"size": [4, 6], "counts": "\u00e9"}"#,
            r#"{"size": [4, 6], "counts": "oooooooooooooooooooo0"}"#,
            r#"{"size": [4, 6], "counts": "o"}"#,
            r#"{"size": [4, 6], "counts": "@"}"#,
        ] {
            assert!(serde_json::from_str::<Segmentation>(json).is_err(), "{json}");
        }
    }
}
