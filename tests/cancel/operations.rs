//! The futures of everything that a client can ask for beyond nodes and their data.

use zk_client::{Acl, AclList, Cache, Retry, WatchKind, WriteError};

use crate::cancel::{
    scene::{Scene, plain, scene},
    stage::Needs,
};

pub(crate) const OPERATIONS: &[Scene] = &[
    scene("Client::acl", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.acl("/data").await) })
    }),
    scene("Client::set_acl", Needs::Nothing, |props| {
        Box::pin(async {
            let open = AclList::from_iter([Acl::open_unsafe()]);
            plain(props.client.set_acl("/data", &open).await)
        })
    }),
    scene("Client::descendant_count", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.descendant_count("/").await) })
    }),
    scene("Client::multi_read", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.multi_read().get("/data").children("/").await) })
    }),
    scene("Client::ephemerals", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.ephemerals("/").await) })
    }),
    scene("Client::who_am_i", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.who_am_i().await) })
    }),
    scene("Client::add_auth", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.add_auth("digest", "ann:secret").await) })
    }),
    scene("Client::config", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.config().await) })
    }),
    scene("Request::watch", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.config().watch().await) })
    }),
    scene("Client::reconfig", Needs::Nothing, |props| {
        Box::pin(async {
            match props.client.reconfig().leave(9).await {
                // It was not permitted.
                Err(WriteError::Rejected(_)) => Ok(()),
                other => plain(other),
            }
        })
    }),
    scene("Request::if_exists", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.delete("/nowhere").if_exists().await) })
    }),
    scene("Create", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.create("/data", b"").or_exists().await) })
    }),
    scene("Create", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.create("/deep/down/here", b"").parents().await) })
    }),
    scene("Create::submit", Needs::Nothing, |props| {
        Box::pin(async {
            plain(props.client.create("/deep/down/there", b"").parents().submit().await)
        })
    }),
    scene("Client::delete_recursive", Needs::Nothing, |props| {
        Box::pin(async {
            plain(props.client.create("/tree/of/nodes", b"").parents().await)?;
            plain(props.client.delete_recursive("/tree").await)
        })
    }),
    scene("Client::watch", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.watch("/data").recursive().await) })
    }),
    scene("WatchStream::next", Needs::StreamFor(6), |props| {
        Box::pin(async {
            let Some(stream) = &mut props.stream else { return Err("no stream".into()) };
            stream.next().await;
            props.stream = None;
            Ok(())
        })
    }),
    scene("Cache::ready", Needs::Nothing, |props| {
        Box::pin(async {
            let cache = Cache::subtree(&props.client, "/").start();
            plain(cache.map_err(|error| error.to_string())?.ready().await)
        })
    }),
    scene("CacheEvents::next", Needs::Nothing, |props| {
        Box::pin(async {
            let cache = Cache::node(&props.client, "/data").start();
            let mut events = cache.map_err(|error| error.to_string())?.events();
            events.next().await;
            Ok(())
        })
    }),
    scene("Retry::run", Needs::Nothing, |props| {
        Box::pin(async { plain(Retry::new().run(|| props.client.get("/data")).await) })
    }),
    scene("Client::check_watches", Needs::Nothing, |props| {
        Box::pin(async { plain(props.client.check_watches("/data", WatchKind::Any).await) })
    }),
];
