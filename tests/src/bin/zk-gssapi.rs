//! `zk-gssapi`: a client that is known by Kerberos, for the tests in `gssapi`: a process of its own, since the library finds
//! its tickets and its settings by the environment.
//!
//! Says `connected`, or why not, and then what comes of each line of its input.

use std::{error::Error, io::stdin, sync::Arc, time::Duration};

use clap::Parser;
use tokio::sync::mpsc;
use zk_client::{AclList, Client, ConnectOptions, Gssapi, Id, LinkError, Perms, SessionObserver};

/// A client that is known by Kerberos, controlled by its input.
#[derive(Debug, Parser)]
#[command(name = "zk-gssapi")]
struct Cli {
    /// host:port,host:port
    servers: String,
    /// What servers are before the `/`.
    #[arg(long)]
    service: Option<String>,
    /// What realm they are in.
    #[arg(long)]
    realm: Option<String>,
    /// What all of them are.
    #[arg(long)]
    server_principal: Option<String>,
    /// The principal to use.
    #[arg(long)]
    client_principal: Option<String>,
    /// Milliseconds for a connection attempt.
    #[arg(long)]
    attempt: Option<u64>,
    /// Milliseconds until there must be a session.
    #[arg(long, default_value_t = 20_000)]
    deadline: u64,
    /// Give up as soon as an attempt has failed.
    #[arg(long)]
    once: bool,
    /// Decides which server comes first.
    #[arg(long)]
    seed: Option<u64>,
}

impl Cli {
    fn options(&self) -> Result<ConnectOptions, Box<dyn Error>> {
        let mut kerberos = Gssapi::new();
        if let Some(service) = &self.service {
            kerberos = kerberos.service(service);
        }
        if let Some(realm) = &self.realm {
            kerberos = kerberos.realm(realm);
        }
        if let Some(principal) = &self.server_principal {
            kerberos = kerberos.server_principal(principal);
        }
        if let Some(principal) = &self.client_principal {
            kerberos = kerberos.client_principal(principal);
        }
        let mut options = ConnectOptions::new(&self.servers)?
            .sasl(kerberos)
            .session_timeout(Duration::from_secs(60))
            .connect_deadline(Some(Duration::from_millis(self.deadline)));
        if let Some(attempt) = self.attempt {
            options = options.connect_timeout(Duration::from_millis(attempt));
        }
        if let Some(seed) = self.seed {
            options = options.seed(seed);
        }
        Ok(options)
    }
}

/// Tells of attempts that have failed.
struct Failures(mpsc::UnboundedSender<String>);

impl SessionObserver for Failures {
    fn attempt_failed(&self, _server: &str, why: &LinkError) {
        // Fails when the other end is closed.
        let _ = self.0.send(format!("{why:?}"));
    }
}

/// One thread for everything: whatever blocks it stops the session as well.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    let (first, mut failed) = mpsc::unbounded_channel();
    let connected = cli.options()?.observer(Arc::new(Failures(first))).connect();
    let connected = tokio::select! {
        biased;
        Some(why) = failed.recv(), if cli.once => Err(why),
        connected = connected => connected.map_err(|why| format!("{why:?}")),
    };
    let mut zk = match connected {
        Ok(zk) => zk,
        Err(why) => {
            println!("{why}");
            return Ok(());
        }
    };
    println!("connected");
    let (lines, mut told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            // Fails when the other end is closed.
            let _ = lines.send(line);
        }
    });
    while let Some(line) = told.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        let outcome = match *words {
            ["resume"] => {
                let left = zk.detach().await.ok_or("nothing to resume")?;
                let id = left.id;
                zk = cli.options()?.resume(left).connect().await?;
                if zk.session().id() == id { "the same".to_owned() } else { "another".to_owned() }
            }
            _ => done(&zk, &words).await?,
        };
        println!("{outcome}");
    }
    zk.close().await?;
    Ok(())
}

async fn done(zk: &Client, words: &[&str]) -> Result<String, Box<dyn Error>> {
    Ok(match *words {
        ["whoami"] => {
            let who = zk.who_am_i().await?;
            who.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" ")
        }
        ["create", path, user] => {
            let only = AclList::from_iter([Id::sasl(user).may(Perms::ALL)]);
            let created = zk.create(path, b"x").acl(&only).await;
            format!("{:?}", created.map(|_| ()))
        }
        ["get", path] => format!("{:?}", zk.get(path).await.map(|_| ())),
        ["epoch"] => zk.session().epoch().to_string(),
        ["after", epoch] => {
            let mut session = zk.session();
            let epoch = epoch.parse()?;
            while session.epoch() <= epoch {
                session.changed().await;
            }
            "connected again".to_owned()
        }
        _ => return Err(format!("not understood: {words:?}").into()),
    })
}
