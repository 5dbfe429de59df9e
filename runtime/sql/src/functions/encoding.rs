//! Digests and encodings of bytes and texts.

use std::{fmt::Write, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, BinaryBuilder},
    compute::cast,
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, plan_err},
    functions::crypto,
    logical_expr::ScalarUDF,
};

use super::{
    call::Call,
    definition::{
        Definition,
        Param::{Any, Bytes, Integer, Text},
        Types, is_text,
        returns::{bytes, text},
    },
    fault::{evaluation, invalid},
};

pub(crate) static FUNCTIONS: [Definition; 10] = [
    Definition::new("sha1", "SHA1(text STRING) → STRING", &[Text], text, |call| hexed(call, &sha1)),
    Definition::new("sha224", "SHA224(text STRING) → STRING", &[Text], text, |call| sha2(call, &crypto::sha224())),
    Definition::new("sha256", "SHA256(text STRING) → STRING", &[Text], text, |call| sha2(call, &crypto::sha256())),
    Definition::new("sha384", "SHA384(text STRING) → STRING", &[Text], text, |call| sha2(call, &crypto::sha384())),
    Definition::new("sha512", "SHA512(text STRING) → STRING", &[Text], text, |call| sha2(call, &crypto::sha512())),
    Definition::new("sha2", "SHA2(text STRING, bits INT) → STRING", &[Text, Integer], sha2_type, |call| {
        let digest = sha2_of(call.number::<Int64Type>(1)?.get(0))?;
        sha2(call, &digest)
    })
    .note("The number of bits is a literal: 224, 256, 384 or 512."),
    Definition::new("to_base64", "TO_BASE64(text STRING) → STRING", &[Any], base64_type, to_base64),
    Definition::new("from_base64", "FROM_BASE64(text STRING) → STRING", &[Text], text, from_base64)
        .note("NULL for a text that is no Base64."),
    Definition::new("encode", "ENCODE(text STRING, charset STRING) → BYTES", &[Text, Text], bytes, encode)
        .note("UTF-8, US-ASCII, ISO-8859-1, UTF-16BE and UTF-16LE."),
    Definition::new("decode", "DECODE(bytes BYTES, charset STRING) → STRING", &[Bytes, Text], text, decode)
        .note("As ENCODE."),
];

/// Lower-case hexadecimal digits of a digest of each text.
fn hexed(call: &Call, digest: &dyn Fn(&[u8]) -> [u8; 20]) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.texts(|row, out| {
        Ok(texts.get(row).map(|text| {
            for byte in digest(text.as_bytes()) {
                // Writing to a String cannot fail.
                let _ = write!(out, "{byte:02x}");
            }
        }))
    })
}

/// As [`hexed`], by a digest of DataFusion, which gives bytes.
fn sha2(call: &Call, digest: &ScalarUDF) -> Result<ArrayRef> {
    let digests = cast(&call.forward_first(digest)?, &DataType::Binary)?;
    let digests = digests.as_binary::<i32>();
    call.texts(|row, out| {
        Ok(digests.is_valid(row).then(|| {
            for byte in digests.value(row) {
                let _ = write!(out, "{byte:02x}");
            }
        }))
    })
}

fn sha2_type(types: &Types) -> Result<DataType> {
    sha2_of(types.literal_integer(1)).and_then(|_| text(types))
}

fn sha2_of(bits: Option<i64>) -> Result<Arc<ScalarUDF>> {
    match bits {
        Some(224) => Ok(crypto::sha224()),
        Some(256) => Ok(crypto::sha256()),
        Some(384) => Ok(crypto::sha384()),
        Some(512) => Ok(crypto::sha512()),
        _ => Err(invalid("the bits of SHA2 must be a literal 224, 256, 384 or 512", "write SHA2(text, 256)")),
    }
}

/// SHA-1 of RFC 3174.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64).wrapping_mul(8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0_u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for i in 16..80 {
            words[i] = (words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mixed, constant) = match i {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (part, added) in state.iter_mut().zip([a, b, c, d, e]) {
            *part = part.wrapping_add(added);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64_type(types: &Types) -> Result<DataType> {
    let given = types.of(0);
    if is_text(&given) || given == DataType::Binary {
        text(types)
    } else {
        plan_err!("TO_BASE64 takes a STRING or BYTES")
    }
}

fn write_base64(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0_usize, |group, byte| group << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = ALPHABET[group >> (18 - 6 * i) & 63];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
}

fn read_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if digits.len() % 4 == 1 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut group = 0_u32;
        for digit in chunk {
            let value = ALPHABET.iter().position(|known| known == digit)?;
            group = group << 6 | u32::try_from(value).ok()?;
        }
        group <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

fn to_base64(call: &Call) -> Result<ArrayRef> {
    if is_text(call.array(0)?.data_type()) {
        let texts = call.text(0)?;
        return call.texts(|row, out| Ok(texts.get(row).map(|text| write_base64(text.as_bytes(), out))));
    }
    let values = call.bytes(0)?;
    call.texts(|row, out| Ok(values.get(row).map(|bytes| write_base64(bytes, out))))
}

fn from_base64(call: &Call) -> Result<ArrayRef> {
    let texts = call.text(0)?;
    call.texts(|row, out| {
        Ok(texts.get(row).and_then(read_base64).map(|bytes| out.push_str(&String::from_utf8_lossy(&bytes))))
    })
}

#[derive(Clone, Copy)]
enum Charset {
    Utf8,
    Ascii,
    Latin1,
    Utf16Be,
    Utf16Le,
}

fn charset(name: &str) -> Result<Charset> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => Charset::Utf8,
        "US-ASCII" => Charset::Ascii,
        "ISO-8859-1" => Charset::Latin1,
        "UTF-16" | "UTF-16BE" => Charset::Utf16Be,
        "UTF-16LE" => Charset::Utf16Le,
        _ => {
            return Err(evaluation(format!(
                "`{name}` is no charset; there are UTF-8, US-ASCII, ISO-8859-1, UTF-16BE and UTF-16LE"
            )));
        }
    })
}

fn encode(call: &Call) -> Result<ArrayRef> {
    let (texts, charsets) = (call.text(0)?, call.text(1)?);
    let mut builder = BinaryBuilder::new();
    for row in 0..call.rows() {
        let Some((text, name)) = texts.get(row).zip(charsets.get(row)) else {
            builder.append_null();
            continue;
        };
        // What a charset lacks becomes a question mark.
        let within = |limit: u32| text.chars().map(|c| if u32::from(c) < limit { c as u8 } else { b'?' }).collect();
        let encoded: Vec<u8> = match charset(name)? {
            Charset::Utf8 => text.as_bytes().to_vec(),
            Charset::Ascii => within(128),
            Charset::Latin1 => within(256),
            Charset::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Charset::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        };
        builder.append_value(encoded);
    }
    Ok(Arc::new(builder.finish()))
}

fn decode(call: &Call) -> Result<ArrayRef> {
    let (values, charsets) = (call.bytes(0)?, call.text(1)?);
    call.texts(|row, out| {
        let Some((bytes, name)) = values.get(row).zip(charsets.get(row)) else { return Ok(None) };
        let wide = |read: fn([u8; 2]) -> u16| {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
            String::from_utf16_lossy(&units)
        };
        match charset(name)? {
            Charset::Utf8 => out.push_str(&String::from_utf8_lossy(bytes)),
            Charset::Ascii => {
                out.extend(bytes.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' }));
            }
            Charset::Latin1 => out.extend(bytes.iter().map(|byte| char::from(*byte))),
            Charset::Utf16Be => out.push_str(&wide(u16::from_be_bytes)),
            Charset::Utf16Le => out.push_str(&wide(u16::from_le_bytes)),
        }
        Ok(Some(()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn sha1_has_its_published_vectors() {
        assert_eq!(hex(&sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(&sha1(b"")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(&sha1(&[b'a'; 1_000])), "291e9a6c66994949b57ba5e650361e98fc36b1ba");
    }

    #[test]
    fn base64_has_its_published_vectors() {
        for (plain, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            let mut out = String::new();
            write_base64(plain.as_bytes(), &mut out);
            assert_eq!(out, encoded);
            assert_eq!(read_base64(encoded).as_deref(), Some(plain.as_bytes()));
        }
        for bad in ["Z", "Zg===", "Z!==", "Zm9vé"] {
            assert_eq!(read_base64(bad), None, "{bad}");
        }
    }
}
