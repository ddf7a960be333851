//! `zookeeper-client`, by kezhuw.

use std::{fs, process::ExitCode};

use futures_util::TryFutureExt as _;
use zk_benches::{Client, Failure, Task, program};
use zookeeper_client as zk;

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Clone)]
struct Kezhuw(zk::Client);

fn persistent() -> zk::CreateOptions<'static> {
    zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all())
}

impl Client for Kezhuw {
    const NAME: &'static str = "kezhuw";
    const HAS_TLS: bool = true;

    type Lock = (zk::Client, String);

    /// Given back by dropping it; there is no way to wait for that.
    type Held = zk::OwnedLockClient;

    async fn connect(task: &Task) -> Result<Self, Failure> {
        let Some(authority) = &task.tls else {
            return Ok(Self(zk::Client::connect(&task.server).await?));
        };
        // The same as ours; both are compiled in, so that it has to be said. A second time, it stands already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = zk::TlsOptions::new().with_pem_ca(&fs::read_to_string(authority)?)?;
        Ok(Self(zk::Client::connector().with_tls(options).secure_connect(&task.server).await?))
    }

    async fn close(self) {}

    fn get(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.get_data(path).map_ok(drop).err_into()
    }

    fn list(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.get_children(path).map_ok(drop).err_into()
    }

    fn set(&self, path: &str, data: &[u8]) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.set_data(path, data, None).map_ok(drop).err_into()
    }

    async fn create(&self, path: &str, data: &[u8]) -> Result<(), Failure> {
        self.0.create(path, data, &persistent()).await?;
        Ok(())
    }

    fn delete(&self, path: &str) -> impl Future<Output = Result<(), Failure>> + Send {
        self.0.delete(path, None).err_into()
    }

    fn set_all(
        &self,
        paths: &[String],
        data: &[u8],
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let mut writer = self.0.new_multi_writer();
        let added = paths.iter().try_for_each(|path| writer.add_set_data(path, data, None));
        async move {
            added?;
            writer.commit().await?;
            Ok(())
        }
    }

    fn lock(&self, path: &str) -> Self::Lock {
        (self.0.clone(), path.to_owned())
    }

    async fn acquire((client, path): &Self::Lock) -> Result<Self::Held, Failure> {
        let prefix = zk::LockPrefix::new_curator(path, "lock-")?;
        let options = zk::LockOptions::new(zk::Acls::anyone_all());
        let options = options.with_ancestor_options(persistent())?;
        Ok(client.lock(prefix, b"", options).await?.into_owned())
    }

    async fn release(held: Self::Held, _: bool) -> Result<(), Failure> {
        drop(held);
        Ok(())
    }
}

fn main() -> ExitCode {
    program::<Kezhuw>()
}
