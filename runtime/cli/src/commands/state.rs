//! `streamkeeper state`: what snapshots hold, and SQL over canonical savepoints.

use std::path::{Path, PathBuf};

use arrow::{array::RecordBatch, datatypes::SchemaRef, util::pretty::pretty_format_batches_with_schema};
use datafusion::{
    error::DataFusionError,
    execution::context::SQLOptions,
    prelude::{ParquetReadOptions, SessionConfig, SessionContext},
};
use serde::Serialize;
use streamkeeper_checkpoint::{Manifest, files, manifest};
use streamkeeper_protocol::{CheckpointKind, SnapshotFormat};
use streamkeeper_types::{Code, Error, Result, ResultExt, size, snapshot::TableHandle};

use crate::{
    args::{Global, Output, State},
    import, operator_state, report, sql_types,
};

pub fn execute(command: &State, global: &Global) -> Result<()> {
    match command {
        State::List { path } => list(path, global),
        State::Query { savepoint, sql } => query(savepoint, sql, global),
    }
}

/// A snapshot's folder, its manifest, and where its files lie.
struct Snapshot {
    folder: PathBuf,
    manifest: Manifest,
}

impl Snapshot {
    fn read(folder: &Path) -> Result<Self> {
        Ok(Self { folder: folder.to_path_buf(), manifest: import::read_manifest(folder)? })
    }

    /// Path of a private file of a savepoint: it lies in the savepoint's own folder, wherever that was moved.
    fn local(&self, path: &str) -> PathBuf {
        self.folder.join(path.rsplit('/').next().unwrap_or(path))
    }

    /// State tables by the name that SQL knows them under, with the handles of all subtasks.
    fn tables(&self) -> Vec<(String, String, Vec<&TableHandle>)> {
        let mut tables: Vec<(String, String, Vec<&TableHandle>)> = Vec::new();
        for operator in &self.manifest.operators {
            let handles = operator.subtasks.iter().filter_map(|s| s.keyed.as_ref()).flat_map(|k| &k.tables);
            for table in handles {
                let name = if table.alias.is_empty() { &table.name } else { &table.alias };
                match tables.iter_mut().find(|(alias, id, _)| alias == name && *id == operator.id.to_string()) {
                    Some((_, _, parts)) => parts.push(table),
                    None => tables.push((name.clone(), operator.id.to_string(), vec![table])),
                }
            }
        }
        tables
    }
}

#[derive(Serialize)]
struct SnapshotRow {
    folder: String,
    id: u64,
    kind: CheckpointKind,
    format: SnapshotFormat,
    time: i64,
    bytes: u64,
    operators: usize,
}

#[derive(Serialize)]
struct TableRow {
    operator: String,
    /// What `state query` calls it.
    table: String,
    keys: Vec<String>,
    values: Vec<String>,
    subtasks: usize,
    files: usize,
    bytes: u64,
}

fn list(path: &Path, global: &Global) -> Result<()> {
    if path.join(manifest::FILE_NAME).exists() { list_tables(path, global) } else { list_snapshots(path, global) }
}

fn list_snapshots(path: &Path, global: &Global) -> Result<()> {
    let mut folders = Vec::new();
    for parent in [path.to_path_buf(), path.join(files::SAVEPOINTS)] {
        let Ok(entries) = std::fs::read_dir(&parent) else { continue };
        folders.extend(entries.flatten().map(|e| e.path()).filter(|p| p.join(manifest::FILE_NAME).exists()));
    }
    if folders.is_empty() {
        return Err(Error::new(Code::FileUnreadable, format!("no snapshot lies in {}", path.display())).way_out(
            "name a job's folder (`.streamkeeper/<namespace>/<name>` beside its file) or a snapshot's folder in it",
        ));
    }
    let mut rows = folders
        .iter()
        .map(|folder| {
            let snapshot = Snapshot::read(folder)?;
            let m = &snapshot.manifest;
            Ok(SnapshotRow {
                folder: folder.display().to_string(),
                id: m.checkpoint.0,
                kind: m.kind,
                format: m.format,
                time: m.time,
                bytes: m.files().map(|f| f.size).sum(),
                operators: m.operators.iter().filter(|o| o.has_state()).count(),
            })
        })
        .collect::<Result<Vec<_>>>()?;
    rows.sort_by_key(|row| row.id);
    if global.output == Output::Json {
        return report::json(&rows);
    }
    let cells = rows.iter().map(|row| {
        let kind = match row.kind {
            CheckpointKind::Checkpoint => "checkpoint",
            CheckpointKind::Savepoint => "savepoint",
            CheckpointKind::StopSavepoint { .. } => "stop savepoint",
        };
        let format = match row.format {
            SnapshotFormat::Native => "native",
            SnapshotFormat::Canonical => "canonical",
        };
        vec![
            row.id.to_string(),
            kind.into(),
            format.into(),
            report::time(row.time),
            size::display(row.bytes),
            row.folder.clone(),
        ]
    });
    report::line(&report::table(&["ID", "KIND", "FORMAT", "TIME", "SIZE", "FOLDER"], cells.collect()));
    Ok(())
}

fn list_tables(path: &Path, global: &Global) -> Result<()> {
    let snapshot = Snapshot::read(path)?;
    let names = |fields: &[streamkeeper_types::snapshot::FieldSchema]| -> Vec<String> {
        fields.iter().map(|f| format!("{} {}", f.name, sql_types::name(&f.data_type))).collect()
    };
    let mut rows: Vec<TableRow> = snapshot
        .tables()
        .into_iter()
        .map(|(table, operator, parts)| TableRow {
            operator,
            table,
            keys: parts.first().map(|t| names(&t.schema.key)).unwrap_or_default(),
            values: parts.first().map(|t| names(&t.schema.values)).unwrap_or_default(),
            subtasks: parts.len(),
            files: parts.iter().map(|t| t.base.len()).sum(),
            bytes: parts.iter().flat_map(|t| &t.base).map(|b| b.file.size).sum(),
        })
        .collect();
    for table in operator_state::tables(&snapshot.manifest)? {
        let (keys, values) = operator_state::columns(&table);
        rows.push(TableRow {
            operator: table.operator,
            table: table.name,
            keys,
            values,
            subtasks: table.subtasks,
            files: 0,
            bytes: table.bytes,
        });
    }
    if global.output == Output::Json {
        return report::json(&rows);
    }
    let m = &snapshot.manifest;
    report::line(&format!("snapshot {} of {}, {} key groups", m.checkpoint, m.job, m.max_parallelism));
    let cells = rows
        .into_iter()
        .map(|row| vec![row.table, row.keys.join(", "), row.values.join(", "), row.subtasks.to_string(), row.operator]);
    report::line(&report::table(&["TABLE", "KEY", "VALUES", "SUBTASKS", "OPERATOR"], cells.collect()));
    Ok(())
}

fn query(savepoint: &Path, sql: &str, global: &Global) -> Result<()> {
    let snapshot = Snapshot::read(savepoint)?;
    if snapshot.manifest.format != SnapshotFormat::Canonical {
        return Err(Error::new(
            Code::SnapshotForeign,
            "this snapshot is not a canonical savepoint, so its state is not Parquet",
        )
        .way_out("take a savepoint: stop `streamkeeper run` with Ctrl-C"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .or_code(Code::Internal, || "starting a runtime".to_owned())?;
    let (schema, batches) = runtime.block_on(execute_query(&snapshot, sql))?;
    if global.output == Output::Json {
        return json_rows(&batches);
    }
    let shown = pretty_format_batches_with_schema(schema, &batches)
        .or_code(Code::Internal, || "showing the result".to_owned())?;
    report::line(&shown.to_string());
    Ok(())
}

async fn execute_query(snapshot: &Snapshot, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let context = SessionContext::new_with_config(SessionConfig::new());
    let mut names = Vec::new();
    for (name, _, parts) in snapshot.tables() {
        let paths: Vec<String> = parts
            .iter()
            .flat_map(|table| &table.base)
            .map(|base| snapshot.local(&base.file.path).display().to_string())
            .collect();
        if paths.is_empty() {
            continue;
        }
        let frame = context
            .read_parquet(paths, ParquetReadOptions::default())
            .await
            .or_code(Code::SnapshotCorrupt, || format!("reading state table {name}"))?;
        context
            .register_table(name.as_str(), frame.into_view())
            .or_code(Code::Internal, || format!("registering {name}"))?;
        names.push(name);
    }
    for table in operator_state::tables(&snapshot.manifest)? {
        context
            .register_batch(&table.name, table.rows)
            .or_code(Code::Internal, || format!("registering {}", table.name))?;
        names.push(table.name);
    }
    let failed = |error: DataFusionError| {
        let code = match error.find_root() {
            DataFusionError::ParquetError(_) => Code::SnapshotCorrupt,
            _ => Code::SqlInvalid,
        };
        Error::new(code, error.to_string()).way_out(format!("write one SELECT; its tables are: {}", names.join(", ")))
    };
    // Reading a savepoint writes nothing: no COPY, no INSERT, no CREATE.
    let reading = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let frame = context.sql_with_options(sql, reading).await.map_err(failed)?;
    let schema = SchemaRef::clone(frame.schema().inner());
    Ok((schema, frame.collect().await.map_err(failed)?))
}

fn json_rows(batches: &[RecordBatch]) -> Result<()> {
    let mut writer = arrow::json::ArrayWriter::new(Vec::new());
    let references: Vec<_> = batches.iter().collect();
    writer.write_batches(&references).or_code(Code::Internal, || "writing JSON".to_owned())?;
    writer.finish().or_code(Code::Internal, || "writing JSON".to_owned())?;
    report::line(&String::from_utf8_lossy(&writer.into_inner()));
    Ok(())
}
