//! The grammar of cron time tables: five fields, each a list of `*`, values and ranges with steps.

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, names: &[] },
    Field { name: "hour", least: 0, most: 23, names: &[] },
    Field { name: "day of month", least: 1, most: 31, names: &[] },
    Field {
        name: "month",
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    // 0 and 7 are both Sunday.
    Field { name: "day of week", least: 0, most: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

/// Whether a text is a time table.
///
/// # Errors
/// What is wrong, and in which field.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!(
            "`{text}` has {} fields; five are expected: minute, hour, day of month, month, day of week",
            parts.len()
        ));
    }
    for (part, field) in parts.iter().zip(&FIELDS) {
        for item in part.split(',') {
            field.check(item).map_err(|cause| format!("`{item}` is no {}: {cause}", field.name))?;
        }
    }
    Ok(())
}

impl Field {
    fn check(&self, item: &str) -> Result<(), String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        if let Some(step) = step {
            let step: u32 = number(step).ok_or("the step is no number")?;
            if step == 0 || step > self.most {
                return Err(format!("the step must lie between 1 and {}", self.most));
            }
        }
        if range == "*" {
            return Ok(());
        }
        match range.split_once('-') {
            Some((first, last)) if self.value(first)? > self.value(last)? => Err("the range runs backwards".to_owned()),
            Some(_) => Ok(()),
            None if step.is_some() => Err("a step needs `*` or a range before it".to_owned()),
            None => self.value(range).map(|_| ()),
        }
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        if let Some(index) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(self.least + u32::try_from(index).unwrap_or_default());
        }
        number(text)
            .filter(|value| (self.least..=self.most).contains(value))
            .ok_or_else(|| format!("values lie between {} and {}", self.least, self.most))
    }
}

fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_cron_accepts() {
        for text in ["0 3 * * *", "*/15 0-6,22-23 1,15 JAN-mar mon-fri", "0 0 31 12 7", "5-50/5 * * * *"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn names_the_field_that_is_wrong() {
        let faults = [
            ("0 3 * *", "`0 3 * *` has 4 fields; five are expected: minute, hour, day of month, month, day of week"),
            ("60 3 * * *", "`60` is no minute: values lie between 0 and 59"),
            ("0 24 * * *", "`24` is no hour: values lie between 0 and 23"),
            ("0 0 0 * *", "`0` is no day of month: values lie between 1 and 31"),
            ("0 0 * foo *", "`foo` is no month: values lie between 1 and 12"),
            ("0 0 * * fri-mon", "`fri-mon` is no day of week: the range runs backwards"),
            ("*/0 * * * *", "`*/0` is no minute: the step must lie between 1 and 59"),
            ("5/10 * * * *", "`5/10` is no minute: a step needs `*` or a range before it"),
            ("+5 * * * *", "`+5` is no minute: values lie between 0 and 59"),
            (", * * * *", "`` is no minute: values lie between 0 and 59"),
        ];
        for (text, expected) in faults {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }
}
