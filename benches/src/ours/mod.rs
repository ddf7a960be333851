//! Our client, and workloads that only it has.
//!
//! | module | concern |
//! |---|---|
//! | `watches` | hearing of many changes; a connection lost with many watches |
//! | `breakable` | connections that are cut from outside |
//! | `waiters` | thousands in one line |
//! | `cohorts` | tasks that pass a lock on within their process |
//! | `caches` | following many nodes |

mod breakable;
mod caches;
mod cohorts;
mod waiters;
mod watches;

use std::{
    future::{Future, IntoFuture as _},
    sync::OnceLock,
};

use futures_util::TryFutureExt as _;
use zk_client::{Client as ZkClient, ConnectOptions};
use zk_locks::{Guard, Lock};

use crate::{
    client::{Client, Failure},
    drive,
    report::Report,
    task::{Task, Workload},
};

/// Measures our client.
///
/// # Errors
/// The client has failed.
pub fn measure(task: &Task) -> Result<Report, Failure> {
    match task.workload {
        Workload::FanOut => drive::on_runtime(task, watches::fan_out(task.clone())),
        Workload::Reconnect => drive::on_runtime(task, watches::reconnect(task.clone())),
        Workload::Waiters => drive::on_runtime(task, waiters::waiters(task.clone())),
        Workload::Cohort => drive::on_runtime(task, cohorts::cohorts(task.clone())),
        Workload::Cache => drive::on_runtime(task, caches::caches(task.clone())),
        _ => drive::measure::<Ours>(task),
    }
}

/// What our client is called in reports.
const NAME: &str = "ours";

#[derive(Clone)]
struct Ours {
    client: ZkClient,
    /// Made once, as users do, by those who lock.
    lock: OnceLock<Lock>,
}

impl Client for Ours {
    const NAME: &'static str = NAME;

    type Held = Guard;

    async fn connect(server: &str) -> Result<Self, Failure> {
        let client = ConnectOptions::new(server)?.connect().await?;
        Ok(Self { client, lock: OnceLock::new() })
    }

    async fn close(self) {
        // A session that ends a little later is not measured.
        let _ = self.client.close().await;
    }

    // What an `async` block awaits lies in it twice, as captured and as awaited, and is moved from one place to the other.
    // That would be a twentieth of what is measured here.

    fn get(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.client.get(path).into_future().map_ok(drop).err_into()
    }

    fn set(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send {
        self.client.set(path, data).into_future().map_ok(drop).err_into()
    }

    fn create(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send {
        self.client.create(path, data).into_future().map_ok(drop).err_into()
    }

    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.client.delete(path).into_future().map_ok(drop).err_into()
    }

    fn set_all(
        &self,
        paths: &[String],
        data: &[u8],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let multi = paths.iter().fold(self.client.multi(), |multi, path| multi.set(path, data));
        let multi = multi.into_future();
        async move {
            multi.await??;
            Ok(())
        }
    }

    async fn acquire(&self, _: &str) -> Result<Guard, Failure> {
        let lock = self.lock.get_or_init(|| Lock::new(&self.client, drive::LOCK));
        Ok(lock.acquire().await?)
    }

    async fn release(&self, held: Guard, unawaited: bool) -> Result<(), Failure> {
        if unawaited {
            drop(held);
        } else {
            held.release().await?;
        }
        Ok(())
    }
}
