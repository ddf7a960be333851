//! Our client, and workloads that only it has.
//!
//! | module | concern |
//! |---|---|
//! | `watches` | hearing of many changes; a connection lost with many watches |
//! | `breakable` | connections that are cut from outside |
//! | `waiters` | thousands in one line |
//! | `cohorts` | tasks that pass a lock on within their process |
//! | `storm` | all sessions lose their connection at once |
//! | `caches` | following many nodes |

mod breakable;
mod caches;
mod cohorts;
mod storm;
mod waiters;
mod watches;

use std::future::{Future, IntoFuture as _};

use futures_util::TryFutureExt as _;
use zk_client::{Client as ZkClient, ConnectOptions, TlsOptions};
use zk_locks::{Guard, Lock};

use crate::{
    client::{Client, Failure},
    drive,
    report::Report,
    setup::on_runtime,
    task::{Task, Workload},
};

/// Measures our client.
///
/// # Errors
/// The client has failed.
pub fn measure(task: &Task) -> Result<Report, Failure> {
    match task.workload {
        alone if alone.is_ours_alone() && task.tls.is_some() => Err("only without TLS".into()),
        Workload::FanOut => on_runtime(task, watches::fan_out(task.clone())),
        Workload::Reconnect => on_runtime(task, watches::reconnect(task.clone())),
        Workload::Storm => on_runtime(task, storm::storm(task.clone())),
        Workload::Waiters => on_runtime(task, waiters::waiters(task.clone())),
        Workload::Cohort => on_runtime(task, cohorts::cohorts(task.clone())),
        Workload::Cache => on_runtime(task, caches::caches(task.clone())),
        _ => drive::measure::<Ours>(task),
    }
}

/// What our client is called in reports.
const NAME: &str = "ours";

#[derive(Clone)]
struct Ours(ZkClient);

impl Client for Ours {
    const NAME: &'static str = NAME;
    const HAS_TLS: bool = true;

    type Lock = Lock;
    type Held = Guard;

    async fn connect(task: &Task) -> Result<Self, Failure> {
        let options = ConnectOptions::new(&task.server)?;
        let options = match &task.tls {
            None => options,
            Some(authority) => options.tls(TlsOptions::new().ca_file(authority))?,
        };
        Ok(Self(options.connect().await?))
    }

    async fn close(self) {
        // A session that ends a little later is not measured.
        let _ = self.0.close().await;
    }

    // What an `async` block awaits lies in it twice, as captured and as awaited, and is moved from one place to the other.
    // That would be a twentieth of what is measured here.

    fn get(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.get(path).into_future().map_ok(drop).err_into()
    }

    fn list(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.children(path).into_future().map_ok(drop).err_into()
    }

    fn set(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.set(path, data).into_future().map_ok(drop).err_into()
    }

    fn create(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.create(path, data).into_future().map_ok(drop).err_into()
    }

    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.delete(path).into_future().map_ok(drop).err_into()
    }

    fn set_all(
        &self,
        paths: &[String],
        data: &[u8],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let multi = paths.iter().fold(self.0.multi(), |multi, path| multi.set(path, data));
        let multi = multi.into_future();
        async move {
            multi.await??;
            Ok(())
        }
    }

    fn lock(&self, path: &str) -> Lock {
        Lock::new(&self.0, path)
    }

    async fn acquire(lock: &Lock) -> Result<Guard, Failure> {
        Ok(lock.acquire().await?)
    }

    async fn release(held: Guard, unawaited: bool) -> Result<(), Failure> {
        if unawaited {
            drop(held);
        } else {
            held.release().await?;
        }
        Ok(())
    }
}
