//! What SET statements and the StreamJob's configuration say about planning.

use std::{collections::BTreeMap, time::Duration};

use chrono_tz::Tz;
use streamkeeper_types::{Code, Error, Result, duration};

use super::fault::nearest;

/// Settings in force for a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `table.local-time-zone`: the zone of TIMESTAMP_LTZ when it is shown or cut into days.
    pub zone: Tz,
    /// `table.exec.state.ttl`: idle state of updating queries is dropped after it; `None` keeps it for ever.
    pub state_ttl: Option<Duration>,
    /// `table.exec.sink.not-null-enforcer`.
    pub not_null: NotNull,
    /// `window.allowed-lateness`: how long after its end a window takes rows; zero makes its result final.
    pub allowed_lateness: Duration,
    /// `table.exec.source.idle-timeout`: a source without rows for so long no longer holds back the watermark.
    pub idle_timeout: Option<Duration>,
}

/// What a sink does with NULL for a column that is NOT NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNull {
    /// The job fails.
    Error,
    /// The row is left out.
    Drop,
}

const ZONE: &str = "table.local-time-zone";
const STATE_TTL: &str = "table.exec.state.ttl";
const NOT_NULL: &str = "table.exec.sink.not-null-enforcer";
const IDLE_TIMEOUT: &str = "table.exec.source.idle-timeout";
const ALLOWED_LATENESS: &str = "window.allowed-lateness";
const RUNTIME_MODE: &str = "execution.runtime-mode";
const PIPELINE_NAME: &str = "pipeline.name";

/// Every key that SET takes.
pub const KEYS: [&str; 7] = [ZONE, STATE_TTL, NOT_NULL, ALLOWED_LATENESS, IDLE_TIMEOUT, RUNTIME_MODE, PIPELINE_NAME];

impl Settings {
    /// Defaults, then the StreamJob's configuration.
    ///
    /// # Errors
    /// OPTION_INVALID for an unknown key or a wrong value.
    pub fn new(zone: Tz, config: &BTreeMap<String, String>) -> Result<Self> {
        let mut settings = Self {
            zone,
            state_ttl: None,
            not_null: NotNull::Error,
            allowed_lateness: Duration::ZERO,
            idle_timeout: None,
        };
        for (key, value) in config {
            settings.set(key, value)?;
        }
        Ok(settings)
    }

    /// Applies one `SET 'key' = 'value'`.
    ///
    /// # Errors
    /// OPTION_INVALID for an unknown key or a wrong value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let fault = |why: String, way_out: &str| {
            Err(Error::new(Code::OptionInvalid, format!("setting '{key}': {why}")).way_out(way_out))
        };
        match key {
            ZONE => match value.parse() {
                Ok(zone) => self.zone = zone,
                Err(_) => {
                    let way_out = "write a name of the time zone database, as in 'Europe/Berlin' or 'UTC'";
                    return fault(format!("'{value}' is no time zone"), way_out);
                }
            },
            STATE_TTL => self.state_ttl = Self::time(key, value)?,
            ALLOWED_LATENESS => self.allowed_lateness = Self::time(key, value)?.unwrap_or_default(),
            IDLE_TIMEOUT => self.idle_timeout = Self::time(key, value)?,
            NOT_NULL => match value.to_ascii_lowercase().as_str() {
                "error" => self.not_null = NotNull::Error,
                "drop" => self.not_null = NotNull::Drop,
                _ => return fault(format!("'{value}' is unknown"), "write 'error' or 'drop'"),
            },
            RUNTIME_MODE if value.eq_ignore_ascii_case("streaming") => {}
            RUNTIME_MODE => return fault(format!("'{value}' is not supported"), "write 'streaming', or leave it out"),
            PIPELINE_NAME => {
                let way_out = "name the StreamJob in metadata.name, and leave this statement out";
                return fault("a job has its name from its StreamJob".to_owned(), way_out);
            }
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// A duration, where zero means «never».
    fn time(key: &str, value: &str) -> Result<Option<Duration>> {
        match duration::parse(&value.replace(' ', "")) {
            Ok(Duration::ZERO) => Ok(None),
            Ok(time) => Ok(Some(time)),
            Err(_) if value.trim() == "0" => Ok(None),
            Err(why) => {
                let error = Error::new(Code::OptionInvalid, format!("setting '{key}': {why}"));
                Err(error.way_out("write '1h' or '90m'; '0s' means never"))
            }
        }
    }
}

fn unknown(key: &str) -> Error {
    let way_out = match nearest(key, KEYS.into_iter()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("settings are {}", KEYS.join(", ")),
    };
    Error::new(Code::OptionInvalid, format!("there is no setting '{key}'")).way_out(way_out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn defaults() -> Settings {
        Settings::new(Tz::UTC, &BTreeMap::new()).unwrap()
    }

    #[test]
    fn settings_are_read_with_their_types() {
        let mut settings = defaults();
        settings.set(ZONE, "Europe/Berlin").unwrap();
        settings.set(STATE_TTL, "1 h").unwrap();
        settings.set(NOT_NULL, "DROP").unwrap();
        assert_eq!(settings.zone, Tz::Europe__Berlin);
        assert_eq!(settings.state_ttl, Some(Duration::from_secs(3_600)));
        assert_eq!(settings.not_null, NotNull::Drop);
        settings.set(STATE_TTL, "0").unwrap();
        assert_eq!(settings.state_ttl, None);
    }

    #[test]
    fn unknown_keys_are_refused_with_the_nearest() {
        let error = defaults().set("table.exec.state.tll", "1h").unwrap_err();
        assert_eq!(error.code, Code::OptionInvalid);
        assert_eq!(error.way_out.as_deref(), Some("did you mean 'table.exec.state.ttl'?"));
    }

    #[test]
    fn wrong_values_are_refused_with_what_to_write() {
        for (key, value) in [(ZONE, "Mars"), (STATE_TTL, "soon"), (NOT_NULL, "maybe"), (RUNTIME_MODE, "batch")] {
            let error = defaults().set(key, value).unwrap_err();
            assert_eq!(error.code, Code::OptionInvalid, "{key}");
            assert!(error.way_out.is_some(), "{key}");
        }
    }
}
