//! `filesystem`: files of a folder as a table, read in parallel by byte ranges and written in two phases.

mod bad_records;
mod coordinator;
mod dead_letters;
mod lines;
mod location;
mod partition;
mod reader;
mod sink;
mod split;
mod staging;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use arrow::datatypes::{Schema, SchemaRef};
use streamkeeper_engine::{
    Changelog, OperatorFactory, SourceContext, SourceFactory, SourceReader, SplitCoordinator, SubtaskInfo,
};
use streamkeeper_types::{
    Code, Error, Result,
    options::{OptionKind, OptionSpec},
};

use crate::{
    formats::Format,
    registry::{Connector, SinkInput, TableDefinition},
    settings::{self, CONNECTOR, Settings},
};
use bad_records::Policy;
use coordinator::FileCoordinator;
use location::Location;
use partition::PartitionColumns;
use reader::FileReader;
use sink::FileSinkFactory;
pub use split::{FilePosition, file_position};

static OPTIONS: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| {
    let own = [
        CONNECTOR,
        OptionSpec::new(
            "path",
            OptionKind::Text,
            "Source: a file, a folder with everything below it, or a pattern such as `logs/*.csv`. Sink: a folder. \
             Relative paths are resolved from the StreamJob's file. In a folder or pattern, names that begin with `.` or \
             `_` are not read, nor those that end with `.tmp`, `.part`, `.partial`, `.inprogress` or `._COPYING_`.",
        )
        .required(),
    ];
    let files = [
        OptionSpec::new(
            "source.monitor-interval",
            OptionKind::Duration,
            "How often to look for new files; without it the table ends. A file is read once, as it is when found, and \
             may not change from then on: write it under a name that is not read and rename it when it is whole. It may \
             be removed once its rows are in a completed checkpoint.",
        ),
        OptionSpec::new(
            "source.changed-files",
            OptionKind::OneOf(&["fail", "ignore"]),
            "What a monitored file does whose size or time of change is not what it was when it was found: the job fails, \
             or a warning is logged and the file is not read again.",
        )
        .default("fail"),
        OptionSpec::new(
            "source.max-record-size",
            OptionKind::Size,
            "A longer record of a line format fails the job, whatever 'on-error' says: most likely a quote is not closed, \
             or the file is of another format. From `1MiB` to `512MiB`.",
        )
        .default("64MiB"),
        OptionSpec::new(
            "source.path.regex-pattern",
            OptionKind::Text,
            "Only files whose whole path matches this regular expression are read.",
        ),
        OptionSpec::new("sink.rolling-policy.file-size", OptionKind::Size, "A file ends when it has this size.")
            .default("128MiB"),
    ];
    [&own, files.as_slice(), &bad_records::OPTIONS, &Format::options(), settings::SOURCE.as_slice()].concat()
});

pub(crate) struct Filesystem;

impl Connector for Filesystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn doc(&self) -> &'static str {
        "Source and sink of files. A file is cut by byte range so that several readers share it, unless it is \
         compressed (`.gz`) or is CSV whose quoted fields may contain line breaks. The sink writes exactly once: a file \
         appears when the checkpoint that covers its rows is complete."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>> {
        let settings = Settings::new(table, self)?;
        let at = |error: Error| error.at(format!("table {}", table.name));
        let partitions = PartitionColumns::new(table)?;
        let format = Format::new(settings)?;
        let file_schema = partitions.without(&table.schema)?;
        // Whether the format can hold the columns shows now, not when the job runs.
        format.decoder(&file_schema).map_err(at)?;
        Ok(Arc::new(FileSource(Arc::new(FileTable {
            name: table.name.clone(),
            job: table.job.clone(),
            location: Location::new(table, settings)?,
            format,
            schema: Arc::clone(&table.schema),
            file_schema,
            partitions,
            policy: Policy::new(table, settings)?,
            longest_record: longest_record(settings)?,
            monitor: settings.duration("source.monitor-interval"),
            changed_files: match settings.text("source.changed-files") {
                Some("ignore") => ChangedFiles::Ignore,
                _ => ChangedFiles::Fail,
            },
            deal: match (table.has_watermark, settings.text("scan.watermark.unread-splits")) {
                (true, Some("hold")) => Deal::Shares,
                _ => Deal::OneByOne,
            },
        }))))
    }

    fn sink(&self, table: &TableDefinition, input: &SinkInput) -> Result<Arc<dyn OperatorFactory>> {
        let settings = Settings::new(table, self)?;
        let at = |error: Error| error.at(format!("table {}", table.name));
        if input.changelog == Changelog::Updating {
            let cause = "a filesystem table only takes new rows, and this query updates rows that it gave before";
            let way_out = "count in windows (TUMBLE, HOP) so that each row is final, or write to a 'print' table";
            return Err(at(Error::new(Code::SqlInvalid, cause).way_out(way_out)));
        }
        let partitions = PartitionColumns::new(table)?;
        let format = Format::new(settings)?;
        let file_schema = partitions.without(&table.schema)?;
        format.encoder(&file_schema).map_err(at)?;
        Ok(Arc::new(FileSinkFactory {
            table: table.name.clone(),
            job: table.job.clone(),
            folder: location::resolve(table, settings, "path")?,
            format,
            schema: Arc::clone(&table.schema),
            file_schema,
            partitions,
            file_size: settings.size("sink.rolling-policy.file-size").unwrap_or(128 << 20),
        }))
    }
}

/// A table as its readers and its coordinator need it.
struct FileTable {
    name: String,
    job: String,
    location: Location,
    format: Format,
    schema: SchemaRef,
    /// Columns that lie in the files, not in the names of their folders.
    file_schema: SchemaRef,
    partitions: PartitionColumns,
    policy: Policy,
    /// Bytes.
    longest_record: usize,
    monitor: Option<Duration>,
    changed_files: ChangedFiles,
    deal: Deal,
}

/// Option `source.changed-files`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedFiles {
    Fail,
    Ignore,
}

fn longest_record(settings: Settings<'_>) -> Result<usize> {
    let key = "source.max-record-size";
    let bytes = settings.size(key).and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    if (1 << 20..=512 << 20).contains(&bytes) {
        return Ok(bytes);
    }
    Err(settings.fault(key, "it is out of bounds", "write a size from 1MiB to 512MiB"))
}

/// How splits are dealt to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deal {
    /// As readers ask: the quick ones get more.
    OneByOne,
    /// All at once, so that readers know of every split that holds back the watermark.
    Shares,
}

struct FileSource(Arc<FileTable>);

impl SourceFactory for FileSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn coordinator(&self, parallelism: u32) -> Result<Box<dyn SplitCoordinator>> {
        Ok(Box::new(FileCoordinator::new(Arc::clone(&self.0), parallelism)))
    }

    fn reader(&self, subtask: &SubtaskInfo, context: SourceContext) -> Result<Box<dyn SourceReader>> {
        Ok(Box::new(FileReader::new(Arc::clone(&self.0), subtask, context)?))
    }
}

/// A schema with some of the fields of another.
fn project(schema: &Schema, keep: impl Fn(&str) -> bool) -> SchemaRef {
    let fields = schema.fields().iter().filter(|field| keep(field.name())).cloned();
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A path as text for messages and state.
fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A file is not what it was when it was found.
fn file_changed(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Code::FileChanged, format!("{}: {why}", path.display()))
        .way_out("put the old file back and run the job again, or start anew with --discard-state")
}

/// An error about reading a file.
fn source_failed(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(Code::SourceFailed, format!("{}: {why}", path.display()))
}

/// Folder for files that are not visible yet, beside those that are: of one operator of one job.
fn staging_folder(folder: &Path, job: &str, operator: impl std::fmt::Display) -> PathBuf {
    let job: String = job.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    folder.join(format!(".staging-{job}-{operator}"))
}
