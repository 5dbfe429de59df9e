//! What can be wrong with a connection.

use streamkeeper_types::{Code, Error};

use super::{Kind, Refusal};

/// Why a connection ends before its channels did. Every one of them fails the tasks at both ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("it does not speak Streamkeeper's data protocol")]
    Foreign,
    #[error("it speaks version {found} of the data protocol, and this process version {}", super::VERSION)]
    Version { found: u8 },
    #[error("a frame's header is damaged")]
    HeaderDamaged,
    #[error("a frame's body is damaged")]
    BodyDamaged,
    #[error("frame {found} came where {expected} was due")]
    OutOfOrder { expected: u64, found: u64 },
    #[error("a frame of kind {kind:?} has {length} bytes, and {limit} are allowed")]
    TooLarge { kind: Kind, length: u64, limit: u64 },
    #[error("a frame names channel {0}, which is not open")]
    UnknownChannel(u32),
    #[error("channel {0} is opened twice or out of turn")]
    ChannelReused(u32),
    #[error("more than {0} channels are open")]
    TooManyChannels(usize),
    #[error("more came over channel {0} than its receiver has room for")]
    CreditExceeded(u32),
    #[error("a frame of kind {0:?} is out of place")]
    Unexpected(Kind),
    #[error("a frame cannot be read: {0}")]
    Malformed(String),
    #[error("it asks for answers and does not read them")]
    Flooded,
    #[error("nothing came for {0} ms")]
    Silent(i64),
    #[error("it closed without a farewell")]
    Closed,
    #[error("{0}")]
    Io(String),
    #[error("{0}")]
    Tls(String),
    #[error("the other TaskManager left while channels were open")]
    Left,
    #[error("this TaskManager leaves")]
    Leaving,
    #[error("the other TaskManager connected anew")]
    Superseded,
    #[error("generation {lowest} fences generation {own}")]
    Fenced { own: u64, lowest: u64 },
    #[error("no connection came about within {0} ms")]
    NotConnected(i64),
    #[error("the other end of the channel was not deployed within {0} ms")]
    NotDeployed(i64),
    #[error("the other TaskManager does not know the channel")]
    ChannelRefused,
    #[error("the other TaskManager refuses: {0}")]
    Refused(Refusal),
}

impl Fault {
    /// The fault as a person sees it. `peer`: the other TaskManager.
    #[must_use]
    pub fn to_error(&self, peer: &str) -> Error {
        let cause = format!("the connection to TaskManager {peer}: {self}");
        let error = Error::new(Code::ConnectionLost, cause);
        match self {
            Self::Refused(_) | Self::Version { .. } | Self::Foreign | Self::Tls(_) => {
                Error { code: Code::ConnectionRefused, ..error }
                    .way_out("run the same version with the same cluster token and certificates everywhere")
            }
            Self::NotConnected(_) | Self::Io(_) => {
                error.way_out("check that TaskManagers reach each other's data port")
            }
            _ => error,
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Self::Closed,
            std::io::ErrorKind::InvalidData => Self::Tls(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}
