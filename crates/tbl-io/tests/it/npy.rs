//! Files that NumPy 2 wrote (`testdata/npy`), and damaged ones.

use tbl_io::{NpyArray, NpyError, NpyKind, npz_member};

fn file(name: &str) -> Vec<u8> {
    let folder = tl_testdata::shipped!("npy");
    std::fs::read(folder.join(name)).unwrap()
}

fn member(bytes: &[u8], name: &str) -> Result<Vec<u8>, NpyError> {
    let mut member = Vec::new();
    npz_member(bytes, name, 1 << 16, &mut member).map(|()| member)
}

#[test]
fn arrays_that_numpy_saved_are_read() {
    let bytes = file("f4_fortran.npy");
    let array = NpyArray::parse(&bytes).unwrap();
    assert_eq!((array.kind, array.item_bytes, array.is_fortran), (NpyKind::Float, 4, true));
    assert_eq!(array.shape, [2, 3]);
    let numbers = array.data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    assert_eq!(numbers.collect::<Vec<_>>(), [0.0, 0.75, 0.25, 1.0, 0.5, 1.25]);
    let bytes = file("i2_big_endian.npy");
    let array = NpyArray::parse(&bytes).unwrap();
    assert!(array.is_big_endian && array.kind == NpyKind::Signed);
    assert_eq!(array.data, [0, 1, 255, 254, 1, 44]);
}

#[test]
fn members_of_both_kinds_of_archives_are_read() {
    let stored = file("stored.npz");
    let latent = member(&stored, "latent").unwrap();
    assert_eq!(NpyArray::parse(&latent).unwrap().shape, [2, 3]);
    assert_eq!(member(&stored, "mask.npy").unwrap(), member(&stored, "mask").unwrap());
    let number = member(&stored, "dir/x").unwrap();
    let number = NpyArray::parse(&number).unwrap();
    assert_eq!((&number.shape[..], number.data), (&[][..], &(-5_i64).to_le_bytes()[..]));
    let deflated = file("deflated.npz");
    let latent = member(&deflated, "latent").unwrap();
    assert_eq!(NpyArray::parse(&latent).unwrap().data, [0; 200]);
    let message = member(&deflated, "labels").unwrap_err().to_string();
    assert_eq!(message, "no array `labels` in the .npz file; it has latent, label");
    let limit = npz_member(&deflated, "latent", 100, &mut Vec::new()).unwrap_err();
    assert!(matches!(limit, NpyError::Limit { bytes: 328, limit: 100, .. }), "{limit}");
}

#[test]
fn messages_have_printable_names() {
    let replaced = |bytes: &[u8], from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).rposition(|window| window == from).unwrap();
        let mut bytes = bytes.to_vec();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let array = replaced(&file("f4_fortran.npy"), b"<f4", b"<\x01\x7f");
    let message = NpyArray::parse(&array).unwrap_err().to_string();
    assert!(message.starts_with("array of dtype `<\\x01\\x7f`, expected bool"), "{message}");
    let archive = replaced(&file("deflated.npz"), b"latent.npy", b"latent\x0enpy");
    let message = member(&archive, "latent").unwrap_err().to_string();
    assert_eq!(message, "no array `latent` in the .npz file; it has latent\\x0enpy, label");
}

#[test]
fn damaged_archives_give_errors_and_never_other_numbers() {
    for name in ["stored.npz", "deflated.npz"] {
        let whole = file(name);
        let expected = member(&whole, "latent").unwrap();
        for length in 0..whole.len() {
            assert!(member(&whole[..length], "latent").is_err(), "{name}: {length} bytes");
        }
        for place in 0..whole.len() {
            for change in [1, 0x40, 0xFF] {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                if let Ok(found) = member(&bytes, "latent") {
                    assert_eq!(found, expected, "{name}: byte {place}");
                }
            }
        }
    }
}
