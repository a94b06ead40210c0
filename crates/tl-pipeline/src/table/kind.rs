//! The detection of files that are tables.

use tbl_io::{ReadError, Source};

/// The number of bytes that identify a table.
const FRONT_BYTES: usize = 8;

/// All kinds of tables.
const KINDS: [TableKind; 2] = [TableKind::Idv, TableKind::Tbf];

/// The kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// ML.NET's binary data view.
    Idv,
    /// A segment of TALA.
    Tbf,
}

impl TableKind {
    /// The kind's name, which is its files' extension.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idv => "idv",
            Self::Tbf => "tbf",
        }
    }

    /// The first bytes of its files.
    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Self::Idv => b"CML\0DVB\0",
            Self::Tbf => b"TALB",
        }
    }

    /// The kind of table that a file is, if any: by its first bytes, or by its name for a damaged
    /// file that starts neither as a table nor as a data set of samples.
    ///
    /// # Errors
    /// [`ReadError`] if the file cannot be read.
    pub fn of(source: &Source) -> Result<Option<Self>, ReadError> {
        let mut front = [0; FRONT_BYTES];
        let present = usize::try_from(source.len()).unwrap_or(FRONT_BYTES).min(FRONT_BYTES);
        source.read_exact_at(0, &mut front[..present])?;
        if let Some(kind) = KINDS.into_iter().find(|kind| front.starts_with(kind.magic())) {
            return Ok(Some(kind));
        }
        let extension = source.location().extension().filter(|_| !front.starts_with(b"TBL"));
        let is_named = |kind: &Self| {
            extension.is_some_and(|extension| extension.eq_ignore_ascii_case(kind.name()))
        };
        Ok(KINDS.into_iter().find(is_named))
    }
}
