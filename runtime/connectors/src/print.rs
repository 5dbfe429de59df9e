//! `print`: writes each row as a line such as `+I[1, abc]` to standard output or standard error.

use std::{
    io::{self, Write},
    sync::{Arc, LazyLock},
};

use arrow::{
    array::{AsArray, Int8Array, RecordBatch},
    datatypes::Int8Type,
};
use streamkeeper_engine::{Changelog, Operator, OperatorContext, OperatorFactory, Output, SourceFactory, SubtaskInfo};
use streamkeeper_types::{
    Code, Error, Result, RowKind,
    options::{OptionKind, OptionSpec},
};

use crate::{
    registry::{Connector, SinkInput, TableDefinition},
    settings::{CONNECTOR, Settings, wrong_direction},
    text::Column,
};

static OPTIONS: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| {
    vec![
        CONNECTOR,
        OptionSpec::new("print-identifier", OptionKind::Text, "Text before each line, followed by `> `."),
        OptionSpec::new("standard-error", OptionKind::Boolean, "Whether lines go to standard error.").default("false"),
    ]
});

pub(crate) struct Print;

impl Connector for Print {
    fn name(&self) -> &'static str {
        "print"
    }

    fn doc(&self) -> &'static str {
        "Sink that writes each row as a line, updates too. Lines are written as rows come; after a restart from a \
         checkpoint rows since then are printed again."
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn source(&self, table: &TableDefinition) -> Result<Arc<dyn SourceFactory>> {
        Err(wrong_direction(table, self.name(), "cannot be read", "read from a 'datagen' or 'filesystem' table"))
    }

    fn sink(&self, table: &TableDefinition, input: &SinkInput) -> Result<Arc<dyn OperatorFactory>> {
        let settings = Settings::new(table, self)?;
        Ok(Arc::new(Factory {
            identifier: settings.text("print-identifier").map(str::to_owned),
            stream: if settings.flag("standard-error") { Stream::Error } else { Stream::Output },
            changelog: input.changelog,
        }))
    }
}

#[derive(Clone, Copy)]
enum Stream {
    Output,
    Error,
}

struct Factory {
    identifier: Option<String>,
    stream: Stream,
    changelog: Changelog,
}

impl OperatorFactory for Factory {
    fn create(&self, subtask: &SubtaskInfo) -> Result<Box<dyn Operator>> {
        let number = subtask.subtask.index + 1;
        let prefix = match (&self.identifier, subtask.parallelism) {
            (None, 1) => String::new(),
            (None, _) => format!("{number}> "),
            (Some(identifier), 1) => format!("{identifier}> "),
            (Some(identifier), _) => format!("{identifier}:{number}> "),
        };
        Ok(Box::new(Printer { prefix, stream: self.stream, changelog: self.changelog, lines: Vec::new() }))
    }
}

struct Printer {
    prefix: String,
    stream: Stream,
    changelog: Changelog,
    /// Lines of one batch, written at once so that lines of several subtasks do not mix.
    lines: Vec<u8>,
}

impl Operator for Printer {
    fn process(
        &mut self,
        _input: usize,
        batch: RecordBatch,
        _context: &mut OperatorContext,
        _output: &mut dyn Output,
    ) -> Result<()> {
        self.lines.clear();
        write_lines(&batch, self.changelog, &self.prefix, &mut self.lines)?;
        let written = match self.stream {
            Stream::Output => io::stdout().lock().write_all(&self.lines),
            Stream::Error => io::stderr().lock().write_all(&self.lines),
        };
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Error::new(Code::NotWritable, "nobody reads what a 'print' table writes")
                .way_out("run the job again: it goes on where it was"),
            _ => Error::io(Code::SinkFailed, "what a 'print' table writes to", &error),
        })
    }
}

fn write_lines(batch: &RecordBatch, changelog: Changelog, prefix: &str, out: &mut Vec<u8>) -> Result<()> {
    let columns = batch.columns();
    let (values, kinds): (_, Option<&Int8Array>) = match (changelog, columns.split_last()) {
        (Changelog::Updating, Some((kinds, values))) => (values, kinds.as_primitive_opt::<Int8Type>()),
        _ => (columns, None),
    };
    let values = values.iter().map(Column::new).collect::<Result<Vec<_>>>()?;
    for row in 0..batch.num_rows() {
        let kind = kinds.map_or(Some(RowKind::Insert), |kinds| RowKind::from_code(kinds.value(row)));
        let kind = kind.ok_or_else(|| Error::internal("a row kind that no version knows"))?;
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(kind.symbol().as_bytes());
        out.push(b'[');
        for (index, column) in values.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b", ");
            }
            column.print(row, out);
        }
        out.extend_from_slice(b"]\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_are_printed_with_their_kind() {
        let kinds: ArrayRef = Arc::new(Int8Array::from(vec![0, 1, 2, 3]));
        let batch = RecordBatch::try_from_iter([
            ("a", Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(4)])) as ArrayRef),
            ("b", Arc::new(StringArray::from(vec!["x", "y", "", "z"])) as ArrayRef),
            ("__row_kind", kinds),
        ])
        .unwrap();
        let mut out = Vec::new();
        write_lines(&batch, Changelog::Updating, "p> ", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "p> +I[1, x]\np> -U[NULL, y]\np> +U[-3, ]\np> -D[4, z]\n");
    }
}
