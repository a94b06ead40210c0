//! Criterion benchmarks of the workspace; `cargo xtask bench` runs them.
