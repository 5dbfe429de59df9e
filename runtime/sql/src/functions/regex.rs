//! REGEXP and its like, over Rust's `regex`: linear time, without look-around and back-references.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Int64Type},
};
use datafusion::common::Result;
use regex::Regex;

use super::{
    call::Call,
    definition::{Definition, Param, Types, returns},
    fault::invalid,
};

const NOTE: &str = "Regular expressions run in linear time: look-around and back-references are refused.";

pub(crate) static FUNCTIONS: [Definition; 5] = [
    Definition::new(
        "regexp",
        "REGEXP(text STRING, regex STRING) → BOOLEAN",
        &[Param::Text, Param::Text],
        boolean,
        matches,
    )
    .note(NOTE),
    Definition::new(
        "regexp_extract",
        "REGEXP_EXTRACT(text STRING, regex STRING [, group INT]) → STRING",
        &[Param::Text, Param::Text, Param::Integer],
        text,
        extract,
    )
    .required(2)
    .note(NOTE),
    Definition::new(
        "regexp_replace",
        "REGEXP_REPLACE(text STRING, regex STRING, replacement STRING) → STRING",
        &[Param::Text, Param::Text, Param::Text],
        text,
        replace,
    )
    .note(NOTE),
    Definition::new(
        "regexp_count",
        "REGEXP_COUNT(text STRING, regex STRING) → INT",
        &[Param::Text, Param::Text],
        int,
        count,
    )
    .note(NOTE),
    Definition::new(
        "regexp_substr",
        "REGEXP_SUBSTR(text STRING, regex STRING) → STRING",
        &[Param::Text, Param::Text],
        text,
        extract,
    )
    .note(NOTE),
];

/// How many compiled expressions a thread keeps. Literals are few; patterns from data come and go.
const CACHED: usize = 64;

thread_local! {
    static CACHE: RefCell<HashMap<String, Option<Rc<Regex>>>> = RefCell::new(HashMap::new());
}

/// The compiled expression, `None` if it is none.
fn compiled(pattern: &str) -> Option<Rc<Regex>> {
    CACHE.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(pattern) {
            return known.clone();
        }
        if cache.len() >= CACHED {
            cache.clear();
        }
        let regex = Regex::new(pattern).ok().map(Rc::new);
        cache.insert(pattern.to_owned(), regex.clone());
        regex
    })
}

/// Compiles a literal while the call is planned, so that a bad one is an error of the statement.
fn check(types: &Types) -> Result<()> {
    let Some(pattern) = types.literal(1) else { return Ok(()) };
    match Regex::new(pattern) {
        Ok(_) => Ok(()),
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            let way_out = "write it without look-around and back-references; a capturing group often does";
            Err(invalid(format!("`{pattern}` is no regular expression that runs here: {reason}"), way_out))
        }
    }
}

fn text(types: &Types) -> Result<DataType> {
    check(types).and_then(|()| returns::text(types))
}

fn boolean(types: &Types) -> Result<DataType> {
    check(types).and_then(|()| returns::boolean(types))
}

fn int(types: &Types) -> Result<DataType> {
    check(types).and_then(|()| returns::int(types))
}

/// The expression of a row; looked up once for a literal.
struct Patterns<'a> {
    column: super::call::Column<'a, arrow::array::StringArray>,
    constant: Option<Option<Rc<Regex>>>,
}

impl<'a> Patterns<'a> {
    fn new(call: &Call<'a>) -> Result<Self> {
        let column = call.text(1)?;
        let constant = column.is_constant().then(|| column.get(0).and_then(compiled));
        Ok(Self { column, constant })
    }

    fn get(&self, row: usize) -> Option<Rc<Regex>> {
        match &self.constant {
            Some(regex) => regex.clone(),
            None => self.column.get(row).and_then(compiled),
        }
    }
}

fn matches(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0)?, Patterns::new(call)?);
    call.booleans(|row| Ok(patterns.get(row).zip(texts.get(row)).map(|(regex, text)| regex.is_match(text))))
}

fn extract(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0)?, Patterns::new(call)?);
    let groups = if call.len() > 2 { Some(call.number::<Int64Type>(2)?) } else { None };
    call.texts(|row, out| {
        let group = groups.as_ref().map_or(Some(0), |groups| groups.get(row));
        let (Some(regex), Some(text), Some(group)) = (patterns.get(row), texts.get(row), group) else {
            return Ok(None);
        };
        let Ok(group) = usize::try_from(group) else { return Ok(None) };
        let found =
            if group == 0 { regex.find(text) } else { regex.captures(text).and_then(|captures| captures.get(group)) };
        Ok(found.map(|found| out.push_str(found.as_str())))
    })
}

fn replace(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns, replacements) = (call.text(0)?, Patterns::new(call)?, call.text(2)?);
    call.texts(|row, out| {
        let (Some(regex), Some(text), Some(with)) = (patterns.get(row), texts.get(row), replacements.get(row)) else {
            return Ok(None);
        };
        let mut end = 0;
        for captures in regex.captures_iter(text) {
            let Some(whole) = captures.get(0) else { continue };
            out.push_str(&text[end..whole.start()]);
            expand(with, &captures, out);
            end = whole.end();
        }
        out.push_str(&text[end..]);
        Ok(Some(()))
    })
}

/// Java's replacement text: `$1` is a group, a backslash makes the next character plain.
fn expand(template: &str, captures: &regex::Captures, out: &mut String) {
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.extend(rest.next()),
            '$' => {
                let mut group = None;
                // As many digits as still name a group.
                while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                    let next = group.unwrap_or(0) * 10 + digit as usize;
                    if group.is_some() && next >= captures.len() {
                        break;
                    }
                    group = Some(next);
                    rest.next();
                }
                match group {
                    Some(group) => out.push_str(captures.get(group).map_or("", |found| found.as_str())),
                    None => out.push('$'),
                }
            }
            _ => out.push(c),
        }
    }
}

fn count(call: &Call) -> Result<ArrayRef> {
    let (texts, patterns) = (call.text(0)?, Patterns::new(call)?);
    call.numbers::<arrow::datatypes::Int32Type>(|row| {
        let found = patterns.get(row).zip(texts.get(row)).map(|(regex, text)| regex.find_iter(text).count());
        Ok(found.map(|count| i32::try_from(count).unwrap_or(i32::MAX)))
    })
}
