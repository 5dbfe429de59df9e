//! The kind of a row in a changelog stream.

/// Name of the `Int8` column that an updating stream carries last. Insert-only streams have no such column.
pub const ROW_KIND_COLUMN: &str = "__row_kind";

/// What a row of an updating stream does to the table that the stream describes. Codes are those on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum RowKind {
    /// `+I`: a new row.
    Insert = 0,
    /// `-U`: the row as it was, followed by its `+U`.
    UpdateBefore = 1,
    /// `+U`: the row as it is now.
    UpdateAfter = 2,
    /// `-D`: the row is gone.
    Delete = 3,
}

impl RowKind {
    /// `None` for a code that no version of the format knows.
    #[must_use]
    pub fn from_code(code: i8) -> Option<Self> {
        Some(match code {
            0 => Self::Insert,
            1 => Self::UpdateBefore,
            2 => Self::UpdateAfter,
            3 => Self::Delete,
            _ => return None,
        })
    }

    #[must_use]
    pub fn code(self) -> i8 {
        self as i8
    }

    /// Whether the row is added (`+I`, `+U`) rather than taken back (`-U`, `-D`).
    #[must_use]
    pub fn adds(self) -> bool {
        matches!(self, Self::Insert | Self::UpdateAfter)
    }

    /// `+I`, `-U`, `+U` or `-D`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }
}
