//! `tokio-zookeeper`, by Jon Gjengset.

use std::{process::ExitCode, time::Duration};

use tokio_zookeeper::{Acl, CreateMode, ZooKeeper, ZooKeeperBuilder};
use zk_benches::{Client, Failure, Task, Workload, program};

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Clone)]
struct TokioZooKeeper(ZooKeeper);

const NO_RECIPES: &str = "no recipes";

impl Client for TokioZooKeeper {
    const NAME: &'static str = "tokio-zookeeper";
    const LACKS: &'static [(Workload, &'static str)] = &[
        (Workload::Lock, NO_RECIPES),
        (Workload::ManyLocks, NO_RECIPES),
        (Workload::HandOff, NO_RECIPES),
    ];

    type Lock = ();
    type Held = ();

    async fn connect(task: &Task) -> Result<Self, Failure> {
        let mut builder = ZooKeeperBuilder::default();
        builder.set_timeout(Duration::from_secs(10));
        let (client, _) = builder.connect(&task.server.parse()?).await?;
        Ok(Self(client))
    }

    async fn close(self) {}

    async fn get(&self, path: &str) -> Result<(), Failure> {
        self.0.get_data(path).await?.ok_or("no such node")?;
        Ok(())
    }

    async fn list(&self, path: &str) -> Result<(), Failure> {
        self.0.get_children(path).await?.ok_or("no such node")?;
        Ok(())
    }

    async fn set(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        self.0.set_data(path, None, data.to_vec()).await??;
        Ok(())
    }

    async fn create(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        self.0.create(path, data.to_vec(), Acl::open_unsafe(), CreateMode::Persistent).await??;
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.0.delete(path, None).await??;
        Ok(())
    }

    async fn set_all(&self, paths: &[String], data: &[u8]) -> Result<(), Failure> {
        let multi = self.0.multi();
        let multi =
            paths.iter().fold(multi, |multi, path| multi.set_data(path, None, data.to_vec()));
        for result in multi.run().await? {
            result?;
        }
        Ok(())
    }

    fn lock(&self, _: &str) {}

    async fn acquire((): &()) -> Result<(), Failure> {
        Err(NO_RECIPES.into())
    }

    async fn release((): (), _: bool) -> Result<(), Failure> {
        Err(NO_RECIPES.into())
    }
}

fn main() -> ExitCode {
    program::<TokioZooKeeper>()
}
