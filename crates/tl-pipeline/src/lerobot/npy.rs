//! The description that NumPy writes before the numbers of an array (NEP 1, version 1.0).

use crate::table::ColumnType;

/// Bytes that the numbers begin at a multiple of.
const ALIGNMENT: usize = 64;

/// The description of an array of `shape` in the byte order of this machine; `None` for numbers that
/// NumPy lacks, and for more dimensions than a description has room for.
pub(super) fn header(number: ColumnType, shape: &[usize]) -> Option<Vec<u8>> {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let kind = match number {
        ColumnType::Bool => 'b',
        ColumnType::U8 | ColumnType::U16 | ColumnType::U32 | ColumnType::U64 => 'u',
        ColumnType::I8 | ColumnType::I16 | ColumnType::I32 | ColumnType::I64 => 'i',
        ColumnType::F16 | ColumnType::F32 | ColumnType::F64 => 'f',
        ColumnType::Bf16 => return None,
    };
    let order = if number.bytes() == 1 { '|' } else { order };
    let sides: String = shape.iter().map(|side| format!("{side}, ")).collect();
    let mut text = format!(
        "{{'descr': '{order}{kind}{}', 'fortran_order': False, 'shape': ({}), }}",
        number.bytes(),
        sides.trim_end()
    );
    let before = tbl_io::NpyArray::MAGIC.len() + 4;
    let padding = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before - text.len() - 1;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut bytes = tbl_io::NpyArray::MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
    bytes.extend(text.into_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use tbl_io::NpyArray;

    use super::*;

    #[test]
    fn descriptions_are_those_of_numpy() {
        let written = header(ColumnType::F32, &[2, 3]).unwrap();
        assert_eq!(written.len(), 128);
        let text = std::str::from_utf8(&written[10..]).unwrap();
        let expected = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }";
        assert_eq!(text.trim_end(), expected);
        for (number, shape) in [
            (ColumnType::Bool, vec![5]),
            (ColumnType::I64, vec![]),
            (ColumnType::U16, vec![4, 1, 2]),
            (ColumnType::F64, vec![1]),
        ] {
            let mut file = header(number, &shape).unwrap();
            let numbers = shape.iter().product::<usize>();
            file.extend(vec![0; numbers * number.bytes()]);
            let array = NpyArray::parse(&file).unwrap();
            assert_eq!((array.shape, array.item_bytes), (shape, number.bytes()));
            assert!(!array.is_big_endian || number.bytes() == 1);
        }
        assert_eq!(header(ColumnType::Bf16, &[1]), None);
    }
}
