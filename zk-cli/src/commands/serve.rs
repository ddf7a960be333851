//! `zk serve`: a ZooKeeper that keeps nothing.

use std::{net::SocketAddr, time::SystemTime};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use zk_client::SessionId;
use zk_testkit::{
    real::Release,
    server::{Config, Listening, Member},
};

use crate::{
    args::ServeArgs,
    exit::{Exit, Failure},
    render::{self, age_millis},
};

pub(crate) async fn run(args: ServeArgs) -> Result<Exit, Failure> {
    // Before its address is printed: a signal must find us listening for it.
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
    config.read_only_mode = args.read_only;
    // Nodes have the times of the world outside: their ages are looked at.
    config.epoch_millis = age_millis(0, SystemTime::now());
    let listening = Listening::start(config, &addrs).await;
    let listening = listening.map_err(Failure::local(&format!("{}:{}", args.listen, args.port)))?;
    let listens: Vec<_> = listening.addrs().iter().map(SocketAddr::to_string).collect();
    let notice = "It keeps nothing: all nodes are gone when it ends.";
    render::bytes(
        format!("{}\nZooKeeper {} for tests. {notice}\n", listens.join(","), args.release)
            .as_bytes(),
    )?;
    let mut orders = if args.control { Some(orders()) } else { None };
    loop {
        let order = async {
            match &mut orders {
                Some(orders) => orders.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => return Ok(Exit::Done),
            _ = terminate.recv() => return Ok(Exit::Done),
            order = order => match order {
                Some(order) => render::bytes(obey(&listening, &order).as_bytes())?,
                // The process that gave orders has left; clients may go on.
                None => orders = None,
            },
        }
    }
}

/// Lines of standard input. They are read by a thread of their own, which nothing waits for.
fn orders() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Does what a line of standard input says, and says so.
fn obey(listening: &Listening, order: &str) -> String {
    let order = order.trim();
    let (verb, object) = order.split_once(' ').unwrap_or((order, ""));
    let member = || {
        let member = object.parse().ok().filter(|member| *member < listening.addrs().len());
        member.map(Member).ok_or_else(|| format!("{object:?} is no member"))
    };
    let done = listening.with(|ensemble, now| {
        match verb {
            "stop" => ensemble.stop(now, member()?),
            "start" => ensemble.start(now, member()?),
            "cut" => ensemble.cut_off(now, member()?),
            "heal" => ensemble.rejoin(now, member()?),
            "drop" => ensemble.drop_connections(now, None),
            "expire" => {
                let digits = object.strip_prefix("0x").unwrap_or(object);
                let id = u64::from_str_radix(digits, 16).map_err(|error| error.to_string())?;
                ensemble.expire(now, SessionId(id as i64));
            }
            _ => return Err(format!("{verb:?} is no command")),
        }
        Ok(())
    });
    match done {
        Ok(()) => "ok\n".to_owned(),
        Err(why) => format!("refused: {why}\n"),
    }
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
