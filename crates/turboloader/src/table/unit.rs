//! Units of time.

/// The unit of times in a Parquet file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Every year of .NET, but not the last digit of its ticks of 100 ns.
    #[default]
    Microseconds,
    /// Every tick, but only the years 1678 to 2261.
    Nanoseconds,
}
