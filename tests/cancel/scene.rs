//! The futures, each on the stages that it is dropped on. `complete` sees to it that none is missing.

use std::{future::Future, pin::Pin, time::Duration};

use zk_client::{Client, CreateMode};
use zk_locks::Lock;
use zk_tests::network::pass;

use crate::{
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
        &[$($crate::scene::scene($future, $needs, |$props| Box::pin(async move { $body }))),*]
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

const SCENES: &[Scene] = &[
    scene("ConnectOptions::connect", Needs::Nothing, |props| {
        Box::pin(async { plain(options(&props.network, CLIENT).connect().await) })
    }),
    scene("Client::resolve_in_doubt", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.resolve_in_doubt().await) })
    }),
    scene("Client::close", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.close().await) })
    }),
    scene("Client::detach", Needs::Nothing, |props| {
        Box::pin(async {
            props.client.clone().detach().await.map(drop).ok_or_else(|| "no session".into())
        })
    }),
    scene("Session::changed", Needs::Nothing, |props| {
        Box::pin(async {
            props.session.changed().await;
            Ok(())
        })
    }),
    scene("Session::ended", Needs::Nothing, |props| {
        Box::pin(async {
            props.session.ended().await;
            Ok(())
        })
    }),
    scene("Client::get", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.get("/data").await) })
    }),
    scene("Request::watch", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.get("/data").watch().await) })
    }),
    scene("Client::exists", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.exists("/data").await) })
    }),
    scene("Request::watch", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.exists("/missing").watch().await) })
    }),
    scene("Client::children", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.children("/").await) })
    }),
    scene("Request::packed", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.children("/").packed().await) })
    }),
    scene("Request::watch", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.children("/data").watch().await) })
    }),
    scene("Client::sync", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.sync("/").await) })
    }),
    scene("Client::set", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.set("/data", b"1").await) })
    }),
    scene("Create", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.create("/new", b"").await) })
    }),
    scene("Client::delete", Needs::LockPath, |props| {
        Box::pin(async {
            plain(props.client.create("/old", b"").await)?;
            plain(props.client.delete("/old").await)
        })
    }),
    scene("Client::multi", Needs::Nothing, |props| {
        Box::pin(async {
            let multi = props.client.multi().set("/data", b"2");
            plain(multi.create("/both", b"", CreateMode::Ephemeral).await)
        })
    }),
    scene("Create", Needs::Nothing, |props| {
        Box::pin(async {
            let create = props.client.create("/mine", b"").mode(CreateMode::Ephemeral);
            plain(create.protected().await)
        })
    }),
    scene("Create::followed_by", Needs::Nothing, |props| {
        Box::pin(async {
            let create = props.client.create("/mine-", b"").mode(CreateMode::EphemeralSequential);
            let behind = |zk: &Client| zk.children("/").submit();
            let (node, names) = create.protected().followed_by(behind).await.map_err(text)?;
            plain(names.await)?;
            plain(node.owned.expect("an owner").delete().await)
        })
    }),
    scene("Create::submit", Needs::Nothing, |props| {
        Box::pin(async {
            let create = props.client.create("/mine-", b"").mode(CreateMode::EphemeralSequential);
            plain(create.protected().submit().await)
        })
    }),
    scene("OwnedNode::delete", Needs::Node, |props| {
        Box::pin(async {
            let Some(node) = props.node.take() else { return Err("no node".into()) };
            plain(node.delete().await)
        })
    }),
    scene("Watch", Needs::WatchFor(6), |props| {
        Box::pin(async {
            let Some(watch) = &mut props.watch else { return Err("no watch".into()) };
            let event = watch.await;
            props.watch = None;
            plain(event)
        })
    }),
    // With no waiter ahead, and nothing in place.
    scene("Lock::acquire", Needs::LockPath, |props| {
        Box::pin(async {
            let guard = props.lock.acquire().await;
            kept(props, guard)
        })
    }),
    scene("Lock::acquire", Needs::Nothing, |props| {
        Box::pin(async {
            let guard = props.lock.acquire().await;
            kept(props, guard)
        })
    }),
    // Behind another waiter.
    scene("Lock::acquire", Needs::HeldFor(12), |props| {
        Box::pin(async {
            let guard = props.lock.acquire().await;
            kept(props, guard)
        })
    }),
    // Behind ourselves.
    scene("Lock::acquire", Needs::Guard, |props| {
        Box::pin(async {
            let first = props.guard.take();
            let release = async {
                pass(Duration::from_millis(5)).await;
                drop(first);
            };
            let (guard, ()) = tokio::join!(props.lock.acquire(), release);
            kept(props, guard)
        })
    }),
    scene("Lock::acquire_timeout", Needs::HeldFor(30), |props| {
        Box::pin(async {
            match props.lock.acquire_timeout(Duration::from_millis(9)).await {
                Err(zk_locks::AcquireError::TimedOut) => Ok(()),
                other => kept(props, other),
            }
        })
    }),
    scene("Lock::try_acquire", Needs::LockPath, |props| {
        Box::pin(async {
            let guard = props.lock.try_acquire().await;
            kept(props, guard.map(|guard| guard.expect("it is free")))
        })
    }),
    scene("Lock::try_acquire", Needs::HeldFor(3), |props| {
        Box::pin(async {
            let guard = props.lock.try_acquire().await;
            props.guard = guard.map_err(|error| format!("{error:?}"))?;
            Ok(())
        })
    }),
    scene("Guard::lost", Needs::Guard, |props| {
        Box::pin(async {
            let Some(guard) = &props.guard else { return Err("no guard".into()) };
            guard.lost().await;
            Ok(())
        })
    }),
    scene("Guard::scope", Needs::Guard, |props| {
        Box::pin(async {
            let Some(guard) = &props.guard else { return Err("no guard".into()) };
            plain(guard.scope(pass(Duration::from_millis(7))).await)
        })
    }),
    scene("Guard::check", Needs::Guard, |props| {
        Box::pin(async {
            let Some(guard) = &props.guard else { return Err("no guard".into()) };
            plain(guard.check().await)
        })
    }),
    scene("Guard::release", Needs::Guard, |props| {
        Box::pin(async {
            let Some(guard) = props.guard.take() else { return Err("no guard".into()) };
            plain(guard.release().await)
        })
    }),
    // The next one takes over while the one before is given up.
    scene("Guard::release", Needs::Guard, |props| {
        Box::pin(async {
            let Some(guard) = props.guard.take() else { return Err("no guard".into()) };
            let again = Lock::new(&props.client, "/again");
            let (released, next) = tokio::join!(guard.release(), again.acquire());
            plain(released)?;
            kept(props, next)
        })
    }),
];

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
