//! The `tl` command.

fn main() {}
