//! Ranges of numbers in names, as shells and WebDataset have them: `train-{000..127}.tar`.

use std::ffi::OsStr;
use std::io;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::ReadError;
use crate::location::Location;

/// The most names of one location: more than any data set has, and a list that fits in memory.
const MAX_NAMES: u64 = 1_000_000;

/// The names that ranges in braces stand for, in the order written, ascending or descending.
/// Numbers have the width of the longer end if one of the two has a leading zero. A path that
/// exists means itself, as does a location without ranges.
///
/// ```
/// let names = tbl_io::expand_braces("s3://bucket/train-{08..10}.tar")?;
/// assert_eq!(names[0].url(), Some("s3://bucket/train-08.tar"));
/// assert_eq!(names[2].url(), Some("s3://bucket/train-10.tar"));
/// # Ok::<(), tbl_io::ReadError>(())
/// ```
///
/// # Errors
/// [`ReadError::Io`] for more than a million names.
pub fn expand_braces(location: impl AsRef<OsStr>) -> Result<Vec<Location>, ReadError> {
    let location = Location::new(location);
    let ranges = iter::successors(Braces::find(location.as_os_str().as_bytes()), |braces| {
        Braces::find(braces.after)
    });
    let count = ranges.fold(1_u64, |count, braces| count.saturating_mul(braces.count()));
    if count > MAX_NAMES {
        let text = format!("names {count} files, at most {MAX_NAMES} are possible");
        let error = io::Error::new(io::ErrorKind::InvalidInput, text);
        return Err(ReadError::io(location.without_secrets(), error));
    }
    let mut names = Vec::new();
    add(location, &mut names);
    Ok(names)
}

/// Adds the names that `location` stands for.
fn add(location: Location, names: &mut Vec<Location>) {
    let exists = location.path().is_some_and(Path::exists);
    let braces = Braces::find(location.as_os_str().as_bytes()).filter(|_| !exists);
    let Some(Braces { before, first, last, width, after }) = braces else {
        return names.push(location);
    };
    for step in 0..=first.abs_diff(last) {
        let number = if first < last { first + step } else { first - step };
        let number = format!("{number:0width$}");
        let name = [before, number.as_bytes(), after].concat();
        add(Location::new(OsStr::from_bytes(&name)), names);
    }
}

/// The first range in a name, and what is around it.
struct Braces<'a> {
    before: &'a [u8],
    first: u64,
    last: u64,
    /// Digits of a number with its zeros.
    width: usize,
    after: &'a [u8],
}

impl<'a> Braces<'a> {
    fn find(name: &'a [u8]) -> Option<Self> {
        let braces = name.iter().enumerate().filter(|&(_, &byte)| byte == b'{');
        braces.map(|(at, _)| name.split_at(at)).find_map(|(before, rest)| {
            let end = rest.iter().position(|&byte| byte == b'}')?;
            let range = rest.get(1..end)?;
            let after = rest.get(end + 1..)?;
            let (first, last) = str::from_utf8(range).ok()?.split_once("..")?;
            let has_zeros = |number: &str| number.len() > 1 && number.starts_with('0');
            let is_padded = has_zeros(first) || has_zeros(last);
            let width = if is_padded { first.len().max(last.len()) } else { 0 };
            let number = |digits: &str| {
                let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
                digits.parse().ok().filter(|_| is_number)
            };
            Some(Self { before, first: number(first)?, last: number(last)?, width, after })
        })
    }

    fn count(&self) -> u64 {
        self.first.abs_diff(self.last).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(range: &str, expected: &[&str]) {
        let name = |number: &str| format!("s3://b/{number}.tar");
        let found = expand_braces(name(range)).unwrap();
        let expected: Vec<_> = expected.iter().map(|number| Location::new(name(number))).collect();
        assert_eq!(found, expected, "{range}");
    }

    #[test]
    fn ranges_count_up_and_down() {
        check("{8..11}", &["8", "9", "10", "11"]);
        check("{10..8}", &["10", "9", "8"]);
        check("{08..10}", &["08", "09", "10"]);
        check("{10..08}", &["10", "09", "08"]);
        check("{2..003}", &["002", "003"]);
        check("{0..10}", &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
        check("{3..3}", &["3"]);
        check("{0..1}{1..0}", &["01", "00", "11", "10"]);
        check("{a}-{{1..2}", &["{a}-{1", "{a}-{2"]);
        check(&format!("{{{}..{0}}}", u64::MAX), &[&u64::MAX.to_string()]);
    }

    #[test]
    fn other_braces_stand_for_themselves() {
        for name in ["{}", "{..}", "{1..}", "{1..2", "{+1..2}", "{-1..2}", "{a..c}", "}1..2{"] {
            check(name, &[name]);
        }
        check("{1..99999999999999999999}", &["{1..99999999999999999999}"]);
    }

    #[test]
    fn a_path_that_exists_means_itself() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("{1..2}.tar");
        assert_eq!(expand_braces(&path).unwrap().len(), 2);
        std::fs::write(&path, "").unwrap();
        assert_eq!(expand_braces(&path).unwrap(), [Location::new(&path)]);
    }

    #[test]
    fn there_is_an_end_of_names() {
        for name in ["{0..99999999999}", "{0..999}{0..999}{1..2}"] {
            let error = expand_braces(name).unwrap_err().to_string();
            assert!(error.contains(" files, at most 1000000 are possible"), "{error}");
        }
        let huge = format!("{{0..{}}}", u64::MAX);
        assert!(expand_braces(huge).is_err());
        let signed = "https://me:secret@host/{0..9999999}?signature=secret";
        let error = expand_braces(signed).unwrap_err().to_string();
        assert!(error.starts_with("https://host/{0..9999999}?...: names"), "{error}");
    }
}
