//! An RGB picture to draw on: rectangles, other pictures, and text in an 8x8 bitmap font.

use std::io::{self, Write};

use font8x8::{BASIC_FONTS, LATIN_FONTS, UnicodeFonts};

/// Width and height of a character.
pub const GLYPH_SIDE: u32 = 8;

/// Red, green, blue.
pub type Rgb = [u8; 3];

/// Pixels, rows from top to bottom.
#[derive(Debug)]
pub struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: u32, height: u32, background: Rgb) -> Self {
        let pixels = background.repeat(width as usize * height as usize);
        Self { width, height, pixels }
    }

    /// Paints one pixel; outside the canvas nothing happens.
    fn set(&mut self, x: u32, y: u32, color: Rgb) {
        if x < self.width && y < self.height {
            let at = (y as usize * self.width as usize + x as usize) * 3;
            self.pixels[at..at + 3].copy_from_slice(&color);
        }
    }

    /// Paints a rectangle.
    pub fn fill(&mut self, x: u32, y: u32, width: u32, height: u32, color: Rgb) {
        for row in y..y.saturating_add(height).min(self.height) {
            for column in x..x.saturating_add(width).min(self.width) {
                self.set(column, row, color);
            }
        }
    }

    /// Paints the diagonals of a square.
    pub fn cross(&mut self, x: u32, y: u32, side: u32, color: Rgb) {
        for step in 0..side {
            for thickness in 0..2 {
                self.set(x + step, y + step + thickness, color);
                self.set(x + side - 1 - step, y + step + thickness, color);
            }
        }
    }

    /// Copies a row of RGB pixels to `(x, y)`, as far as it fits.
    pub fn row(&mut self, x: u32, y: u32, row: &[u8]) {
        for (column, pixel) in (x..self.width).zip(row.chunks_exact(3)) {
            self.set(column, y, [pixel[0], pixel[1], pixel[2]]);
        }
    }

    /// Writes `text` with its top left corner at `(x, y)`. Characters the font does not have
    /// appear as a question mark.
    pub fn text(&mut self, x: u32, y: u32, text: &str, color: Rgb) {
        let mut left = x;
        for character in text.chars() {
            self.glyph(left, y, character, color);
            left = left.saturating_add(GLYPH_SIDE);
        }
    }

    fn glyph(&mut self, x: u32, y: u32, character: char, color: Rgb) {
        let glyph = BASIC_FONTS
            .get(character)
            .or_else(|| LATIN_FONTS.get(character))
            .or_else(|| BASIC_FONTS.get('?'))
            .unwrap_or_default();
        for (row, bits) in (0..GLYPH_SIDE).zip(glyph) {
            for column in (0..GLYPH_SIDE).filter(|column| bits >> column & 1 == 1) {
                self.set(x.saturating_add(column), y.saturating_add(row), color);
            }
        }
    }

    /// Writes the canvas as a PNG file.
    pub fn write_png(&self, to: &mut dyn Write) -> io::Result<()> {
        let mut encoder = png::Encoder::new(to, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Canvas;

    const INK: [u8; 3] = [1, 2, 3];

    fn inked(canvas: &Canvas) -> usize {
        canvas.pixels.chunks_exact(3).filter(|pixel| **pixel == INK).count()
    }

    #[test]
    fn drawing_stops_at_the_edge() {
        let mut canvas = Canvas::new(4, 4, [9, 9, 9]);
        canvas.fill(2, 2, 100, 100, INK);
        assert_eq!(inked(&canvas), 4);
        canvas.row(3, 0, &[1, 2, 3, 1, 2, 3]);
        assert_eq!(inked(&canvas), 5);
        canvas.text(100, u32::MAX, "x", INK);
        assert_eq!(inked(&canvas), 5);
    }

    #[test]
    fn letters_read_from_left_to_right() {
        let mut canvas = Canvas::new(8, 8, [9, 9, 9]);
        canvas.text(0, 0, "L", INK);
        let column =
            |x: usize| (0..8).filter(|y| canvas.pixels[(y * 8 + x) * 3..][..3] == INK).count();
        assert!(column(1) > column(6), "the stem of an L is on the left");
        let mut unknown = Canvas::new(8, 8, [9, 9, 9]);
        unknown.text(0, 0, "\u{4e2d}", INK);
        assert!(inked(&unknown) > 0);
    }
}
