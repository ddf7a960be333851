//! Calls a service as often as it allows to: so many calls a period for all processes together.
//!
//! ```sh
//! limiter zk1:2181,zk2:2181 /limits/rates-api 100 1000 10.0.0.9:80     # 100 in any second
//! ```

mod limiter;

use std::{env, error::Error, io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    signal::unix::{SignalKind, signal},
};
use zk_locks::ConnectOptions;

use self::limiter::Limiter;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [servers, path, calls, period, service] = &arguments[..] else {
        return Err("usage: limiter SERVERS PATH CALLS PERIOD_MS SERVICE".into());
    };
    let period = Duration::from_millis(period.parse()?);
    let options = ConnectOptions::new(servers)?;
    let zk = options.session_timeout(Limiter::session_timeout(period)).connect().await?;
    let mut limiter = Limiter::new(&zk, path, calls.parse()?, period)?;

    let mut terminate = signal(SignalKind::terminate())?;
    let ended = loop {
        tokio::select! {
            called = limiter.call(get(service)) => match called {
                Ok(answer) => println!("{answer:?}"),
                Err(error) => break Err(error),
            },
            _ = terminate.recv() => break Ok(()),
        }
    };
    limiter.finish().await;
    zk.close().await?;
    ended
}

/// Stands for whatever is called.
async fn get(service: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(service).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
