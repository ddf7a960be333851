//! Settings change, are nonsense, and lose their servers, under load, on a real ZooKeeper.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use harness::{Chance, Program, get, until, within};
use tokio::task::JoinSet;
use zk_client::{Client, ConnectOptions, CreateMode};
use zk_testkit::real::{Server, Wanted};

/// How often each trouble comes up.
const TIMES: usize = 3;
const NODE: &str = "/greeter/settings";
#[derive(Clone, Debug)]
enum Trouble {
    Nonsense,
    NodeGone,
    ServerGone,
    SessionOver,
}

/// What is no settings, and what is said of it.
const NONSENSE: [(&str, &str); 6] = [
    ("", "EOF while parsing a value"),
    ("{", "EOF while parsing an object"),
    ("\"hello\"", "invalid type: string"),
    (r#"{"greeting": "hello"}"#, "missing field `name_length_max`"),
    (r#"{"greeting": "hello", "name_length_max": 0}"#, "expected a nonzero"),
    (r#"{"greeting": "hello", "name_length_max": 9, "colour": "red"}"#, "unknown field `colour`"),
];

fn good(number: u64) -> String {
    format!(r#"{{"greeting": "{number}", "name_length_max": 9}}"#)
}

async fn start(server: &Server, file: &Path) -> (Program, String) {
    let arguments = [&*server.connect_string(), NODE, file.to_str().unwrap(), "127.0.0.1:0"];
    let environment = [("SESSION_MS", "3000")];
    let mut program = Program::start(env!("CARGO_BIN_EXE_settings"), &arguments, &environment);
    let address = program.line("listening on ").await.replace("listening on ", "");
    (program, address)
}

/// The number of the settings that an answer was made with.
async fn served(address: &str) -> u64 {
    let (status, body) = get(address, "/hello/ann").await.unwrap();
    assert_eq!(status, 200, "{body}");
    body.strip_suffix(" ann").unwrap().parse().unwrap()
}

/// Asks without a pause. Every request is answered, and none with settings older than the one before.
async fn load(address: String, answers: Arc<AtomicU64>) {
    let mut newest = 0;
    loop {
        let number = served(&address).await;
        assert!(number >= newest, "{number} after {newest}");
        newest = number;
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn last_good_settings_are_served_under_load() {
    let mut chance = Chance::from_env();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let server = Server::start(Wanted::Any).await.unwrap();
    let zk = Client::connect(&server.connect_string()).await.unwrap();
    let mut number = 1;
    zk.create(NODE, good(number).as_bytes()).parents().await.unwrap();
    let (mut program, address) = start(&server, &file).await;
    program.line("goes by").await;

    let answers = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..4 {
        clients.spawn(load(address.clone(), answers.clone()));
    }
    use Trouble::{NodeGone, Nonsense, ServerGone, SessionOver};
    for trouble in chance.shuffled(&[Nonsense, NodeGone, ServerGone, SessionOver], TIMES) {
        let zk = connect(&server).await;
        match trouble {
            Nonsense => {
                for (text, complaint) in NONSENSE {
                    zk.set(NODE, text.as_bytes()).await.unwrap();
                    program.line(complaint).await;
                    assert_eq!(served(&address).await, number);
                }
            }
            NodeGone => {
                zk.delete(NODE).await.unwrap();
                program.line("there is no").await;
                number += 1;
                let text = good(number);
                zk.create(NODE, text.as_bytes()).mode(CreateMode::Persistent).await.unwrap();
            }
            ServerGone => {
                server.kill().await.unwrap();
                more(&answers, 50).await;
                server.restart().await.unwrap();
            }
            SessionOver => {
                server.kill().await.unwrap();
                program.line("keeps the settings: session expired").await;
                more(&answers, 50).await;
                server.restart().await.unwrap();
            }
        }
        number += 1;
        connect(&server).await.set(NODE, good(number).as_bytes()).await.unwrap();
        until("it is served", async || (served(&address).await == number).then_some(())).await;
    }
    assert!(clients.try_join_next().is_none(), "no client has given up");
    println!("{} answers, {number} settings", answers.load(Ordering::Relaxed));
    clients.shutdown().await;

    // A start without servers.
    program.kill().await;
    server.kill().await.unwrap();
    let (_program, address) = start(&server, &file).await;
    assert_eq!(served(&address).await, number);
    server.restart().await.unwrap();
    connect(&server).await.set(NODE, good(number + 1).as_bytes()).await.unwrap();
    until("it is served", async || (served(&address).await == number + 1).then_some(())).await;
}

async fn connect(server: &Server) -> Client {
    let options = ConnectOptions::new(&server.connect_string()).unwrap();
    within("a session", options.session_timeout(Duration::from_secs(2)).connect()).await.unwrap()
}

/// Waits for some more answers.
async fn more(answers: &AtomicU64, count: u64) {
    let before = answers.load(Ordering::Relaxed);
    until("more answers", async || {
        (answers.load(Ordering::Relaxed) >= before + count).then_some(())
    })
    .await;
}
