//! The account of how a view came about.

use std::fmt;

/// One view of a chain.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// How many joins it is within.
    pub(super) depth: usize,
    /// The selection in words.
    pub(super) words: String,
    /// The number of samples after it.
    pub(super) len: u64,
    /// The price of making and keeping it.
    pub(super) cost: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { depth, words, len, cost } = self;
        let indent = depth * 2;
        let plural = if *len == 1 { "" } else { "s" };
        write!(f, "{:indent$}{words}: {len} sample{plural}", "")?;
        if cost.is_empty() { Ok(()) } else { write!(f, " ({cost})") }
    }
}

/// The first of some values.
pub(super) fn listed<T: fmt::Display>(values: &[T]) -> String {
    const LISTED: usize = 4;
    let mut words: Vec<String> = values.iter().take(LISTED).map(T::to_string).collect();
    if values.len() > LISTED {
        words.push(format!("{} more", values.len() - LISTED));
    }
    words.join(", ")
}

/// A number of bytes in words.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000.. => format!("{} MB", bytes / 1_000_000),
    }
}
