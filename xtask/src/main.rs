//! Development tasks: `cargo xtask tidy | test | bench | fuzz`.

fn main() {}
