//! [`Call`]: the arguments of one evaluation, as columns that read a literal without expanding it.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, PrimitiveArray, StringArray, StringBuilder},
    compute::cast,
    datatypes::{ArrowPrimitiveType, DataType, Field},
};
use chrono_tz::Tz;
use datafusion::{
    common::{Result, ScalarValue},
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF},
};

use super::{fault::evaluation, time::parse_zone};

pub(crate) struct Call<'a> {
    args: &'a ScalarFunctionArgs,
}

impl<'a> Call<'a> {
    pub(crate) fn new(args: &'a ScalarFunctionArgs) -> Self {
        Self { args }
    }

    pub(crate) fn rows(&self) -> usize {
        self.args.number_rows
    }

    pub(crate) fn len(&self) -> usize {
        self.args.args.len()
    }

    /// The n-th argument as an array of all rows.
    pub(crate) fn array(&self, index: usize) -> Result<ArrayRef> {
        self.argument(index)?.to_array(self.rows())
    }

    pub(crate) fn return_type(&self) -> &DataType {
        self.args.return_field.data_type()
    }

    /// A text literal, or the text of row 0.
    pub(crate) fn constant(&self, index: usize) -> Option<&'a str> {
        match self.args.args.get(index)? {
            ColumnarValue::Scalar(value) => value.try_as_str().flatten(),
            ColumnarValue::Array(array) => {
                array.as_string_opt::<i32>().and_then(|texts| (!texts.is_empty()).then(|| texts.value(0)))
            }
        }
    }

    pub(crate) fn text(&self, index: usize) -> Result<Column<'a, StringArray>> {
        Column::new(self.argument(index)?, &DataType::Utf8)
    }

    pub(crate) fn bytes(&self, index: usize) -> Result<Column<'a, BinaryArray>> {
        Column::new(self.argument(index)?, &DataType::Binary)
    }

    pub(crate) fn boolean(&self, index: usize) -> Result<Column<'a, BooleanArray>> {
        Column::new(self.argument(index)?, &DataType::Boolean)
    }

    pub(crate) fn number<T: ArrowPrimitiveType>(&self, index: usize) -> Result<Column<'a, PrimitiveArray<T>>> {
        Column::new(self.argument(index)?, &T::DATA_TYPE)
    }

    /// The zone in which instants are shown; UTC if the session states none.
    pub(crate) fn zone(&self) -> Result<Tz> {
        match self.args.config_options.execution.time_zone.as_deref() {
            None => Ok(Tz::UTC),
            Some(name) => parse_zone(name).ok_or_else(|| evaluation(format!("`{name}` is no time zone"))),
        }
    }

    /// Texts row by row; `None` is NULL, and what `row` wrote before it is dropped.
    pub(crate) fn texts(&self, mut row: impl FnMut(usize, &mut String) -> Result<Option<()>>) -> Result<ArrayRef> {
        let mut builder = StringBuilder::with_capacity(self.rows(), self.rows() * 16);
        let mut buffer = String::new();
        for i in 0..self.rows() {
            buffer.clear();
            match row(i, &mut buffer)? {
                Some(()) => builder.append_value(&buffer),
                None => builder.append_null(),
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Numbers row by row.
    pub(crate) fn numbers<T: ArrowPrimitiveType>(
        &self,
        mut row: impl FnMut(usize) -> Result<Option<T::Native>>,
    ) -> Result<ArrayRef> {
        let values: PrimitiveArray<T> = (0..self.rows()).map(&mut row).collect::<Result<_>>()?;
        Ok(Arc::new(values))
    }

    /// Truths row by row.
    pub(crate) fn booleans(&self, mut row: impl FnMut(usize) -> Result<Option<bool>>) -> Result<ArrayRef> {
        let values: BooleanArray = (0..self.rows()).map(&mut row).collect::<Result<_>>()?;
        Ok(Arc::new(values))
    }

    /// What a function of DataFusion gives for the first argument.
    pub(crate) fn forward_first(&self, udf: &ScalarUDF) -> Result<ArrayRef> {
        let given = &self.args.arg_fields[..1];
        let result = udf.return_type(&[given[0].data_type().clone()])?;
        let args = ScalarFunctionArgs {
            args: vec![self.argument(0)?.clone()],
            arg_fields: given.to_vec(),
            number_rows: self.rows(),
            return_field: Arc::new(Field::new(udf.name(), result, true)),
            config_options: Arc::clone(&self.args.config_options),
        };
        udf.invoke_with_args(args)?.to_array(self.rows())
    }

    /// A call over one other array, in the same session.
    pub(crate) fn over(&self, array: &ArrayRef, result: &DataType) -> ScalarFunctionArgs {
        ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(Arc::clone(array))],
            arg_fields: vec![Arc::new(Field::new("", array.data_type().clone(), true))],
            number_rows: array.len(),
            return_field: Arc::new(Field::new("", result.clone(), true)),
            config_options: Arc::clone(&self.args.config_options),
        }
    }

    /// Type of the n-th argument, and whether it may be NULL.
    pub(crate) fn field(&self, index: usize) -> Option<&Field> {
        self.args.arg_fields.get(index).map(AsRef::as_ref)
    }

    pub(crate) fn argument(&self, index: usize) -> Result<&'a ColumnarValue> {
        self.args.args.get(index).ok_or_else(|| evaluation(format!("argument {} is missing", index + 1)))
    }
}

/// Values of one argument: an array, or one value for all rows.
pub(crate) enum Column<'a, A> {
    Borrowed(&'a A),
    Owned(A),
    Constant(A),
}

impl<'a, A: Array + Clone + 'static> Column<'a, A> {
    fn new(value: &'a ColumnarValue, data_type: &DataType) -> Result<Self> {
        let wrong = |found: &DataType| evaluation(format!("a value of type {found} came where {data_type} is due"));
        match value {
            ColumnarValue::Array(array) => match array.as_any().downcast_ref::<A>() {
                Some(column) => Ok(Self::Borrowed(column)),
                None => downcast(cast(array, data_type)?).map(Self::Owned).ok_or_else(|| wrong(array.data_type())),
            },
            ColumnarValue::Scalar(scalar) => {
                let scalar = if scalar.data_type() == *data_type {
                    scalar.clone()
                } else {
                    ScalarValue::cast_to(scalar, data_type)?
                };
                downcast(scalar.to_array()?).map(Self::Constant).ok_or_else(|| wrong(&scalar.data_type()))
            }
        }
    }

    /// The array, and the row in it that stands for `row`.
    #[inline]
    fn at(&self, row: usize) -> (&A, usize) {
        match self {
            Self::Borrowed(array) => (array, row),
            Self::Owned(array) => (array, row),
            Self::Constant(array) => (array, 0),
        }
    }

    /// Whether all rows have the same value.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

fn downcast<A: Array + Clone + 'static>(array: ArrayRef) -> Option<A> {
    array.as_any().downcast_ref::<A>().cloned()
}

impl Column<'_, StringArray> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        let (array, row) = self.at(row);
        array.is_valid(row).then(|| array.value(row))
    }
}

impl Column<'_, BinaryArray> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        let (array, row) = self.at(row);
        array.is_valid(row).then(|| array.value(row))
    }
}

impl Column<'_, BooleanArray> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<bool> {
        let (array, row) = self.at(row);
        array.is_valid(row).then(|| array.value(row))
    }
}

impl<T: ArrowPrimitiveType> Column<'_, PrimitiveArray<T>> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        let (array, row) = self.at(row);
        array.is_valid(row).then(|| array.value(row))
    }
}
