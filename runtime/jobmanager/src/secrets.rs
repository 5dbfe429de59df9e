//! What is never shown (B97): values of options whose names say that they are secret.
//!
//! Jobs name secrets as `${secret:…}`, which are safe to show. This is for those who write them into their SQL all the same.

/// Shown instead.
pub(crate) const HIDDEN: &str = "******";

/// Parts of names, in lower case.
const SECRET: [&str; 10] =
    ["password", "passwd", "secret", "token", "credential", "private", "jaas", "access-key", "api-key", "account-key"];

/// Whether the value of an option with this name is hidden.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    SECRET.iter().any(|part| name.contains(part))
}

/// `name: value` of a detail.
pub(crate) fn shown(name: &str, value: &str) -> String {
    let value = if is_secret(name) { HIDDEN } else { value };
    format!("{name}: {value}")
}

/// An address without user, password and signature: `s3://key:secret@bucket/a?sig=x` → `s3://bucket/a`.
pub(crate) fn address(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_once('/').map_or((rest, None), |(authority, path)| (authority, Some(path)));
    // `abfs://container@account` names a container before the @; only a password makes it a secret.
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => host,
        _ => authority,
    };
    match path {
        Some(path) => format!("{scheme}://{authority}/{path}"),
        None => format!("{scheme}://{authority}"),
    }
}

/// The program's text with the values of secret options hidden: `'password' = 'x'` → `'password' = '******'`.
/// References such as `${secret:db/password}` stay.
pub(crate) fn sql(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut hides = false;
    while let Some(start) = rest.find('\'') {
        let (before, literal) = rest.split_at(start);
        let end = literal_end(literal);
        let (literal, after) = literal.split_at(end);
        let is_value = before.trim() == "=";
        shown.push_str(before);
        if hides && is_value && !literal.starts_with("'${secret:") {
            shown.push('\'');
            shown.push_str(HIDDEN);
            shown.push('\'');
        } else {
            shown.push_str(literal);
        }
        hides = is_secret(literal) && !is_value;
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Length of the literal that `text` begins with, quotes included; all of it if it never ends.
fn literal_end(text: &str) -> usize {
    let mut from = 1;
    while let Some(quote) = text[from..].find('\'') {
        let at = from + quote + 1;
        if !text[at..].starts_with('\'') {
            return at;
        }
        from = at + 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn b97_secrets_written_into_sql_are_hidden_and_references_stay() {
        let hidden = |text: &str| sql(text);
        assert_eq!(hidden("('password' = 'x', 'path' = 'y')"), "('password' = '******', 'path' = 'y')");
        assert_eq!(hidden("'s3.secret_key'='it''s', 'a'='b'"), "'s3.secret_key'='******', 'a'='b'");
        assert_eq!(hidden("'password' = '${secret:db/pw}'"), "'password' = '${secret:db/pw}'");
        assert_eq!(hidden("SELECT 'password', 'x'"), "SELECT 'password', 'x'");
        assert_eq!(hidden("'topic' = 'password', 'b' = 'c'"), "'topic' = 'password', 'b' = 'c'");
        assert_eq!(hidden("'sasl.jaas.config' =\n  'unclosed"), "'sasl.jaas.config' =\n  '******'");
    }

    #[test]
    fn b97_addresses_lose_passwords_and_signatures() {
        assert_eq!(address("s3://key:secret@bucket/a/b?sig=1"), "s3://bucket/a/b");
        assert_eq!(address("abfs://data@account.dfs.core.windows.net/x"), "abfs://data@account.dfs.core.windows.net/x");
        assert_eq!(address("file:///var/data"), "file:///var/data");
        assert_eq!(address("data/here"), "data/here");
    }

    proptest! {
        #[test]
        fn text_without_secret_names_stays_as_it_is(text in "[a-z '=\n,ä]{0,80}") {
            prop_assume!(!SECRET.iter().any(|part| text.contains(part)));
            prop_assert_eq!(sql(&text), text);
        }
    }
}
