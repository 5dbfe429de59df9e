//! Where a finished job's rows lie, and the first of them.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
};

use serde::Serialize;
use streamkeeper_sql::{
    catalog::Table,
    parse::{Statement, parse_script},
};
use streamkeeper_types::Result;

use crate::{job_file::JobFile, report};

/// Lines shown of each result.
const SHOWN: usize = 6;

/// One sink that writes files.
#[derive(Debug, Serialize)]
pub struct FileResult {
    pub table: String,
    pub folder: PathBuf,
    pub files: usize,
    /// Of one file; empty for formats that are no text.
    pub first_lines: Vec<String>,
}

/// The file sinks of a job.
///
/// # Errors
/// Those of parsing, which has succeeded before.
pub fn of(job: &JobFile) -> Result<Vec<FileResult>> {
    let script = parse_script(&job.sql)?;
    let targets: Vec<&str> = script.inserts().map(|insert| insert.target.as_str()).collect();
    let tables = script.statements.iter().filter_map(|statement| match statement {
        Statement::CreateTable(table) if targets.contains(&table.name.as_str()) => Some(table),
        _ => None,
    });
    Ok(tables.filter_map(|table| of_table(table, &job.base_dir())).collect())
}

fn of_table(table: &Table, base_dir: &Path) -> Option<FileResult> {
    let option = |key: &str| table.options.get(key).map(|o| o.value.as_str());
    if option("connector") != Some("filesystem") {
        return None;
    }
    let path = option("path")?;
    let folder = base_dir.join(path.strip_prefix("file://").unwrap_or(path));
    let mut files = Vec::new();
    visible_files(&folder, &mut files);
    files.sort();
    let is_text = option("format") != Some("parquet");
    let first_lines = files.first().filter(|_| is_text).map(|file| first_lines(file)).unwrap_or_default();
    Some(FileResult { table: table.name.clone(), folder, files: files.len(), first_lines })
}

fn visible_files(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let hidden = entry.file_name().to_string_lossy().starts_with(['.', '_']);
        match entry.file_type() {
            Ok(kind) if !hidden && kind.is_dir() => visible_files(&entry.path(), files),
            Ok(kind) if !hidden && kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
}

fn first_lines(file: &Path) -> Vec<String> {
    let Ok(file) = File::open(file) else { return Vec::new() };
    BufReader::new(file).lines().map_while(std::result::Result::ok).take(SHOWN).collect()
}

fn files(number: usize) -> String {
    if number == 1 { "1 file".to_owned() } else { format!("{number} files") }
}

/// For people.
pub fn print(results: &[FileResult]) {
    for result in results {
        report::line(&format!("{}: {} in {}", result.table, files(result.files), result.folder.display()));
        for line in &result.first_lines {
            report::line(&format!("  {line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_is_no_files() {
        assert_eq!([0, 1, 2].map(files), ["0 files", "1 file", "2 files"]);
    }
}
