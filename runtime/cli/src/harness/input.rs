//! A case's input tables as files, and the options by which the job reads them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use arrow::datatypes::SchemaRef;
use streamkeeper_sql::{
    catalog::Table,
    parse::{Script, Statement},
};
use streamkeeper_types::{Code, Error, Result};

use super::{Case, format::Format, generate::Generate};

/// One table's input.
#[derive(Debug)]
pub struct Input {
    pub table: String,
    /// Physical columns.
    pub schema: SchemaRef,
    /// `None` if only the engine can read it.
    pub format: Result<Format>,
    /// A folder with nothing but the input's files.
    pub folder: PathBuf,
    /// Options that take the place of the table's own.
    pub options: BTreeMap<String, String>,
    pub rows: u64,
}

/// The declaration of a table.
#[must_use]
pub fn table<'a>(script: &'a Script, name: &str) -> Option<&'a Table> {
    script.statements.iter().find_map(|statement| match statement {
        Statement::CreateTable(table) if table.name == name => Some(table),
        _ => None,
    })
}

/// Writes all inputs of a case below a folder.
///
/// # Errors
/// `JOB_INVALID` for tables that the job does not have and inputs that do not fit them, `NOT_WRITABLE`.
pub fn write_all(script: &Script, case: &Case, folder: &Path) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for name in case.input.keys().chain(case.generate.keys()) {
        let invalid = |cause: String| Error::new(Code::JobInvalid, format!("case `{}`: {cause}", case.name));
        let table = table(script, name).ok_or_else(|| invalid(format!("there is no table `{name}`")))?;
        let mut input = Input::new(table, folder)?;
        match (case.input.get(name), case.generate.get(name)) {
            (Some(lines), None) => input.write_lines(lines)?,
            (None, Some(generate)) => input.generate(generate).map_err(|error| {
                let place = format!("case `{}`, generated table `{name}`", case.name);
                error.at(place)
            })?,
            _ => return Err(invalid(format!("table `{name}` has both `input` and `generate`")).way_out("keep one")),
        }
        inputs.push(input);
    }
    Ok(inputs)
}

impl Input {
    fn new(table: &Table, folder: &Path) -> Result<Self> {
        let folder = folder.join(&table.name);
        fs::create_dir_all(&folder).map_err(|e| Error::io(Code::NotWritable, folder.display(), &e))?;
        let is_format = |key: &str| {
            key == "format" || ["csv.", "json.", "raw.", "on-error"].iter().any(|prefix| key.starts_with(prefix))
        };
        let mut options = table.plain_options();
        options.retain(|key, _| is_format(key));
        options.insert("connector".to_owned(), "filesystem".to_owned());
        options.insert("path".to_owned(), folder.display().to_string());
        let (schema, format) = (table.physical_schema(), Format::of(table));
        Ok(Self { table: table.name.clone(), schema, format, folder, options, rows: 0 })
    }

    fn write_lines(&mut self, lines: &[String]) -> Result<()> {
        if self.format == Ok(Format::Parquet) {
            let cause = format!("table `{}` is parquet, which has no lines", self.table);
            return Err(Error::new(Code::JobInvalid, cause).way_out("describe its rows in `generate`"));
        }
        let extension = self.format.as_ref().map_or("txt", Format::extension);
        let path = self.folder.join(format!("lines.{extension}"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.rows = lines.len() as u64;
        fs::write(&path, text).map_err(|e| Error::io(Code::NotWritable, path.display(), &e))
    }

    fn generate(&mut self, generate: &Generate) -> Result<()> {
        let format = self.format.clone()?;
        let rows = generate.batch(&self.schema).map_err(|cause| Error::new(Code::JobInvalid, cause))?;
        let part = rows.num_rows().div_ceil(generate.files.get()).max(1);
        let starts = (0..rows.num_rows()).step_by(part);
        for (file, start) in starts.enumerate() {
            let path = self.folder.join(format!("part-{file:03}.{}", format.extension()));
            format.write(&path, &rows.slice(start, part.min(rows.num_rows() - start)))?;
        }
        self.rows = rows.num_rows() as u64;
        Ok(())
    }
}
