//! The futures, each on the stages that it is dropped on. `complete` sees to it that none is missing.

use std::{future::Future, pin::Pin, time::Duration};

use zk_client::{Client, CreateMode};
use zk_locks::Lock;
use zk_tests::network::pass;

use crate::cancel::{
    coordination::COORDINATION,
    lasting::LASTING,
    operations::OPERATIONS,
    recipes::RECIPES,
    stage::{CLIENT, Needs, Props, options},
};

/// A future at work; how it ended, if it does.
pub(crate) type Run<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + 'a>>;

/// A future on a stage.
pub(crate) struct Scene {
    /// Its name in the API: of the type that can be awaited, or of the method.
    pub(crate) future: &'static str,
    pub(crate) needs: Needs,
    pub(crate) begin: for<'a> fn(&'a mut Props) -> Run<'a>,
}

pub(crate) const fn scene(
    future: &'static str,
    needs: Needs,
    begin: for<'a> fn(&'a mut Props) -> Run<'a>,
) -> Scene {
    Scene { future, needs, begin }
}

/// Futures of which no scene is made, and why.
pub(crate) const ELSEWHERE: &[(&str, &str)] = &[
    ("Client::connect", "`ConnectOptions::connect` over TCP"),
    ("Client::create", "`Create`"),
    ("Client::create_all_protected", "`CreateAllProtected`"),
    ("Request", "what the client's methods return; each of them is on the list"),
    ("Request::submit", "what awaiting a request begins with"),
    ("Pending", "what every request becomes when it is awaited"),
];

/// A list of futures: the name, what there is, and what is done.
macro_rules! list {
    ($($future:literal, $needs:expr, |$props:ident| $body:block)*) => {
        &[$($crate::cancel::scene::scene($future, $needs, |$props| Box::pin(async move { $body }))),*]
    };
}
pub(crate) use list;

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

pub(crate) fn plain<T, E: std::fmt::Debug>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|error| format!("{error:?}"))
}

/// Keeps what an acquire has got, for as long as the stage stands.
pub(crate) fn kept(
    props: &mut Props,
    guard: Result<zk_locks::Guard, impl std::fmt::Debug>,
) -> Result<(), String> {
    props.guard = Some(guard.map_err(|error| format!("{error:?}"))?);
    Ok(())
}

const SCENES: &[Scene] = list! {
    "ConnectOptions::connect", Needs::Nothing, |props| { plain(options(&props.network, CLIENT).connect().await) }
    "Client::resolve_in_doubt", Needs::Nothing, |props| { plain(props.client.resolve_in_doubt().await) }
    "Client::close", Needs::Nothing, |props| { plain(props.client.close().await) }
    "Client::detach", Needs::Nothing, |props| {
        props.client.clone().detach().await.map(drop).ok_or_else(|| "no session".into())
    }
    "Session::changed", Needs::Nothing, |props| {
        props.session.changed().await;
        Ok(())
    }
    "Session::ended", Needs::Nothing, |props| {
        props.session.ended().await;
        Ok(())
    }
    "Client::get", Needs::Nothing, |props| { plain(props.client.get("/data").await) }
    "Request::watch", Needs::Nothing, |props| { plain(props.client.get("/data").watch().await) }
    "Client::exists", Needs::Nothing, |props| { plain(props.client.exists("/data").await) }
    "Request::watch", Needs::Nothing, |props| { plain(props.client.exists("/missing").watch().await) }
    "Client::children", Needs::Nothing, |props| { plain(props.client.children("/").await) }
    "Request::packed", Needs::Nothing, |props| { plain(props.client.children("/").packed().await) }
    "Request::watch", Needs::Nothing, |props| { plain(props.client.children("/data").watch().await) }
    "Client::sync", Needs::Nothing, |props| { plain(props.client.sync("/").await) }
    "Client::set", Needs::Nothing, |props| { plain(props.client.set("/data", b"1").await) }
    "Create", Needs::Nothing, |props| { plain(props.client.create("/new", b"").await) }
    "Client::delete", Needs::LockPath, |props| {
        plain(props.client.create("/old", b"").await)?;
        plain(props.client.delete("/old").await)
    }
    "Client::multi", Needs::Nothing, |props| {
        let multi = props.client.multi().set("/data", b"2");
        plain(multi.create("/both", b"", CreateMode::Ephemeral).await)
    }
    "Create", Needs::Nothing, |props| {
        let create = props.client.create("/mine", b"").mode(CreateMode::Ephemeral);
        plain(create.protected().await)
    }
    "Create::followed_by", Needs::Nothing, |props| {
        let create = props.client.create("/mine-", b"").mode(CreateMode::EphemeralSequential);
        let behind = |zk: &Client| zk.children("/").submit();
        let (node, names) = create.protected().followed_by(behind).await.map_err(text)?;
        plain(names.await)?;
        plain(node.owned.expect("an owner").delete().await)
    }
    "Create::submit", Needs::Nothing, |props| {
        let create = props.client.create("/mine-", b"").mode(CreateMode::EphemeralSequential);
        plain(create.protected().submit().await)
    }
    "OwnedNode::delete", Needs::Node, |props| {
        let Some(node) = props.node.take() else { return Err("no node".into()) };
        plain(node.delete().await)
    }
    "Watch", Needs::WatchFor(6), |props| {
        let Some(watch) = &mut props.watch else { return Err("no watch".into()) };
        let event = watch.await;
        props.watch = None;
        plain(event)
    }
    // With no waiter ahead, and nothing in place.
    "Lock::acquire", Needs::LockPath, |props| {
        let guard = props.lock.acquire().await;
        kept(props, guard)
    }
    "Lock::acquire", Needs::Nothing, |props| {
        let guard = props.lock.acquire().await;
        kept(props, guard)
    }
    // Behind another waiter.
    "Lock::acquire", Needs::HeldFor(12), |props| {
        let guard = props.lock.acquire().await;
        kept(props, guard)
    }
    // Behind ourselves.
    "Lock::acquire", Needs::Guard, |props| {
        let first = props.guard.take();
        let release = async {
            pass(Duration::from_millis(5)).await;
            drop(first);
        };
        let (guard, ()) = tokio::join!(props.lock.acquire(), release);
        kept(props, guard)
    }
    "Lock::acquire_timeout", Needs::HeldFor(30), |props| {
        match props.lock.acquire_timeout(Duration::from_millis(9)).await {
            Err(zk_locks::AcquireError::TimedOut) => Ok(()),
            other => kept(props, other),
        }
    }
    "Lock::try_acquire", Needs::LockPath, |props| {
        let guard = props.lock.try_acquire().await;
        kept(props, guard.map(|guard| guard.expect("it is free")))
    }
    "Lock::try_acquire", Needs::HeldFor(3), |props| {
        let guard = props.lock.try_acquire().await;
        props.guard = guard.map_err(|error| format!("{error:?}"))?;
        Ok(())
    }
    "Guard::lost", Needs::Guard, |props| {
        let Some(guard) = &props.guard else { return Err("no guard".into()) };
        guard.lost().await;
        Ok(())
    }
    "Guard::scope", Needs::Guard, |props| {
        let Some(guard) = &props.guard else { return Err("no guard".into()) };
        plain(guard.scope(pass(Duration::from_millis(7))).await)
    }
    "Guard::check", Needs::Guard, |props| {
        let Some(guard) = &props.guard else { return Err("no guard".into()) };
        plain(guard.check().await)
    }
    "Guard::release", Needs::Guard, |props| {
        let Some(guard) = props.guard.take() else { return Err("no guard".into()) };
        plain(guard.release().await)
    }
    // The next one takes over while the one before is given up.
    "Guard::release", Needs::Guard, |props| {
        let Some(guard) = props.guard.take() else { return Err("no guard".into()) };
        let again = Lock::new(&props.client, "/again");
        let (released, next) = tokio::join!(guard.release(), again.acquire());
        plain(released)?;
        kept(props, next)
    }
};

/// All of them.
pub(crate) fn scenes() -> impl Iterator<Item = &'static Scene> {
    SCENES.iter().chain(OPERATIONS).chain(RECIPES).chain(COORDINATION).chain(LASTING)
}

impl Scene {
    /// Whether it ends by itself, if nothing goes wrong.
    pub(crate) fn ends(&self) -> bool {
        let endless = [
            "Session::changed",
            "Session::ended",
            "Guard::lost",
            "Guard::revoked",
            "Guards::lost",
            "SimpleGuard::lost",
            "DurableGuard::lost",
            "Client::orphaned",
        ];
        !endless.contains(&self.future)
    }
}
