//! Promises that the compiler checks: what can be moved between threads, shared, and kept.

use std::time::Duration;

use zk_locks::{AcquireError, CheckError, Guard, Lock, Lost, ReleaseError};

const fn send_sync<T: Send + Sync + 'static>() {}
const fn error<T: std::error::Error + Clone + Send + Sync + 'static>() {}

const _: () = {
    send_sync::<Lock>();
    send_sync::<Guard>();
    error::<AcquireError>();
    error::<CheckError>();
    error::<ReleaseError>();
    error::<Lost>();
};

fn is_send<T: Send>(future: T) -> T {
    future
}

/// Never called: it is enough that it compiles.
#[expect(dead_code, reason = "only for the compiler")]
fn futures_of_locks_can_be_spawned(lock: &Lock, guard: Guard) {
    drop(is_send(lock.acquire()));
    drop(is_send(lock.acquire_timeout(Duration::ZERO)));
    drop(is_send(lock.try_acquire()));
    drop(is_send(lock.contenders()));
    drop(is_send(guard.lost()));
    drop(is_send(guard.check()));
    drop(is_send(guard.scope(std::future::ready(()))));
    let released = is_send(guard.release());
    fn outlives<T: 'static>(_: T) {}
    outlives(released);
}
