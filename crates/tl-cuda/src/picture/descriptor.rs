//! The structs of `kernels/decode.cu`, which has their comments: offsets are bytes.

use zerocopy::{Immutable, IntoBytes};

/// Components and planes of an image, at most.
pub(crate) const PLANES: usize = 3;

/// Index bits of a look-up table of Huffman codes, whose entries have eight bytes.
pub(super) const TABLE_BITS: u32 = 10;

/// The end of a row of which nothing is known.
pub(super) const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Axis {
    pub(super) count: u32,
    pub(super) taps: u32,
    pub(super) starts: u32,
    pub(super) weights: u32,
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Resize {
    pub(super) columns: Axis,
    pub(super) rows: Axis,
    pub(super) source: u32,
    pub(super) source_stride: u32,
    pub(super) source_width: u32,
    pub(super) source_height: u32,
    pub(super) between: u32,
    pub(super) between_stride: u32,
    pub(super) result: u32,
    pub(super) result_stride: u32,
    pub(super) is_vertical_first: u32,
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Component {
    pub(super) quantizer: u32,
    pub(super) blocks: u32,
    pub(super) columns: u32,
    pub(super) rows: u32,
    pub(super) side: u32,
    pub(super) plane: u32,
    pub(super) stride: u32,
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) right: u32,
    pub(super) bottom: u32,
    pub(super) filter: u32,
    pub(super) across: u32,
    pub(super) down: u32,
    pub(super) mcu_across: u32,
    pub(super) mcu_down: u32,
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Pixels {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) stride: u32,
    pub(super) height: u32,
    pub(super) planes: [u32; PLANES],
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Frame {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) window_width: u32,
    pub(super) window_height: u32,
    pub(super) fill: [u32; PLANES],
    pub(super) flip: u32,
    pub(super) flip_vertical: u32,
}

#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Entropy {
    pub(super) slots: u32,
    pub(super) slot_count: u32,
    pub(super) rows: u32,
    pub(super) row_count: u32,
    pub(super) codes: u32,
    pub(super) code_count: u32,
    pub(super) tables: u32,
    pub(super) bytes: u32,
    pub(super) coefficients: u32,
    pub(super) skipped: u32,
    pub(super) wanted: u32,
    pub(super) is_to_end: u32,
    pub(super) lanes: u32,
}

/// `Picture` of the kernels.
#[derive(Clone, Copy, Debug, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Descriptor {
    pub(super) payload: u64,
    pub(super) scratch: u64,
    pub(super) target: u64,
    pub(super) count: u32,
    pub(super) is_ycc: u32,
    pub(super) is_sparse: u32,
    pub(super) rows: u32,
    pub(super) components: [Component; PLANES],
    pub(super) pixels: Pixels,
    pub(super) resizes: [Resize; PLANES],
    pub(super) frame: Frame,
    pub(super) entropy: Entropy,
}

#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Row {
    pub(super) at: u32,
    pub(super) len: u32,
    pub(super) bit: u32,
    pub(super) end: u32,
    pub(super) predictors: [i16; 4],
    pub(super) end_predictors: [i16; 4],
}

#[derive(Clone, Copy, Debug, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Codes {
    pub(super) limits: [u32; 16],
    pub(super) offsets: [u32; 16],
    pub(super) symbols: [u8; 256],
}
