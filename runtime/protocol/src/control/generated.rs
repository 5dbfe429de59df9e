//! Code made by `build.rs`.

#![allow(missing_docs, clippy::all, clippy::pedantic)]

tonic::include_proto!("streamkeeper.control.v1");
