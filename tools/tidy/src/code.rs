//! Rust text without comments and literals, so that words can be looked for in what is really code.

/// The text with every comment, string and character literal blanked; line breaks stay.
#[must_use]
pub fn code_only(text: &str) -> String {
    let mut scanner = Scanner { rest: text, code: String::with_capacity(text.len()) };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.code
}

/// Whether `word` stands in the code as a whole identifier, or `words` as consecutive ones.
#[must_use]
pub fn has_words(code: &str, words: &[&str]) -> bool {
    let mut tokens =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|token| !token.is_empty()).peekable();
    let tokens: Vec<&str> = std::iter::from_fn(|| tokens.next()).collect();
    tokens.windows(words.len()).any(|window| window == words)
}

struct Scanner<'a> {
    rest: &'a str,
    code: String,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            return self.blank(rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return self.blank(comment_len(rest));
        }
        if let Some(len) = raw_string_len(rest).filter(|_| !self.in_identifier()) {
            return self.blank(len);
        }
        if rest.starts_with('"') {
            return self.blank(quoted_len(rest, '"'));
        }
        if rest.starts_with('\'') && is_char_literal(rest) {
            return self.blank(quoted_len(rest, '\''));
        }
        let len = rest.chars().next().map_or(1, char::len_utf8);
        self.code.push_str(&rest[..len]);
        self.rest = &rest[len..];
    }

    fn in_identifier(&self) -> bool {
        self.code.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    fn blank(&mut self, len: usize) {
        let (gone, rest) = self.rest.split_at(len);
        self.code.push(' ');
        self.code.extend(gone.chars().filter(|c| *c == '\n'));
        self.rest = rest;
    }
}

/// Block comments nest.
fn comment_len(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn raw_string_len(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    Some(body.find(&end).map_or(text.len(), |len| start + len + end.len()))
}

fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// `'a'` and `'\n'`, but not the lifetime `'a`.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_comments_and_literals_do_not_count() {
        let text = r####"
            // unsafe
            /* unsafe /* nested */ unsafe */
            let a = "unsafe \" unsafe"; let b = r#"unsafe " unsafe"#; let c = '"'; let d = '\''; fn e<'a>(x: &'a str) {}
            #![deny(unsafe_code)]
        "####;
        assert!(!has_words(&code_only(text), &["unsafe"]));
    }

    #[test]
    fn words_in_code_count() {
        assert!(has_words(&code_only("fn a<'a>() { unsafe { b(\"\") } }"), &["unsafe"]));
        assert!(has_words(&code_only("pub async fn a() {}"), &["async", "fn"]));
        assert!(!has_words(&code_only("let async_fn = fn_async;"), &["async", "fn"]));
    }
}
