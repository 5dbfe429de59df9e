//! The types of a snapshot's columns as SQL calls them.

/// SQL name of a type in a snapshot's text form, as `DECIMAL(38, 2)` for `decimal(38,2)`. A text that SQL has no name
/// for stays as it is.
#[must_use]
pub fn name(text: &str) -> String {
    match parse(text) {
        Some((name, "")) => name,
        _ => text.to_owned(),
    }
}

/// The type at the beginning, and what follows it.
fn parse(text: &str) -> Option<(String, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if let Some(inner) = rest.strip_prefix('(') {
        let (parameters, rest) = inner.split_once(')')?;
        return Some((with_parameters(word, parameters)?, rest));
    }
    if let Some(inner) = rest.strip_prefix('<') {
        let (inner, rest) = match word {
            "row" => {
                let (fields, rest) = fields(inner)?;
                let fields: Vec<String> = fields.iter().map(|(name, kind)| format!("`{name}` {kind}")).collect();
                (format!("ROW<{}>", fields.join(", ")), rest)
            }
            "map" => {
                let (entry, rest) = fields(inner.strip_prefix("row<")?)?;
                let [(_, key), (_, value)] = entry.as_slice() else { return None };
                (format!("MAP<{key}, {value}>"), rest)
            }
            "list" => parse(inner).map(|(item, rest)| (format!("ARRAY<{item}>"), rest))?,
            _ => return None,
        };
        // The bracket of `row<` was taken with its fields.
        let rest = if word == "row" { rest } else { rest.strip_prefix('>')? };
        return Some((inner, rest));
    }
    let plain = match word {
        "boolean" => "BOOLEAN",
        "int8" => "TINYINT",
        "int16" => "SMALLINT",
        "int32" => "INT",
        "int64" => "BIGINT",
        "float32" => "FLOAT",
        "float64" => "DOUBLE",
        "string" => "STRING",
        "bytes" => "BYTES",
        "date" => "DATE",
        _ => return None,
    };
    Some((plain.to_owned(), rest))
}

fn with_parameters(word: &str, parameters: &str) -> Option<String> {
    let (unit, zone) = parameters.split_once(',').map_or((parameters, None), |(unit, zone)| (unit, Some(zone)));
    if word == "decimal" {
        return Some(format!("DECIMAL({unit}, {})", zone?));
    }
    let digits = match unit {
        "s" => 0,
        "ms" => 3,
        "us" => 6,
        "ns" => 9,
        _ => return None,
    };
    match (word, zone) {
        ("time", None) => Some(format!("TIME({digits})")),
        ("timestamp", None) => Some(format!("TIMESTAMP({digits})")),
        ("timestamp", Some(_)) => Some(format!("TIMESTAMP_LTZ({digits})")),
        _ => None,
    }
}

/// Names and types up to the closing bracket, and what follows it.
fn fields(mut text: &str) -> Option<(Vec<(String, String)>, &str)> {
    let mut fields = Vec::new();
    loop {
        let (name, rest) = text.strip_prefix('"')?.split_once("\" ")?;
        let (kind, rest) = parse(rest)?;
        fields.push((name.to_owned(), kind));
        if let Some(rest) = rest.strip_prefix('>') {
            return Some((fields, rest));
        }
        text = rest.strip_prefix(", ")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_sql() {
        for (text, expected) in [
            ("int64", "BIGINT"),
            ("string", "STRING"),
            ("decimal(38,2)", "DECIMAL(38, 2)"),
            ("timestamp(ms)", "TIMESTAMP(3)"),
            ("timestamp(us,UTC)", "TIMESTAMP_LTZ(6)"),
            ("time(ms)", "TIME(3)"),
            ("list<int32>", "ARRAY<INT>"),
            ("list<list<decimal(5,1)>>", "ARRAY<ARRAY<DECIMAL(5, 1)>>"),
            (r#"row<"a b" int32, "tags" list<string>>"#, "ROW<`a b` INT, `tags` ARRAY<STRING>>"),
            (r#"map<row<"key" string, "value" row<"x" date>>>"#, "MAP<STRING, ROW<`x` DATE>>"),
            ("uint64", "uint64"),
            ("list<uint64>", "list<uint64>"),
            ("row<", "row<"),
            ("", ""),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }
}
