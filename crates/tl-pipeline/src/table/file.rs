//! The file formats of tables, with the feature `tables`.

mod fault;
mod idv;
mod tbf;

use tbl_io::Source;

use crate::error::PipelineError;
use crate::table::{Table, TableKind};

pub use idv::{IdvBytes, IdvTable};
pub use tbf::TbfTable;

/// Opens a table of this kind.
pub(super) fn open(kind: TableKind, source: &Source) -> Result<Box<dyn Table>, PipelineError> {
    Ok(match kind {
        TableKind::Idv => Box::new(IdvTable::from_source(source)?),
        TableKind::Tbf => {
            let options = tbf_format::UnpackOptions::default();
            Box::new(TbfTable::from_source(source, &options)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_start_as_their_formats_say() {
        assert_eq!(TableKind::Idv.magic(), idv_format::Header::MAGIC);
        assert!(tbf_format::sniff(TableKind::Tbf.magic()));
        assert!(!tbf_format::sniff(&TableKind::Tbf.magic()[..3]));
    }
}
