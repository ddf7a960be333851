//! A Prometheus of a test's own.

use std::{fs, net::SocketAddr, process::Stdio, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

/// Goes on until its input ends, with this process however that ends, or with the program.
const WRAPPER: &str = r#"
"$0" "$@" </dev/null & pid=$!
trap 'kill -KILL $pid 2>/dev/null' EXIT
read -r _
"#;

/// How long it may take to start, and to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A Prometheus on a free port of the loopback interface; gone when this is dropped, with all that it has stored.
#[derive(Debug)]
pub(crate) struct Prometheus {
    address: SocketAddr,
    _process: Child,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes the given address twice a second and judges by these rules.
    pub(crate) async fn start(scraped: SocketAddr, rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("rules.yml"), rules).unwrap();
        let config = format!(
            "global:\n  scrape_interval: 500ms\n  evaluation_interval: 500ms\nrule_files: [rules.yml]\n\
             scrape_configs:\n  - job_name: observed\n    static_configs:\n      - targets: ['{scraped}']\n"
        );
        fs::write(path("config.yml"), config).unwrap();
        let mut process = Command::new("sh")
            .args(["-c", WRAPPER, "prometheus", "--web.listen-address=127.0.0.1:0"])
            .arg(format!("--config.file={}", path("config.yml").display()))
            .arg(format!("--storage.tsdb.path={}", path("data").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(false)
            .spawn()
            .expect("a shell");
        let log = process.stderr.take().unwrap();
        let address =
            timeout(LIMIT, listening(BufReader::new(log))).await.expect("it starts in time");
        let this = Self { address, _process: process, _folder: folder };
        // It listens before it can answer.
        let ready = async { while !this.get("/-/ready").await.contains("is Ready") {} };
        timeout(LIMIT, ready).await.expect("it is ready in time");
        this
    }

    /// What an expression is now: each series with its labels and its value.
    pub(crate) async fn ask(&self, expression: &str) -> Vec<Value> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = timeout(LIMIT, self.get(&format!("/api/v1/query?query={encoded}"))).await;
        let answer = answer.expect("it answers in time");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// The names of the alerts that fire.
    pub(crate) async fn firing(&self) -> Vec<String> {
        let alerts = self.ask("count by (alertname) (ALERTS{alertstate=\"firing\"})").await;
        let name = |alert: &Value| alert["metric"]["alertname"].as_str().unwrap().to_owned();
        alerts.iter().map(name).collect()
    }

    async fn get(&self, path: &str) -> String {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }
}

/// Where it listens, by its log. What it logs later is read and dropped, so that it never waits for a reader.
async fn listening(mut log: BufReader<tokio::process::ChildStderr>) -> SocketAddr {
    let mut said = String::new();
    loop {
        let mut line = String::new();
        if log.read_line(&mut line).await.unwrap() == 0 {
            panic!(
                "prometheus is needed here: Debian's package of that name, or .ci/packages prometheus\n{said}"
            );
        }
        said += &line;
        let address = line.split_once("msg=\"Listening on\" address=").map(|(_, rest)| rest.trim());
        if let Some(address) = address.and_then(|address| address.parse::<SocketAddr>().ok()) {
            if address.port() != 0 {
                tokio::spawn(
                    async move { tokio::io::copy(&mut log, &mut tokio::io::sink()).await },
                );
                return address;
            }
        }
        let failed = ["level=error", "not found"].iter().any(|it| line.contains(it));
        assert!(
            !failed,
            "prometheus (Debian's package, or .ci/packages prometheus) does not start:\n{said}"
        );
    }
}
