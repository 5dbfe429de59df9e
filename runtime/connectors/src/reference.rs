//! The reference page of connectors, from the lists of options.

use std::fmt::Write;

use crate::registry::connectors;

/// Markdown of `docs/reference/connectors.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Connectors\n\nGenerated from the option lists in `runtime/connectors`; change it there.\n\n\
         A table names its connector with `'connector' = '…'` and sets options in its WITH clause. An unknown option, or \
         one of a format that the table does not use, is refused.\n",
    );
    for connector in connectors() {
        // Writing to a string cannot fail.
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", connector.name(), connector.doc());
        page.push_str("| option | value | default | meaning |\n| --- | --- | --- | --- |\n");
        for option in connector.options() {
            let default = match (option.default, option.required) {
                (Some(default), _) => format!("`{default}`"),
                (None, true) => "required".to_owned(),
                (None, false) => String::new(),
            };
            let _ = writeln!(page, "| `{}` | {} | {default} | {} |", option.key, option.kind, option.doc);
        }
    }
    page
}
