//! The functions, with their clauses spelt out as arguments by the parser.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int32Array, Int64Array, StringArray},
    datatypes::{DataType, Float64Type, Int32Type, Int64Type},
};
use datafusion::common::{Result, plan_err};
use serde_json::Value;

use super::path::{Found, Mode, Path};
use crate::functions::{
    call::{Call, Column},
    definition::{
        Definition,
        Param::{Any, Text},
        Types, is_text, returns,
    },
    fault::{evaluation, invalid},
};

pub(crate) static FUNCTIONS: [Definition; 4] = [
    Definition::new(
        "__json_value",
        "JSON_VALUE(text, path [RETURNING type] [{NULL | ERROR | DEFAULT x} ON EMPTY] [{NULL | ERROR | DEFAULT x} ON ERROR])",
        &[Text, Text, Text, Text, Any, Text, Any],
        value_type,
        value,
    )
    .note("A path without a mode is strict: what is missing is an error, not empty. RETURNING DOUBLE takes whole numbers too."),
    Definition::new(
        "__json_query",
        "JSON_QUERY(text, path [{WITHOUT | WITH [CONDITIONAL | UNCONDITIONAL]} [ARRAY] WRAPPER] [… ON EMPTY] [… ON ERROR]) → STRING",
        &[Text, Text, Text, Text, Text],
        query_type,
        query,
    )
    .note("Members come in the order of their names."),
    Definition::new(
        "__json_exists",
        "JSON_EXISTS(text, path [{TRUE | FALSE | UNKNOWN | ERROR} ON ERROR]) → BOOLEAN",
        &[Text, Text, Text],
        exists_type,
        exists,
    ),
    Definition::new("__is_json", "x IS [NOT] JSON [VALUE | OBJECT | ARRAY | SCALAR] → BOOLEAN", &[Text, Text], returns::boolean, is_json)
        .note("FALSE for NULL."),
];

const CACHED: usize = 64;

thread_local! {
    static PATHS: RefCell<HashMap<String, Rc<Path>>> = RefCell::new(HashMap::new());
}

fn compiled(text: &str) -> Result<Rc<Path>> {
    PATHS.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(text) {
            return Ok(Rc::clone(known));
        }
        let path = Rc::new(Path::new(text).map_err(bad_path)?);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(text.to_owned(), Rc::clone(&path));
        Ok(path)
    })
}

fn bad_path(reason: String) -> datafusion::common::DataFusionError {
    invalid(reason, "write for example 'lax $.member[0].name'")
}

fn check(types: &Types) -> Result<()> {
    types.literal(1).map_or(Ok(()), |path| Path::new(path).map(drop).map_err(bad_path))
}

fn value_type(types: &Types) -> Result<DataType> {
    check(types)?;
    let data_type = types.spelt_type(2)?;
    for (index, clause) in [(4, "ON EMPTY"), (6, "ON ERROR")] {
        let given = types.of(index);
        let fits = given == DataType::Null || is_text(&given) == data_type.is_text();
        if !fits && types.literal(index - 1) == Some("DEFAULT") {
            return plan_err!("the DEFAULT {clause} of JSON_VALUE is no {data_type}");
        }
    }
    Ok(data_type.arrow())
}

fn query_type(types: &Types) -> Result<DataType> {
    check(types).and_then(|()| returns::text(types))
}

fn exists_type(types: &Types) -> Result<DataType> {
    check(types).and_then(|()| returns::boolean(types))
}

/// What a path finds, row by row. `None` for NULL.
struct Documents<'a> {
    texts: Column<'a, StringArray>,
    paths: Column<'a, StringArray>,
    constant: Option<Rc<Path>>,
}

impl<'a> Documents<'a> {
    fn new(call: &Call<'a>) -> Result<Self> {
        let (texts, paths) = (call.text(0)?, call.text(1)?);
        let constant = match paths.get(0) {
            Some(path) if paths.is_constant() => Some(compiled(path)?),
            _ => None,
        };
        Ok(Self { texts, paths, constant })
    }

    fn find(&self, row: usize) -> Result<Option<(Found, Mode)>> {
        let (Some(text), Some(path)) = (self.texts.get(row), self.paths.get(row)) else { return Ok(None) };
        let path = match &self.constant {
            Some(path) => Rc::clone(path),
            None => compiled(path)?,
        };
        Ok(Some((path.find(text), path.mode)))
    }

    fn failed(&self, row: usize, what: &str) -> datafusion::common::DataFusionError {
        let shown: String = self.texts.get(row).unwrap_or_default().chars().take(80).collect();
        evaluation(format!("the path `{}` is {what} in '{shown}'", self.paths.get(row).unwrap_or_default()))
    }
}

/// A scalar of JSON as SQL's text.
fn scalar_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// One row of JSON_VALUE before it has its type.
enum Outcome {
    Null,
    Text(String),
    Default(usize),
}

fn value(call: &Call) -> Result<ArrayRef> {
    let documents = Documents::new(call)?;
    let behaviour = |index: usize, row: usize| match call.constant(index) {
        Some("ERROR") => Err(documents.failed(row, if index == 3 { "empty" } else { "an error" })),
        Some("DEFAULT") => Ok(Outcome::Default(index + 1)),
        _ => Ok(Outcome::Null),
    };
    let accepts = |text: &str| match call.return_type() {
        DataType::Boolean => text.parse::<bool>().is_ok(),
        DataType::Int32 => text.parse::<i32>().is_ok(),
        DataType::Int64 => text.parse::<i64>().is_ok(),
        DataType::Float64 => text.parse::<f64>().is_ok(),
        _ => true,
    };
    let row = |row: usize| -> Result<Outcome> {
        let Some((found, mode)) = documents.find(row)? else { return Ok(Outcome::Null) };
        match found {
            Found::Empty => behaviour(3, row),
            Found::Error => behaviour(5, row),
            Found::Value(value) => match (scalar_text(value), mode) {
                (Some(text), _) if accepts(&text) => Ok(Outcome::Text(text)),
                (None, Mode::Lax) => behaviour(3, row),
                _ => behaviour(5, row),
            },
        }
    };
    let outcomes = (0..call.rows()).map(row).collect::<Result<Vec<_>>>()?;
    typed(call, &outcomes)
}

/// The outcomes as an array of the type that RETURNING names.
fn typed(call: &Call, outcomes: &[Outcome]) -> Result<ArrayRef> {
    macro_rules! collect {
        ($array:ty, $default:expr, $parse:expr) => {{
            let array: $array = outcomes
                .iter()
                .enumerate()
                .map(|(row, outcome)| {
                    Ok(match outcome {
                        Outcome::Null => None,
                        Outcome::Text(text) => $parse(text.as_str()),
                        Outcome::Default(index) => $default(row, *index)?,
                    })
                })
                .collect::<Result<_>>()?;
            Ok(std::sync::Arc::new(array))
        }};
    }
    macro_rules! number {
        ($array:ty, $arrow:ty, $native:ty) => {
            collect!(
                $array,
                |row, index| Ok::<_, datafusion::common::DataFusionError>(call.number::<$arrow>(index)?.get(row)),
                |text: &str| text.parse::<$native>().ok()
            )
        };
    }
    match call.return_type() {
        DataType::Boolean => collect!(
            BooleanArray,
            |row, index| Ok::<_, datafusion::common::DataFusionError>(call.boolean(index)?.get(row)),
            |text: &str| text.parse::<bool>().ok()
        ),
        DataType::Int32 => number!(Int32Array, Int32Type, i32),
        DataType::Int64 => number!(Int64Array, Int64Type, i64),
        DataType::Float64 => number!(Float64Array, Float64Type, f64),
        _ => {
            let defaults = |index| call.array(index).map(|array| array.as_string_opt::<i32>().cloned());
            let (on_empty, on_error) = (defaults(4)?, defaults(6)?);
            call.texts(|row, out| {
                let text = match &outcomes[row] {
                    Outcome::Null => None,
                    Outcome::Text(text) => Some(text.as_str()),
                    Outcome::Default(index) => {
                        let defaults = if *index == 4 { &on_empty } else { &on_error };
                        defaults.as_ref().filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row))
                    }
                };
                Ok(text.map(|text| out.push_str(text)))
            })
        }
    }
}

fn query(call: &Call) -> Result<ArrayRef> {
    let documents = Documents::new(call)?;
    let behaviour = |index: usize, row: usize, out: &mut String| match call.constant(index) {
        Some("ERROR") => Err(documents.failed(row, if index == 3 { "empty" } else { "an error" })),
        Some("EMPTY ARRAY") => {
            out.push_str("[]");
            Ok(Some(()))
        }
        Some("EMPTY OBJECT") => {
            out.push_str("{}");
            Ok(Some(()))
        }
        _ => Ok(None),
    };
    let wrapper = call.constant(2).unwrap_or("NONE");
    call.texts(|row, out| {
        let Some((found, mode)) = documents.find(row)? else { return Ok(None) };
        let value = match found {
            Found::Empty => return behaviour(3, row, out),
            Found::Error => return behaviour(4, row, out),
            Found::Value(value) => value,
        };
        let value = match wrapper {
            "UNCONDITIONAL" => Value::Array(vec![value]),
            "CONDITIONAL" if !value.is_array() => Value::Array(vec![value]),
            _ => value,
        };
        if !value.is_array() && !value.is_object() {
            return behaviour(if mode == Mode::Lax { 3 } else { 4 }, row, out);
        }
        out.push_str(&value.to_string());
        Ok(Some(()))
    })
}

fn exists(call: &Call) -> Result<ArrayRef> {
    let documents = Documents::new(call)?;
    call.booleans(|row| {
        let Some((found, _)) = documents.find(row)? else { return Ok(None) };
        Ok(match found {
            Found::Value(_) => Some(true),
            Found::Empty => Some(false),
            Found::Error => match call.constant(2) {
                Some("TRUE") => Some(true),
                Some("UNKNOWN") => None,
                Some("ERROR") => return Err(documents.failed(row, "an error")),
                _ => Some(false),
            },
        })
    })
}

fn is_json(call: &Call) -> Result<ArrayRef> {
    let (texts, kind) = (call.text(0)?, call.constant(1).unwrap_or("VALUE"));
    call.booleans(|row| {
        let Some(value) = texts.get(row).and_then(|text| serde_json::from_str::<Value>(text).ok()) else {
            return Ok(Some(false));
        };
        Ok(Some(match kind {
            "OBJECT" => value.is_object(),
            "ARRAY" => value.is_array(),
            "SCALAR" => !value.is_object() && !value.is_array(),
            _ => true,
        }))
    })
}
