use alloc::string::ToString;
use alloc::vec;

use super::*;
use crate::cursor::Cursor;

fn parse(bytes: &[u8]) -> Result<CodecDefinition, FormatError> {
    let mut cursor = Cursor::new(bytes, 1000);
    let definition = CodecDefinition::parse(&mut cursor)?;
    cursor.finish()?;
    Ok(definition)
}

/// A definition as it stands in a file, and back.
fn check_definition(bytes: &[u8], codec: &Codec, name: &str) {
    let definition = parse(bytes).unwrap();
    assert_eq!(definition.codec.as_ref(), Ok(codec));
    assert_eq!(codec.to_string(), name);
    assert_eq!(CodecDefinition::new(codec.clone()), definition);
    let mut written = Vec::new();
    definition.write(&mut written);
    assert_eq!(written, bytes);
}

#[test]
fn definitions_have_the_bytes_of_mlnet() {
    let single = Item::Number(Number::Single);
    check_definition(b"\x06Single\0", &Codec::Item(single.clone()), "Single");
    let key = |number, count| Item::Key(Key { number, count, min: 0 });
    let bytes = b"\x04Key2\x0e\x04Byte\0\x05\0\0\0\0\0\0\0";
    check_definition(bytes, &Codec::Item(key(Number::Byte, 5)), "Key<Byte, 1-5>");
    let matrix = Codec::Vector(Vector { item: single, dimensions: vec![8, 76] });
    let bytes = b"\x07VBuffer\x14\x06Single\0\x02\0\0\0\x08\0\0\0\x4c\0\0\0";
    check_definition(bytes, &matrix, "Vector<Single, 8x76>");
    let keys = Codec::Vector(Vector { item: key(Number::UInt32, 76), dimensions: vec![8] });
    let bytes = b"\x07VBuffer\x1e\x04Key2\x10\x06UInt32\0\x4c\0\0\0\0\0\0\0\x01\0\0\0\x08\0\0\0";
    check_definition(bytes, &keys, "Vector<Key<UInt32, 1-76>, 8>");
}

#[test]
fn wrong_definitions_are_named() {
    let check = |bytes: &[u8], expected: &str| {
        assert_eq!(parse(bytes).unwrap_err().to_string(), expected);
    };
    check(b"\0\0", "codec name at 1000 is empty");
    check(b"\x04Byte\x01", "codec parameters at 1006 needs 1 bytes, found 0");
    check(b"\x04Byte\x01x", "codec Byte at 1006 has 1 bytes of parameters and uses 0");
    let key = b"\x04Key2\x0f\x05SByte\0\x05\0\0\0\0\0\0\0";
    check(key, "codec Key2 at 1006 cannot have items of SByte");
    let key = b"\x04Key2\x0e\x04Byte\0\0\0\0\0\0\0\0\0";
    check(key, "key count at 1012 is 0, expected 1 to 255");
    let key = b"\x04Key2\x0e\x04Byte\0\0\x01\0\0\0\0\0\0";
    check(key, "key count at 1012 is 256, expected 1 to 255");
    let key = b"\x03Key\x13\x04Byte\0\0\0\0\0\0\0\0\0\0\x05\0\0\0";
    check(key, "old key at 1011 has contiguity 0 and count 5");
    let key = b"\x03Key\x13\x04Byte\0\x01\0\0\0\0\0\0\0\0\xff\xff\xff\xff";
    check(key, "key count at 1020 is -1, expected 1 to 255");
    let nested = b"\x07VBuffer\x17\x07VBuffer\x0a\x04Byte\0\0\0\0\0\0\0\0\0";
    check(nested, "codec VBuffer at 1009 cannot have items of VBuffer");
    let vector = b"\x07VBuffer\x0e\x04Byte\0\x01\0\0\0\xff\xff\xff\xff";
    check(vector, "vector dimension at 1019 is -1, expected 0 or more");
    let vector = b"\x07VBuffer\x12\x04Byte\0\x02\0\0\0\0\0\x01\0\0\x80\0\0";
    check(vector, "vector dimensions at 1019 multiply to more than 2147483647");
}

#[test]
fn unknown_names_are_passed_over() {
    let unknown = Err(Unknown("Complex".to_owned()));
    assert_eq!(parse(b"\x07Complex\x02ab").unwrap().codec, unknown);
    let item = parse(b"\x07VBuffer\x0d\x07Complex\0rest").unwrap();
    assert_eq!(item.codec, unknown);
    assert_eq!(parse(b"\x03Key\x0b\x07Complex\0re").unwrap().codec, unknown);
}

/// A block of known bytes, and its values by their canonical bytes.
fn check_block(codec: &Codec, rows: usize, block: &[u8], canonical: &[u8]) {
    let values = codec.decode(rows, block).unwrap();
    assert_eq!(values.len(), rows);
    let mut found = Vec::new();
    values.canonical(&mut |bytes| found.extend_from_slice(bytes));
    assert_eq!(found, canonical);
    let mut written = Vec::new();
    codec.encode(&values, &mut written).unwrap();
    assert_eq!(written, block);
}

fn check_refused(codec: &Codec, rows: usize, block: &[u8], expected: &str) {
    assert_eq!(codec.decode(rows, block).unwrap_err().to_string(), expected);
}

#[test]
fn booleans_are_packed_from_the_lowest_bit_on() {
    let bits = Codec::Item(Item::Boolean);
    check_block(&bits, 10, &[0b1000_0101, 0b10], &[1, 0, 1, 0, 0, 0, 0, 1, 0, 1]);
    check_refused(&bits, 10, &[0], "booleans at 0 needs 2 bytes, found 1");
    check_refused(&bits, 8, &[0, 0], "1 bytes are left at 1 after the last value");
    let pairs = Codec::Item(Item::MissingBoolean);
    check_block(&pairs, 5, &[0b1001_0001, 0b10, 0, 0], &[1, 0, 1, 2, 2]);
    check_refused(&pairs, 5, &[0b1100, 0, 0, 0], "boolean 1 has the pattern 3");
    // Patterns after the last value are not values.
    assert!(pairs.decode(1, &[0b1100, 0, 0, 0]).is_ok());
}

#[test]
fn offsets_come_before_ticks() {
    let codec = Codec::Item(Item::DateTimeOffset);
    let mut block = vec![60, 0, 0xff, 0xff];
    block.extend(7i64.to_le_bytes());
    block.extend((-1i64).to_le_bytes());
    let canonical = [&[60, 0][..], &7i64.to_le_bytes(), &[0xff, 0xff], &[0xff; 8]];
    check_block(&codec, 2, &block, &canonical.concat());
}

#[test]
fn text_ends_count_utf16_code_units() {
    let text = Codec::Item(Item::Text);
    check_block(&text, 0, &[0, 0, 0, 0, 0], &[]);
    // "a", "", missing, U+1D11E and "b".
    let block = b"\x04\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\x80\x04\0\0\0\x06a\xf0\x9d\x84\x9eb";
    let canonical = b"\x01\0\0\0a\0\0\0\0\xff\xff\xff\xff\x05\0\0\0\xf0\x9d\x84\x9eb";
    check_block(&text, 4, block, canonical);
    check_refused(&text, 3, block, "number of texts at 0 is 4, expected 3");
    let short = b"\x01\0\0\0\x03\0\0\0\x02ab";
    check_refused(&text, 1, short, "UTF-16 length of the text at 8 is 2, expected 3");
    let wide = b"\x01\0\0\0\x02\0\0\0\x02\xc3\xa9";
    check_refused(&text, 1, wide, "UTF-16 length of the text at 8 is 1, expected 2");
    let falling = b"\x02\0\0\0\x02\0\0\0\x01\0\0\0\x02ab";
    check_refused(&text, 2, falling, "text 1 ends at 1, the one before it at 2");
    let missing = b"\x02\0\0\0\x01\0\0\0\x02\0\0\x80\x02ab";
    check_refused(&text, 2, missing, "text 1 ends at 2, the one before it at 1");
    let latin = b"\x01\0\0\0\x01\0\0\0\x01\xe9";
    check_refused(&text, 1, latin, "text at 9 is not UTF-8 from byte 0 on");
}

#[test]
fn halves_of_a_character_are_replaced() {
    // "x" U+1D11E "y" U+1D11E, cut at 1, 2, 2, 3, 4 and 6 code units.
    let mut block = vec![6, 0, 0, 0];
    [1u32, 2, 2, 3, 4, 6].iter().for_each(|end| block.extend(end.to_le_bytes()));
    block.extend(b"\x0ax\xf0\x9d\x84\x9ey\xf0\x9d\x84\x9e");
    let Values::Text(text) = Codec::Item(Item::Text).decode(6, &block).unwrap() else { panic!() };
    let expected =
        [Some("x"), Some("\u{fffd}"), Some(""), Some("\u{fffd}"), Some("y"), Some("\u{1d11e}")];
    assert_eq!(text.iter().collect::<Vec<_>>(), expected);
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn bytes_vector(dimensions: &[u32]) -> Codec {
    Codec::Vector(Vector { item: Item::Number(Number::Byte), dimensions: dimensions.to_vec() })
}

#[test]
fn vectors_are_dense_or_sparse() {
    // Two of four slots: one dense, one with slots 1 and 3.
    let mut block = numbers(&[2, 4, -1, 2, 2, 1, 3]);
    block.extend([10, 11, 12, 13, 21, 23]);
    let canonical = [4, 0, 0, 0, 10, 11, 12, 13, 4, 0, 0, 0, 0, 21, 0, 23];
    check_block(&bytes_vector(&[2, 2]), 2, &block, &canonical);
    // The same length in a variable type is written once as well.
    check_block(&bytes_vector(&[0]), 2, &block, &canonical);
    // Lengths 0, 2 and 3, the last one without items.
    let mut block = numbers(&[3, 0, 0, 2, 3, -1, -1, 0, 0]);
    block.extend([7, 8]);
    let canonical = [0, 0, 0, 0, 2, 0, 0, 0, 7, 8, 3, 0, 0, 0, 0, 0, 0];
    check_block(&bytes_vector(&[0]), 3, &block, &canonical);
    check_block(&bytes_vector(&[0]), 0, &numbers(&[0, 0, 0]), &[]);
}

#[test]
fn wrong_vectors_are_named() {
    let fixed = bytes_vector(&[4]);
    let check = |codec: &Codec, rows, head: &[i32], items: &[u8], expected: &str| {
        let mut block = numbers(head);
        block.extend(items);
        check_refused(codec, rows, &block, expected);
    };
    check(&fixed, 1, &[2, 4], b"", "number of vectors at 0 is 2, expected 1");
    check(&fixed, 1, &[1, 3, -1, 0], b"abc", "common length of vectors at 4 is 3, expected 4");
    check(&fixed, 1, &[1, 4, -1, 0], b"abc", "numbers at 16 needs 4 bytes, found 3");
    check(&fixed, 1, &[1, 4, 4, 0], b"", "vector 0 of length 4 has 4 explicit items");
    check(&fixed, 1, &[1, 4, -2, 0], b"", "vector 0 of length 4 has -2 explicit items");
    let sum = "sum of vector counts at 8 is 2, expected 1";
    check(&fixed, 1, &[1, 4, 2, 1, 0], b"ab", sum);
    let sum = "number of indices at 12 is 2, expected 1";
    check(&fixed, 1, &[1, 4, 1, 2, 0, 1], b"a", sum);
    let order = "index 1 of vector 0 follows 1 in a length of 4";
    check(&fixed, 1, &[1, 4, 2, 2, 1, 1], b"ab", order);
    let beyond = "index 4 of vector 0 follows -1 in a length of 4";
    check(&fixed, 1, &[1, 4, 1, 1, 4], b"a", beyond);
    let negative = "index -1 of vector 0 follows -1 in a length of 4";
    check(&fixed, 1, &[1, 4, 1, 1, -1], b"a", negative);
    let count = "number of indices at 12 is -1, expected 0 or more";
    check(&fixed, 1, &[1, 4, -1, -1], b"abcd", count);
    let any = bytes_vector(&[0]);
    let length = "vector length at 8 is -1, expected 0 or more";
    check(&any, 1, &[1, 0, -1, -1, 0], b"", length);
    check(&any, 1, &[1, -1], b"", "common length of vectors at 4 is -1, expected 0 or more");
    // A billion vectors of a length of a billion.
    let many = [1 << 30, i32::MAX];
    check(&any, 1 << 30, &many, b"", "vector counts at 8 needs 4294967296 bytes, found 0");
}

#[test]
fn values_of_another_kind_are_not_encoded() {
    let values = Values::Single(vec![1.0].into());
    let mut bytes = Vec::new();
    let kind = |codec: &str| Err(ValuesError::Kind { codec: codec.to_owned(), values: "Single" });
    assert_eq!(Codec::number(Number::Double).encode(&values, &mut bytes), kind("Double"));
    assert_eq!(Codec::Item(Item::Text).encode(&values, &mut bytes), kind("TextSpan"));
    assert_eq!(bytes_vector(&[1]).encode(&values, &mut bytes), kind("VBuffer"));
    let vectors = Values::Vector(Vectors::dense(1, 1, values));
    assert_eq!(bytes_vector(&[1]).encode(&vectors, &mut bytes), kind("Byte"));
    let missing = Values::Boolean(vec![0, 2].into());
    let error = Codec::Item(Item::Boolean).encode(&missing, &mut bytes);
    assert_eq!(error, Err(ValuesError::MissingBoolean { item: 1 }));
    let wrong = Values::Boolean(vec![3].into());
    let error = Codec::Item(Item::MissingBoolean).encode(&wrong, &mut bytes);
    assert_eq!(error, Err(ValuesError::BooleanValue { item: 0, found: 3 }));
    let vectors = Values::Vector(Vectors::dense(2, 1, Values::Byte(vec![1, 2].into())));
    let error = bytes_vector(&[3]).encode(&vectors, &mut bytes);
    assert_eq!(error, Err(ValuesError::VectorLength { vector: 0, expected: 3, found: 2 }));
}
