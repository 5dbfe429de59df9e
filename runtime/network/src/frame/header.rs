//! The 32 bytes in front of every body.

use xxhash_rust::xxh3::xxh3_64;

use super::Fault;

pub const HEADER_LEN: usize = 32;
/// Version of the data protocol. Magic, version, length and header checksum keep their places in every version.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 2] = *b"SK";
/// Where the header's own checksum lies; it covers everything before it.
const CHECKSUM_AT: usize = 28;

/// Meaning of a frame. The comment says who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Dialler, first.
    Hello = 1,
    /// Acceptor: the connection stands.
    Welcome = 2,
    /// Acceptor: the connection does not stand, and why.
    Refusal = 3,
    /// Both, when nothing else was sent for a while.
    Heartbeat = 4,
    /// Both, last: nothing follows, on purpose.
    Goodbye = 5,
    /// Producer: this channel number stands for that edge between two attempts.
    Open = 6,
    /// Producer: records, as encapsulated Arrow IPC messages.
    Batch = 7,
    /// Producer: watermark, barrier and the like.
    Event = 8,
    /// Producer: nothing follows, and the partition did not end.
    Abandon = 9,
    /// Consumer: room for more.
    Grant = 10,
    /// Consumer: reads no more.
    Close = 11,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Refusal,
            4 => Self::Heartbeat,
            5 => Self::Goodbye,
            6 => Self::Open,
            7 => Self::Batch,
            8 => Self::Event,
            9 => Self::Abandon,
            10 => Self::Grant,
            11 => Self::Close,
            _ => return None,
        })
    }

    /// Largest body in bytes. `batch`: the connection's largest batch.
    #[must_use]
    pub fn limit(self, batch: u32) -> u32 {
        match self {
            Self::Batch => batch,
            Self::Hello | Self::Welcome | Self::Refusal => 4 << 10,
            // A barrier names a folder of the checkpoint storage.
            Self::Event => 16 << 10,
            Self::Open => 128,
            Self::Grant => 32,
            Self::Heartbeat | Self::Goodbye | Self::Abandon | Self::Close => 8,
        }
    }
}

/// How a body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u16);

impl Flags {
    pub const NONE: Self = Self(0);
    /// The body is an LZ4 block behind its uncompressed length (u32).
    pub const LZ4: Self = Self(1);

    #[must_use]
    pub fn is_lz4(self) -> bool {
        self == Self::LZ4
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub flags: Flags,
    /// 0 where the frame belongs to the whole connection.
    pub channel: u32,
    /// Bytes of the body on the wire.
    pub length: u32,
    pub sequence: u64,
    pub body_checksum: u32,
}

/// Low half of XXH3-64.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    // Truncation is meant.
    (xxh3_64(bytes) & u64::from(u32::MAX)) as u32
}

impl Header {
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION;
        bytes[3] = self.kind as u8;
        bytes[4..6].copy_from_slice(&self.flags.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.channel.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_checksum.to_le_bytes());
        let own = checksum(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Reads a header and checks everything that it alone can show.
    ///
    /// # Errors
    /// Foreign or damaged bytes, another version, an unknown kind, a body above the limit of its kind (`batch`: the
    /// largest batch in bytes).
    pub fn parse(bytes: &[u8; HEADER_LEN], batch: u32) -> Result<Self, Fault> {
        if bytes[0..2] != MAGIC {
            return Err(Fault::Foreign);
        }
        if checksum(&bytes[..CHECKSUM_AT]) != u32_at(bytes, CHECKSUM_AT) {
            return Err(Fault::HeaderDamaged);
        }
        let kind = Kind::from_byte(bytes[3]);
        // A refusal is read whatever version it comes in: it may be the version that is refused.
        if bytes[2] != VERSION && kind != Some(Kind::Refusal) {
            return Err(Fault::Version { found: bytes[2] });
        }
        let kind = kind.ok_or_else(|| Fault::Malformed(format!("frames have no kind {}", bytes[3])))?;
        let flags = Flags(u16::from_le_bytes([bytes[4], bytes[5]]));
        let flags_fit = flags == Flags::NONE || (flags.is_lz4() && kind == Kind::Batch);
        if !flags_fit || bytes[6..8] != [0, 0] {
            return Err(Fault::Malformed(format!("unknown flags {:#x}", flags.0)));
        }
        let length = u32_at(bytes, 12);
        let limit = kind.limit(batch);
        if length > limit {
            return Err(Fault::TooLarge { kind, length: u64::from(length), limit: u64::from(limit) });
        }
        Ok(Self {
            kind,
            flags,
            channel: u32_at(bytes, 8),
            length,
            sequence: u64::from(u32_at(bytes, 16)) | u64::from(u32_at(bytes, 20)) << 32,
            body_checksum: u32_at(bytes, 24),
        })
    }

    /// # Errors
    /// When the body is not what the sender checksummed.
    pub fn verify(&self, body: &[u8]) -> Result<(), Fault> {
        if checksum(body) == self.body_checksum { Ok(()) } else { Err(Fault::BodyDamaged) }
    }
}

fn u32_at(bytes: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const BATCH: u32 = 1 << 20;

    fn header() -> impl Strategy<Value = Header> {
        (1u8..12, any::<u32>(), 0u32..=8, any::<u64>(), any::<u32>(), any::<bool>()).prop_map(
            |(kind, channel, length, sequence, body_checksum, lz4)| {
                let kind = Kind::from_byte(kind).unwrap();
                let flags = if lz4 && kind == Kind::Batch { Flags::LZ4 } else { Flags::NONE };
                Header { kind, flags, channel, length, sequence, body_checksum }
            },
        )
    }

    proptest! {
        #[test]
        fn a_header_reads_back(header in header()) {
            prop_assert_eq!(Header::parse(&header.to_bytes(), BATCH), Ok(header));
        }

        #[test]
        fn any_changed_bit_is_noticed(header in header(), bit in 0usize..HEADER_LEN * 8) {
            let mut bytes = header.to_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Header::parse(&bytes, BATCH).is_err());
        }

        #[test]
        fn random_bytes_are_refused_without_a_panic(bytes in any::<[u8; HEADER_LEN]>()) {
            prop_assert!(Header::parse(&bytes, BATCH).is_err());
        }
    }

    /// The bytes of version 1, so that a change of them is a decision.
    #[test]
    fn the_bytes_of_version_one_stay() {
        let header = Header {
            kind: Kind::Batch,
            flags: Flags::LZ4,
            channel: 7,
            length: 300,
            sequence: 0x0102_0304_0506_0708,
            body_checksum: checksum(b"body"),
        };
        let hex: String = header.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "534b0107010000000700000";
        assert_eq!(&hex[..expected.len()], expected);
        assert_eq!(&hex[24..48], "2c0100000807060504030201");
    }

    #[test]
    fn a_large_frame_and_another_version_are_told_apart() {
        let header = Header {
            kind: Kind::Batch,
            flags: Flags::NONE,
            channel: 1,
            length: BATCH + 1,
            sequence: 0,
            body_checksum: 0,
        };
        assert!(matches!(Header::parse(&header.to_bytes(), BATCH), Err(Fault::TooLarge { .. })));
        let mut bytes = Header { length: 1, ..header }.to_bytes();
        bytes[2] = VERSION + 1;
        let own = checksum(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&own.to_le_bytes());
        assert_eq!(Header::parse(&bytes, BATCH), Err(Fault::Version { found: VERSION + 1 }));
    }
}
