//! Handshake, heartbeat, authentication, close.

use bytes::{Bytes, BytesMut};

use crate::{
    data::{SessionId, Zxid},
    jute::{Decode, DecodeError, Encode, Reader},
    record::record,
    request::define::{empty_requests, requests},
    text::{Secret, Str},
};

/// Fewest bytes of a frame that can be a [`ConnectResponse`]. Read-only servers may answer with a
/// bare reply header of 16 bytes instead, and leave the connection open.
pub const LEN_CONNECT_RESPONSE_MIN: usize = 36;

/// A flag that old clients and servers leave out at the end of the handshake's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TrailingFlag(pub Option<bool>);

impl Encode for TrailingFlag {
    fn encode(&self, out: &mut BytesMut) {
        if let Some(flag) = self.0 {
            flag.encode(out);
        }
    }
    fn encoded_len(&self) -> usize {
        self.0.map_or(0, |flag| flag.encoded_len())
    }
}

impl Decode<'_> for TrailingFlag {
    const LEN_MIN: usize = 0;
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let there = reader.left() > 0;
        there.then(|| bool::decode(reader)).transpose().map(Self)
    }
}

record! {
    /// The first frame of a client; it has no header.
    ConnectRequest<'a> {
        /// Always 0.
        protocol_version: i32,
        /// Highest transaction seen in this session; servers that are behind it refuse.
        last_zxid_seen: Zxid,
        /// Requested session timeout in milliseconds; always the configured one, not the last negotiated one.
        time_out: i32,
        /// 0 asks for a new session.
        session_id: SessionId,
        /// 16 bytes, zeros for a new session.
        passwd: Secret<Option<&'a [u8]>>,
        /// Whether a read-only server is acceptable. Absent from clients before 3.4.
        read_only: TrailingFlag,
    }
}

record! {
    /// The first frame of a server; it has no header.
    ConnectResponse {
        /// Always 0.
        protocol_version: i32,
        /// Negotiated session timeout in milliseconds; 0 or less means that the session is not valid.
        time_out: i32,
        /// The session.
        session_id: SessionId,
        /// The password to present when resuming the session.
        passwd: Secret<Option<Bytes>>,
        /// Whether this server is cut off from the quorum. Absent from old servers.
        read_only: TrailingFlag,
    }
}

record! {
    /// A [`ConnectResponse`] that borrows from its frame.
    ConnectView<'a> of ConnectResponse {
        /// As in [`ConnectResponse`].
        protocol_version: i32,
        /// As in [`ConnectResponse`].
        time_out: i32,
        /// As in [`ConnectResponse`].
        session_id: SessionId,
        /// As in [`ConnectResponse`].
        passwd: Secret<Option<&'a [u8]>>,
        /// As in [`ConnectResponse`].
        read_only: TrailingFlag,
    }
}

record! {
    /// Credentials for a scheme.
    AuthPacket<'a> {
        /// Always 0.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        kind: i32,
        /// `digest`, `ip`, `x509`, `ensemble`, or a server plug-in's.
        scheme: Str<'a>,
        /// In the scheme's own form, such as `user:password` for `digest`.
        auth: Secret<Option<&'a [u8]>>,
    }
}

record! {
    /// A client's step of a SASL exchange.
    GetSaslRequest<'a> {
        /// The mechanism's bytes.
        token: Secret<Option<&'a [u8]>>,
    }
}

record! {
    /// A server's step of a SASL exchange.
    SetSaslResponse {
        /// The mechanism's bytes. Null with [`ErrorCode::OK`](crate::ErrorCode::OK) in the middle of an
        /// exchange means that the server has no SASL.
        token: Secret<Option<Bytes>>,
    }
}

/// A heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping;

/// The end of a session; must be the last frame on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSession;

empty_requests!(Ping, CloseSession);

requests! {
    AuthPacket<'_> = AUTH -> ();
    GetSaslRequest<'_> = SASL -> SetSaslResponse;
    Ping = PING -> ();
    CloseSession = CLOSE_SESSION -> ();
}
