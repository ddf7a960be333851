//! The futures of what outlives a session, or looks on from outside.

use std::{convert::Infallible, time::Duration};

use zk_client::Supervise;
use zk_locks::{DurableGuard, DurableLock};
use zk_tests::network::pass;

use crate::cancel::{
    scene::{Scene, list, plain},
    stage::{CLIENT, Needs, Props, options},
};

/// Longer than a round trip, and shorter than trouble.
const SOON: Duration = Duration::from_millis(9);

fn durable(props: &Props) -> DurableLock {
    DurableLock::new(&props.client, "/durable", "ours")
}

async fn held(props: &Props) -> Result<DurableGuard, String> {
    durable(props).acquire().await.map_err(|error| format!("{error:?}"))
}

/// A service that needs its session for a while, and then is done.
async fn service(zk: zk_client::Client) -> Result<(), Infallible> {
    // That the session is gone by now is the supervisor's concern.
    drop(zk.get("/data").await);
    pass(SOON).await;
    Ok(())
}

pub(crate) const LASTING: &[Scene] = list! {
    "DurableLock::acquire", Needs::Nothing, |props| {
        let guard = held(props).await?;
        plain(guard.release().await)
    }
    // Behind another owner, who gives it back.
    "DurableLock::acquire", Needs::Nothing, |props| {
        let guard = held(props).await?;
        let theirs = DurableLock::new(&props.client, "/durable", "theirs");
        let release = async {
            pass(SOON).await;
            plain(guard.release().await)
        };
        let (next, released) = tokio::join!(theirs.acquire(), release);
        released?;
        plain(next.map_err(|error| format!("{error:?}"))?.release().await)
    }
    "DurableLock::acquire_timeout", Needs::Nothing, |props| {
        let guard = durable(props).acquire_timeout(Duration::from_secs(5)).await;
        plain(guard)
    }
    "DurableLock::try_acquire", Needs::Nothing, |props| {
        plain(durable(props).try_acquire().await)
    }
    "DurableLock::holder", Needs::Nothing, |props| {
        let _guard = held(props).await?;
        plain(durable(props).holder().await)
    }
    "DurableLock::evict", Needs::Nothing, |props| {
        let _guard = held(props).await?;
        let lock = durable(props);
        let holder = lock.holder().await.map_err(|error| format!("{error:?}"))?;
        plain(lock.evict(&holder.ok_or("nobody holds it")?).await)
    }
    "DurableGuard::check", Needs::Nothing, |props| {
        plain(held(props).await?.check().await)
    }
    "DurableGuard::scope", Needs::Nothing, |props| {
        plain(held(props).await?.scope(pass(SOON)).await)
    }
    "DurableGuard::lost", Needs::Nothing, |props| {
        held(props).await?.lost().await;
        Ok(())
    }
    "DurableGuard::release", Needs::Nothing, |props| {
        plain(held(props).await?.release().await)
    }
    // The second one once the present holder has gone.
    "Follow::next", Needs::HeldFor(9), |props| {
        let mut holders = props.lock.queue().follow();
        plain(holders.next().await)?;
        plain(holders.next().await)
    }
    "Supervise::run", Needs::Nothing, |props| {
        plain(Supervise::new(options(&props.network, CLIENT)).run(service).await)
    }
    "Supervise::run_until", Needs::Nothing, |props| {
        let supervised = Supervise::<Infallible>::new(options(&props.network, CLIENT));
        let endless = async |_| std::future::pending::<Result<(), Infallible>>().await;
        plain(supervised.run_until(endless, pass(SOON)).await)
    }
    "Client::close_within", Needs::Nothing, |props| {
        plain(props.client.close_within(Duration::from_millis(300)).await)
    }
    "Client::orphaned", Needs::Nothing, |props| {
        props.client.orphaned("/data").await;
        Ok(())
    }
};
