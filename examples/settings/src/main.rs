//! A service whose settings are in ZooKeeper: a change is there within milliseconds, and what was last good stays while
//! servers are away, or while there is nonsense in the node.
//!
//! ```sh
//! zk create /greeter/settings '{"greeting": "hello", "names_max": 100}' --parents
//! settings zk1:2181,zk2:2181 /greeter/settings /var/lib/greeter/settings.json 10.0.0.7:8080
//! ```
//!
//! The file is a copy of the last good settings, for a start while servers are away.

mod reload;

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use tokio::{net::TcpListener, sync::watch};
use zk_client::ConnectOptions;

use self::reload::{LastGood, Settings};

/// The settings of this moment. None only if there have never been any.
type Current = watch::Receiver<Option<Arc<Settings>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [servers, node, file, address] = &arguments[..] else {
        return Err("usage: settings SERVERS NODE FILE ADDRESS".into());
    };
    let options = ConnectOptions::new(servers)?.session_timeout(from_env("SESSION_MS", 10_000)?);
    let (last_good, current) = LastGood::load(file.into());
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let app = Router::new()
        .route("/hello/{name}", get(hello))
        .route("/settings", get(settings))
        .with_state(current);
    tokio::select! {
        served = axum::serve(listener, app) => Ok(served?),
        ended = last_good.follow(options, node) => Err(ended.into()),
    }
}

async fn hello(State(current): State<Current>, Path(name): Path<String>) -> (StatusCode, String) {
    // A request goes by the same settings to its end, whatever changes meanwhile.
    let Some(settings) = current.borrow().clone() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "no settings yet".to_owned());
    };
    match name.chars().count() {
        length if length > settings.name_length_max.get() => {
            (StatusCode::BAD_REQUEST, "what a long name".to_owned())
        }
        _ => (StatusCode::OK, format!("{} {name}", settings.greeting)),
    }
}

/// For those who want to know what it goes by.
async fn settings(State(current): State<Current>) -> Json<Option<Settings>> {
    Json(current.borrow().as_deref().cloned())
}

/// A time in milliseconds.
fn from_env(name: &str, default: u64) -> Result<Duration, Box<dyn Error>> {
    let millis = env::var(name).map_or(Ok(default), |millis| millis.parse());
    Ok(Duration::from_millis(millis.map_err(|error| format!("{name}: {error}"))?))
}
