//! [`SqlType`] and its canonical text.

use std::fmt;

/// A type as Flink SQL has it. Lengths of CHAR and VARCHAR live here only: Arrow knows one text type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SqlType {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    /// Digits in all (1–38), digits behind the point.
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Padded with blanks to this many characters.
    Char(u32),
    /// Up to this many characters; `None` is STRING.
    Varchar(Option<u32>),
    Binary(u32),
    /// `None` is BYTES.
    Varbinary(Option<u32>),
    Date,
    /// Digits of the second's fraction, 0–9; so with the next two.
    Time(u8),
    /// Wall-clock time without a zone.
    Timestamp(u8),
    /// An instant, shown in the session's zone.
    TimestampLtz(u8),
    Array(Box<Field>),
    Map(Box<SqlType>, Box<Field>),
    Row(Vec<Field>),
}

/// A member of a ROW, or the element of an array or map (then without a name).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    pub name: String,
    pub data_type: SqlType,
    pub nullable: bool,
}

impl SqlType {
    pub const STRING: Self = Self::Varchar(None);
    pub const BYTES: Self = Self::Varbinary(None);

    /// Whether values are numbers, DECIMAL included.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.is_integer() || matches!(self, Self::Float | Self::Double | Self::Decimal { .. })
    }

    /// TINYINT to BIGINT.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
    }

    /// CHAR, VARCHAR and STRING.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Char(_) | Self::Varchar(_))
    }
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::Varchar(None) => f.write_str("STRING"),
            Self::Varchar(Some(length)) => write!(f, "VARCHAR({length})"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::Varbinary(None) => f.write_str("BYTES"),
            Self::Varbinary(Some(length)) => write!(f, "VARBINARY({length})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            Self::Array(element) => write!(f, "ARRAY<{element}>"),
            Self::Map(key, value) => write!(f, "MAP<{key}, {value}>"),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (i, field) in fields.iter().enumerate() {
                    write!(f, "{}{field}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(">")
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "`{}` ", self.name.replace('`', "``"))?;
        }
        write!(f, "{}{}", self.data_type, if self.nullable { "" } else { " NOT NULL" })
    }
}
