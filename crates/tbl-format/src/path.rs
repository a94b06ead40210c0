//! Names from a file as paths below a folder: the one check that decides whether a name is safe.
//!
//! The rules are those of Linux, where only `/` and the zero byte are special. A backslash or a
//! Unicode character that looks like a slash or a dot is an ordinary character.

use alloc::vec::Vec;
use core::fmt;

/// The longest path in bytes: `PATH_MAX` of Linux without the final zero byte.
pub const MAX_PATH_BYTES: usize = 4095;

/// The longest component of a path in bytes: `NAME_MAX` of Linux.
pub const MAX_COMPONENT_BYTES: usize = 255;

/// The reason why a name is not a path below a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum PathDefect {
    /// It starts with a slash.
    #[error("it is absolute")]
    Absolute,
    /// One of its components is `..`.
    #[error("it contains `..`")]
    Parent,
    /// It contains a zero byte.
    #[error("it contains a zero byte")]
    ZeroByte,
    /// It is not UTF-8, as URLs are.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// It contains a character that has a meaning of its own in a web server's URL.
    #[error("it contains `?`, `#`, `\\` or a control character")]
    UrlCharacter,
    /// It contains a slash where only part of a file name is allowed.
    #[error("it contains a slash")]
    Slash,
    /// It has no component other than `.`, or a component is empty.
    #[error("it is empty")]
    Empty,
    /// One of its components is empty or `.`.
    #[error("a component is empty or `.`")]
    EmptyComponent,
    /// One of its components is longer than [`MAX_COMPONENT_BYTES`].
    #[error("a component has {bytes} bytes, the limit is {MAX_COMPONENT_BYTES}")]
    LongComponent { bytes: usize },
    /// It is longer than [`MAX_PATH_BYTES`].
    #[error("it has {bytes} bytes, the limit is {MAX_PATH_BYTES}")]
    Long { bytes: usize },
}

/// Checks that a stored name cannot lead out of the folder that it is joined to: it is relative,
/// no component is `..`, and it has no zero byte.
///
/// Readers and writers of data sets apply this to every name. They leave the limits of a file
/// system to [`RelativePath`].
///
/// # Errors
/// [`PathDefect::Absolute`], [`PathDefect::Parent`], [`PathDefect::ZeroByte`].
pub fn check_name(name: &[u8]) -> Result<(), PathDefect> {
    if name.first() == Some(&b'/') {
        return Err(PathDefect::Absolute);
    }
    // Without early exits these are vector code: a fingerprint checks every name of a data set.
    let next = name.get(1..).unwrap_or_default();
    let pairs = name.iter().zip(next);
    let has_dots = pairs.fold(false, |has, pair| has | (pair == (&b'.', &b'.')));
    if name.iter().fold(false, |has, &byte| has | (byte == 0)) {
        return Err(PathDefect::ZeroByte);
    }
    if has_dots && name.split(|&byte| byte == b'/').any(|component| component == b"..") {
        return Err(PathDefect::Parent);
    }
    Ok(())
}

/// Checks a name that becomes the end of a web server's URL. Such URLs have escapes, so that `%2e%2e`
/// is `..`; a `\` in them is a slash, tabs and line breaks are left out, and `?` and `#` end the path.
///
/// # Errors
/// [`PathDefect::UrlCharacter`], and those of [`check_name`] for the name without escapes.
pub fn check_web_name(name: &[u8]) -> Result<(), PathDefect> {
    if name.iter().any(|byte| byte.is_ascii_control() || b"?#\\".contains(byte)) {
        return Err(PathDefect::UrlCharacter);
    }
    let mut unescaped = unescape(name);
    // Some servers take one for the other.
    unescaped.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    check_name(&unescaped)
}

/// The text that a part of a URL stands for: `%20` is a space.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut unescaped = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, after @ ..] if first == b'%' => hex(*high, *low).map(|byte| (byte, after)),
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((first, after));
        unescaped.push(byte);
        rest = after;
    }
    unescaped
}

/// The byte that two hexadecimal digits stand for.
fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(16 * digit(high)? + digit(low)?).ok()
}

/// Checks a name that a new sample gets: besides [`check_name`], no component is empty or `.`, so
/// that the sample can become a file. Existing data sets may have other names.
///
/// # Errors
/// Those of [`check_name`], and [`PathDefect::EmptyComponent`].
pub fn check_new_name(name: &[u8]) -> Result<(), PathDefect> {
    check_name(name)?;
    if name.split(|&byte| byte == b'/').any(|component| matches!(component, b"" | b".")) {
        return Err(PathDefect::EmptyComponent);
    }
    Ok(())
}

/// Checks that the extension of a sidecar field is part of one file name: no slash, no zero byte.
///
/// # Errors
/// [`PathDefect::Slash`], [`PathDefect::ZeroByte`].
pub fn check_extension(extension: &[u8]) -> Result<(), PathDefect> {
    if extension.contains(&b'/') {
        return Err(PathDefect::Slash);
    }
    if extension.contains(&0) {
        return Err(PathDefect::ZeroByte);
    }
    Ok(())
}

/// Checks that `component` names an entry of the folder that it is looked up in.
///
/// # Errors
/// Any [`PathDefect`] except [`PathDefect::Absolute`] and [`PathDefect::Long`].
pub fn check_component(component: &[u8]) -> Result<(), PathDefect> {
    check_extension(component)?;
    match component {
        b"" | b"." => Err(PathDefect::Empty),
        b".." => Err(PathDefect::Parent),
        _ if component.len() > MAX_COMPONENT_BYTES => {
            Err(PathDefect::LongComponent { bytes: component.len() })
        }
        _ => Ok(()),
    }
}

/// A path that stays below the folder that it is joined to.
///
/// It has at least one component. No component is empty, `.`, `..`, longer than
/// [`MAX_COMPONENT_BYTES`], or contains a zero byte; the path is not longer than
/// [`MAX_PATH_BYTES`]. Symbolic links are the business of the code that opens it.
///
/// ```
/// use tbl_format::path::{PathDefect, RelativePath};
///
/// assert_eq!(RelativePath::new(b"./cats//tom.jpg")?.as_bytes(), b"cats/tom.jpg");
/// assert_eq!(RelativePath::new(b"cats/../../tom.jpg"), Err(PathDefect::Parent));
/// # Ok::<(), PathDefect>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RelativePath(Vec<u8>);

impl RelativePath {
    /// The path that a stored name stands for. Empty components and `.` are dropped.
    ///
    /// # Errors
    /// Any [`PathDefect`] except [`PathDefect::Slash`].
    pub fn new(name: &[u8]) -> Result<Self, PathDefect> {
        check_name(name)?;
        let mut path = Vec::new();
        for component in name.split(|&byte| byte == b'/') {
            if matches!(component, b"" | b".") {
                continue;
            }
            check_component(component)?;
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(component);
        }
        match path.len() {
            0 => Err(PathDefect::Empty),
            bytes if bytes > MAX_PATH_BYTES => Err(PathDefect::Long { bytes }),
            _ => Ok(Self(path)),
        }
    }

    /// The path with single slashes between its components.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components in order.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/')
    }

    /// The folder, which is empty or ends with a slash, and the last component.
    pub fn split(&self) -> (&[u8], &[u8]) {
        let slash = self.0.iter().rposition(|&byte| byte == b'/');
        self.0.split_at(slash.map_or(0, |at| at.saturating_add(1)))
    }
}

impl fmt::Display for RelativePath {
    /// Bytes other than printable ASCII characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &[u8], expected: Result<&str, PathDefect>) {
        let found = RelativePath::new(name);
        let found = found.as_ref().map(RelativePath::as_bytes).map_err(|&defect| defect);
        assert_eq!(found, expected.map(str::as_bytes), "{}", name.escape_ascii());
    }

    #[test]
    fn a_name_that_leaves_the_folder_is_refused() {
        for (name, defect) in [
            ("/etc/passwd", PathDefect::Absolute),
            ("//", PathDefect::Absolute),
            ("..", PathDefect::Parent),
            ("a/../../b.jpg", PathDefect::Parent),
            ("a/..", PathDefect::Parent),
            ("a\0b.jpg", PathDefect::ZeroByte),
        ] {
            assert_eq!(check_name(name.as_bytes()), Err(defect), "{name:?}");
            check(name.as_bytes(), Err(defect));
        }
    }

    #[test]
    fn a_name_on_a_web_server_has_escapes() {
        for (name, expected) in [
            ("a b/c.tar", Ok(())),
            ("a%20b/%E2%80%A6.tar", Ok(())),
            ("100%/%zz/%2", Ok(())),
            ("a%3Fb%2fc", Ok(())),
            ("%2e%2E/a", Err(PathDefect::Parent)),
            ("a/.%2e/%2e./b", Err(PathDefect::Parent)),
            ("a/..%2fb", Err(PathDefect::Parent)),
            ("a%5c..%5Cb", Err(PathDefect::Parent)),
            ("../a", Err(PathDefect::Parent)),
            ("/a", Err(PathDefect::Absolute)),
            ("%2fa", Err(PathDefect::Absolute)),
            ("a%00", Err(PathDefect::ZeroByte)),
            ("..\\a", Err(PathDefect::UrlCharacter)),
            (".\t./a", Err(PathDefect::UrlCharacter)),
            ("\n/host/a", Err(PathDefect::UrlCharacter)),
            ("a?b", Err(PathDefect::UrlCharacter)),
            ("a#b", Err(PathDefect::UrlCharacter)),
        ] {
            assert_eq!(check_web_name(name.as_bytes()), expected, "{name:?}");
        }
    }

    #[test]
    fn a_name_keeps_its_meaning() {
        for (name, expected) in [
            ("./a//b.jpg", "a/b.jpg"),
            ("...", "..."),
            ("a/..b/c.", "a/..b/c."),
            ("..\\..\\windows", "..\\..\\windows"),
            ("C:\\x", "C:\\x"),
            ("\u{2024}\u{2024}/\u{2215}etc", "\u{2024}\u{2024}/\u{2215}etc"),
        ] {
            assert_eq!(check_name(name.as_bytes()), Ok(()), "{name:?}");
            check(name.as_bytes(), Ok(expected));
        }
        for name in ["", ".", "./", ".//."] {
            assert_eq!(check_name(name.as_bytes()), Ok(()), "{name:?}");
            check(name.as_bytes(), Err(PathDefect::Empty));
        }
    }

    #[test]
    fn a_new_name_is_a_file_name() {
        for name in ["", ".", "a/", "a//b", "./a", "a/./b", "/"] {
            assert!(check_new_name(name.as_bytes()).is_err(), "{name:?}");
        }
        for name in ["a", "a/b.jpg", "...", ".hidden", "a/..b", " "] {
            assert_eq!(check_new_name(name.as_bytes()), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn lengths_are_those_of_a_file_system() {
        let deep = "a/".repeat(2047) + "b";
        check(deep.as_bytes(), Ok(&deep));
        check((deep + "b").as_bytes(), Err(PathDefect::Long { bytes: 4096 }));
        let wide = "w".repeat(255);
        check(wide.as_bytes(), Ok(&wide));
        check((wide + "w/x").as_bytes(), Err(PathDefect::LongComponent { bytes: 256 }));
    }

    #[test]
    fn an_extension_is_part_of_one_file_name() {
        for (extension, expected) in [
            (&b"/../../evil"[..], Err(PathDefect::Slash)),
            (b"a/b", Err(PathDefect::Slash)),
            (b"a\0", Err(PathDefect::ZeroByte)),
            (b"seg.png", Ok(())),
            (b"", Ok(())),
            (b"..", Ok(())),
        ] {
            assert_eq!(check_extension(extension), expected);
        }
    }
}
