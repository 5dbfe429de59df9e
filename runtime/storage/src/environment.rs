//! The environment variables that name endpoints and credentials of remote storage.

use std::{collections::BTreeMap, env, fmt};

/// What [`Environment::of_process`] takes: the variables of the cloud vendors' own tools and of Hadoop's.
const PREFIXES: [&str; 6] = ["AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "IDENTITY_", "SERVICE_ACCOUNT"];

/// Variables by name. `Debug` shows names only, since values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is no UTF-8 is left out.
    #[must_use]
    pub fn of_process() -> Self {
        env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
            .collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Variables whose name starts with `prefix`, their names in lower case, as object_store's builders know them.
    pub(crate) fn starting(&self, prefix: &str) -> impl Iterator<Item = (String, &str)> {
        let with_prefix = self.0.iter().filter(move |(name, _)| name.starts_with(prefix));
        with_prefix.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
