//! NAL units with their lengths before them, as MP4 and Matroska store those of H.264 and H.265.

/// Passes the units of a packet to `take`, each of which has its size in `length` bytes before it.
///
/// # Errors
/// The reason, if a unit is longer than the packet.
pub(crate) fn each<'a>(
    packet: &'a [u8],
    length: usize,
    mut take: impl FnMut(&'a [u8]),
) -> Result<(), String> {
    let mut rest = packet;
    while !rest.is_empty() {
        let at = packet.len() - rest.len();
        let unit = rest.split_at_checked(length).and_then(|(size, rest)| {
            let size = size.iter().fold(0, |size, byte| (size << 8) | usize::from(*byte));
            rest.split_at_checked(size)
        });
        let Some((unit, others)) = unit else {
            return Err(format!("the NAL unit at byte {at} of the packet is longer than it"));
        };
        take(unit);
        rest = others;
    }
    Ok(())
}
