//! [`Unit`]: the units of time of EXTRACT, FLOOR, TIMESTAMPADD and their like.

/// A unit of time, or a part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    Day,
    /// 1 for Sunday.
    DayOfWeek,
    /// 1 for Monday.
    IsoDayOfWeek,
    DayOfYear,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Epoch,
}

/// Names as users write them; the first of a unit is canonical.
const NAMES: [(&str, Unit); 21] = [
    ("MILLENNIUM", Unit::Millennium),
    ("CENTURY", Unit::Century),
    ("DECADE", Unit::Decade),
    ("YEAR", Unit::Year),
    ("ISOYEAR", Unit::IsoYear),
    ("QUARTER", Unit::Quarter),
    ("MONTH", Unit::Month),
    ("WEEK", Unit::Week),
    ("DAY", Unit::Day),
    ("DOW", Unit::DayOfWeek),
    ("ISODOW", Unit::IsoDayOfWeek),
    ("DOY", Unit::DayOfYear),
    ("HOUR", Unit::Hour),
    ("MINUTE", Unit::Minute),
    ("SECOND", Unit::Second),
    ("MILLISECOND", Unit::Millisecond),
    ("MICROSECOND", Unit::Microsecond),
    ("NANOSECOND", Unit::Nanosecond),
    ("EPOCH", Unit::Epoch),
    ("DAYOFWEEK", Unit::DayOfWeek),
    ("DAYOFYEAR", Unit::DayOfYear),
];

impl Unit {
    /// Reads a unit in any case, in singular or plural, with or without the prefix `SQL_TSI_`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let plain = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        let find = |name: &str| NAMES.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
        find(plain).or_else(|| find(plain.strip_suffix('S')?))
    }

    /// The canonical name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, unit)| *unit == self).map_or("", |(name, _)| name)
    }

    /// Length in milliseconds of units that always have the same.
    #[must_use]
    pub fn millis(self) -> Option<i64> {
        Some(match self {
            Self::Week => 604_800_000,
            Self::Day => 86_400_000,
            Self::Hour => 3_600_000,
            Self::Minute => 60_000,
            Self::Second => 1_000,
            Self::Millisecond => 1,
            _ => return None,
        })
    }

    /// Length in months of units that are made of months.
    #[must_use]
    pub fn months(self) -> Option<i64> {
        Some(match self {
            Self::Month => 1,
            Self::Quarter => 3,
            Self::Year => 12,
            Self::Decade => 120,
            Self::Century => 1_200,
            Self::Millennium => 12_000,
            _ => return None,
        })
    }
}
