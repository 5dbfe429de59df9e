//! What a changed program means for the state that a job has, said before anything runs.

use streamkeeper_engine::StreamGraph;
use streamkeeper_jobmanager::shell::{Preview, preview};
use streamkeeper_storage::open_job;
use streamkeeper_types::Result;

use crate::{
    job_file::JobFile,
    launch::{Launch, job_folder, storage_url},
};

/// What starting the job would do with its state. `None`: it has none, or nothing to restore.
///
/// # Errors
/// The state cannot be read, or does not fit the job whatever is agreed to.
pub fn of_job(file: &JobFile, graph: &StreamGraph, launch: &Launch) -> Result<Option<Preview>> {
    // Looking must not make a folder.
    if !job_folder(file, launch.storage.as_deref()).is_dir() {
        return Ok(None);
    }
    let url = storage_url(file, launch.storage.as_deref());
    let storage = open_job(url, &file.base_dir(), &file.job.namespace, &file.job.name)?;
    preview(storage.as_ref(), graph, launch.parallelism, file.job.max_parallelism, &launch.restore)
}

/// What changes, one line each; nothing if all state goes on as it is.
#[must_use]
pub fn lines(preview: &Preview) -> Vec<String> {
    let mut lines: Vec<String> =
        preview.new.iter().map(|operator| format!("{operator}: is new and starts empty")).collect();
    for change in &preview.changes {
        let operator = &change.operator;
        let column = |column: &String, what: &str| format!("{operator}: `{column}` {what}");
        let starts = "is new: it starts empty in every existing group and takes rows from now on";
        lines.extend(change.migration.added.iter().map(|added| column(added, starts)));
        lines.extend(change.migration.removed.iter().map(|removed| column(removed, "is gone: its state is dropped")));
    }
    lines.extend(preview.dropped.iter().map(|operator| format!("{operator}: is gone: its state is dropped")));
    lines
}

/// What becomes of each operator that has state or had some: its name, the word for it, and the columns that change.
#[must_use]
pub fn mapping(preview: &Preview) -> Vec<[String; 3]> {
    let row = |operator: &String, fate: &str, columns: String| [operator.clone(), fate.to_owned(), columns];
    let plain = |fate: &'static str| move |operator: &String| row(operator, fate, String::new());
    let mut rows: Vec<_> = preview.kept.iter().map(plain("kept")).collect();
    for change in &preview.changes {
        let added = change.migration.added.iter().map(|column| format!("`{column}` starts empty"));
        let removed = change.migration.removed.iter().map(|column| format!("`{column}` is dropped"));
        rows.push(row(&change.operator, "migrated", added.chain(removed).collect::<Vec<_>>().join(", ")));
    }
    rows.extend(preview.new.iter().map(plain("new")));
    rows.extend(preview.dropped.iter().map(plain("dropped")));
    rows
}

#[cfg(test)]
mod tests {
    use streamkeeper_jobmanager::shell::StateChange;
    use streamkeeper_state::Migration;
    use streamkeeper_types::CheckpointId;

    use super::*;

    #[test]
    fn each_change_of_the_state_is_one_line() {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let migration =
            Migration { table: "groups".to_owned(), added: texts(&["SUM(v)"]), removed: texts(&["COUNT(*)"]) };
        let preview = Preview {
            from: CheckpointId(3),
            kept: texts(&["Source"]),
            new: texts(&["Rank"]),
            dropped: texts(&["Window"]),
            changes: vec![StateChange { operator: "Group".to_owned(), migration }],
        };
        assert!(preview.drops_state());
        assert_eq!(
            lines(&preview),
            [
                "Rank: is new and starts empty",
                "Group: `SUM(v)` is new: it starts empty in every existing group and takes rows from now on",
                "Group: `COUNT(*)` is gone: its state is dropped",
                "Window: is gone: its state is dropped",
            ]
        );
        let mapping = mapping(&preview);
        let mapping: Vec<_> = mapping.iter().map(|row| row.each_ref().map(String::as_str)).collect();
        assert_eq!(
            mapping,
            [
                ["Source", "kept", ""],
                ["Group", "migrated", "`SUM(v)` starts empty, `COUNT(*)` is dropped"],
                ["Rank", "new", ""],
                ["Window", "dropped", ""],
            ]
        );
        let nothing = Preview { from: CheckpointId(3), kept: vec![], new: vec![], dropped: vec![], changes: vec![] };
        assert!(!nothing.drops_state() && lines(&nothing).is_empty());
    }
}
