//! Searches for `testdata/tools/compare_faiss.py`.
//!
//! Its arguments are a file of `f32`, the rows one after the other, and their dimension. A line on
//! standard input is `ELEMENT METRIC LEVEL K` and the numbers of a query, with spaces between:
//! `f32`, `f16`, `bf16` or `i8`; `dot`, `l2` or `cosine`; a level such as `avx2`. The answer is a
//! line with the nanoseconds of processor time, and then the rows, each with its score. For
//! `ELEMENT read LEVEL 0` the rows are only read.

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;
use std::{env, fs};

use tl_benches::processor_time;
use tl_benches::vectors::{self, Rows};
use tl_simd::Level;
use tl_simd::similarity::{Element, Match, Metric, Query, nearest};

const ELEMENTS: [(&str, Element); 4] =
    [("f32", Element::F32), ("f16", Element::F16), ("bf16", Element::Bf16), ("i8", Element::I8)];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(path), Some(dim)) = (arguments.next(), arguments.next()) else {
        return Err("usage: vector_search FILE DIM".into());
    };
    let dim = dim.parse()?;
    let bytes = fs::read(path)?;
    let values: Vec<f32> = bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    drop(bytes);
    let all = ELEMENTS.map(|(name, element)| (name, Rows::new(element, dim, &values)));
    drop(values);
    let mut out = io::stdout().lock();
    for line in io::stdin().lines() {
        let (time, found) = answer(&all, &line?)?;
        write!(out, "{}", time.as_nanos())?;
        for Match { row, score, .. } in found {
            write!(out, " {row}:{score}")?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(all: &[(&str, Rows)], line: &str) -> Result<(Duration, Vec<Match>), Box<dyn Error>> {
    let mut words = line.split_ascii_whitespace();
    let mut word = || words.next().ok_or("a request begins with four words");
    let (element, metric, level, k) = (word()?, word()?, word()?, word()?.parse()?);
    let named = all.iter().find(|(name, _)| *name == element);
    let (_, rows) = named.ok_or("an unknown type of number")?;
    let level = Level::available().find(|has| has.to_string() == level);
    let level = level.ok_or("this CPU has no such level")?;
    let values = words.map(str::parse).collect::<Result<Vec<f32>, _>>()?;
    let metric = match metric {
        "dot" => Metric::Dot,
        "l2" => Metric::SquaredL2,
        "cosine" => Metric::Cosine,
        "read" => {
            let start = processor_time();
            std::hint::black_box(vectors::read(level, rows.bytes()));
            return Ok((processor_time() - start, Vec::new()));
        }
        _ => return Err("an unknown metric".into()),
    };
    let matrix = rows.matrix();
    let start = processor_time();
    let found = nearest(level, metric, &matrix, &Query::new(&values), k);
    Ok((processor_time() - start, found))
}
