//! The one place that gives every planning error its position in the text.
//!
//! DataFusion knows a place for some of its errors only, and our own rules see a logical plan without the text. So a
//! rule says *what* is at fault ([`Spot`]), and [`Scope`] finds where that stands: in the statement, else in the views
//! that it reads, else at the statement's first word.

use datafusion::{
    common::{DataFusionError, SchemaError, Span},
    sql::sqlparser::tokenizer,
};
use streamkeeper_types::{Code, Error};

use super::wording::{Worded, worded};
use crate::{
    functions::{FlinkFunctions, fault::called},
    position::{Extent, Locator, Position},
};

/// What is at fault, to be looked for in the text.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spot<'a> {
    /// A call of one of these functions.
    Function(&'a str),
    /// Keywords in a row.
    Clause(&'a [&'a str]),
    /// A table or column.
    Name(&'a str),
    /// A place that the parser kept.
    At(Position),
}

/// A statement's text, and that of the views it reads.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    locator: Locator,
    /// The statement first.
    extents: Vec<Extent>,
}

impl Scope {
    pub(crate) fn new(locator: Locator, statement: Extent) -> Self {
        Self { locator, extents: vec![statement] }
    }

    /// Adds the text of a view or table that the statement reads.
    pub(crate) fn reads(&mut self, extent: Extent) {
        if !self.extents.contains(&extent) {
            self.extents.push(extent);
        }
    }

    /// The first spot that stands in the text; the start of the statement if none does.
    pub(crate) fn locate(&self, spots: &[Spot]) -> Position {
        let found = spots.iter().find_map(|spot| self.extents.iter().find_map(|extent| self.find(extent, *spot)));
        found.unwrap_or_else(|| self.locator.start_of(&self.extents[0]))
    }

    fn find(&self, extent: &Extent, spot: Spot) -> Option<Position> {
        match spot {
            Spot::Function(name) => self.locator.find_function(extent, name),
            Spot::Clause(keywords) => self.locator.find_clause(extent, keywords),
            Spot::Name(name) => self.locator.find_identifier(extent, name),
            Spot::At(position) => Some(position),
        }
    }

    /// Valid SQL that this version does not run.
    pub(crate) fn unsupported(&self, spots: &[Spot], cause: impl Into<String>, way_out: impl Into<String>) -> Error {
        self.locate(spots).error(Code::SqlUnsupported, cause).way_out(way_out)
    }

    /// Something that does not exist or does not fit.
    pub(crate) fn invalid(&self, spots: &[Spot], cause: impl Into<String>, way_out: impl Into<String>) -> Error {
        self.locate(spots).error(Code::SqlInvalid, cause).way_out(way_out)
    }

    /// Places an error that has no place yet.
    pub(crate) fn place(&self, error: Error, spots: &[Spot]) -> Error {
        if error.place.iter().any(|place| place.starts_with("line ")) {
            return error;
        }
        error.at(self.locate(spots).to_string())
    }

    /// An error of DataFusion, or one of ours that came through it.
    pub(crate) fn datafusion(&self, error: DataFusionError, spots: &[Spot]) -> Error {
        let span = error.diagnostic().and_then(|diagnostic| diagnostic.span).map(position);
        let spots: Vec<Spot> = span.map(Spot::At).into_iter().chain(spots.iter().copied()).collect();
        self.read(error, &spots)
    }

    fn read(&self, error: DataFusionError, spots: &[Spot]) -> Error {
        match error {
            DataFusionError::Diagnostic(_, inner) => self.read(*inner, spots),
            DataFusionError::Context(context, inner) => {
                let mut all: Vec<Spot> = called(&context).map(Spot::Function).into_iter().collect();
                all.extend_from_slice(spots);
                self.read(*inner, &all)
            }
            DataFusionError::Collection(errors) => match errors.into_iter().next() {
                Some(first) => self.datafusion(first, spots),
                None => Error::internal("an empty collection of errors"),
            },
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(ours) => self.place(*ours, spots),
                Err(foreign) => self.place_by_words(&foreign.to_string(), spots, Code::SqlInvalid),
            },
            DataFusionError::SchemaError(schema, _) => self.schema(*schema, spots),
            DataFusionError::NotImplemented(message) => {
                let error = self.place_by_words(&message, spots, Code::SqlUnsupported);
                if error.way_out.is_some() { error } else { error.way_out("write the query without it") }
            }
            other if unknown_function(&other).is_some() => {
                let name = unknown_function(&other).unwrap_or_default();
                let mut all = vec![Spot::Function(&name)];
                all.extend_from_slice(spots);
                self.place(FlinkFunctions::new().not_found(&name), &all)
            }
            other => {
                let code = match other {
                    DataFusionError::Internal(_) => Code::SqlUnsupported,
                    _ => Code::SqlInvalid,
                };
                self.place_by_words(&other.strip_backtrace(), spots, code)
            }
        }
    }

    fn schema(&self, error: SchemaError, spots: &[Spot]) -> Error {
        let with_name = |name: &str| {
            let mut all = spots.to_vec();
            all.push(Spot::Name(name));
            self.locate(&all)
        };
        match error {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let known: Vec<&str> = valid_fields.iter().map(|column| column.name.as_str()).collect();
                let way_out = match nearest(&field.name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if known.is_empty() => "no column can be used here".to_owned(),
                    None => format!("columns here are {}", known.join(", ")),
                };
                let shown = field.flat_name();
                with_name(&field.name).error(Code::SqlInvalid, format!("there is no column `{shown}`")).way_out(way_out)
            }
            SchemaError::AmbiguousReference { field } => with_name(&field.name)
                .error(Code::SqlInvalid, format!("column `{}` is in more than one table", field.name))
                .way_out(format!("put the table's name before it: t.{}", field.name)),
            SchemaError::DuplicateQualifiedField { name, .. } | SchemaError::DuplicateUnqualifiedField { name } => {
                with_name(&name)
                    .error(Code::SqlInvalid, format!("there are two columns `{name}`"))
                    .way_out(format!("rename one of them: … AS {name}_2"))
            }
        }
    }

    /// The place of a word that the message quotes, since that is the only hint.
    fn place_by_words(&self, message: &str, spots: &[Spot], code: Code) -> Error {
        let Worded { cause, way_out } = worded(message);
        let mut all = spots.to_vec();
        // The types that an argument may have are no functions of the query.
        let subject = cause.split(" must be ").next().unwrap_or(&cause);
        for word in subject.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| word.len() > 1) {
            all.push(Spot::Function(word));
        }
        let quoted: Vec<&str> = cause.split(['\'', '`', '"']).skip(1).step_by(2).collect();
        all.extend(quoted.iter().map(|word| Spot::Name(word)));
        if cause.starts_with("a condition ") {
            all.extend([Spot::Clause(&["WHERE"]), Spot::Clause(&["HAVING"])]);
        }
        let error = self.locate(&all).error(code, cause.as_str());
        match way_out {
            Some(way_out) => error.way_out(way_out),
            None => error,
        }
    }
}

/// The function that DataFusion did not find.
fn unknown_function(error: &DataFusionError) -> Option<String> {
    let DataFusionError::Plan(message) = error else { return None };
    let (_, rest) = message.split_once("Invalid function '")?;
    rest.split_once('\'').map(|(name, _)| name.to_owned())
}

fn position(span: Span) -> Position {
    Position::from(tokenizer::Location { line: span.start.line, column: span.start.column })
}

/// The known name that is likely meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (lower, limit) = (name.to_lowercase(), (name.chars().count() / 3).clamp(1, 3));
    known
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_in_any_case_and_far_ones_are_not() {
        let known = ["price", "auction", "dateTime"];
        assert_eq!(nearest("prize", known.into_iter()), Some("price"));
        assert_eq!(nearest("datetime", known.into_iter()), Some("dateTime"));
        assert_eq!(nearest("bidder", known.into_iter()), None);
    }
}
