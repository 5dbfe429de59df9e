//! Functions on texts. Positions count characters from 1.

use arrow::{
    array::ArrayRef,
    datatypes::{Int32Type, Int64Type},
};
use datafusion::common::Result;

use super::{
    call::Call,
    definition::{
        Definition,
        Param::{Integer, Text},
        returns::{boolean, int, text},
    },
    fault::evaluation,
};

pub(crate) static FUNCTIONS: [Definition; 22] = [
    Definition::new("concat", "CONCAT(text STRING, …) → STRING", &[Text], text, concat)
        .repeats()
        .note("NULL if any argument is NULL."),
    Definition::new(
        "concat_ws",
        "CONCAT_WS(separator STRING, text STRING, …) → STRING",
        &[Text, Text],
        text,
        concat_ws,
    )
    .required(1)
    .repeats()
    .note("Skips NULLs; NULL only if the separator is."),
    Definition::new(
        "substring",
        "SUBSTRING(text STRING FROM start INT [FOR length INT]) → STRING",
        &[Text, Integer, Integer],
        text,
        substring,
    )
    .alias(&["substr"])
    .required(2)
    .note("A negative start counts from the end; 0 is as 1; a negative length gives ''."),
    Definition::new(
        "__trim",
        "TRIM([BOTH | LEADING | TRAILING] [characters STRING] FROM text STRING) → STRING",
        &[Text, Text, Text],
        text,
        trim,
    ),
    Definition::new("ltrim", "LTRIM(text STRING [, characters STRING]) → STRING", &[Text, Text], text, ltrim)
        .required(1),
    Definition::new("rtrim", "RTRIM(text STRING [, characters STRING]) → STRING", &[Text, Text], text, rtrim)
        .required(1),
    Definition::new("btrim", "BTRIM(text STRING [, characters STRING]) → STRING", &[Text, Text], text, btrim)
        .required(1),
    Definition::new("lpad", "LPAD(text STRING, length INT, pad STRING) → STRING", &[Text, Integer, Text], text, lpad)
        .note("NULL for a negative length, and where an empty pad would have to fill."),
    Definition::new("rpad", "RPAD(text STRING, length INT, pad STRING) → STRING", &[Text, Integer, Text], text, rpad)
        .note("As LPAD."),
    Definition::new(
        "overlay",
        "OVERLAY(text STRING PLACING new STRING FROM start INT [FOR length INT]) → STRING",
        &[Text, Text, Integer, Integer],
        text,
        overlay,
    )
    .required(3)
    .note("A start past the end, or below 1, leaves the text as it is."),
    Definition::new("position", "POSITION(part STRING IN text STRING) → INT", &[Text, Text], int, position),
    Definition::new(
        "locate",
        "LOCATE(part STRING, text STRING [, start INT]) → INT",
        &[Text, Text, Integer],
        int,
        position,
    )
    .required(2),
    Definition::new("instr", "INSTR(text STRING, part STRING) → INT", &[Text, Text], int, instr),
    Definition::new("char_length", "CHAR_LENGTH(text STRING) → INT", &[Text], int, char_length)
        .alias(&["character_length", "length"]),
    Definition::new(
        "split_index",
        "SPLIT_INDEX(text STRING, separator STRING, index INT) → STRING",
        &[Text, Text, Integer],
        text,
        split_index,
    )
    .note("The index counts from 0; NULL if there is no such part."),
    Definition::new("repeat", "REPEAT(text STRING, count INT) → STRING", &[Text, Integer], text, repeat),
    Definition::new("left", "LEFT(text STRING, count INT) → STRING", &[Text, Integer], text, left)
        .note("'' for a negative count."),
    Definition::new("right", "RIGHT(text STRING, count INT) → STRING", &[Text, Integer], text, right)
        .note("'' for a negative count."),
    Definition::new("ascii", "ASCII(text STRING) → INT", &[Text], int, ascii).note("0 for ''."),
    Definition::new("chr", "CHR(code BIGINT) → STRING", &[Integer], text, chr)
        .note("Takes the code modulo 256, as Flink does; '' for a negative code."),
    Definition::new("is_alpha", "IS_ALPHA(text STRING) → BOOLEAN", &[Text], boolean, is_alpha)
        .note("FALSE for NULL and ''."),
    Definition::new("is_digit", "IS_DIGIT(text STRING) → BOOLEAN", &[Text], boolean, is_digit)
        .note("FALSE for NULL and ''."),
];

/// No text may grow beyond this many bytes by one call.
const MAX_BYTES: usize = 64 << 20;

fn concat(call: &Call) -> Result<ArrayRef> {
    let parts = (0..call.len()).map(|i| call.text(i)).collect::<Result<Vec<_>>>()?;
    call.texts(|row, out| {
        for part in &parts {
            match part.get(row) {
                Some(text) => out.push_str(text),
                None => return Ok(None),
            }
        }
        Ok(Some(()))
    })
}

fn concat_ws(call: &Call) -> Result<ArrayRef> {
    let separators = call.text(0)?;
    let parts = (1..call.len()).map(|i| call.text(i)).collect::<Result<Vec<_>>>()?;
    call.texts(|row, out| {
        let Some(separator) = separators.get(row) else { return Ok(None) };
        for (i, part) in parts.iter().filter_map(|part| part.get(row)).enumerate() {
            if i > 0 {
                out.push_str(separator);
            }
            out.push_str(part);
        }
        Ok(Some(()))
    })
}

/// Byte index of the n-th character, or the end.
fn byte_index(text: &str, chars: usize) -> usize {
    if text.is_ascii() {
        return chars.min(text.len());
    }
    text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index)
}

fn count_chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// As Java's `int`: what comes from a BIGINT is cut.
fn as_usize(number: i64) -> usize {
    usize::try_from(number.max(0)).unwrap_or(usize::MAX)
}

fn substring(call: &Call) -> Result<ArrayRef> {
    let (texts, starts) = (call.text(0)?, call.number::<Int64Type>(1)?);
    let lengths = if call.len() > 2 { Some(call.number::<Int64Type>(2)?) } else { None };
    call.texts(|row, out| {
        let length = lengths.as_ref().map_or(Some(i64::MAX), |lengths| lengths.get(row));
        let (Some(text), Some(start), Some(length)) = (texts.get(row), starts.get(row), length) else {
            return Ok(None);
        };
        if length < 0 {
            return Ok(Some(()));
        }
        let first = match start {
            1.. => as_usize(start - 1),
            0 => 0,
            _ => match count_chars(text).checked_sub(as_usize(start.saturating_neg())) {
                Some(first) => first,
                // Before the beginning there is nothing.
                None => return Ok(Some(())),
            },
        };
        let rest = &text[byte_index(text, first)..];
        out.push_str(&rest[..byte_index(rest, as_usize(length))]);
        Ok(Some(()))
    })
}

fn trimmed<'t>(text: &'t str, characters: &str, start: bool, end: bool) -> &'t str {
    let matches = |c: char| characters.contains(c);
    let text = if start { text.trim_start_matches(matches) } else { text };
    if end { text.trim_end_matches(matches) } else { text }
}

fn trim(call: &Call) -> Result<ArrayRef> {
    let (sides, texts, characters) = (call.text(0)?, call.text(1)?, call.text(2)?);
    call.texts(|row, out| {
        let (Some(side), Some(text), Some(characters)) = (sides.get(row), texts.get(row), characters.get(row)) else {
            return Ok(None);
        };
        out.push_str(trimmed(text, characters, side != "TRAILING", side != "LEADING"));
        Ok(Some(()))
    })
}

fn trim_side(call: &Call, start: bool, end: bool) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    let characters = if call.len() > 1 { Some(call.text(1)?) } else { None };
    call.texts(|row, out| {
        let characters = characters.as_ref().map_or(Some(" "), |characters| characters.get(row));
        let found = texts.get(row).zip(characters);
        Ok(found.map(|(text, characters)| out.push_str(trimmed(text, characters, start, end))))
    })
}

fn ltrim(call: &Call) -> Result<ArrayRef> {
    trim_side(call, true, false)
}

fn rtrim(call: &Call) -> Result<ArrayRef> {
    trim_side(call, false, true)
}

fn btrim(call: &Call) -> Result<ArrayRef> {
    trim_side(call, true, true)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn lpad(call: &Call) -> Result<ArrayRef> {
    pad(call, Side::Left)
}

fn rpad(call: &Call) -> Result<ArrayRef> {
    pad(call, Side::Right)
}

fn pad(call: &Call, side: Side) -> Result<ArrayRef> {
    let (texts, lengths, pads) = (call.text(0)?, call.number::<Int64Type>(1)?, call.text(2)?);
    call.texts(|row, out| {
        let (Some(text), Some(length), Some(pad)) = (texts.get(row), lengths.get(row), pads.get(row)) else {
            return Ok(None);
        };
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let have = count_chars(text);
        if length <= have {
            out.push_str(&text[..byte_index(text, length)]);
            return Ok(Some(()));
        }
        if pad.is_empty() {
            return Ok(None);
        }
        grow(length.saturating_mul(4))?;
        if side == Side::Right {
            out.push_str(text);
        }
        out.extend(pad.chars().cycle().take(length - have));
        if side == Side::Left {
            out.push_str(text);
        }
        Ok(Some(()))
    })
}

fn grow(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES {
        return Err(evaluation(format!("a text of {bytes} bytes is longer than a row may be")));
    }
    Ok(())
}

fn overlay(call: &Call) -> Result<ArrayRef> {
    let (texts, news, starts) = (call.text(0)?, call.text(1)?, call.number::<Int64Type>(2)?);
    let lengths = if call.len() > 3 { Some(call.number::<Int64Type>(3)?) } else { None };
    call.texts(|row, out| {
        let (Some(text), Some(new), Some(start)) = (texts.get(row), news.get(row), starts.get(row)) else {
            return Ok(None);
        };
        let length = match &lengths {
            Some(lengths) => match lengths.get(row) {
                Some(length) => length,
                None => return Ok(None),
            },
            None => i64::try_from(count_chars(new)).unwrap_or(i64::MAX),
        };
        if start <= 0 || as_usize(start) > count_chars(text) {
            out.push_str(text);
            return Ok(Some(()));
        }
        let before = byte_index(text, as_usize(start - 1));
        let after = if length < 0 { text.len() } else { before + byte_index(&text[before..], as_usize(length)) };
        out.push_str(&text[..before]);
        out.push_str(new);
        out.push_str(&text[after..]);
        Ok(Some(()))
    })
}

/// Place of the first `part` from the character `start` on; 0 if there is none.
fn find(text: &str, part: &str, start: usize) -> i32 {
    if start > count_chars(text) + 1 {
        return 0;
    }
    let from = byte_index(text, start.saturating_sub(1));
    let found = text[from..].find(part).map(|index| count_chars(&text[..from + index]) + 1);
    found.map_or(0, |place| i32::try_from(place).unwrap_or(i32::MAX))
}

fn position(call: &Call) -> Result<ArrayRef> {
    let (parts, texts) = (call.text(0)?, call.text(1)?);
    let starts = if call.len() > 2 { Some(call.number::<Int64Type>(2)?) } else { None };
    call.numbers::<Int32Type>(|row| {
        let start = starts.as_ref().map_or(Some(1), |starts| starts.get(row));
        let (Some(part), Some(text), Some(start)) = (parts.get(row), texts.get(row), start) else { return Ok(None) };
        Ok(Some(if start < 1 { 0 } else { find(text, part, as_usize(start)) }))
    })
}

fn instr(call: &Call) -> Result<ArrayRef> {
    let (texts, parts) = (call.text(0)?, call.text(1)?);
    call.numbers::<Int32Type>(|row| Ok(texts.get(row).zip(parts.get(row)).map(|(text, part)| find(text, part, 1))))
}

fn char_length(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.numbers::<Int32Type>(|row| Ok(texts.get(row).map(|text| i32::try_from(count_chars(text)).unwrap_or(i32::MAX))))
}

fn split_index(call: &Call) -> Result<ArrayRef> {
    let (texts, separators, indices) = (call.text(0)?, call.text(1)?, call.number::<Int64Type>(2)?);
    call.texts(|row, out| {
        let (Some(text), Some(separator), Some(index)) = (texts.get(row), separators.get(row), indices.get(row)) else {
            return Ok(None);
        };
        let Ok(index) = usize::try_from(index) else { return Ok(None) };
        let part = match (text, separator) {
            // An empty text has no parts.
            ("", _) => None,
            (_, "") => (index == 0).then_some(text),
            _ => text.split(separator).nth(index),
        };
        Ok(part.map(|part| out.push_str(part)))
    })
}

fn repeat(call: &Call) -> Result<ArrayRef> {
    let (texts, counts) = (call.text(0)?, call.number::<Int64Type>(1)?);
    call.texts(|row, out| {
        let Some((text, count)) = texts.get(row).zip(counts.get(row)) else { return Ok(None) };
        let count = as_usize(count);
        grow(text.len().saturating_mul(count))?;
        (0..count).for_each(|_| out.push_str(text));
        Ok(Some(()))
    })
}

fn left(call: &Call) -> Result<ArrayRef> {
    let (texts, counts) = (call.text(0)?, call.number::<Int64Type>(1)?);
    call.texts(|row, out| {
        let found = texts.get(row).zip(counts.get(row));
        Ok(found.map(|(text, count)| out.push_str(&text[..byte_index(text, as_usize(count))])))
    })
}

fn right(call: &Call) -> Result<ArrayRef> {
    let (texts, counts) = (call.text(0)?, call.number::<Int64Type>(1)?);
    call.texts(|row, out| {
        let found = texts.get(row).zip(counts.get(row));
        Ok(found.map(|(text, count)| {
            let first = count_chars(text).saturating_sub(as_usize(count));
            out.push_str(&text[byte_index(text, first)..]);
        }))
    })
}

fn ascii(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.numbers::<Int32Type>(|row| Ok(texts.get(row).map(|text| text.bytes().next().map_or(0, i32::from))))
}

fn chr(call: &Call) -> Result<ArrayRef> {
    let codes = call.number::<Int64Type>(0)?;
    call.texts(|row, out| {
        Ok(codes.get(row).map(|code| {
            if code >= 0 {
                out.extend(u32::try_from(code % 256).ok().and_then(char::from_u32));
            }
        }))
    })
}

fn is_alpha(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.booleans(|row| {
        Ok(Some(texts.get(row).is_some_and(|text| !text.is_empty() && text.chars().all(char::is_alphabetic))))
    })
}

fn is_digit(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.booleans(|row| {
        Ok(Some(texts.get(row).is_some_and(|text| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()))))
    })
}
