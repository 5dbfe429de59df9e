//! YAML text ⇄ JSON values. The only place that knows the YAML library, which serves for reading only.
//!
//! Reading is bounded in bytes and number of values, and the library bounds the depth, so that no text, however built, costs
//! much time or memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::fault::Fault;

mod write;

pub use write::write;

/// A StreamJob's SQL has at most 128 KiB; this leaves room for other objects beside it.
const MAX_BYTES: usize = 1 << 20;
/// Values of one document, aliases counted each time they are used.
const MAX_VALUES: usize = 100_000;
/// Brackets that may be open at a place, those in texts and comments included: the parser takes quadratic time in them.
const MAX_OPEN_BRACKETS: usize = 1000;

/// Reads all documents of a text; empty ones are left out.
///
/// # Errors
/// The first fault, with line and column where they are known.
pub fn read(text: &str) -> Result<Vec<Value>, Fault> {
    if text.len() > MAX_BYTES {
        return Err(Fault::new("file", format!("it has {} bytes; at most {MAX_BYTES} are read", text.len())));
    }
    if let Some(line) = overloaded_line(text) {
        return Err(Fault::new(
            format!("line {line}"),
            format!("more than {MAX_OPEN_BRACKETS} brackets are open here"),
        ));
    }
    let mut documents = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let mut budget = Budget { values: MAX_VALUES, bytes: 2 * MAX_BYTES };
        let value = Node(&mut budget).deserialize(document).map_err(|error| unreadable(&error))?;
        if !value.is_null() {
            documents.push(value);
        }
    }
    Ok(documents)
}

fn unreadable(error: &serde_yaml::Error) -> Fault {
    let text = error.to_string();
    // The library repeats the position within its text.
    let cause = text.split(" at line ").next().unwrap_or(&text);
    let place = match error.location() {
        Some(location) => format!("line {}, column {}", location.line(), location.column()),
        None => "file".to_owned(),
    };
    Fault::new(place, format!("unreadable YAML: {cause}"))
}

/// The first line at which too many brackets are open.
fn overloaded_line(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    for (index, line) in text.lines().enumerate() {
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => open += 1,
                b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > MAX_OPEN_BRACKETS {
                return Some(index + 1);
            }
        }
    }
    None
}

struct Budget {
    values: usize,
    bytes: usize,
}

impl Budget {
    fn take<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        match (self.values.checked_sub(1), self.bytes.checked_sub(bytes)) {
            (Some(values), Some(bytes)) => {
                *self = Self { values, bytes };
                Ok(())
            }
            _ => Err(E::custom(format!(
                "the document expands to more than {MAX_VALUES} values; aliases count each time"
            ))),
        }
    }
}

/// Builds a JSON value straight from the parser's events, and pays for each part.
struct Node<'a>(&'a mut Budget);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain YAML value")
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.0.take(0)?;
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.0.take(0)?;
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom(format!("`{value}` is no number here")))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.take(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Node(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.0.take(0)?;
        let mut map = Map::new();
        while let Some(key) = members.next_key_seed(Node(self.0))? {
            let key = match key {
                Value::String(key) => key,
                Value::Number(key) => key.to_string(),
                Value::Bool(key) => key.to_string(),
                _ => return Err(A::Error::custom("a key must be a plain text")),
            };
            let value = members.next_value_seed(Node(self.0))?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("`{key}` stands here twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Value, A::Error> {
        let (tag, _) = data.variant::<String>()?;
        Err(A::Error::custom(format!("the tag `!{tag}` has no meaning here")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_read_in_order_and_empty_ones_left_out() {
        assert_eq!(
            read("a: 1\n---\n---\nb: [x, true, null]\n"),
            Ok(vec![json!({"a": 1}), json!({"b": ["x", true, null]})])
        );
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("# nothing\n"), Ok(vec![]));
    }

    #[test]
    fn a_fault_names_its_line_and_column() {
        let fault = read("spec:\n  a: 1\n  a: 2\n").unwrap_err();
        assert_eq!(fault.message, "unreadable YAML: spec: `a` stands here twice");
        let fault = read("spec: {\n  a: 1\n").unwrap_err();
        assert!(fault.path.starts_with("line "), "{fault}");
        let fault = read("a: !secret x\n").unwrap_err();
        assert!(fault.message.contains("tag"), "{fault}");
    }

    #[test]
    fn an_alias_is_read_but_a_bomb_of_them_refused() {
        assert_eq!(read("a: &x {b: 1}\nc: *x\n"), Ok(vec![json!({"a": {"b": 1}, "c": {"b": 1}})]));

        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(read(&bomb).is_err());

        let wide = format!("a: &a [{}]\nb: [{}]\n", "x,".repeat(50_000), "*a,".repeat(50_000));
        assert!(read(&wide).unwrap_err().message.contains("values"));

        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a,".repeat(50_000));
        assert!(read(&long).unwrap_err().message.contains("values"));
    }

    #[test]
    fn deep_nesting_is_refused_in_every_style() {
        let texts =
            ["[", "{", "[a,", "{a: ", "[\n", "[[]\n,", "- ", "? "].map(|part| part.repeat(MAX_BYTES / part.len()));
        for text in texts {
            assert!(read(&text).is_err(), "{}…", &text[..10]);
        }
        let indented: String = (0..1000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        assert!(read(&indented).is_err());
    }

    #[test]
    fn too_much_text_is_refused() {
        assert!(read(&" ".repeat(MAX_BYTES + 1)).is_err());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let texts = prop_oneof!["[a-z0-9:.~-]{0,6}", "[ab \n\t#:-]{0,12}", "\\PC{0,8}", any::<String>()];
        let leaf = prop_oneof![
            texts.prop_map(Value::String),
            any::<i64>().prop_map(|number| json!(number)),
            any::<bool>().prop_map(Value::Bool),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
                prop::collection::btree_map("[a-z0-9:~ -]{1,5}", inner, 0..5).prop_map(|members| json!(members)),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = read(&text);
        }

        #[test]
        fn no_text_of_yaml_signs_panics(text in "[-\\[\\]{}:,&*!|>?#%@'\"ab0 \n\t]{0,200}") {
            let _ = read(&text);
        }

        #[test]
        fn any_value_that_is_written_reads_back(value in any_value()) {
            let value = json!({ "value": value });
            prop_assert_eq!(read(&write(&value)), Ok(vec![value]));
        }

        #[test]
        fn what_is_written_reads_back(text in "\\PC*", number in any::<i64>(), flag in any::<bool>()) {
            let value = json!({ "text": text, "list": [number, flag], "map": { "lines": format!("{text}\n  {text}\n") } });
            prop_assert_eq!(read(&write(&value)), Ok(vec![value]));
        }
    }
}
