//! Rules against tuples that only join things on one line: in parameters and in bindings.

use super::{Problem, SourceFile};

/// All problems of one file of a library.
pub(super) fn check(file: &SourceFile) -> Vec<Problem> {
    let is_library = file.path.starts_with("crates/") && file.path.contains("/src/");
    if !is_library {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut start = 0;
    for (number, line) in file.text.split_inclusive('\n').enumerate() {
        let rest = file.text.get(start..).unwrap_or_default();
        let message = if has_tuple_parameter(line) {
            Some("a parameter has a name: pass the values one by one, or name what they are")
        } else if binds_a_pair(rest) {
            Some("two values that do not depend on each other are two `let`s")
        } else {
            None
        };
        problems.extend(message.map(|message| Problem {
            path: file.path.clone(),
            line: number + 1,
            message: message.to_owned(),
        }));
        start += line.len();
    }
    problems
}

/// Whether a line has a parameter such as `(width, height): (u32, u32)`. The first parameter of a
/// closure may be one.
fn has_tuple_parameter(line: &str) -> bool {
    line.match_indices("): ").any(|(end, _)| {
        let before = line.get(..end).unwrap_or_default();
        let Some((before, names)) = before.rsplit_once('(') else { return false };
        let is_parameter = before.trim_start().is_empty() || before.ends_with(['(', ' ']);
        is_parameter && !before.ends_with("let ") && names_of(names).is_some()
    })
}

/// Whether the first statement of `code` is such as `let (a, b) = (x, y);`, and could be two. It
/// could not if a value is computed from a variable that an earlier name hides.
fn binds_a_pair(code: &str) -> bool {
    let Some(rest) = code.trim_start_matches(' ').strip_prefix("let (") else { return false };
    let Some((names, rest)) = rest.split_once(')') else { return false };
    let Some(names) = names_of(names) else { return false };
    let Some(rest) = rest.strip_prefix(" = ").or_else(|| rest.strip_prefix(" =\n")) else {
        return false;
    };
    let Some(values) = rest.trim_start().strip_prefix('(').and_then(values_of) else {
        return false;
    };
    let hides = |(place, name): (usize, &&str)| {
        values.iter().skip(place + 1).any(|value| is_used(name, value))
    };
    values.len() == names.len() && !names.iter().enumerate().any(hides)
}

/// The names of `a, mut b`; `None` for any other pattern, and for fewer than two.
fn names_of(pattern: &str) -> Option<Vec<&str>> {
    let is_name = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let names: Vec<&str> =
        pattern.split(", ").map(|name| name.strip_prefix("mut ").unwrap_or(name)).collect();
    (names.len() > 1 && names.iter().all(is_name)).then_some(names)
}

/// The values of a tuple whose opening parenthesis is before `code`; `None` if the statement does
/// not end with the tuple.
fn values_of(code: &str) -> Option<Vec<&str>> {
    let mut depth = 0_u32;
    let mut start = 0;
    let mut values = Vec::new();
    for (at, letter) in code.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ')' | ',' if depth == 0 => {
                values.push(code.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
        if letter == ')' && start == at + 1 {
            values.retain(|value| !value.trim().is_empty());
            return code.get(start..)?.starts_with(';').then_some(values);
        }
    }
    None
}

/// Whether `value` has `name` as a word, but not as a field or method.
fn is_used(name: &str, value: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    value.match_indices(name).any(|(at, _)| {
        let before = value.get(..at).unwrap_or_default();
        let after = value.get(at + name.len()..).unwrap_or_default();
        !before.ends_with(|letter| is_part(letter) || letter == '.') && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).iter().map(|problem| problem.line).collect()
    }

    const LIBRARY: &str = "crates/tbl-io/src/reader.rs";

    #[test]
    fn parameters_without_a_name_are_refused() {
        for text in [
            "fn f((width, height): (u32, u32)) {}\n",
            "fn f(&self, (from, mut to): Range) {}\n",
            "let f = |x, (a, b): (u32, u32)| a;\n",
        ] {
            assert_eq!(lines(LIBRARY, text), [1], "{text}");
        }
        assert_eq!(lines(LIBRARY, "fn f(\n    a: u8,\n    (b, c): (u8, u8),\n) {}\n"), [3]);
    }

    #[test]
    fn other_parameters_are_not() {
        for text in [
            "fn f(size: (u32, u32)) {}\n",
            "fn f(Size { width, height }: Size, at: [u8; 2]) -> (u8, u8) {}\n",
            "let f = |(a, b): (u32, u32)| a;\n",
            "let (bytes, numbers): (Vec<_>, Vec<_>) = lines.partition(f);\n",
            "struct S { of: fn(A, B), place: (A, B) }\n",
        ] {
            assert_eq!(lines(LIBRARY, text), [0; 0], "{text}");
        }
    }

    #[test]
    fn pairs_of_independent_values_are_refused() {
        for text in [
            "    let (a, b) = (x, y);\n",
            "let (mut a, _, b) = (f(x, y), [1, 2], size.a);\n",
            "let (a, b) =\n    (f(x), y);\n",
            "let (a, b) = (\n    x,\n    y,\n);\n",
            "let (a, b) = (a as u64, b as u64);\n",
        ] {
            assert_eq!(lines(LIBRARY, text), [1], "{text}");
        }
    }

    #[test]
    fn other_pairs_are_not() {
        for text in [
            "let (a, b) = (b, a);\n",
            "let (a, b) = (a + 1, f(a));\n",
            "let (a, b) = pair(x, y);\n",
            "let (a, b) = (x, y).max((u, v));\n",
            "let ((a, b), c) = (x, y);\n",
            "let pair = (x, y);\n",
        ] {
            assert_eq!(lines(LIBRARY, text), [0; 0], "{text}");
        }
        assert_eq!(lines("crates/tbl-io/tests/it/main.rs", "let (a, b) = (x, y);\n"), [0; 0]);
    }
}
