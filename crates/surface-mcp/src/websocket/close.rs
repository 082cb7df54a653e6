//! The reasons why a connection is closed, with their codes (RFC 6455, 7.4.1).

use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    /// Everything was sent.
    Finished,
    /// The broker cannot go on. The last frame has the error.
    Failed,
    /// Its client closed it.
    Left,
    /// It cannot be read or written.
    Lost,
    /// The broker ends.
    GoingAway,
    /// The caller has no right to call any more.
    RightEnded,
    /// A frame is not text.
    Binary,
    /// A text is not UTF-8.
    NotUtf8,
    /// A frame breaks the rules of WebSocket.
    Protocol,
    /// Its place is given to another caller.
    CrowdedOut,
    /// The client has answered no ping.
    Silent,
    /// More pings than a connection may send.
    TooManyPings,
    /// A frame or message is longer than this many bytes.
    TooLarge(usize),
    /// The client reads too slowly.
    SlowReader,
    /// There is no memory for a message.
    NoMemory,
}

impl Close {
    /// Returns the reason after an error of a client that may send messages of `message_bytes`.
    pub(super) fn from_error(error: &Error, message_bytes: usize) -> Self {
        match error {
            Error::Capacity(_) => Self::TooLarge(message_bytes),
            Error::Utf8(_) => Self::NotUtf8,
            Error::Protocol(_) => Self::Protocol,
            Error::Io(error) if error.kind() == std::io::ErrorKind::OutOfMemory => Self::NoMemory,
            _ => Self::Lost,
        }
    }

    /// The frame with code and reason; `None` if the client has closed the connection or it is lost.
    pub(super) fn frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Left | Self::Lost => return None,
            Self::Finished => (CloseCode::Normal, "there are no more frames".to_owned()),
            Self::Failed => (CloseCode::Error, "the last frame has the error".to_owned()),
            Self::GoingAway => (CloseCode::Away, "the broker is shutting down".to_owned()),
            Self::RightEnded => (
                CloseCode::Policy,
                "the right of the caller has ended".to_owned(),
            ),
            Self::Binary => (
                CloseCode::Unsupported,
                "messages are text frames".to_owned(),
            ),
            Self::NotUtf8 => (CloseCode::Invalid, "a text frame is not UTF-8".to_owned()),
            Self::Protocol => (CloseCode::Protocol, "a frame is not valid".to_owned()),
            Self::CrowdedOut => (
                CloseCode::Again,
                "another caller needs the connection: connect again when it is needed".to_owned(),
            ),
            Self::Silent => (CloseCode::Away, "pings were not answered".to_owned()),
            Self::TooManyPings => (CloseCode::Protocol, "too many pings".to_owned()),
            Self::TooLarge(limit) => (
                CloseCode::Size,
                format!("a message has more than {limit} bytes"),
            ),
            Self::SlowReader => (
                CloseCode::Again,
                "messages are not read: connect again".to_owned(),
            ),
            Self::NoMemory => (
                CloseCode::Again,
                "there is no memory: connect again later".to_owned(),
            ),
        };
        Some(CloseFrame {
            code,
            reason: reason.into(),
        })
    }
}
