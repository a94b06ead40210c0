//! File names: key and extension, hidden names, and the order of files within a group.

use tbl_format::SampleFormat;

use crate::label::LabelField;

/// Splits a base name into the group's key and the extension after its first dot. A leading dot
/// belongs to the key. A name with nothing but dots after its first one has no extension.
pub fn split_base(base: &[u8]) -> (&[u8], &[u8]) {
    let dot = base.iter().skip(1).position(|&byte| byte == b'.').map(|at| at + 1);
    match dot {
        Some(dot) if base[dot..].iter().any(|&byte| byte != b'.') => {
            (&base[..dot], &base[dot + 1..])
        }
        _ => (base, &[]),
    }
}

/// The name of the file with `extension` in a group. The inverse of [`split_base`].
pub fn join_base(group: &[u8], extension: &[u8]) -> Vec<u8> {
    let dot: &[u8] = if extension.is_empty() { b"" } else { b"." };
    [group, dot, extension].concat()
}

/// The part of a name after its last dot; the whole name without one.
pub(crate) fn last_extension(base: &[u8]) -> &[u8] {
    base.rsplit(|&byte| byte == b'.').next().unwrap_or(base)
}

/// The part of a numbered file's name between its key and its last dot: `0` of `cat.0.jpg`. Empty
/// without a digit in it.
pub(crate) fn own_part(base: &[u8]) -> &[u8] {
    let (_, extension) = split_base(base);
    let end = extension.iter().rposition(|&byte| byte == b'.').unwrap_or(0);
    let part = &extension[..end];
    if part.iter().any(u8::is_ascii_digit) { part } else { &[] }
}

/// The name of a field within the sample whose [`own_part`] is `own`: `cls` for `0.cls`. `None`
/// for a field that does not have that part.
pub(crate) fn own_field_name<'a>(own: &[u8], extension: &'a [u8]) -> Option<&'a [u8]> {
    if own.is_empty() {
        return None;
    }
    extension.strip_prefix(own)?.strip_prefix(b".")
}

/// The fields of a sample that can hold its label: `cat.cls` and `cat.json` of `cat.0.jpg`, and if it
/// has neither, `cat.0.cls` and `cat.0.json`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelNames<'a> {
    /// Empty if the number has no say.
    own: &'a [u8],
}

impl<'a> LabelNames<'a> {
    /// For the sample with this base name and fields with these extensions.
    pub(crate) fn new<'e>(base: &'a [u8], mut extensions: impl Iterator<Item = &'e [u8]>) -> Self {
        let has_shared = extensions.any(|extension| LabelField::of(extension).is_some());
        Self { own: if has_shared { &[] } else { own_part(base) } }
    }

    /// The kind of label in the field with this extension.
    pub(crate) fn of(self, extension: &[u8]) -> Option<LabelField> {
        LabelField::of(own_field_name(self.own, extension).unwrap_or(extension))
    }
}

/// Names, besides those with a leading dot, that systems leave in folders and archives.
const SYSTEM_NAMES: [&[u8]; 3] = [b"__MACOSX", b"Thumbs.db", b"desktop.ini"];

/// Whether a component of a path is hidden: `.DS_Store`, `._a.jpg`, `.git`, `__MACOSX`.
pub(crate) fn is_hidden(component: &[u8]) -> bool {
    match component {
        b"" | b"." | b".." => false,
        [b'.', ..] => true,
        _ => SYSTEM_NAMES.contains(&component),
    }
}

/// The claim of a file to be its group's sample, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// An image with nothing but a format after the key: `a.jpg`.
    Image,
    /// An image with a further name after the key: `a.left.jpg`.
    NamedImage,
    /// Another file.
    Other,
}

impl Rank {
    /// The rank of a file in a group whose key has `key_bytes` bytes of its base name.
    pub(crate) fn of(base: &[u8], key_bytes: usize) -> Self {
        let extension = base.get(key_bytes + 1..).unwrap_or_default();
        if extension.is_empty() || !SampleFormat::from_file_name(base).is_image() {
            Self::Other
        } else if extension.contains(&b'.') {
            Self::NamedImage
        } else {
            Self::Image
        }
    }

    pub(crate) fn is_image(self) -> bool {
        self != Self::Other
    }
}

/// The order in which files of one group are considered as its sample. Images come first, those
/// with nothing but a format after the key before others; there JPEG comes first, and formats that the
/// first `turboloader` knows before others.
/// Without an image, videos come first, and files that describe a sample last: `txt`, `json`, `cls`. Equal claims
/// are decided by the bytes of the extension.
pub(crate) fn order(base: &[u8], key_bytes: usize) -> (Rank, u8, Vec<u8>, &[u8]) {
    let rank = Rank::of(base, key_bytes);
    let extension = base.get(key_bytes + 1..).unwrap_or_default();
    let lower = extension.to_ascii_lowercase();
    let class = match (rank, lower.as_slice()) {
        (Rank::Image, _) => {
            let format = SampleFormat::from_file_name(base);
            u8::from(format != SampleFormat::Jpeg) + u8::from(!format.is_original())
        }
        (Rank::Other, b"txt") => 2,
        (Rank::Other, b"json") => 3,
        (Rank::Other, b"cls") => 4,
        (Rank::Other, _) => u8::from(!SampleFormat::is_video_name(base)),
        (Rank::NamedImage, _) => 0,
    };
    (rank, class, lower, extension)
}
