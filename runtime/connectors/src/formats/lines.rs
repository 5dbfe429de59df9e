//! Cutting a buffer into lines.

use std::ops::Range;

use super::{End, Input};

/// The lines of an input that are whole and begin before its stop, without their breaks, each with where the next begins.
pub(crate) struct Lines<'a> {
    input: Input<'a>,
    next: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: Input<'a>) -> Self {
        Self { input, next: 0 }
    }

    /// Where the next line begins.
    pub(crate) fn position(&self) -> usize {
        self.next
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let Input { bytes, stop, end, .. } = self.input;
        let start = self.next;
        if start >= stop.min(bytes.len()) {
            return None;
        }
        let line_end = match memchr::memchr(b'\n', &bytes[start..]) {
            Some(length) => {
                self.next = start + length + 1;
                start + length
            }
            None if end == End::OfFile => {
                self.next = bytes.len();
                bytes.len()
            }
            None => return None,
        };
        let has_return = line_end > start && bytes[line_end - 1] == b'\r';
        Some(start..line_end - usize::from(has_return))
    }
}
