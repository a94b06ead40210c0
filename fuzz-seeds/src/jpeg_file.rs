//! Valid JPEG files out of arbitrary bytes, so that a fuzzer's mutations reach every part of a
//! decoder instead of ending at the first bad code.
//!
//! An encoder whose choices (components, sampling, scans, tables, restarts, coefficients) are read
//! from the input; when that says so, some bits of its output are flipped at the end.

use std::borrow::Cow;

use self::scan::{Script, encode_scans};
use self::tables::{AC_SYMBOLS, DC_SYMBOLS, Huffman};

mod scan;
mod tables;

/// The bytes of `data` as choices; zeros when there are no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices<'a>(pub(crate) &'a [u8]);

impl Choices<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }
}

/// One component: its sampling factors and its blocks in zigzag order, padded to whole MCUs.
#[derive(Debug)]
struct Component {
    across: usize,
    down: usize,
    /// Blocks in a row of `blocks`.
    stride: usize,
    /// Blocks that cover the component itself, across and down.
    own: (usize, usize),
    blocks: Vec<[i16; 64]>,
}

/// What kind of file to write.
#[derive(Debug)]
struct Shape {
    width: usize,
    height: usize,
    progressive: bool,
    interleaved: bool,
    restart_interval: usize,
    mcus: (usize, usize),
    components: Vec<Component>,
}

/// `data` itself if it is a JPEG file, else the file that it describes.
pub fn jpeg_file(data: &[u8]) -> Cow<'_, [u8]> {
    if data.starts_with(&[0xFF, 0xD8]) { data.into() } else { encode(&mut Choices(data)).into() }
}

fn encode(choices: &mut Choices<'_>) -> Vec<u8> {
    let kind = choices.byte();
    let flips = choices.byte();
    let shape = shape(kind, choices);
    let dc = Huffman::new(&DC_SYMBOLS, choices.byte());
    let ac = Huffman::new(&AC_SYMBOLS, choices.byte());
    let mut file = header(&shape, kind, choices, [&dc, &ac]);
    encode_scans(&shape, &Script::of(&shape), [&dc, &ac], &mut file);
    file.extend([0xFF, 0xD9]);
    // Three inputs in four stay whole.
    if flips & 3 == 3 {
        for _ in 0..=flips >> 6 {
            let at = choices.word() as usize;
            let length = file.len();
            file[at / 8 % length] ^= 1 << (at % 8);
        }
    }
    file
}

fn shape(kind: u8, choices: &mut Choices<'_>) -> Shape {
    let count = [1, 3, 3, 4][usize::from(kind & 3)];
    let (width, height) =
        (usize::from(choices.byte() % 97) + 1, usize::from(choices.byte() % 73) + 1);
    // Powers of two or threes, as no decoder takes fractions between components.
    let factor = |bits: u8| match (bits & 3, kind & 0x80) {
        (0, _) => 1,
        (1, 0) => 2,
        (2, 0) => 4,
        (1 | 2, _) => 3,
        _ => 1,
    };
    let mut factors = Vec::from_iter((0..count).map(|_| {
        let byte = choices.byte();
        (factor(byte), factor(byte >> 2))
    }));
    // An MCU holds ten blocks at most.
    while factors.iter().map(|(across, down)| across * down).sum::<usize>() > 10 {
        let largest = factors.iter_mut().max_by_key(|(across, down)| across * down);
        largest.into_iter().for_each(|(across, down)| {
            (*across, *down) = (if *across == 3 { 1 } else { 2.min(*across) }, (*down / 2).max(1));
        });
    }
    let most_across = factors.iter().map(|factor| factor.0).max().unwrap_or(1);
    let most_down = factors.iter().map(|factor| factor.1).max().unwrap_or(1);
    let mcus = (width.div_ceil(8 * most_across), height.div_ceil(8 * most_down));
    let component = |&(across, down): &(usize, usize)| {
        let own = (
            (width * across).div_ceil(most_across).div_ceil(8),
            (height * down).div_ceil(most_down).div_ceil(8),
        );
        let stride = mcus.0 * across;
        Component { across, down, stride, own, blocks: vec![[0; 64]; stride * mcus.1 * down] }
    };
    let mut components: Vec<Component> = factors.iter().map(component).collect();
    let restart_interval = if kind & 8 == 0 { 0 } else { usize::from(choices.byte() % 16) + 1 };
    for block in components.iter_mut().flat_map(|component| &mut component.blocks) {
        fill(block, choices);
    }
    let (progressive, interleaved) = (kind & 4 != 0, kind & 16 == 0);
    Shape { width, height, progressive, interleaved, restart_interval, mcus, components }
}

/// A block with few coefficients or many, within what 8-bit JPEG can code.
fn fill(block: &mut [i16; 64], choices: &mut Choices<'_>) {
    let signed = |byte: u8| i16::from(i8::from_le_bytes([byte]).max(-127));
    let control = choices.byte();
    block[0] = signed(choices.byte()) * 8;
    let count = if control >= 0xF0 { 63 } else { control & 7 };
    let scale = if control & 8 == 0 { 1 } else { 8 };
    let mut at = 0;
    for _ in 0..count {
        let byte = choices.byte();
        at = if count == 63 { at + 1 } else { 1 + (at + usize::from(byte >> 2)) % 63 };
        block[at] = signed(byte) * scale;
    }
}

fn header(shape: &Shape, kind: u8, choices: &mut Choices<'_>, [dc, ac]: [&Huffman; 2]) -> Vec<u8> {
    let count = shape.components.len();
    let mut file = vec![0xFF, 0xD8];
    if kind & 32 != 0 {
        let transform = if count == 4 { kind >> 5 & 2 } else { kind >> 6 & 1 };
        segment(&mut file, 0xEE, &[b"Adobe\0\x64\0\0\0\0".as_slice(), &[transform]].concat());
    }
    let (base, slope) = (choices.byte(), choices.byte());
    let quantizers: Vec<u8> =
        (0..64u8).map(|i| base.wrapping_add(slope.wrapping_mul(i)).max(1)).collect();
    segment(&mut file, 0xDB, &[[0].as_slice(), &quantizers].concat());
    let (height, width) = (shape.height as u16, shape.width as u16);
    let mut frame = vec![8];
    frame.extend([height.to_be_bytes(), width.to_be_bytes()].as_flattened());
    frame.push(count as u8);
    for (id, component) in (1..).zip(&shape.components) {
        frame.extend([id, (component.across << 4 | component.down) as u8, 0]);
    }
    segment(&mut file, if shape.progressive { 0xC2 } else { 0xC1 }, &frame);
    segment(&mut file, 0xC4, &[dc.definition(0x00), ac.definition(0x10)].concat());
    if shape.restart_interval != 0 {
        segment(&mut file, 0xDD, &(shape.restart_interval as u16).to_be_bytes());
    }
    file
}

/// Appends a marker segment.
fn segment(file: &mut Vec<u8>, marker: u8, payload: &[u8]) {
    file.extend([0xFF, marker]);
    file.extend((payload.len() as u16 + 2).to_be_bytes());
    file.extend(payload);
}
