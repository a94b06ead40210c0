//! Each format: its tokens, and the errors of files that are not quite it.

use std::fs;

use tbl_io::{ErrorKind, NpyError, ReadError, Source, Stores, TokensDefect};
use tl_tokens::{TokenFile, TokenFormat, TokenOptions, TokenType};

use crate::files::{defect, index, llm_c, npy, open, safetensors, tokens, u16s};

fn check(file: Result<TokenFile, ReadError>, format: TokenFormat, expected: &[i64]) {
    let file = file.unwrap();
    assert_eq!((file.format(), tokens(&file)), (format, expected.to_vec()));
}

#[test]
fn raw_tokens_have_the_type_that_the_caller_gives() {
    let bytes = vec![1, 0, 2, 0, 0, 0, 0xff, 0xff];
    let raw = |number| open("a.bin", bytes.clone(), Some(number));
    check(raw(TokenType::U16), TokenFormat::Raw, &[1, 2, 0, 0xffff]);
    check(raw(TokenType::I16), TokenFormat::Raw, &[1, 2, 0, -1]);
    check(raw(TokenType::U32), TokenFormat::Raw, &[0x20001, 0xffff_0000]);
    check(open("a.bin", Vec::new(), Some(TokenType::U16)), TokenFormat::Raw, &[]);
    assert_eq!(defect(open("a.bin", bytes.clone(), None)), (0, TokensDefect::NoType));
    let error = open("a.bin", bytes[..7].to_vec(), Some(TokenType::U16));
    assert_eq!(defect(error), (6, TokensDefect::Partial { bytes: 7, number: "u16" }));
}

#[test]
fn headers_of_llm_c_state_type_and_number() {
    let gpt2 = llm_c(20_240_520, 1, 3, &u16s(&[50_256, 7, 8]));
    check(open("a.bin", gpt2.clone(), None), TokenFormat::LlmC, &[50_256, 7, 8]);
    check(open("a.bin", gpt2.clone(), Some(TokenType::U16)), TokenFormat::LlmC, &[50_256, 7, 8]);
    let llama3 = llm_c(20_240_801, 7, 1, &128_000u32.to_le_bytes());
    check(open("a.bin", llama3, None), TokenFormat::LlmC, &[128_000]);
    let other = open("a.bin", gpt2.clone(), Some(TokenType::U32));
    let expected = TokensDefect::OtherType { stored: "u16", wanted: "u32" };
    assert_eq!(defect(other), (0, expected));
    let version = open("a.bin", llm_c(20_240_520, 2, 0, &[]), None);
    assert_eq!(defect(version), (4, TokensDefect::Version { found: 2, expected: 1 }));
    let (offset, short) = defect(open("a.bin", gpt2[..1029].to_vec(), None));
    assert_eq!(short.to_string(), "header and tokens need 1030 bytes, the file has 1029");
    assert_eq!(offset, 1029);
}

#[test]
fn the_files_of_megatron_lead_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a_text_document.bin"), u16s(&[5, 6, 7, 8, 9])).unwrap();
    fs::write(path("a_text_document.idx"), index(8, &[2, 0, 3], 2)).unwrap();
    fs::write(path("b.idx"), index(8, &[2, 0, 3], 2)).unwrap();
    let open = |name: &str, number| {
        let options = TokenOptions { number, ..TokenOptions::default() };
        TokenFile::open(&Stores::new(), Source::open(path(name)).unwrap(), &options)
    };
    for name in ["a_text_document.bin", "a_text_document.idx"] {
        let file = open(name, None).unwrap();
        assert_eq!((file.format(), tokens(&file)), (TokenFormat::Megatron, vec![5, 6, 7, 8, 9]));
        let documents = file.documents().unwrap();
        assert_eq!(documents.len(), 3);
        let places = [0, 1, 2].map(|document| documents.place(document).unwrap());
        assert_eq!(places, [(0, 2), (2, 0), (2, 3)]);
        let (_, past) = defect_of(documents.place(3).unwrap_err());
        assert_eq!(past.to_string(), "document 3 does not exist, expected one of 3");
        assert_eq!(past.kind(), ErrorKind::NotFound);
    }
    let raw = open("a_text_document.bin", Some(TokenType::U8)).unwrap();
    assert_eq!((raw.format(), raw.len()), (TokenFormat::Raw, 10));
    let missing = open("b.idx", None).unwrap_err();
    assert!(
        missing
            .to_string()
            .ends_with("expected a file of tokens called like this index, ending in .bin")
    );
    assert!(missing.to_string().contains("b.bin"), "{missing}");
}

fn defect_of(error: ReadError) -> (u64, TokensDefect) {
    match error {
        ReadError::Tokens { offset, source, .. } => (offset, source),
        other => panic!("{other}"),
    }
}

fn megatron(tokens: &[u8], index: Vec<u8>) -> Result<TokenFile, ReadError> {
    let tokens = Source::from_bytes("a.bin", tokens.to_vec());
    TokenFile::open_megatron(tokens, &Source::from_bytes("a.idx", index))
}

#[test]
fn indexes_of_megatron_are_checked_field_by_field() {
    let whole = index(8, &[1, 2], 2);
    let changed = |at: usize, byte: u8| {
        let mut index = whole.clone();
        index[at] = byte;
        defect(megatron(&u16s(&[1, 2, 3]), index))
    };
    assert_eq!(changed(0, 0).1.to_string(), "not an index of Megatron-LM: expected MMIDIDX");
    assert_eq!(changed(9, 2), (9, TokensDefect::Version { found: 2, expected: 1 }));
    assert_eq!(changed(17, 6), (17, TokensDefect::TypeCode { code: 6 }));
    for (at, byte) in [(18, 3), (25, 0xff), (26, 9), (33, 0xff)] {
        let message = changed(at, byte).1.to_string();
        assert!(message.starts_with("header, lengths and places of documents need"), "{message}");
    }
    // Data sets of several modalities end with a byte for each document.
    let modes = [&whole[..], &[0, 1]].concat();
    assert_eq!(megatron(&u16s(&[1, 2, 3]), modes).unwrap().documents().unwrap().len(), 2);
}

#[test]
fn a_document_outside_the_tokens_is_an_error_when_it_is_asked_for() {
    let place = |lengths: &[i32], document| {
        let file = megatron(&u16s(&[1, 2, 3]), index(8, lengths, 2)).unwrap();
        file.documents().unwrap().place(document)
    };
    assert_eq!(place(&[1, 2], 1).unwrap(), (1, 2));
    let (offset, outside) = defect_of(place(&[1, 3], 1).unwrap_err());
    assert_eq!(
        outside.to_string(),
        "document 1 has 3 tokens from byte 2 on, the tokens have 6 bytes"
    );
    assert_eq!(offset, 38);
    assert!(place(&[-1, 1], 0).is_err());
    assert!(place(&[i32::MAX, 0], 0).is_err());
}

#[test]
fn arrays_of_numpy_have_one_dimension_of_integers() {
    let file = |descr: &str, shape: &str, data: &[u8]| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        open("a.npy", npy(&text, data), None)
    };
    check(file("<u2", "(2,)", &[1, 0, 0, 1]), TokenFormat::Npy, &[1, 256]);
    check(file("|i1", "(2,)", &[1, 0xff]), TokenFormat::Npy, &[1, -1]);
    check(file("<u8", "(1,)", &[9, 0, 0, 0, 0, 0, 0, 0]), TokenFormat::Npy, &[9]);
    check(file("<i4", "(0,)", &[]), TokenFormat::Npy, &[]);
    let message = |descr: &str, shape: &str| defect(file(descr, shape, &[0; 4])).1.to_string();
    let expected = "expected one dimension of little-endian integers";
    for (descr, shape, found) in [
        ("<f4", "(1,)", "float32 with the shape [1]"),
        ("<u2", "(2, 1)", "u16 with the shape [2, 1]"),
        (">u2", "(2,)", "big-endian u16 with the shape [2]"),
        ("|b1", "(4,)", "bool8 with the shape [4]"),
        ("<u2", "()", "u16 with the shape []"),
    ] {
        assert_eq!(message(descr, shape), format!("array of {found}, {expected}"));
    }
    assert_eq!(message("<u2", "(3,)"), "header and numbers need 74 bytes, the file has 72");
    let magic = defect(open("a.npy", b"\x93NUMPY\x09\0".to_vec(), None)).1;
    assert_eq!(magic, TokensDefect::Npy(NpyError::Version { major: 9, minor: 0 }));
}

#[test]
fn safetensors_have_one_tensor_of_tokens_or_its_name() {
    let header = r#"{"__metadata__": {"a": "b"}, "w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "ids": {"dtype": "U16", "shape": [2], "data_offsets": [4, 8]}}"#;
    let data = [9, 9, 9, 9, 1, 0, 2, 0];
    let file = |header: &str, tensor: Option<&str>| {
        let source = Source::from_bytes("a.safetensors", safetensors(header, &data));
        let tensor = tensor.map(str::to_owned);
        TokenFile::open(&Stores::new(), source, &TokenOptions { tensor, ..TokenOptions::default() })
    };
    check(file(header, None), TokenFormat::Safetensors, &[1, 2]);
    check(file(header, Some("ids")), TokenFormat::Safetensors, &[1, 2]);
    let message = |header: &str, tensor| defect(file(header, tensor)).1.to_string();
    assert_eq!(message(header, Some("w")), "no tensor `w` of tokens; the file has ids");
    let two = r#"{"a": {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}, "b": {"dtype": "I32", "shape": [1], "data_offsets": [4, 8]}}"#;
    check(file(two, Some("b")), TokenFormat::Safetensors, &[0x20001]);
    let expected = "expected exactly one tensor of tokens, otherwise pass its name; the file has";
    assert_eq!(message(two, None), format!("{expected} a, b"));
    assert_eq!(message("{}", None), format!("{expected} none"));
    let one = |shape: &str, offsets: &str| {
        format!(r#"{{"a": {{"dtype": "U16", "shape": {shape}, "data_offsets": {offsets}}}}}"#)
    };
    let wrong = message(&one("[3]", "[0, 4]"), None);
    assert_eq!(wrong, "damaged safetensors header: bytes 0 to 4 for 3 numbers of u16");
    assert!(message(&one("[4]", "[8, 16]"), None).starts_with("header and tensor need"));
    assert!(message(&one("[9223372036854775808]", "[0, 0]"), None).contains("bytes 0 to 0"));
    assert!(message("{", None).starts_with("damaged safetensors header: EOF"));
    let long = open("a.safetensors", vec![0xff; 8], None);
    assert!(defect(long).1.to_string().contains("expected at most 100000000"));
}
