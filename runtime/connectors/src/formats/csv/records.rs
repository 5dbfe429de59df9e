//! Finding the fields of CSV records.
//!
//! A record without quotes is cut by one search for delimiter, line break and quote. From the first field that begins
//! with a quote on, or with an escape character set, a byte-wise machine takes over for that record and puts what had to
//! be unescaped into a buffer of its own.

use std::ops::Range;

use super::{Csv, LineBreaks};
use crate::formats::{BadRecord, End, Input};

/// Marks a field in the buffer of unescaped text.
const UNESCAPED: u32 = 1 << 31;

/// The fields of some records, row by row; all records have the same number of them.
#[derive(Debug, Default)]
pub(super) struct Records {
    fields: Vec<(u32, u32)>,
    /// Bytes of each record in the input.
    pub(super) ranges: Vec<(u32, u32)>,
    unescaped: Vec<u8>,
    pub(super) bad: Vec<BadRecord>,
}

/// How reading one record ended.
enum Outcome {
    /// The next record begins here.
    Next(usize),
    /// The record goes on behind the input.
    Unfinished,
}

impl Records {
    /// Text of column `column` of `columns`, row by row.
    pub(super) fn column<'a>(
        &'a self,
        input: &'a [u8],
        column: usize,
        columns: usize,
    ) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        self.fields[column.min(self.fields.len())..].iter().step_by(columns).map(move |(start, end)| {
            let buffer = if start & UNESCAPED == 0 { input } else { &self.unescaped };
            &buffer[(start & !UNESCAPED) as usize..*end as usize]
        })
    }

    /// Reads records of `columns` fields; returns where the next one begins.
    pub(super) fn read(&mut self, csv: &Csv, columns: usize, input: Input<'_>) -> usize {
        self.fields.clear();
        self.ranges.clear();
        self.unescaped.clear();
        self.bad.clear();
        let mut next = 0;
        // Positions are kept in 31 bits; a reader's buffer never comes near that.
        let stop = input.stop.min(input.bytes.len()).min(UNESCAPED as usize >> 1);
        while next < stop && self.ranges.len() < input.max_rows {
            let start = next;
            if is_skipped(csv, columns, &input.bytes[start..]) {
                match skip_line(input, start) {
                    Some(after) => next = after,
                    None => break,
                }
                continue;
            }
            let first = self.fields.len();
            let bad = self.bad.len();
            let outcome =
                if csv.escape.is_some() { self.careful(csv, input, start) } else { self.fast(csv, input, start) };
            let Outcome::Next(after) = outcome else {
                self.fields.truncate(first);
                break;
            };
            next = after;
            let range = without_break(input.bytes, start..after);
            if self.bad.len() > bad {
                self.fields.truncate(first);
            } else if self.fields.len() - first == columns {
                self.ranges.push((position(range.start), position(range.end)));
            } else {
                let cause = format!("it has {} fields, the table has {columns} columns", self.fields.len() - first);
                self.fields.truncate(first);
                self.bad.push(BadRecord { range, cause });
            }
        }
        next
    }

    /// A record without escape characters.
    #[inline]
    fn fast(&mut self, csv: &Csv, input: Input<'_>, start: usize) -> Outcome {
        let bytes = input.bytes;
        // Without a quote character the delimiter stands in: the search then has nothing to find for it.
        let quote = csv.quote.unwrap_or(csv.delimiter);
        let first = self.fields.len();
        let mut field = start;
        let mut at = start;
        while let Some(length) = memchr::memchr3(csv.delimiter, b'\n', quote, &bytes[at..]) {
            let found = at + length;
            at = found + 1;
            let byte = bytes[found];
            if byte == csv.delimiter {
                self.fields.push((position(field), position(found)));
                field = at;
            } else if byte == b'\n' {
                let end = without_break(bytes, field..at).end;
                self.fields.push((position(field), position(end)));
                return Outcome::Next(at);
            } else if found == field {
                self.fields.truncate(first);
                return self.careful(csv, input, start);
            }
        }
        if input.end == End::MoreFollows {
            return Outcome::Unfinished;
        }
        let end = without_break(bytes, field..bytes.len()).end;
        self.fields.push((position(field), position(end)));
        Outcome::Next(bytes.len())
    }

    /// A record with quotes or escape characters, byte by byte.
    fn careful(&mut self, csv: &Csv, input: Input<'_>, start: usize) -> Outcome {
        let mut at = start;
        loop {
            let begin = self.unescaped.len();
            let ended = if csv.quote.is_some() && input.bytes.get(at) == csv.quote.as_ref() {
                self.quoted(csv, input, at + 1)
            } else {
                self.unquoted(csv, input, at)
            };
            let next = match ended {
                Ended::Unfinished => return Outcome::Unfinished,
                Ended::Bad(next, cause) => {
                    self.bad.push(BadRecord { range: without_break(input.bytes, start..next), cause });
                    return Outcome::Next(next);
                }
                Ended::Field(next) | Ended::Record(next) => next,
            };
            self.fields.push((position(begin) | UNESCAPED, position(self.unescaped.len())));
            if matches!(ended, Ended::Record(_)) {
                return Outcome::Next(next);
            }
            at = next;
        }
    }

    fn unquoted(&mut self, csv: &Csv, input: Input<'_>, start: usize) -> Ended {
        let mut at = start;
        loop {
            let Some(byte) = input.bytes.get(at).copied() else {
                return match input.end {
                    End::MoreFollows => Ended::Unfinished,
                    End::OfFile => Ended::Record(at),
                };
            };
            at += 1;
            if Some(byte) == csv.escape {
                match input.bytes.get(at) {
                    Some(escaped) => self.unescaped.push(*escaped),
                    None if input.end == End::MoreFollows => return Ended::Unfinished,
                    None => return Ended::Bad(at, "an escape character ends it".to_owned()),
                }
                at += 1;
            } else if byte == csv.delimiter {
                return Ended::Field(at);
            } else if byte == b'\n' {
                return Ended::Record(at);
            } else if byte == b'\r' && matches!(input.bytes.get(at), None | Some(b'\n')) {
                return match (input.bytes.get(at), input.end) {
                    (None, End::MoreFollows) => Ended::Unfinished,
                    (None, End::OfFile) => Ended::Record(at),
                    (Some(_), _) => Ended::Record(at + 1),
                };
            } else {
                self.unescaped.push(byte);
            }
        }
    }

    fn quoted(&mut self, csv: &Csv, input: Input<'_>, start: usize) -> Ended {
        let mut at = start;
        loop {
            let Some(byte) = input.bytes.get(at).copied() else {
                return match input.end {
                    End::MoreFollows => Ended::Unfinished,
                    End::OfFile => Ended::Bad(at, "a quoted field has no end".to_owned()),
                };
            };
            at += 1;
            if Some(byte) == csv.escape {
                match input.bytes.get(at) {
                    Some(escaped) => self.unescaped.push(*escaped),
                    None => continue,
                }
                at += 1;
            } else if Some(byte) == csv.quote {
                let next = input.bytes.get(at).copied();
                if next == csv.quote {
                    self.unescaped.push(byte);
                    at += 1;
                    continue;
                }
                return after_quote(csv, input, at);
            } else if byte == b'\n' && csv.line_breaks == LineBreaks::Refuse {
                return Ended::Bad(at, "a quoted field has a line break".to_owned());
            } else {
                self.unescaped.push(byte);
            }
        }
    }
}

/// How reading one field ended; each with where reading goes on.
enum Ended {
    Field(usize),
    Record(usize),
    Bad(usize, String),
    Unfinished,
}

/// What follows a closing quote: a delimiter, the record's end, or something that may not be there.
fn after_quote(csv: &Csv, input: Input<'_>, at: usize) -> Ended {
    match (input.bytes.get(at), input.bytes.get(at + 1)) {
        (None, _) if input.end == End::OfFile => Ended::Record(at),
        (None, _) => Ended::Unfinished,
        (Some(byte), _) if *byte == csv.delimiter => Ended::Field(at + 1),
        (Some(b'\n'), _) => Ended::Record(at + 1),
        (Some(b'\r'), Some(b'\n')) => Ended::Record(at + 2),
        (Some(b'\r'), None) if input.end == End::MoreFollows => Ended::Unfinished,
        (Some(b'\r'), None) => Ended::Record(at + 1),
        _ => match skip_line(input, at) {
            Some(next) => Ended::Bad(next, "text follows a closing quote".to_owned()),
            None => Ended::Unfinished,
        },
    }
}

/// Comments, and empty lines of tables that have more than one column.
fn is_skipped(csv: &Csv, columns: usize, rest: &[u8]) -> bool {
    let is_empty_line = || matches!(rest, [b'\n', ..] | [b'\r', b'\n', ..] | [b'\r']);
    (csv.comments && rest.first() == Some(&b'#')) || (columns > 1 && is_empty_line())
}

/// Where the line after the one with `start` begins.
fn skip_line(input: Input<'_>, start: usize) -> Option<usize> {
    match memchr::memchr(b'\n', &input.bytes[start..]) {
        Some(length) => Some(start + length + 1),
        None if input.end == End::OfFile => Some(input.bytes.len()),
        None => None,
    }
}

fn without_break(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &bytes[range.clone()];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    range.start..range.start + text.len()
}

/// `read` stops long before a position would need more bits.
#[expect(clippy::cast_possible_truncation, reason = "inputs are shorter than 2^31 bytes")]
fn position(index: usize) -> u32 {
    index as u32
}
