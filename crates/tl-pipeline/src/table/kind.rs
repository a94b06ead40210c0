//! Which files are tables.

use tbl_io::{ReadError, Source};

/// How many bytes tell.
const FRONT_BYTES: usize = idv_format::Header::MAGIC.len();

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

    /// Whether a file is a table, and which: by its first bytes, or by its name where it starts as
    /// none, because it is damaged, and is no data set of samples either.
    ///
    /// # Errors
    /// [`ReadError`] when the file cannot be read.
    pub fn of(source: &Source) -> Result<Option<Self>, ReadError> {
        let mut front = [0; FRONT_BYTES];
        let present = usize::try_from(source.len()).unwrap_or(FRONT_BYTES).min(FRONT_BYTES);
        source.read_exact_at(0, &mut front[..present])?;
        if front == idv_format::Header::MAGIC {
            return Ok(Some(Self::Idv));
        }
        if tbf_format::sniff(&front) {
            return Ok(Some(Self::Tbf));
        }
        let extension = source.location().extension().filter(|_| !front.starts_with(b"TBL"));
        let is_named = |kind: &Self| {
            extension.is_some_and(|extension| extension.eq_ignore_ascii_case(kind.name()))
        };
        Ok([Self::Idv, Self::Tbf].into_iter().find(is_named))
    }
}
