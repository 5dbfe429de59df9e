//! Options of tables (`WITH ('key' = 'value')`): what a connector or format declares, and the check against it.
//!
//! Must not know: which connectors there are, where in the text an option stands.

use std::{collections::BTreeMap, fmt};

use crate::{Code, Error, duration, size};

/// One option that a connector or format understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionSpec {
    /// As users write it. One `*` stands for any text that is not empty, as in `fields.*.min`.
    pub key: &'static str,
    pub kind: OptionKind,
    /// In the same text form as users write; `None` if absence means something of its own.
    pub default: Option<&'static str>,
    pub required: bool,
    /// One sentence for the reference.
    pub doc: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// A whole number from `min` to `max`, both included.
    Integer {
        min: i64,
        max: i64,
    },
    Float,
    /// The grammar of [`duration::parse`].
    Duration,
    /// The grammar of [`size::parse`].
    Size,
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

impl OptionSpec {
    /// An optional option without a default.
    #[must_use]
    pub const fn new(key: &'static str, kind: OptionKind, doc: &'static str) -> Self {
        Self { key, kind, default: None, required: false, doc }
    }

    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }

    /// Whether a key that a user wrote is this option.
    #[must_use]
    pub fn matches(&self, key: &str) -> bool {
        match self.key.split_once('*') {
            None => self.key == key,
            Some((start, end)) => key.len() > start.len() + end.len() && key.starts_with(start) && key.ends_with(end),
        }
    }
}

impl OptionKind {
    /// Any whole number.
    pub const INTEGER: Self = Self::Integer { min: i64::MIN, max: i64::MAX };
    /// A whole number that is not negative.
    pub const COUNT: Self = Self::Integer { min: 0, max: i64::MAX };

    /// # Errors
    /// What is wrong with the value, and what to write.
    pub fn check(self, value: &str) -> Result<(), String> {
        match self {
            Self::Text => Ok(()),
            Self::Integer { min, max } => match value.trim().parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => Ok(()),
                _ if (min, max) == (i64::MIN, i64::MAX) => Err(format!("`{value}` is no whole number")),
                _ if max == i64::MAX => Err(format!("`{value}` is no whole number from {min} on")),
                _ => Err(format!("`{value}` is no whole number from {min} to {max}")),
            },
            Self::Float => match value.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(()),
                _ => Err(format!("`{value}` is no number")),
            },
            Self::Duration => duration::parse(value).map(drop),
            Self::Size => size::parse(value).map(drop),
            Self::Boolean if matches!(value, "true" | "false") => Ok(()),
            Self::Boolean => Err(format!("`{value}` is neither true nor false")),
            Self::OneOf(allowed) if allowed.contains(&value) => Ok(()),
            Self::OneOf(allowed) => Err(format!("`{value}` is not one of {}", allowed.join(", "))),
        }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Integer { .. } => f.write_str("integer"),
            Self::Float => f.write_str("number"),
            Self::Duration => f.write_str("duration"),
            Self::Size => f.write_str("size"),
            Self::Boolean => f.write_str("true or false"),
            Self::OneOf(allowed) => f.write_str(&allowed.join(", ")),
        }
    }
}

/// One thing wrong with a table's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFault {
    pub key: String,
    pub problem: OptionProblem,
    pub cause: String,
    pub way_out: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionProblem {
    Unknown,
    WrongValue,
    Missing,
}

/// Every fault at once: unknown keys with the nearest known one, wrong values, required options that are missing.
#[must_use]
pub fn validate(options: &BTreeMap<String, String>, specs: &[OptionSpec]) -> Vec<OptionFault> {
    let given = options.iter().filter_map(|(key, value)| match specs.iter().find(|spec| spec.matches(key)) {
        None => Some(unknown(key, specs)),
        Some(spec) => spec.kind.check(value).err().map(|cause| OptionFault {
            key: key.clone(),
            problem: OptionProblem::WrongValue,
            cause: format!("option '{key}': {cause}"),
            way_out: format!("'{key}' is {}: {}", spec.kind, spec.doc),
        }),
    });
    let missing = specs.iter().filter(|spec| spec.required && !options.keys().any(|key| spec.matches(key)));
    given
        .chain(missing.map(|spec| OptionFault {
            key: spec.key.to_owned(),
            problem: OptionProblem::Missing,
            cause: format!("option '{}' is missing", spec.key),
            way_out: format!("add '{}' = '…': {}", spec.key, spec.doc),
        }))
        .collect()
}

/// All faults as one error of code OPTION_INVALID; `None` if there are none. `place` tells where a fault lies, if known.
#[must_use]
pub fn to_error(faults: &[OptionFault], place: impl Fn(&OptionFault) -> Option<String>) -> Option<Error> {
    let lines = |text: fn(&OptionFault) -> &str| {
        let with_place = |fault: &OptionFault| match place(fault) {
            Some(place) if faults.len() > 1 => format!("{place}: {}", text(fault)),
            _ => text(fault).to_owned(),
        };
        faults.iter().map(with_place).collect::<Vec<_>>().join("\n  ")
    };
    let first = faults.first()?;
    let error = Error::new(Code::OptionInvalid, lines(|fault| &fault.cause)).way_out(lines(|fault| &fault.way_out));
    Some(match place(first) {
        Some(place) if faults.len() == 1 => error.at(place),
        _ => error,
    })
}

fn unknown(key: &str, specs: &[OptionSpec]) -> OptionFault {
    let nearest = specs
        .iter()
        .map(|spec| (strsim::damerau_levenshtein(key, spec.key), spec.key))
        .min()
        .filter(|(distance, candidate)| *distance <= 3.max(candidate.len() / 3));
    let way_out = match nearest {
        Some((_, candidate)) => format!("did you mean '{candidate}'?"),
        None => format!("options here are {}", specs.iter().map(|s| s.key).collect::<Vec<_>>().join(", ")),
    };
    let cause = format!("there is no option '{key}'");
    OptionFault { key: key.to_owned(), problem: OptionProblem::Unknown, cause, way_out }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [OptionSpec; 5] = [
        OptionSpec::new("path", OptionKind::Text, "Where the files lie.").required(),
        OptionSpec::new("source.monitor-interval", OptionKind::Duration, "How often to look for new files."),
        OptionSpec::new("on-error", OptionKind::OneOf(&["fail", "skip"]), "What a bad record does.").default("fail"),
        OptionSpec::new("fields.*.min", OptionKind::INTEGER, "Smallest value."),
        OptionSpec::new("csv.header", OptionKind::Boolean, "Whether a header is written."),
    ];

    fn faults(options: &[(&str, &str)]) -> Vec<(OptionProblem, String)> {
        let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        validate(&options, &SPECS).into_iter().map(|fault| (fault.problem, fault.way_out)).collect()
    }

    #[test]
    fn good_options_have_no_faults() {
        assert_eq!(faults(&[("path", "x"), ("source.monitor-interval", "10s"), ("fields.age.min", "-3")]), []);
    }

    #[test]
    fn an_unknown_key_names_the_nearest_one() {
        let found = faults(&[("path", "x"), ("csv.haeder", "true")]);
        assert_eq!(found, [(OptionProblem::Unknown, "did you mean 'csv.header'?".to_owned())]);
    }

    #[test]
    fn all_faults_are_reported_at_once() {
        let kinds: Vec<_> = faults(&[
            ("csv.header", "yes"),
            ("fields..min", "1"),
            ("on-error", "explode"),
            ("source.monitor-interval", "10min"),
            ("zzzzzzzzzzzz", ""),
        ])
        .into_iter()
        .map(|(problem, _)| problem)
        .collect();
        use OptionProblem::{Missing, Unknown, WrongValue};
        assert_eq!(kinds, [WrongValue, Unknown, WrongValue, WrongValue, Unknown, Missing]);
    }

    #[test]
    fn one_error_carries_every_fault_with_its_place() {
        let options = BTreeMap::from([("pth".to_owned(), "x".to_owned())]);
        let faults = validate(&options, &SPECS);
        let error = to_error(&faults, |fault| (fault.key == "pth").then(|| "line 3".to_owned())).expect("faults");
        assert_eq!(error.code, Code::OptionInvalid);
        assert_eq!(error.cause, "line 3: there is no option 'pth'\n  option 'path' is missing");
        assert_eq!(to_error(&[], |_| None), None);
    }
}
