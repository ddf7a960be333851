//! Members without a quorum, whose answers count for nothing in a recipe: up to 3.6 such a member ends sessions by itself, and
//! contenders are missing there that hold the lock elsewhere.

use std::future::{IntoFuture, pending};

use zk_client::{Client, SessionState};

const ALONE: SessionState = SessionState::Connected { read_only: true };

/// Whether such a member may have answered what was asked for over the connection of this epoch.
pub(crate) fn may_be_missing(client: &Client, epoch: u64) -> bool {
    client.session().read_only_epoch() >= epoch
}

/// Waits until the session is with such a member.
pub(crate) async fn lost(client: &Client) {
    let mut session = client.session();
    while session.state() != ALONE {
        if let SessionState::Ended(_) = session.changed().await {
            return pending().await;
        }
    }
}

/// Waits until the session is not with such a member any more.
pub(crate) async fn regained(client: &Client) {
    let mut session = client.session();
    while session.state() == ALONE {
        session.changed().await;
    }
}

/// Asks until no such member may have given the answer. An error is none.
pub(crate) async fn answer<T, E, A>(client: &Client, ask: impl Fn() -> A) -> Result<T, E>
where
    A: IntoFuture<Output = Result<T, E>>,
{
    loop {
        let epoch = client.session().epoch();
        match ask().await {
            Ok(_) if may_be_missing(client, epoch) => regained(client).await,
            answer => return answer,
        }
    }
}
