//! Who a client is: what it says, what it proves, and what becomes of clients that do neither.

use bytes::Bytes;
use zk_proto::{
    ErrorCode, Secret, Zxid,
    frame::{ReplyHeader, RequestHeader},
    request::{AuthPacket, GetSaslRequest, SetSaslResponse},
};

use super::{
    Conn, Ensemble,
    connection::{Encoded, Refused, outcome, reply},
    java,
    read::decode,
    sasl::Step,
};

impl Ensemble {
    pub(super) fn authenticate(&mut self, conn: Conn, header: RequestHeader, body: &Bytes) {
        let super_digest = self.config.super_digest.as_deref();
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        let outcome = decode::<AuthPacket<'_>>(body).map_err(|_| None).and_then(|packet| {
            let auth = packet.auth.0;
            connection
                .identities
                .add(&java::string(packet.scheme.as_bytes()), auth, super_digest)
                .map_err(Some)
        });
        let header = ReplyHeader { xid: header.xid, zxid: Zxid(0), err: ErrorCode::OK };
        match outcome {
            Ok(()) => self.say_frame(conn, &header),
            Err(Some(err)) => {
                self.say_frame(conn, &ReplyHeader { err, ..header });
                self.close(conn);
            }
            Err(None) => self.close(conn),
        }
    }

    /// Takes the next step of a SASL exchange.
    pub(super) fn step_sasl(&mut self, conn: Conn, header: RequestHeader, body: &Bytes) {
        let chance = crate::rng::next(&mut self.nonces);
        let Some(connection) = self.conns.get_mut(&conn) else { return };
        // Servers stumble over a step without a token.
        let request = decode::<GetSaslRequest<'_>>(body).ok();
        let Some(token) = request.and_then(|request| request.token.0) else {
            self.close(conn);
            return;
        };
        let users = &self.config.sasl_users;
        if users.is_empty() {
            // No SASL is configured: the answer is an empty token.
            let answer = SetSaslResponse { token: Secret(None) };
            self.say(conn, &reply(header.xid, Zxid(0), Ok(&answer)));
            return;
        }
        let said = match connection.sasl.step(token, users, chance) {
            Step::Challenge(challenge) => Some(challenge),
            Step::Proved { user, proof } => {
                connection.identities.prove(&user);
                Some(proof)
            }
            Step::Refused => None,
        };
        let token = Secret(said.map(Bytes::from));
        let refused = token.0.is_none();
        let rest = Encoded::of(&SetSaslResponse { token });
        let answer = if refused {
            let code = if self.config.enforce_sasl {
                ErrorCode::SESSION_CLOSED_REQUIRE_AUTH
            } else {
                ErrorCode::AUTH_FAILED
            };
            Err(Refused { code, rest })
        } else {
            Ok(rest)
        };
        self.say(conn, &outcome(header.xid, Zxid(0), &answer));
        if refused {
            self.close(conn);
        }
    }

    /// Turns away a client that has to prove who it is and has not.
    pub(super) fn turns_away(&mut self, conn: Conn, header: RequestHeader) -> bool {
        let proved = self.conns.get(&conn).is_some_and(|it| it.identities.has_proved());
        if proved || !self.config.enforce_sasl {
            return false;
        }
        let refusal = reply(header.xid, Zxid(0), Err(ErrorCode::SESSION_CLOSED_REQUIRE_AUTH));
        self.say(conn, &refusal);
        self.close(conn);
        true
    }
}
