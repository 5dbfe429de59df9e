//! Base64 with padding (RFC 4648 §4): bytes in JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the text of `bytes`.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let sextet = group >> (18 - 6 * position) & 63;
            out.push(if position <= chunk.len() { ALPHABET[sextet as usize] } else { b'=' });
        }
    }
}

/// Appends the bytes of `text`; `None` if it is no Base64, and then `out` holds a part.
pub(crate) fn decode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let groups = text.len() / 4;
    for (index, chunk) in text.chunks_exact(4).enumerate() {
        let padding = if index + 1 == groups { chunk.iter().rev().take_while(|b| **b == b'=').count() } else { 0 };
        if padding > 2 {
            return None;
        }
        let mut group = 0_u32;
        for byte in &chunk[..4 - padding] {
            group = group << 6 | u32::from(sextet(*byte)?);
        }
        group <<= 6 * padding;
        let bytes = group.to_be_bytes();
        out.extend_from_slice(&bytes[1..4 - padding]);
    }
    Some(())
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        encode(bytes, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn the_vectors_of_rfc_4648() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encoded(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for bad in ["Z", "Zg=", "Zg===", "====", "Z===", "Zm9v!mFy", "Zg==Zg=="] {
            assert_eq!(decode(bad.as_bytes(), &mut Vec::new()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn bytes_read_back(bytes: Vec<u8>) {
            let mut back = Vec::new();
            prop_assert_eq!(decode(encoded(&bytes).as_bytes(), &mut back), Some(()));
            prop_assert_eq!(back, bytes);
        }
    }
}
