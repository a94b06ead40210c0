//! `tiff:Orientation` in an XMP packet, as an attribute or an element.

use memchr::memmem;

use super::Orientation;

/// The orientation of the first property that Pillow's search for
/// `tiff:Orientation(="|>)([0-9])` finds. Digits other than 1 to 8 count as upright.
pub(crate) fn orientation(packet: &[u8]) -> Option<Orientation> {
    const NAME: &[u8] = b"tiff:Orientation";
    memmem::find_iter(packet, NAME).find_map(|at| {
        let rest = packet.get(at + NAME.len()..)?;
        let value = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">"))?;
        let digit = value.first().filter(|byte| byte.is_ascii_digit())?;
        Some(Orientation::from_tag(u64::from(digit - b'0')).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientation_is_an_attribute_or_an_element() {
        for (packet, expected) in [
            (&b"<rdf:Description tiff:Orientation=\"6\"/>"[..], Some(Orientation::Rotate90)),
            (b"<tiff:Orientation>8</tiff:Orientation>", Some(Orientation::Rotate270)),
            (b"<tiff:Orientation> 8</tiff:Orientation>", None),
            (b"tiff:Orientation='6' tiff:Orientation=\"3\"", Some(Orientation::Rotate180)),
            (b"tiff:Orientation=\"9\" tiff:Orientation=\"3\"", Some(Orientation::Upright)),
            (b"tiff:Orientation=\"", None),
            (b"tiff:Orientation", None),
            (b"", None),
        ] {
            assert_eq!(orientation(packet), expected, "{:?}", packet.escape_ascii().to_string());
        }
    }
}
