//! The progress of a progressive frame's scans for each coefficient (T.81 G.1.1), and the checks
//! that follow from it. The rules are those that libjpeg-turbo refuses or warns about.

use crate::error::{DecodeError, Defect};
use crate::format::Format;
use crate::jpeg::scan::{Damage, MAX_COMPONENTS, Scan};

/// The last coefficient of a block in zigzag order.
const LAST: u8 = 63;

/// The largest low bit of successive approximation (T.81 table B.3).
const MAX_LOW_BIT: u8 = 13;

/// A coefficient that no scan has coded yet.
pub(super) const UNKNOWN: i8 = -1;

/// How many low bits of each coefficient, in zigzag order, are still missing: 0 for an exact one,
/// [`UNKNOWN`] for one that no scan has coded.
pub(super) type MissingBits = [i8; 64];

/// The progress of all components of a frame.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    missing: [MissingBits; MAX_COMPONENTS],
}

impl Default for Progress {
    fn default() -> Self {
        Self { missing: [[UNKNOWN; 64]; MAX_COMPONENTS] }
    }
}

impl Progress {
    /// The missing bits of one component.
    pub(super) fn of(&self, component: usize) -> &MissingBits {
        &self.missing[component]
    }

    /// Notes what `scan` codes. Returns what does not fit the scans before it: libjpeg decodes such
    /// a scan all the same, with a warning.
    pub(super) fn enter(&mut self, scan: &Scan) -> Result<Option<Damage>, DecodeError> {
        check_parameters(scan)?;
        let (first, last) = scan.spectral;
        let (high, low) = scan.approximation;
        let mut misfit = None;
        for part in scan.components() {
            let missing = &mut self.missing[part.component];
            if first > 0 && missing[0] == UNKNOWN {
                misfit = misfit.or(Some("AC scan before any DC scan of its component"));
            }
            for bits in &mut missing[usize::from(first)..=usize::from(last)] {
                if i16::from(high) != i16::from((*bits).max(0)) {
                    misfit = misfit.or(Some("scan refines bits that do not follow the last ones"));
                }
                *bits = low.cast_signed();
            }
        }
        Ok(misfit.map(|what| Damage::at(what, scan.data_at)))
    }

    /// Whether libjpeg estimates missing coefficients of a frame of `components` from the DC values
    /// around them: every DC is known and one of the first nine AC coefficients is not exact.
    pub(super) fn wants_smoothing(&self, components: usize) -> bool {
        let missing = &self.missing[..components];
        missing.iter().all(|bits| bits[0] != UNKNOWN)
            && missing.iter().any(|bits| bits[1..10].iter().any(|&bits| bits != 0))
    }
}

/// The rules for one scan header by itself (T.81 G.1.1.1).
fn check_parameters(scan: &Scan) -> Result<(), DecodeError> {
    let (first, last) = scan.spectral;
    let (high, low) = scan.approximation;
    let band_fits = if first == 0 { last == 0 } else { first <= last && last <= LAST };
    if !band_fits {
        return Err(bad("spectral selection of a progressive scan", scan.spectral));
    }
    if first > 0 && scan.count != 1 {
        let what = "number of components in an AC scan";
        return Err(Defect::Value { format: Format::Jpeg, what, found: scan.count as u64 }.into());
    }
    if low > MAX_LOW_BIT || (high != 0 && high != low + 1) {
        return Err(bad("successive approximation of a progressive scan", scan.approximation));
    }
    Ok(())
}

/// Both numbers as one, the first in the high byte, as far as they are shown.
fn bad(what: &'static str, found: (u8, u8)) -> DecodeError {
    let found = u64::from(u16::from_be_bytes([found.0, found.1]));
    Defect::Value { format: Format::Jpeg, what, found }.into()
}
