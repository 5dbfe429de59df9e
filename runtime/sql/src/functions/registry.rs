//! [`FlinkFunctions`]: functions by name, for DataFusion's `ContextProvider`, and the session's settings.

use std::{collections::HashMap, sync::Arc};

use datafusion::{
    config::ConfigOptions,
    functions_nested::planner::{FieldAccessPlanner, NestedFunctionPlanner},
    logical_expr::{AggregateUDF, ScalarUDF, WindowUDF, planner::ExprPlanner},
};
use streamkeeper_types::{Code, Error};

use super::{
    rewrite::OperandCheck,
    table::{ALIASES, refusal, scalar_functions},
};

/// Every function that a query can name.
#[derive(Clone)]
pub struct FlinkFunctions {
    scalars: HashMap<String, Arc<ScalarUDF>>,
    aggregates: HashMap<String, Arc<AggregateUDF>>,
    windows: HashMap<String, Arc<WindowUDF>>,
}

impl Default for FlinkFunctions {
    fn default() -> Self {
        Self::new()
    }
}

impl FlinkFunctions {
    #[must_use]
    pub fn new() -> Self {
        let mut scalars = HashMap::new();
        for udf in scalar_functions() {
            for name in udf.aliases().iter().map(String::as_str).chain([udf.name()]) {
                scalars.insert(name.to_ascii_lowercase(), Arc::clone(&udf));
            }
        }
        for (name, theirs) in ALIASES {
            if let Some(udf) = scalars.get(theirs).cloned() {
                scalars.insert(name.to_owned(), udf);
            }
        }
        let aggregates = super::aggregates().into_iter().map(|udf| (udf.name().to_owned(), udf)).collect();
        let windows = datafusion::functions_window::all_default_window_functions();
        let windows = windows.into_iter().map(|udf| (udf.name().to_owned(), udf)).collect();
        Self { scalars, aggregates, windows }
    }

    /// By a name in any case; so with the next two.
    #[must_use]
    pub fn scalar(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalars.get(&name.to_ascii_lowercase()).cloned()
    }

    #[must_use]
    pub fn aggregate(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.aggregates.get(&name.to_ascii_lowercase()).cloned()
    }

    #[must_use]
    pub fn window(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.windows.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Names of scalar functions, aggregates and window functions, for `ContextProvider::udf_names` and its like.
    #[must_use]
    pub fn names(&self) -> [Vec<String>; 3] {
        [
            self.scalars.keys().filter(|name| !name.starts_with("__")).cloned().collect(),
            self.aggregates.keys().cloned().collect(),
            self.windows.keys().cloned().collect(),
        ]
    }

    /// Planners of `array[i]`, `map[k]`, `row.field` and `ARRAY[…]`, and the check of operands.
    #[must_use]
    pub fn expr_planners() -> Vec<Arc<dyn ExprPlanner>> {
        vec![Arc::new(OperandCheck), Arc::new(NestedFunctionPlanner), Arc::new(FieldAccessPlanner)]
    }

    /// The error for a name that nothing has: what to write instead, or the nearest name.
    #[must_use]
    pub fn not_found(&self, name: &str) -> Error {
        let upper = name.to_ascii_uppercase();
        if let Some(way_out) = refusal(name) {
            return Error::new(Code::SqlUnsupported, format!("{upper} is not supported")).way_out(way_out);
        }
        let nearest = self
            .names()
            .into_iter()
            .flatten()
            .map(|known| (strsim::damerau_levenshtein(&known, &name.to_ascii_lowercase()), known))
            .min()
            .filter(|(distance, _)| *distance <= 2);
        let error = Error::new(Code::SqlInvalid, format!("there is no function {upper}"));
        match nearest {
            Some((_, known)) => error.way_out(format!("did you mean {}?", known.to_ascii_uppercase())),
            None => error.way_out("docs/reference/sql-functions.md lists all functions"),
        }
    }
}

/// Settings under which DataFusion reads and evaluates as Flink does.
///
/// `time_zone` is the session's zone, `table.local-time-zone`; UTC if not set.
#[must_use]
pub fn session_defaults(time_zone: Option<&str>) -> ConfigOptions {
    let mut options = ConfigOptions::default();
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    // NULL is the smallest value.
    options.sql_parser.default_null_ordering = "nulls_min".to_owned();
    options.sql_parser.collect_spans = true;
    options.execution.time_zone = Some(time_zone.unwrap_or("UTC").to_owned());
    options
}
