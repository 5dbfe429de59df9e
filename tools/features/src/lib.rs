//! No code: see Cargo.toml for what it is for.
