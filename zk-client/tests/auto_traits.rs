//! Promises that the compiler checks: what can be moved between threads, shared, and kept.

use zk_client::{
    Cache, CacheEvents, Client, ConnectOptions, Cork, Created, Error, OwnedNode, Pending,
    ReadError, Session, Stats, Watch, WatchStream, WriteError,
};

const fn send_sync<T: Send + Sync + 'static>() {}
const fn send<T: Send + 'static>() {}
const fn unpin<T: Unpin>() {}
const fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

const _: () = {
    send_sync::<Client>();
    send_sync::<ConnectOptions>();
    send_sync::<Session>();
    send_sync::<OwnedNode>();
    send_sync::<Cork>();
    send_sync::<Cache>();
    send_sync::<Stats>();
    send_sync::<WatchStream>();
    send::<Watch>();
    send::<CacheEvents>();
    send_sync::<Created>();
    send::<Pending<(), WriteError>>();
    send::<Pending<Created, WriteError>>();
    unpin::<Watch>();
    unpin::<WatchStream>();
    unpin::<CacheEvents>();
    unpin::<Pending<(), WriteError>>();
    error::<ReadError>();
    error::<WriteError>();
    error::<Error>();
};

fn is_send<T: Send>(future: T) -> T {
    future
}

/// Never called: it is enough that it compiles.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_operations_can_be_spawned(zk: &Client, options: ConnectOptions) {
    drop(is_send(options.connect()));
    drop(is_send(zk.resolve_in_doubt()));
    drop(is_send(zk.close()));
    drop(is_send(zk.clone().detach()));
    drop(is_send(zk.watch("/").recursive().into_future()));
    drop(is_send(zk.delete_recursive("/a")));
    drop(is_send(zk_client::Retry::new().run(|| zk.get("/"))));
    drop(is_send(async { zk.get("/").watch().await }));
    drop(is_send(async { zk.multi().check("/").await }));
}
