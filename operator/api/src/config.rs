//! The runtime's options under `spec.config`: which exist, what they hold, and which fields of the spec own the others.

use std::collections::BTreeMap;
use std::time::Duration;

use streamkeeper_types::{duration, size};

use crate::fault::Fault;
use crate::nearest::suggestion;

mod options;

pub use options::OPTIONS;

/// One option of the runtime.
#[derive(Debug, Clone, Copy)]
pub struct ConfigOption {
    /// Dotted, in kebab case.
    pub key: &'static str,
    pub kind: Kind,
    /// As it would be written; empty if there is none.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
    pub standing: Standing,
}

/// What an option holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Flag,
    Integer {
        least: u64,
        most: u64,
    },
    /// A decimal number within bounds.
    Decimal {
        least: f64,
        most: f64,
    },
    Duration,
    Size,
    Choice(&'static [&'static str]),
    /// IANA name of a time zone.
    TimeZone,
    /// What the owning field holds.
    AsField,
}

/// How an option can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Under `spec.config`.
    Free,
    /// By this field of the spec only.
    OwnedBy(&'static str),
    /// Known, but not part of this version of the runtime.
    Planned,
}

/// The options of one job, checked, with the defaults of all others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

impl Config {
    /// The text of a free option, as set or by default; `None` if it has neither.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let set = self.0.get(key).map(String::as_str);
        set.or_else(|| option(key).map(|option| option.default)).filter(|text| !text.is_empty())
    }

    #[must_use]
    pub fn duration(&self, key: &str) -> Option<Duration> {
        duration::parse(self.get(key)?).ok()
    }

    /// In bytes.
    #[must_use]
    pub fn size(&self, key: &str) -> Option<u64> {
        size::parse(self.get(key)?).ok()
    }

    #[must_use]
    pub fn integer(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    #[must_use]
    pub fn decimal(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }

    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.get(key)?.parse().ok()
    }

    /// What the job sets itself.
    pub fn set(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

fn option(key: &str) -> Option<&'static ConfigOption> {
    OPTIONS.iter().find(|option| option.key == key)
}

/// Checks `spec.config`; planned options pass here and are refused by [`unsupported`](crate::unsupported()).
pub(crate) fn check(config: &BTreeMap<String, String>, faults: &mut Vec<Fault>) -> Config {
    for (key, value) in config {
        let path = format!("spec.config.{key}");
        let Some(option) = option(key) else {
            let suggestion = suggestion(key, OPTIONS.iter().map(|option| option.key));
            faults.push(Fault { way_out: suggestion, ..Fault::new(path, "the runtime has no such option") });
            continue;
        };
        if let Standing::OwnedBy(field) = option.standing {
            faults.push(Fault::new(path, "a field of the spec holds this option").way_out(format!("set spec.{field}")));
        } else if let Err(cause) = option.kind.check(value) {
            faults.push(Fault::new(path, cause));
        }
    }
    Config(config.clone())
}

/// The planned options that a job sets.
pub(crate) fn planned(config: &BTreeMap<String, String>) -> impl Iterator<Item = &str> {
    let planned = |key: &str| option(key).is_some_and(|option| option.standing == Standing::Planned);
    config.keys().map(String::as_str).filter(move |key| planned(key))
}

impl Kind {
    fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::Flag => text.parse::<bool>().map(|_| ()).map_err(|_| format!("`{text}` is neither true nor false")),
            Self::Integer { least, most } => match text.parse::<u64>() {
                Ok(value) if (least..=most).contains(&value) => Ok(()),
                _ => Err(format!("`{text}` is no whole number between {least} and {most}")),
            },
            Self::Decimal { least, most } => match text.parse::<f64>() {
                Ok(value) if (least..=most).contains(&value) => Ok(()),
                _ => Err(format!("`{text}` is no number between {least} and {most}")),
            },
            Self::Duration => duration::parse(text).map(|_| ()),
            Self::Size => size::parse(text).map(|_| ()),
            Self::Choice(choices) if choices.contains(&text) => Ok(()),
            Self::Choice(choices) => Err(format!("`{text}` is none of {}", choices.join(", "))),
            Self::TimeZone => time_zone(text),
            Self::AsField => Ok(()),
        }
    }
}

/// Whether a text is the IANA name of a time zone.
pub(crate) fn time_zone(text: &str) -> Result<(), String> {
    text.parse::<chrono_tz::Tz>()
        .map(|_| ())
        .map_err(|_| format!("`{text}` is no time zone; write an IANA name such as Europe/Berlin"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_option_has_a_unique_key_and_a_default_that_fits_it() {
        let keys: BTreeSet<_> = OPTIONS.iter().map(|option| option.key).collect();
        assert_eq!(keys.len(), OPTIONS.len());
        for option in OPTIONS {
            assert!(
                option.key.bytes().all(|byte| byte.is_ascii_lowercase() || b".-".contains(&byte)),
                "{}",
                option.key
            );
            if !option.default.is_empty() {
                assert_eq!(option.kind.check(option.default), Ok(()), "{}", option.key);
            }
        }
    }

    #[test]
    fn values_read_as_set_or_by_default() {
        let mut faults = Vec::new();
        let set = BTreeMap::from([("watermark.min-gap".to_owned(), "50ms".to_owned())]);
        let config = check(&set, &mut faults);
        assert_eq!(faults, []);
        assert_eq!(config.duration("watermark.min-gap"), Some(Duration::from_millis(50)));
        assert_eq!(config.duration("sink.commit-timeout"), Some(Duration::from_mins(1)));
        assert_eq!(config.size("state.rocksdb.target-file-size"), Some(64 << 20));
        assert_eq!(config.integer("state.delta.fold-every"), Some(8));
        assert_eq!(config.flag("state.delta"), Some(true));
        assert_eq!(config.decimal("restart.jitter"), Some(0.1));
        assert_eq!(config.get("watermark.idle-timeout"), None);
        assert_eq!(config.set().collect::<Vec<_>>(), [("watermark.min-gap", "50ms")]);
    }
}
