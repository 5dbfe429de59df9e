//! Whole jobs in one process, with small operators made for it: run, checkpoint, fail, die, restore, rescale, stop.

#![allow(clippy::unwrap_used)]

mod counting;
mod crashes;
mod ends;
mod failures;
mod http;
mod leader;
mod mortal;
mod opening;
mod outside;
mod remote;
mod rest;
mod source;
mod starts;
mod stuck;
mod world;
