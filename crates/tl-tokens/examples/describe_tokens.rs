//! Prints format, type, tokens and documents of files, and the first tokens of each:
//! `cargo run --example describe_tokens -- [u16] FILE...`

use std::error::Error;

use tbl_io::{Source, Stores};
use tl_tokens::{TokenFile, TokenOptions, TokenType};

/// Tokens that are printed.
const SHOWN: u64 = 8;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let number = files.first().and_then(|name| TokenType::named(name));
    if number.is_some() {
        files.remove(0);
    }
    let options = TokenOptions { number, ..TokenOptions::default() };
    for path in files {
        let file = TokenFile::open(&Stores::new(), Source::open(&path)?, &options)?;
        print!("{path}: {}, {} tokens of {}", file.format(), file.len(), file.number().name());
        if let Some(documents) = file.documents() {
            print!(", {} documents", documents.len());
        }
        let count = file.len().min(SHOWN);
        let stored = file.read(0, count, &mut Vec::new(), <[u8]>::to_vec)?;
        let mut tokens = vec![0; stored.len() / file.number().bytes() * size_of::<i64>()];
        if file.number().convert(&stored, TokenType::I64, &mut tokens).is_ok() {
            let (tokens, _) = tokens.as_chunks();
            let tokens: Vec<i64> = tokens.iter().map(|token| i64::from_ne_bytes(*token)).collect();
            print!(": {tokens:?}");
        }
        println!();
    }
    Ok(())
}
