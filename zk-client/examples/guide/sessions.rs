//! Connecting, and the life of the session.

use std::{error::Error, sync::Arc, time::Duration};

use zk_client::{
    Client, ConnectError, ConnectOptions, CreateMode, LinkError, ServersError, Session, SessionEnd,
    SessionObserver, SessionState, Supervise,
};

pub(crate) async fn connect(servers: &str) -> Result<Client, ConnectError> {
    let zk = ConnectOptions::new(servers)?
        .session_timeout(Duration::from_secs(15))
        .connect_deadline(Some(Duration::from_secs(20)))
        .request_timeout(Duration::from_secs(10))
        .connect()
        .await?;
    Ok(zk)
}

pub(crate) async fn follow(mut session: Session) {
    loop {
        match session.changed().await {
            SessionState::Connected { .. } => println!("connected, for {:?}", session.timeout()),
            SessionState::Disconnected => println!("sure for {:?}", session.lease_left()),
            SessionState::Ended(end) => break println!("over: {end}"),
            _ => {}
        }
    }
}

pub(crate) async fn hand_over(zk: Client, servers: &str) -> Result<Client, Box<dyn Error>> {
    let credentials = zk.detach().await.ok_or("there is no session to leave")?;
    let zk = ConnectOptions::new(servers)?.resume(credentials).connect().await?;
    Ok(zk)
}

pub(crate) fn other_servers(zk: &Client, servers: &str) -> Result<(), ServersError> {
    zk.update_servers(servers)
}

struct Pager;

impl SessionObserver for Pager {
    fn disconnected(&self, why: &LinkError) {
        println!("disconnected: {why}");
    }

    fn ended(&self, end: SessionEnd) {
        println!("a session is over: {end}");
    }
}

pub(crate) async fn watch_over(servers: &str) -> Result<(), ConnectError> {
    let zk = ConnectOptions::new(servers)?.observer(Arc::new(Pager)).connect().await?;
    let stats = zk.stats();
    println!("{} answers, 99 % within {:?}", stats.answered, stats.latency().quantile(0.99));
    Ok(())
}

pub(crate) async fn serve(servers: &str) -> Result<(), Box<dyn Error>> {
    let served = Supervise::new(ConnectOptions::new(servers)?)
        .run(|zk| async move {
            let register = zk.create("/here-", b"10.0.0.7:8080");
            let _here = register.mode(CreateMode::EphemeralSequential).protected().await?;
            // ... serves; when the session ends this is dropped, and all of it is done anew ...
            Ok::<_, zk_client::Error>(zk.session().id())
        })
        .await?;
    println!("served in session {served:?}");
    Ok(())
}
