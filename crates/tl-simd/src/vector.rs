//! The operations that kernels need from a vector unit, and the dispatch over [`Level`](crate::Level).

/// Evaluates `$definition` at the scalar level, and `$kernel` with the level's token otherwise.
macro_rules! dispatch {
    ($level:expr, scalar => $definition:expr, $simd:ident => $kernel:expr $(,)?) => {
        match $level {
            $crate::Level::Scalar => $definition,
        }
    };
}
pub(crate) use dispatch;
