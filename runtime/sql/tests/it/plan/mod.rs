//! Scripts to dataflows.

mod any_text;
mod fingerprints;
mod golden;
mod refusals;
mod sinks;

use std::{collections::BTreeMap, path::PathBuf};

use chrono_tz::Tz;
use streamkeeper_sql::plan::{Plan, PlanOptions, plan_script};
use streamkeeper_types::Error;

/// A source with a rowtime and a processing time, and sinks of both kinds.
const TABLES: &str = "
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT NOT NULL, price INT, channel STRING,
  ts TIMESTAMP(3),
  pt AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'bids', 'format' = 'csv');
CREATE TABLE plain (k BIGINT, v DOUBLE, s STRING) WITH ('connector' = 'filesystem', 'path' = 'plain', 'format' = 'csv');
CREATE TABLE files (a BIGINT, b STRING, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');
CREATE TABLE printed (a BIGINT, n BIGINT) WITH ('connector' = 'print');
";

fn options() -> PlanOptions {
    PlanOptions {
        job: "default/test".to_owned(),
        base_dir: PathBuf::from("/jobs"),
        zone: Tz::UTC,
        config: BTreeMap::new(),
        table_options: BTreeMap::new(),
    }
}

fn try_plan(text: &str) -> Result<Plan, Error> {
    plan_script(text, &options())
}

/// Plans statements over [`TABLES`].
fn plan(statements: &str) -> Plan {
    let text = format!("{TABLES}{statements}");
    try_plan(&text).unwrap_or_else(|error| panic!("{statements}\n{error}"))
}

/// The error of statements over [`TABLES`]; lines are counted from the first one of `statements`.
fn refusal(statements: &str) -> Error {
    let text = format!("{TABLES}{statements}");
    match try_plan(&text) {
        Err(error) => error,
        Ok(plan) => panic!("{statements}\n{}", plan.explain(streamkeeper_sql::explain::Format::Tree)),
    }
}
