//! Patterns of paths, and the parts of a path that their stars stand for.

/// A pattern of paths below a folder: `*` stands for any part of a name, `**` as a whole component for
/// any number of folders.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    /// The folder before the first star: empty, or with a slash at the end.
    pub(super) folder: &'a [u8],
    components: Vec<&'a [u8]>,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(pattern: &'a [u8]) -> Self {
        let star = pattern.iter().position(|&byte| byte == b'*').unwrap_or(pattern.len());
        let front = pattern.get(..star).unwrap_or_default();
        let slash = front.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (folder, rest) = pattern.split_at(slash);
        Self { folder, components: rest.split(|&byte| byte == b'/').collect() }
    }

    /// How many parts of a path it captures.
    pub(super) fn stars(&self) -> usize {
        let of = |component: &&[u8]| match *component {
            b"**" => 1,
            other => other.iter().filter(|&&byte| byte == b'*').count(),
        };
        self.components.iter().map(of).sum()
    }

    /// The parts of a path below the folder that the stars stand for, with zero bytes between them;
    /// `None` for a path that does not match.
    pub(super) fn capture(&self, path: &[u8]) -> Option<Vec<u8>> {
        let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let mut captured = Vec::new();
        capture_folders(&self.components, &parts, &mut captured).then(|| captured.join(&0))
    }
}

/// The patterns that one with braces stands for, in the order written: `*.{jpg,png}` for `*.jpg` and
/// `*.png`. Braces without a comma stand for themselves.
pub(super) fn alternatives(pattern: &str) -> Vec<String> {
    let braces = pattern.match_indices('{').find_map(|(start, _)| {
        let end = start + pattern.get(start..)?.find('}')?;
        let inside = pattern.get(start + 1..end).filter(|inside| inside.contains(','))?;
        Some((pattern.get(..start)?, inside, pattern.get(end + 1..)?))
    });
    let Some((before, inside, after)) = braces else { return vec![pattern.to_owned()] };
    let rest = alternatives(after);
    let each = |text: &str| {
        let front = format!("{before}{text}");
        rest.iter().map(move |rest| format!("{front}{rest}")).collect::<Vec<_>>()
    };
    inside.split(',').flat_map(each).take(MAX_ALTERNATIVES).collect()
}

/// The most patterns that one stands for: more than there are formats of images.
const MAX_ALTERNATIVES: usize = 1000;

fn capture_folders<'p>(
    components: &[&[u8]],
    parts: &[&'p [u8]],
    captured: &mut Vec<&'p [u8]>,
) -> bool {
    // Without backtracking over names: only folders have several ways to match.
    match (components.split_first(), parts.split_first()) {
        (None, None) => true,
        (Some((&b"**", rest)), _) => (0..=parts.len()).any(|folders| {
            let before = captured.len();
            captured.push(b"");
            captured.extend(parts.get(..folders).unwrap_or_default());
            let after = parts.get(folders..).unwrap_or_default();
            let is_match = capture_folders(rest, after, captured);
            if !is_match {
                captured.truncate(before);
            }
            is_match
        }),
        (Some((component, components)), Some((part, parts))) => {
            let before = captured.len();
            let is_match = capture_name(component, part, captured)
                && capture_folders(components, parts, captured);
            if !is_match {
                captured.truncate(before);
            }
            is_match
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// Matches one name. Each star but the last takes as little as it can, so that the literal parts
/// between stars are found from the left; the last one takes the rest.
fn capture_name<'p>(pattern: &[u8], name: &'p [u8], captured: &mut Vec<&'p [u8]>) -> bool {
    let mut literals = pattern.split(|&byte| byte == b'*');
    let first = literals.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let literals: Vec<&[u8]> = literals.collect();
    let Some((last, between)) = literals.split_last() else { return rest.is_empty() };
    for literal in between {
        let found = find(rest, literal);
        let Some(at) = found else { return false };
        captured.push(&rest[..at]);
        rest = &rest[at + literal.len()..];
    }
    match rest.strip_suffix(*last) {
        Some(part) => {
            captured.push(part);
            true
        }
        None => false,
    }
}

fn find(text: &[u8], literal: &[u8]) -> Option<usize> {
    if literal.is_empty() {
        return Some(0);
    }
    text.windows(literal.len()).position(|window| window == literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_capture_parts_of_names() {
        let check = |pattern: &str, path: &str, expected: Option<&str>| {
            let pattern = Pattern::new(pattern.as_bytes());
            let found = pattern
                .capture(path.as_bytes())
                .map(|found| String::from_utf8(found).unwrap().replace('\0', "|"));
            assert_eq!(found.as_deref(), expected, "{pattern:?} {path}");
        };
        check("a/*.jpg", "1.jpg", Some("1"));
        check("a/*.jpg", "1.png", None);
        check("a/*.jpg", "b/1.jpg", None);
        check("a/*_left.png", "x_y_left.png", Some("x_y"));
        check("a/*/*_gt_ids.png", "bern/b_1_gt_ids.png", Some("bern|b_1"));
        check("a/*_*.png", "x_y_z.png", Some("x|y_z"));
        check("*", "", Some(""));
        check("a/x*x", "x", None);
        check("**/*.jpg", "1.jpg", Some("|1"));
        check("**/*.jpg", "a/b/1.jpg", Some("|a|b|1"));
        check("a/**/m/*.jpg", "x/m/m/1.jpg", Some("|x|m|1"));
        check("a/1.jpg", "1.jpg", Some(""));
        assert_eq!(Pattern::new(b"data/a/b*/*.jpg").folder, b"data/a/");
        assert_eq!(Pattern::new(b"data/**/b*/*_*").stars(), 4);
    }

    #[test]
    fn braces_with_commas_are_alternatives() {
        let check = |pattern: &str, expected: &[&str]| assert_eq!(alternatives(pattern), expected);
        check("a/*.{jpg,png}", &["a/*.jpg", "a/*.png"]);
        check("{a,b}/*{,_x}.png", &["a/*.png", "a/*_x.png", "b/*.png", "b/*_x.png"]);
        check("a{1}/*.{jpg", &["a{1}/*.{jpg"]);
        check("{0..3}/{x}{,}", &["{0..3}/{x}", "{0..3}/{x}"]);
        assert_eq!(alternatives(&"{a,b}".repeat(20)).len(), MAX_ALTERNATIVES);
    }

    #[test]
    fn matching_takes_no_longer_than_the_path_is_deep() {
        let path = vec!["a"; 30].join("/");
        let pattern = format!("{}b", "**/a/".repeat(3));
        assert_eq!(Pattern::new(pattern.as_bytes()).capture(path.as_bytes()), None);
    }
}
