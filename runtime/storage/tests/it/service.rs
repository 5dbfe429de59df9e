//! Real servers for tests: `e2e/services` starts them; they end with this process.

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use streamkeeper_storage::Environment;

/// A running instance of a service.
pub struct Service {
    name: String,
    instance: String,
    /// What clients need to know.
    pub variables: BTreeMap<String, String>,
    /// Its standard input is a pipe: the service ends when that closes.
    child: Child,
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/services/services")
}

impl Service {
    /// Starts `name` and waits until it is ready.
    ///
    /// # Panics
    /// With the kit's own words if it cannot: a test without its server has shown nothing.
    pub fn start(name: &str, options: &[&str]) -> Self {
        let instance = format!("storage{}-{:08x}", std::process::id(), rand::random::<u32>());
        let mut command = Command::new(program());
        command.args([name, "up", "--hold", "--name", &instance]).args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program().display()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut variables = BTreeMap::new();
        let mut ready = false;
        for line in lines {
            let Some((key, value)) = line.split_once('=') else {
                ready = line.is_empty();
                break;
            };
            variables.insert(key.to_owned(), value.to_owned());
        }
        if !ready {
            let mut words = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut words);
            panic!("the service `{name}` did not start: {words}\ntry `{} prepare {name}`", program().display());
        }
        Self { name: name.to_owned(), instance, variables, child }
    }

    pub fn variable(&self, key: &str) -> &str {
        &self.variables[key]
    }

    /// What storage takes from the environment.
    pub fn environment(&self) -> Environment {
        self.variables.clone().into_iter().collect()
    }

    /// The same, with `changed` in place of some variables.
    pub fn environment_with(&self, changed: &[(&str, String)]) -> Environment {
        let mut variables = self.variables.clone();
        variables.extend(changed.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        variables.into_iter().collect()
    }

    /// Sends `signal` to one of its processes.
    pub fn signal(&self, role: &str, signal: &str) {
        self.manage(&["kill", "--role", role, "--signal", signal]);
    }

    /// Starts a killed process again: same port, same data.
    pub fn restart(&self, role: &str) {
        self.manage(&["start", "--role", role]);
    }

    fn manage(&self, words: &[&str]) {
        let mut command = Command::new(program());
        let output = command.arg(&self.name).args(words).args(["--name", &self.instance]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Closes the pipe; the kit then stops what it has started and ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
