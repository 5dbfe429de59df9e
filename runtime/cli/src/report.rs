//! What a person or a script sees: errors, tables, JSON.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    process::ExitCode,
};

use comfy_table::{Cell, ContentArrangement, Table, presets};
use serde::Serialize;
use streamkeeper_types::{Code, Error, Fault, Result};

use crate::args::{Global, Output};

/// Logs go to standard error, in colour only on a terminal.
pub fn start_logging(global: &Global) {
    tracing_subscriber::fmt()
        .with_max_level(global.log)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// One error, once: text for people, one JSON object for scripts, always on standard error.
pub fn error(error: &Error, output: Output) {
    if output == Output::Json {
        eprintln!("{}", serde_json::json!({ "error": error }));
        return;
    }
    let (red, reset) = if std::io::stderr().is_terminal() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    eprintln!("{red}error{reset}{error}", error = format_args!(" {error}"));
}

/// 1: the user can mend it; 2 is clap's; 3: something outside failed; 4: a bug of ours.
#[must_use]
pub fn exit_code(error: &Error) -> ExitCode {
    match error.fault() {
        Fault::User => ExitCode::from(1),
        Fault::External => ExitCode::from(3),
        Fault::Internal => ExitCode::from(4),
    }
}

/// One line, or several, on standard output. Whoever reads may stop reading (`| head`): then the process just ends.
pub fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(broken) if broken.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(other) => {
            let failed = Error::io(Code::NotWritable, "standard output", &other);
            error(&failed, Output::Text);
            std::process::exit(3);
        }
    }
}

/// One JSON document on standard output.
///
/// # Errors
/// Never for our own types; a serializer that fails is a bug.
pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::internal(e.to_string()))?;
    line(&text);
    Ok(())
}

/// One JSON document on one line.
///
/// # Errors
/// As [`json`].
pub fn json_line(value: &impl Serialize) -> Result<()> {
    line(&json_text(value)?);
    Ok(())
}

/// One JSON document without a line break.
///
/// # Errors
/// As [`json`].
pub fn json_text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(e.to_string()))
}

/// A time as `2026-01-31 10:05:03`, UTC.
#[must_use]
pub fn time(millis: streamkeeper_types::Millis) -> String {
    chrono::DateTime::from_timestamp_millis(millis)
        .map_or_else(|| millis.to_string(), |time| time.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// A table that fits the terminal.
#[must_use]
pub fn table<C: Into<Cell>>(header: &[&str], rows: Vec<Vec<C>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}
