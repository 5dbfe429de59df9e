//! From a script to the stream graph: catalogue, DataFusion's logical plan, Flink's rules for streams, operators.
//!
//! ```text
//!  Script ─▶ refuse ─▶ logical (SqlToRel, analyser, column pruning) ─▶ translate ─▶ StreamGraph
//!               │            │                                            │
//!               └────────────┴──────────── fault: a place for each error ─┘
//! ```
//! Three to know: [`plan_script`], [`Plan`], [`PlanOptions`]. Must not know: how tasks run, where state lies.

mod assignable;
mod context;
mod fault;
mod fingerprint;
mod functions;
mod graph;
mod length;
mod logical;
mod named_state;
mod not_null;
mod refuse;
mod script;
mod settings;
mod shown;
mod sink;
mod source;
mod stream;
mod translate;
mod unique_names;
mod wording;

pub use script::{Plan, PlanOptions, PlannedInsert, plan_script};
pub use settings::{KEYS, NotNull, Settings};
