//! `zk serve`: a ZooKeeper that keeps nothing.

use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};
use zk_testkit::{
    real::Release,
    server::{Config, Listening},
};

use crate::{
    args::ServeArgs,
    exit::{Exit, Failure},
    render,
};

pub(crate) async fn run(args: ServeArgs) -> Result<Exit, Failure> {
    // Before anybody can know that it runs: a signal must find us listening for it.
    let listen = |kind| signal(kind).map_err(Failure::local("signals"));
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    if !Release::ALL.contains(&args.release) {
        let known = Release::ALL.map(|release| release.to_string()).join(", ");
        return Err(Failure::new(Exit::Usage, format_args!("--release: one of {known}")));
    }
    let addrs = addrs(&args)?;
    let mut config = Config::default();
    config.release = args.release;
    config.tick = args.tick;
    config.extended_types = args.ttl;
    let listening = Listening::start(config, &addrs).await;
    let listening = listening.map_err(Failure::local(&format!("{}:{}", args.listen, args.port)))?;
    let listens: Vec<_> = listening.addrs().iter().map(SocketAddr::to_string).collect();
    let notice = "It keeps nothing: all nodes are gone when it ends.";
    render::bytes(
        format!("{}\nZooKeeper {} for tests. {notice}\n", listens.join(","), args.release)
            .as_bytes(),
    )?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(Exit::Done)
}

/// One address for each member.
fn addrs(args: &ServeArgs) -> Result<Vec<SocketAddr>, Failure> {
    let port = |member| match args.port {
        0 => Ok(0),
        first => first.checked_add(member).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                format_args!("--port: {first} leaves too few for the members"),
            )
        }),
    };
    (0..args.members).map(|member| Ok(SocketAddr::new(args.listen, port(member)?))).collect()
}
