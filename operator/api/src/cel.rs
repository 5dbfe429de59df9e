//! The CEL rules that the API server checks, numbered as in the design (C1 to C8), one function per struct.
//!
//! `validate` checks the same rules in Rust for the command line, which has no API server.

use serde_json::{Value, json};

const KEEP_STATE: &str =
    "cannot change while upgrade.mode is lastCheckpoint: a checkpoint is bound to it; use savepoint";

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

fn at_least(field: &str, minimum: &str) -> Value {
    rule(&format!("duration(self.{field}) >= duration('{minimum}')"), &format!("{field} must be at least {minimum}"))
}

/// Holds if the optional member is the same before and after. A transition rule must also see it come and go.
fn unchanged(member: &str) -> String {
    let parent = |object: &str| format!("{object}.{member}");
    let (new, old) = (parent("self"), parent("oldSelf"));
    format!("(has({new}) == has({old}) && (!has({new}) || {new} == {old}))")
}

/// C1, C2, C3, C5, the job-wide part of C8, and `image` beside `program`.
pub(crate) fn spec() -> Value {
    json!([
        rule(
            "[has(self.sql), has(self.sqlFrom), has(self.program)].filter(x, x).size() == 1",
            "give exactly one of sql, sqlFrom and program",
        ),
        rule(
            "!(has(self.image) && has(self.program))",
            "image is the runtime's image; a program brings its own, in program.image",
        ),
        rule(
            "!has(self.maxParallelism) || self.parallelism <= self.maxParallelism",
            "parallelism must not exceed maxParallelism",
        ),
        rule(
            "!has(oldSelf.maxParallelism) || (has(self.maxParallelism) && self.maxParallelism == oldSelf.maxParallelism)",
            "maxParallelism cannot change once it is set",
        ),
        rule(
            "self.state.backend == oldSelf.state.backend || self.upgrade.mode != 'lastCheckpoint'",
            &format!("state.backend {KEEP_STATE}"),
        ),
        rule(
            &format!("{} || self.upgrade.mode != 'lastCheckpoint'", unchanged("checkpoint.storage")),
            &format!("checkpoint.storage {KEEP_STATE}"),
        ),
        rule(
            "!has(self.autoscaler.maxParallelism) || !has(self.maxParallelism) || self.autoscaler.maxParallelism <= self.maxParallelism",
            "autoscaler.maxParallelism must not exceed maxParallelism",
        ),
    ])
}

/// C4.
pub(crate) fn checkpoint() -> Value {
    json!([
        rule(
            "duration(self.interval) == duration('0s') || duration(self.interval) >= duration('1s')",
            "interval must be 0s (off) or at least 1s",
        ),
        at_least("timeout", "1s"),
        rule(
            "(!self.unaligned && !has(self.alignedTimeout)) || self.mode == 'exactlyOnce'",
            "unaligned and alignedTimeout need mode exactlyOnce",
        ),
    ])
}

pub(crate) fn savepoint_policy() -> Value {
    json!([at_least("timeout", "10s")])
}

pub(crate) fn rollback() -> Value {
    json!([at_least("soak", "10s")])
}

/// C6.
pub(crate) fn restore() -> Value {
    json!([rule(
        "!(has(self.fromSavepoint) && has(self.discardUpTo))",
        "fromSavepoint and discardUpTo exclude each other",
    )])
}

/// C7.
pub(crate) fn deletion() -> Value {
    json!([at_least("timeout", "30s")])
}

/// C8.
pub(crate) fn autoscaler() -> Value {
    json!([
        rule(
            "!has(self.maxParallelism) || self.minParallelism <= self.maxParallelism",
            "minParallelism must not exceed maxParallelism",
        ),
        rule(
            "self.targetUtilization + self.utilizationBand <= 100 && self.targetUtilization > self.utilizationBand",
            "the band around targetUtilization must lie between 0 and 100",
        ),
        at_least("window", "30s"),
    ])
}

/// What of a Savepoint cannot change, and what cannot go together.
pub(crate) fn savepoint() -> Value {
    json!([
        rule("self.jobName == oldSelf.jobName", "jobName cannot change"),
        rule(&unchanged("existing"), "existing cannot change"),
        rule(&unchanged("format"), "format cannot change"),
        rule(
            "!(has(self.existing) && self.deleteData)",
            "data that was made elsewhere is never deleted: leave deleteData out",
        ),
    ])
}

/// Names of children are made from the job's; a label takes 63 characters.
pub(crate) fn job_name() -> Value {
    json!([rule("size(self.metadata.name) <= 45", "metadata.name must have at most 45 characters")])
}
