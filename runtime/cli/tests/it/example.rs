//! The api-hits example in a folder of its own, with the log repeated as often as wanted, and an independent count of it.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use chrono::{DateTime, TimeDelta, Utc};

pub const BINARY: &str = env!("CARGO_BIN_EXE_streamkeeper");

/// Root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A copy of the example that a test may run and kill.
pub struct Example {
    pub folder: tempfile::TempDir,
    pub expected: Vec<String>,
}

impl Example {
    /// The log `copies` times in one file, each copy four days after the one before, so that time goes on.
    pub fn new(copies: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = fs::read_to_string(root().join("examples/data/access.log")).unwrap();
        let mut text = String::new();
        let mut hits: BTreeMap<(DateTime<Utc>, String), u64> = BTreeMap::new();
        for copy in 0..copies {
            for line in log.lines() {
                let (head, rest) = line.split_once('[').unwrap();
                let (time, tail) = rest.split_once(']').unwrap();
                let time = DateTime::parse_from_str(time, "%d/%b/%Y:%H:%M:%S %z").unwrap().to_utc();
                let time = time + TimeDelta::days(i64::from(copy) * 4);
                writeln!(text, "{head}[{}]{tail}", time.format("%d/%b/%Y:%H:%M:%S +0000")).unwrap();
                let request = tail.split('"').nth(1).unwrap();
                let target = request.split(' ').nth(1).unwrap();
                let path = target.split('?').next().unwrap();
                let minute = time - TimeDelta::seconds(time.timestamp() % 60);
                *hits.entry((minute, path.to_owned())).or_default() += 1;
            }
        }
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/access.log"), text).unwrap();
        fs::copy(root().join("examples/api-hits.yaml"), folder.path().join("api-hits.yaml")).unwrap();
        let mut expected: Vec<String> = hits
            .into_iter()
            .map(|((minute, path), count)| {
                let path = if path.contains([',', '"']) { format!("\"{}\"", path.replace('"', "\"\"")) } else { path };
                format!("{},{path},{count}", minute.format("%Y-%m-%d %H:%M:%S"))
            })
            .collect();
        expected.sort();
        Self { folder, expected }
    }

    pub fn job(&self) -> PathBuf {
        self.folder.path().join("api-hits.yaml")
    }

    /// Replaces a part of the job's text, which must be there once.
    pub fn edit_job(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.job()).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from} in {text}");
        fs::write(self.job(), text.replace(from, to)).unwrap();
    }

    /// `streamkeeper run` of the example with more arguments, not started yet.
    pub fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.arg("run").arg(self.job()).args(["--quiet", "--output", "json"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// All rows of the committed files, sorted, without headers.
    pub fn result(&self) -> Vec<String> {
        rows_below(&self.folder.path().join("output/api-hits"))
    }

    /// Runs to the end and compares.
    pub fn finish(&self, arguments: &[&str]) {
        let output = self.run(arguments).output().unwrap();
        assert_success(&output);
        let result = self.result();
        assert_eq!(result.len(), self.expected.len(), "number of rows");
        assert!(result == self.expected, "rows differ: {:?}", first_difference(&result, &self.expected));
    }
}

/// Rows of all visible CSV files below a folder, sorted, without headers.
pub fn rows_below(folder: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return rows };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_file() && !name.starts_with(['.', '_']) {
            let text = fs::read_to_string(&path).unwrap();
            rows.extend(text.lines().filter(|line| !line.starts_with("window_start")).map(str::to_owned));
        }
    }
    rows.sort();
    rows
}

pub fn assert_success(output: &Output) {
    assert!(
        output.status.success(),
        "{}\nstdout: {}\nstderr: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn first_difference<'a>(left: &'a [String], right: &'a [String]) -> Option<(&'a String, &'a String)> {
    left.iter().zip(right).find(|(a, b)| a != b)
}
