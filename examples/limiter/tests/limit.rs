//! Three processes call one service, and are killed and asked to end, on a real ZooKeeper.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use harness::{Chance, Program, until};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zk_testkit::real::Server;

const ROUNDS: u64 = 6;
const CALLS: usize = 5;
const PERIOD: Duration = Duration::from_millis(800);

/// When the service was called.
type Calls = Arc<Mutex<Vec<Instant>>>;

async fn serve(listener: TcpListener, calls: Calls) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let calls = calls.clone();
        tokio::spawn(async move {
            // A caller may be killed at any moment.
            if stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {
                calls.lock().unwrap().push(Instant::now());
                _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nrates").await;
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limit_holds_over_processes_that_die() {
    let mut chance = Chance::from_env();
    // Sessions may be shorter than the period: it is the limiter that asks for long ones.
    let server = Server::builder().tick_time(Duration::from_millis(100));
    let server = server.config("maxSessionTimeout=20000").start().await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let service = listener.local_addr().unwrap().to_string();
    let calls = Calls::default();
    tokio::spawn(serve(listener, calls.clone()));
    let (permits, period) = (CALLS.to_string(), PERIOD.as_millis().to_string());
    let servers = server.connect_string();
    let start = || {
        let arguments = [&*servers, "/limits/rates", &*permits, &*period, &*service];
        Program::start(env!("CARGO_BIN_EXE_limiter"), &arguments, &[])
    };
    let mut programs = [start(), start(), start()];

    for _ in 0..ROUNDS {
        for program in &mut programs {
            program.line("rates").await;
        }
        let before = calls.lock().unwrap().len();
        let some = usize::try_from(chance.of(1..12)).unwrap();
        until("more calls", async || (calls.lock().unwrap().len() >= before + some).then_some(()))
            .await;
        let program = &mut programs[usize::try_from(chance.of(0..3)).unwrap()];
        if chance.of(0..3) == 0 {
            program.terminate();
            assert!(program.ended().await.success(), "{}", program.said());
        } else {
            program.kill().await;
        }
        *program = start();
    }

    let mut calls = calls.lock().unwrap().clone();
    calls.sort();
    let spans = calls.windows(CALLS + 1).map(|calls| calls[CALLS] - calls[0]);
    let shortest = spans.min().expect("there were more");
    println!("{} calls, any {} of them over {shortest:?} at least", calls.len(), CALLS + 1);
    assert!(shortest >= PERIOD, "{} calls within {shortest:?}", CALLS + 1);
    let full = calls.windows(CALLS).filter(|calls| calls[CALLS - 1] - calls[0] < PERIOD).count();
    assert!(full > 0, "the limit was never made use of");
}
