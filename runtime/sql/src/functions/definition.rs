//! [`Definition`]: one row of the function table that we serve ourselves, and the bridge to DataFusion.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field, FieldRef, TimeUnit},
};
use datafusion::{
    common::{Result, ScalarValue, plan_err},
    logical_expr::{
        ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

use super::{call::Call, fault::in_call};
use crate::types::{SqlType, with_precision};

/// A scalar function of ours.
pub(crate) struct Definition {
    /// As DataFusion finds it: in lower case. Names of special forms begin with `__`.
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    /// As the reference shows it.
    pub usage: &'static str,
    /// What is worth knowing; empty if the name says all.
    pub note: &'static str,
    pub params: &'static [Param],
    /// Parameters behind this many may be left out; the last one may repeat if `repeats`.
    pub required: usize,
    pub repeats: bool,
    pub volatility: Volatility,
    pub returns: fn(&Types) -> Result<DataType>,
    pub eval: fn(&Call) -> Result<ArrayRef>,
}

impl Definition {
    /// A row with nothing optional.
    pub(crate) const fn new(
        name: &'static str,
        usage: &'static str,
        params: &'static [Param],
        returns: fn(&Types) -> Result<DataType>,
        eval: fn(&Call) -> Result<ArrayRef>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            usage,
            note: "",
            params,
            required: params.len(),
            repeats: false,
            volatility: Volatility::Immutable,
            returns,
            eval,
        }
    }

    pub(crate) const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn required(mut self, count: usize) -> Self {
        self.required = count;
        self
    }

    pub(crate) const fn repeats(mut self) -> Self {
        self.repeats = true;
        self
    }

    /// Evaluated anew for each row or batch, never folded into a constant.
    pub(crate) const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }

    fn param(&self, index: usize) -> Option<Param> {
        match self.params.get(index) {
            Some(param) => Some(*param),
            None if self.repeats => self.params.last().copied(),
            None => None,
        }
    }
}

/// What an argument must be, and what it is converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Param {
    Text,
    /// Any integer, read as BIGINT.
    Integer,
    /// Any number, as DOUBLE.
    Double,
    /// Any number, as it is.
    Number,
    Boolean,
    Bytes,
    /// TIMESTAMP, TIMESTAMP_LTZ or DATE, as it is.
    Moment,
    /// As a moment, or TIME.
    MomentOrTime,
    Any,
}

impl Param {
    fn coerce(self, given: &DataType) -> Option<DataType> {
        use DataType as T;
        if *given == T::Null && self != Self::Any {
            return Some(self.of_null());
        }
        match self {
            Self::Text if is_text(given) => Some(T::Utf8),
            // As it is: a cast would hide a literal, and columns are read as BIGINT anyway.
            Self::Integer if given.is_signed_integer() => Some(given.clone()),
            Self::Double if given.is_numeric() => Some(T::Float64),
            Self::Number if given.is_numeric() => Some(given.clone()),
            Self::Boolean if *given == T::Boolean => Some(T::Boolean),
            Self::Bytes if matches!(given, T::Binary | T::LargeBinary | T::BinaryView) => Some(T::Binary),
            Self::Moment if matches!(given, T::Timestamp(..) | T::Date32) => Some(given.clone()),
            Self::MomentOrTime if matches!(given, T::Timestamp(..) | T::Date32 | T::Time32(_) | T::Time64(_)) => {
                Some(given.clone())
            }
            Self::Any if is_text(given) => Some(T::Utf8),
            Self::Any => Some(given.clone()),
            _ => None,
        }
    }

    fn of_null(self) -> DataType {
        match self {
            Self::Text | Self::Any => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Double | Self::Number => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Bytes => DataType::Binary,
            Self::Moment | Self::MomentOrTime => DataType::Timestamp(TimeUnit::Millisecond, None),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Self::Text => "STRING",
            Self::Integer => "an integer",
            Self::Double | Self::Number => "a number",
            Self::Boolean => "BOOLEAN",
            Self::Bytes => "BYTES",
            Self::Moment => "TIMESTAMP, TIMESTAMP_LTZ or DATE",
            Self::MomentOrTime => "TIMESTAMP, TIMESTAMP_LTZ, DATE or TIME",
            Self::Any => "any value",
        }
    }
}

pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// What is known of a call's arguments while it is planned.
pub(crate) struct Types<'a> {
    fields: &'a [FieldRef],
    literals: &'a [Option<&'a ScalarValue>],
}

impl Types<'_> {
    pub(crate) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Type of the n-th argument; Null if there is none.
    pub(crate) fn of(&self, index: usize) -> DataType {
        self.fields.get(index).map_or(DataType::Null, |field| field.data_type().clone())
    }

    /// The n-th argument's text if it is a literal.
    pub(crate) fn literal(&self, index: usize) -> Option<&str> {
        self.literals.get(index).copied().flatten()?.try_as_str().flatten()
    }

    /// The n-th argument's integer if it is a literal.
    pub(crate) fn literal_integer(&self, index: usize) -> Option<i64> {
        let value = self.literals.get(index).copied().flatten()?;
        match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(number)) => number,
            _ => None,
        }
    }

    /// The SQL type that the n-th argument, a literal, spells.
    pub(crate) fn spelt_type(&self, index: usize) -> Result<SqlType> {
        let Some(text) = self.literal(index) else { return plan_err!("the type of a CAST must be a literal") };
        crate::types::parse_type(text).map_err(super::fault::external)
    }
}

/// A definition as DataFusion sees it.
pub(crate) struct FlinkFunction {
    definition: &'static Definition,
    aliases: Vec<String>,
    signature: Signature,
}

impl FlinkFunction {
    pub(crate) fn udf(definition: &'static Definition) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self {
            definition,
            aliases: definition.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            signature: Signature::user_defined(definition.volatility),
        })
    }
}

impl std::fmt::Debug for FlinkFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FlinkFunction").field(&self.definition.name).finish()
    }
}

// The table has each name once.
impl PartialEq for FlinkFunction {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
    }
}

impl Eq for FlinkFunction {}

impl Hash for FlinkFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for FlinkFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let definition = self.definition;
        if given.len() < definition.required || (given.len() > definition.params.len() && !definition.repeats) {
            return plan_err!(
                "{} does not take {} arguments; write {}",
                shown(definition),
                given.len(),
                definition.usage
            );
        }
        let coerce = |(index, given): (usize, &DataType)| {
            let param = definition.param(index).unwrap_or(Param::Any);
            param.coerce(given).map_or_else(
                || {
                    let (wanted, is) = (param.wanted(), SqlType::name_of(given));
                    plan_err!(
                        "argument {} of {} must be {wanted}, but is {is}; write {}",
                        index + 1,
                        shown(definition),
                        definition.usage
                    )
                },
                Ok,
            )
        };
        given.iter().enumerate().map(coerce).collect()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> = types.iter().map(|t| Arc::new(Field::new("", t.clone(), true))).collect();
        (self.definition.returns)(&Types { fields: &fields, literals: &[] })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = Types { fields: args.arg_fields, literals: args.scalar_arguments };
        let data_type = (self.definition.returns)(&types).map_err(|error| in_call(error, shown(self.definition)))?;
        let field = Field::new(self.name(), data_type, true);
        Ok(Arc::new(match self.name() {
            "__cast" | "__try_cast" => with_precision(field, &types.spelt_type(1)?),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        (self.definition.eval)(&Call::new(&args)).map(ColumnarValue::Array)
    }
}

/// The name as users know it.
fn shown(definition: &Definition) -> &'static str {
    definition.usage.split(['(', ' ']).next().unwrap_or(definition.name)
}

/// Return types of the simple kind.
pub(crate) mod returns {
    use super::{DataType, Result, TimeUnit, Types};

    macro_rules! fixed {
        ($($name:ident = $data_type:expr;)+) => {
            $(pub(crate) fn $name(_: &Types) -> Result<DataType> {
                Ok($data_type)
            })+
        };
    }

    fixed! {
        text = DataType::Utf8;
        int = DataType::Int32;
        bigint = DataType::Int64;
        double = DataType::Float64;
        boolean = DataType::Boolean;
        bytes = DataType::Binary;
        date = DataType::Date32;
        timestamp = DataType::Timestamp(TimeUnit::Millisecond, None);
        timestamp_ltz = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    }

    /// That of the first argument.
    pub(crate) fn first(types: &Types) -> Result<DataType> {
        Ok(types.of(0))
    }
}
