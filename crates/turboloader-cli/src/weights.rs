//! A file of weights: a number on each line, one for each sample.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use tbl_io::Escaped;
use tl_pipeline::{PipelineError, Weights};

use crate::failure::{Failure, Subject};

/// Weights are shorter than this: a longer line has no end, or the file is not text.
const MAX_LINE_BYTES: u64 = 400;

/// Reads the weights in `path`.
pub(crate) fn read(path: &Path) -> Result<Weights, Failure> {
    let io_failure = |source| Failure::Io { path: path.to_owned(), source };
    let mut file = BufReader::new(tbl_io::open_file(path)?);
    let mut weights = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut file).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        if read.map_err(io_failure)? == 0 {
            break;
        }
        weights.push(weight(&line).ok_or_else(|| {
            let found = Escaped(line.trim_ascii());
            Failure::setting(format_args!(
                "{}: line {}: invalid weight `{found}`: expected a number of 0 or more",
                Subject::file(path),
                weights.len() + 1,
            ))
        })?);
    }
    Ok(Weights::from_floats(&weights).map_err(PipelineError::from)?)
}

/// The weight on a line.
fn weight(line: &[u8]) -> Option<f64> {
    if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        return None;
    }
    let number: f64 = str::from_utf8(line).ok()?.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(bytes: &[u8]) -> Result<Weights, String> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), bytes).expect("it is writable");
        let name = file.path().display().to_string();
        read(file.path()).map_err(|error| error.to_string().replace(&name, "weights"))
    }

    #[test]
    fn each_line_is_a_weight() {
        let weights = Weights::from(vec![2_147_483_648, 0, u32::MAX]);
        for text in ["0.5\n0\n1\n", "0.5\n0\n1", " 5e-1 \r\n0.0\r\n1.0\r\n"] {
            assert_eq!(read_from(text.as_bytes()), Ok(weights.clone()), "{text}");
        }
        assert_eq!(read_from(b""), Ok(Weights::from(Vec::new())));
    }

    #[test]
    fn a_line_that_is_no_weight_is_named() {
        let check = |bytes: &[u8], line, found: &str| {
            let expected = format!(
                "weights: line {line}: invalid weight `{found}`: expected a number of 0 or more"
            );
            assert_eq!(read_from(bytes), Err(expected));
        };
        check(b"1\n2\nx\n4\n", 3, "x");
        check(b"1\n\n2\n", 2, "");
        check(b"-1\n", 1, "-1");
        check(b"1\ninf\n", 2, "inf");
        check(b"NaN\n", 1, "NaN");
        check(b"1 2\n", 1, "1 2");
        check(b"1\n\xff\n", 2, r"\xff");
        check(&[b'0'; 5000], 1, &"0".repeat(400));
    }
}
