//! `zookeeper-async`, by Krzysztof Rola and others.

use std::{process::ExitCode, sync::Arc, time::Duration};

use zk_benches::{Client, Failure, Task, Workload, program};
use zookeeper_async::{
    Acl, CreateMode, WatchedEvent, Watcher, ZooKeeper,
    recipes::shared_lock::{self, LockGuard},
};

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Clone)]
struct ZooKeeperAsync(Arc<ZooKeeper>);

struct Nobody;

impl Watcher for Nobody {
    fn handle(&self, _: WatchedEvent) {}
}

impl Client for ZooKeeperAsync {
    const NAME: &'static str = "zookeeper-async";
    const LACKS: &'static [(Workload, &'static str)] = &[
        (Workload::Multi, "no multi"),
        (Workload::HandOff, "its lock panics with several contenders"),
    ];

    type Lock = (Arc<ZooKeeper>, String);

    /// Given back by dropping it; there is no way to wait for that.
    type Held = Arc<LockGuard>;

    async fn connect(task: &Task) -> Result<Self, Failure> {
        let client = ZooKeeper::connect(&task.server, Duration::from_secs(10), Nobody).await?;
        Ok(Self(Arc::new(client)))
    }

    async fn close(self) {
        // Dropping it would leave its task behind.
        let _ = self.0.close().await;
    }

    async fn get(&self, path: &str) -> Result<(), Failure> {
        self.0.get_data(path, false).await?;
        Ok(())
    }

    async fn list(&self, path: &str) -> Result<(), Failure> {
        self.0.get_children(path, false).await?;
        Ok(())
    }

    async fn set(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        self.0.set_data(path, data.to_vec(), None).await?;
        Ok(())
    }

    async fn create(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        let acl = Acl::open_unsafe().clone();
        self.0.create(path, data.to_vec(), acl, CreateMode::Persistent).await?;
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<(), Failure> {
        Ok(self.0.delete(path, None).await?)
    }

    async fn set_all(&self, _: &[String], _: &[u8]) -> Result<(), Failure> {
        Err("no multi".into())
    }

    fn lock(&self, path: &str) -> Self::Lock {
        (self.0.clone(), path.to_owned())
    }

    async fn acquire((client, path): &Self::Lock) -> Result<Self::Held, Failure> {
        Ok(shared_lock::lock(client.clone(), path.clone()).await?)
    }

    async fn release(held: Self::Held, _: bool) -> Result<(), Failure> {
        drop(held);
        Ok(())
    }
}

fn main() -> ExitCode {
    program::<ZooKeeperAsync>()
}
