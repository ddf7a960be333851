//! Service discovery together with programs that use Curator's x-discovery.
//!
//! ```sh
//! discovery register zk1:2181,zk2:2181 /services mail 7 10.0.0.7 2525    # as long as this runs
//! discovery watch zk1:2181,zk2:2181 /services mail                       # a line for each change
//! ```

mod instance;

use std::{
    convert::Infallible,
    env,
    mem::replace,
    time::{Duration, SystemTime},
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};
use zk_client::{Cache, Client, ConnectOptions, Error, Interruption, Supervise};
use zk_locks::PersistentNode;

use self::instance::{ServiceInstance, ServiceType, UriSpec};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
    match arguments[..] {
        ["register", servers, base, name, id, address, port] => {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
            let instance = ServiceInstance {
                name: name.to_owned(),
                id: id.to_owned(),
                address: Some(address.to_owned()),
                port: Some(port.parse()?),
                ssl_port: None,
                payload: None,
                registration_time_utc: i64::try_from(since_1970.as_millis())?,
                service_type: ServiceType::Dynamic,
                uri_spec: Some(UriSpec::usual()),
                enabled: true,
            };
            register(options(servers)?, base, &instance).await
        }
        ["watch", servers, base, name] => {
            let (sender, mut instances) = watch::channel(Vec::new());
            let (options, path) = (options(servers)?, format!("{base}/{name}"));
            tokio::spawn(async move { follow(options, &path, &sender).await });
            while instances.changed().await.is_ok() {
                let uris: Vec<_> = instances.borrow_and_update().iter().map(line).collect();
                println!("{name}: {}", uris.join(" "));
            }
            Err("it cannot be followed any more".into())
        }
        _ => Err(
            "usage: discovery register SERVERS BASE NAME ID ADDRESS PORT | watch SERVERS BASE NAME"
                .into(),
        ),
    }
}

/// Keeps the instance registered, in one session after the other, until this process is asked to end.
async fn register(
    options: ConnectOptions,
    base: &str,
    instance: &ServiceInstance,
) -> Result<(), AnyError> {
    let path = format!("{base}/{}/{}", instance.name, instance.id);
    let node = PersistentNode::start(options, &path, &serde_json::to_vec(instance)?).await?;
    let mut states = node.subscribe();
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        println!("{path}: {:?}", *states.borrow_and_update());
        tokio::select! {
            _ = states.changed() => {}
            _ = terminate.recv() => break,
        }
    }
    node.close().await;
    Ok(())
}

/// Keeps the list of instances up to date, in one session after the other; while servers are away it stays as it was.
async fn follow(
    options: ConnectOptions,
    path: &str,
    instances: &watch::Sender<Vec<ServiceInstance>>,
) -> Interruption<Error> {
    let session = async |zk: Client| -> Result<Infallible, Error> {
        // The server of this session may be behind that of the last one.
        zk.sync(path).await?;
        let cache = Cache::children(&zk, path).start()?;
        let mut changes = cache.events();
        cache.ready().await?;
        loop {
            // Whatever has changed, all of it counts.
            let nodes = cache.children_of(path);
            let read = |data: &[u8]| serde_json::from_slice::<ServiceInstance>(data).ok();
            let mut now: Vec<_> = nodes.iter().filter_map(|node| read(&node.data)).collect();
            now.retain(|instance| instance.enabled);
            instances.send_if_modified(|before| replace(before, now) != *before);
            if changes.next().await.is_none() {
                return Err(zk.session().ended().await.into());
            }
        }
    };
    let Err(ended) = Supervise::new(options).run(session).await;
    ended
}

/// `ID=URI`
fn line(instance: &ServiceInstance) -> String {
    format!("{}={}", instance.id, instance.uri())
}

fn options(servers: &str) -> Result<ConnectOptions, AnyError> {
    let session = env::var("SESSION_MS").map_or(Ok(10_000), |millis| millis.parse());
    let session = Duration::from_millis(session.map_err(|error| format!("SESSION_MS: {error}"))?);
    Ok(ConnectOptions::new(servers)?.session_timeout(session))
}
