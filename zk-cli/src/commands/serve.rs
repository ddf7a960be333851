//! `zk serve`: a ZooKeeper that keeps nothing.

use std::{
    io::{BufRead as _, ErrorKind},
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::SystemTime,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use zk_client::SessionId;
use zk_testkit::{
    real::Release,
    server::{Config, Listening, Member},
    tls::ServerTls,
};

use crate::{
    args::ServeArgs,
    exit::{Exit, Failure},
    render::{self, age_millis},
};

/// Lines of standard input that are understood.
const ORDERS: &str = "stop N, start N, cut N, heal N, drop, expire SESSION, sessions, add ID PORT";

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
    let ports: Vec<_> = args.port.iter().map(u16::to_string).collect();
    let asked = format!("{}:{}", args.listen, ports.join(","));
    let listening = Listening::start(config(&args)?, &addrs).await;
    let mut listening = listening.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::local(&asked)(error).next("--port 0 takes a free port"),
        _ => Failure::local(&asked)(error),
    })?;
    let secured = secure(&mut listening, &args).await?;
    let listens: Vec<_> =
        listening.addrs().iter().chain(&secured).map(SocketAddr::to_string).collect();
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
                Some(order) => {
                    let answer = match words(&order) {
                        ("add", server) => add(&mut listening, args.listen, server).await,
                        (verb, object) => obey(&listening, verb, object),
                    };
                    render::bytes(answer.as_bytes())?;
                }
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
        for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
            // One that is no text is refused like any other that is no order.
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Adds a server, by its number and its port.
async fn add(listening: &mut Listening, listen: IpAddr, server: &str) -> String {
    let numbers = server.split_once(' ');
    let numbers =
        numbers.and_then(|(number, port)| Some((number.parse().ok()?, port.parse().ok()?)));
    let Some((number, port)) = numbers else {
        return format!("refused: {server:?} is no number and port\n");
    };
    match listening.add(number, SocketAddr::new(listen, port)).await {
        Ok(_) => "ok\n".to_owned(),
        Err(why) => format!("refused: {why}\n"),
    }
}

/// What is to be done, and to what.
fn words(order: &str) -> (&str, &str) {
    let order = order.trim();
    let (verb, object) = order.split_once(' ').unwrap_or((order, ""));
    (verb, object.trim_start())
}

/// Does what a line of standard input says, and says so.
fn obey(listening: &Listening, verb: &str, object: &str) -> String {
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
                let id = SessionId(id as i64);
                if !ensemble.sessions().any(|(session, _)| session == id) {
                    return Err(format!("there is no session {id}: sessions lists them"));
                }
                ensemble.expire(now, id);
                if ensemble.sessions().any(|(session, _)| session == id) {
                    return Err("there is no leader that could end it".to_owned());
                }
            }
            "sessions" => {
                let ids: Vec<_> = ensemble.sessions().map(|(id, _)| id.to_string()).collect();
                return Ok(format!("{} sessions: {}", ids.len(), ids.join(" ")));
            }
            "help" => return Ok(ORDERS.to_owned()),
            _ => return Err(format!("{verb:?} is no command: help lists them")),
        }
        Ok("ok".to_owned())
    });
    match done {
        Ok(answer) => format!("{answer}\n"),
        Err(why) => format!("refused: {why}\n"),
    }
}

/// How the server is set up.
fn config(args: &ServeArgs) -> Result<Config, Failure> {
    let mut config = Config::default();
    config.release = args.release;
    config.tick = args.tick;
    config.session_timeout_min = args.setup.min_session_timeout;
    config.session_timeout_max = args.setup.max_session_timeout;
    config.extended_types = args.ttl;
    config.read_only_mode = args.setup.read_only;
    config.latency = args.setup.latency;
    config.container_check_interval = args.setup.container_check;
    // Nodes have the times of the world outside: their ages are looked at.
    config.epoch_millis = age_millis(0, SystemTime::now());
    config.super_digest.clone_from(&args.setup.super_digest);
    config.reconfig = args.setup.reconfig;
    config.servers.clone_from(&args.setup.server);
    config.enforce_sasl = args.setup.require_sasl;
    config.x509 = !args.setup.secure_port.is_empty();
    for user in &args.setup.sasl_user {
        let (user, password) = user
            .split_once(':')
            .ok_or_else(|| Failure::new(Exit::Usage, "--sasl-user: user:password"))?;
        config.sasl_users.insert(user.to_owned(), password.to_owned());
    }
    Ok(config)
}

/// One address for each member.
fn addrs(args: &ServeArgs) -> Result<Vec<SocketAddr>, Failure> {
    let listed = args.port.len();
    let members = args.members.map_or(listed, usize::from);
    let usage = |why| Failure::new(Exit::Usage, format_args!("--port: {why}"));
    let ports: Option<Vec<u16>> = match &*args.port {
        [0] => Some(vec![0; members]),
        [first] => (0..).take(members).map(|member| first.checked_add(member)).collect(),
        listed if listed.len() == members => Some(listed.to_vec()),
        _ => return Err(usage("one for each member, or the first")),
    };
    let ports = ports.ok_or_else(|| usage("too few are left for the members"))?;
    Ok(ports.into_iter().map(|port| SocketAddr::new(args.listen, port)).collect())
}

/// Has members listen on ports with TLS.
async fn secure(listening: &mut Listening, args: &ServeArgs) -> Result<Vec<SocketAddr>, Failure> {
    let (Some(cert), Some(key)) = (&args.setup.tls_cert, &args.setup.tls_key) else {
        return Ok(Vec::new());
    };
    if args.setup.secure_port.len() != listening.addrs().len() {
        return Err(Failure::new(Exit::Usage, "--secure-port: one for each member"));
    }
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(Failure::local(&path.display().to_string()))
    };
    let ca = args.setup.tls_ca.as_ref().map(read).transpose()?;
    let tls = ServerTls::new(&read(cert)?, &read(key)?, ca.as_deref())
        .map_err(|error| Failure::new(Exit::Usage, format_args!("--tls-cert: {error}")))?;
    let mut bound = Vec::new();
    for (member, port) in args.setup.secure_port.iter().enumerate() {
        let addr = SocketAddr::new(args.listen, *port);
        let secured = listening.secure(Member(member), addr, &tls).await;
        bound.push(secured.map_err(Failure::local(&addr.to_string()))?);
    }
    Ok(bound)
}
