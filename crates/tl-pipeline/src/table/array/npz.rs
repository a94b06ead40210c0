//! The members of `.npz` files, each of which is a `.npy` file.

use tbl_io::{NpyError, NpyHeader, NpzMember, ReadError, Source, npz_members};

use super::{Array, ArrayDefect, Values, check_rows, is_fortran};
use crate::error::TableError;

/// The first bytes of a ZIP archive with members.
pub(super) const MAGIC: [u8; 4] = *b"PK\x03\x04";

/// Bytes of a member's header before its name.
const LOCAL_BYTES: usize = 30;

/// Bytes that all compressed members of a file may take in memory. Each one is inflated as a whole.
const MOST_INFLATED: u64 = 1 << 30;

/// More bytes than a header of a `.npy` file takes in deflated form.
const MOST_HEADER: u64 = 2 * NpyHeader::MOST_BYTES as u64;

/// Whether the first member of a ZIP archive is a `.npy` file.
pub(super) fn is_one(source: &Source) -> Result<bool, ReadError> {
    let mut header = [0; LOCAL_BYTES];
    if source.len() < header.len() as u64 {
        return Ok(false);
    }
    source.read_exact_at(0, &mut header)?;
    let name_bytes = u64::from(u16::from_le_bytes([header[26], header[27]]));
    let end = LOCAL_BYTES as u64 + name_bytes;
    if end > source.len() {
        return Ok(false);
    }
    let mut name = Vec::new();
    source.read_range_into(LOCAL_BYTES as u64, name_bytes, &mut name)?;
    Ok(name.ends_with(b".npy"))
}

/// The arrays in the order of the directory.
pub(super) fn arrays(source: &Source) -> Result<Vec<Array>, TableError> {
    let members = npz_members::<TableError>(source)?;
    if members.is_empty() {
        return Err(ArrayDefect::NoArrays.into());
    }
    let fronts: Vec<(u64, u64)> = members
        .iter()
        .map(|member| {
            (member.offset, if member.is_array { member.stored_bytes.min(MOST_HEADER) } else { 0 })
        })
        .collect();
    let fronts = source.read_ranges(&fronts)?;
    let mut arrays = Vec::with_capacity(members.len());
    let mut inflated = 0_u64;
    for (member, front) in members.into_iter().zip(fronts) {
        let mut array = array(member, &front)?;
        if let Values::Deflated { member, .. } = &array.values {
            inflated = inflated.saturating_add(member.bytes);
            if array.number.is_ok() && inflated > MOST_INFLATED {
                array.number = Err(format!(
                    "{inflated} bytes with the compressed arrays before it, at most {MOST_INFLATED} \
                     are inflated: use numpy.savez, which does not compress"
                ));
            }
        }
        arrays.push(array);
    }
    check_rows(&arrays)?;
    Ok(arrays)
}

/// The array of a member that starts with these bytes.
fn array(member: NpzMember, front: &[u8]) -> Result<Array, TableError> {
    let name = member.name.clone();
    let unreadable = |reason| Array {
        name: name.clone(),
        number: Err(reason),
        shape: Vec::new(),
        is_big_endian: false,
        values: Values::None,
    };
    if !member.is_array {
        return Ok(unreadable("not a .npy file".to_owned()));
    }
    let damaged = |source| ArrayDefect::Member { name: name.clone(), source };
    let front = member.front(front, NpyHeader::MOST_BYTES as u64)?;
    let header = match NpyHeader::parse(&front) {
        Ok(header) => header,
        // The file as such is in order.
        Err(error @ NpyError::Dtype { .. }) => return Ok(unreadable(error.to_string())),
        Err(error) => return Err(damaged(error).into()),
    };
    let header_bytes = header.data_offset as u64;
    let have = member.bytes.saturating_sub(header_bytes);
    if header.data_bytes() != Some(have) {
        let NpyHeader { shape, item_bytes, .. } = header;
        return Err(damaged(NpyError::Size { shape, item_bytes, have }).into());
    }
    let values = if member.is_deflated {
        Values::Deflated { member, header_bytes }
    } else {
        let offset = member.offset.saturating_add(header_bytes);
        Values::Stored { offset, bytes: have, member: Some(member) }
    };
    let mut array = Array::of_npy(name, &header, values);
    if is_fortran(&header) {
        array.number = Err(ArrayDefect::Fortran.to_string());
    }
    Ok(array)
}
