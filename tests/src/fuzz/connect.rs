//! The handshake: what a session makes of a server's answer.

use zk_proto::{
    Time,
    frame::encode_frame_with,
    jute::decode_prefix,
    request::{ConnectResponse, LEN_CONNECT_RESPONSE_MIN},
    session::{Config, LinkError, Output, Session, State},
};

/// A session is connected by exactly those answers that name a session and give it time.
pub(super) fn greeted(content: &bytes::Bytes) {
    let mut session = Session::<u64, u64>::new(Config::new(["a:1"]), 1, Time::ZERO);
    session.dialed(Time::ZERO, Ok(()));
    assert!(matches!(session.poll(), Some(Output::Dial { .. })));
    encode_frame_with(session.inbound(), |out| out.extend_from_slice(content));
    session.received(Time::ZERO);
    let outputs: Vec<_> = std::iter::from_fn(|| session.poll()).collect();
    let is_long = content.len() >= LEN_CONNECT_RESPONSE_MIN;
    match decode_prefix::<ConnectResponse>(content) {
        Ok(answer) if is_long && answer.time_out > 0 && answer.session_id.0 != 0 => {
            let [Output::State(State::Connected(negotiated))] = &*outputs else {
                panic!("{answer:?}: {outputs:?}");
            };
            assert_eq!(negotiated.id, answer.session_id);
            assert_eq!(negotiated.timeout.as_millis(), answer.time_out.unsigned_abs().into());
            assert_eq!(negotiated.read_only, answer.read_only.0 == Some(true));
        }
        answer => {
            let [Output::HangUp, Output::Failed { error, .. }] = &*outputs else {
                panic!("{answer:?}: {outputs:?}");
            };
            let is_understood = !is_long || answer.as_ref().is_ok_and(|it| it.time_out <= 0);
            assert_eq!(*error == LinkError::NotServed, is_understood, "{answer:?}");
        }
    }
}
