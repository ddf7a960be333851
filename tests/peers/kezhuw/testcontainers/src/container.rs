//! A server that runs, as a process that `zk serve` plays it for.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read as _, Write as _},
    marker::PhantomData,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use crate::image::RunnableImage;

/// How long servers may take for what they are asked.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// What the image has for a configuration of its own.
const SETTINGS: &str = "clientPort=2181\ntickTime=2000\ndataDir=/data\n";

/// A server. Dropping it ends it.
pub struct Container<'a, T> {
    command: Mutex<Command>,
    process: Mutex<Child>,
    port: u16,
    /// Whether clients without TLS can speak to it.
    is_plain: bool,
    scratch: PathBuf,
    _of: PhantomData<(&'a (), T)>,
}

impl<T> Container<'_, T> {
    pub(crate) fn start_new(image: RunnableImage<T>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let scratch = env::temp_dir().join(format!("container-{}-{number}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let mut volumes = image.volumes;
        if !volumes.contains_key("/data") {
            let data = scratch.join("data");
            fs::create_dir(&data).unwrap();
            volumes.insert("/data".to_owned(), data.to_str().unwrap().to_owned());
        }
        let settings = match volumes.get("/conf/zoo.cfg") {
            Some(path) => fs::read_to_string(path).unwrap(),
            None => SETTINGS.to_owned(),
        };
        let mut settings = on_this_machine(&settings, &volumes);
        let port = if image.is_on_host {
            port_of_own(&settings, &volumes["/data"])
        } else {
            let port = free_port();
            settings = settings.replace("Port=2181", &format!("Port={port}"));
            port
        };
        let is_plain = !settings.contains("secureClientPort=");
        let path = scratch.join("zoo.cfg");
        fs::write(&path, settings).unwrap();
        let mut flags = image.variables.get("SERVER_JVMFLAGS").cloned().unwrap_or_default();
        flags = on_this_machine(&flags, &volumes);
        let release: Vec<_> = image.tag.split('.').take(2).collect();
        flags += &format!(" -Dzookeeper.release={}", release.join("."));
        let mut command = Command::new(env::var("ZK_MEMBER").expect("the runner sets it"));
        command.arg("start-foreground").arg(path).env("SERVER_JVMFLAGS", flags);
        let process = command.spawn().unwrap();
        let (command, process) = (Mutex::new(command), Mutex::new(process));
        let container = Self { command, process, port, is_plain, scratch, _of: PhantomData };
        container.wait_until_open();
        // A check of its health finds a server well that has a leader.
        if container.is_plain {
            wait_for("a leader", || is_ro(port) == "rw");
        }
        container
    }

    pub fn stop(&self) {
        let mut process = self.process.lock().unwrap();
        let _ = process.kill();
        process.wait().unwrap();
    }

    pub fn start(&self) {
        *self.process.lock().unwrap() = self.command.lock().unwrap().spawn().unwrap();
        self.wait_until_open();
    }

    pub fn get_host_port(&self, _inside: u16) -> u16 {
        self.port
    }

    pub fn stdout(&self) -> LogStream {
        LogStream { port: self.port }
    }

    fn wait_until_open(&self) {
        let port = self.port;
        wait_for("a server to listen", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}

impl<T> Drop for Container<'_, T> {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// What a server logs.
pub struct LogStream {
    port: u16,
}

impl LogStream {
    /// Waits for what the server says, which it is asked instead.
    pub fn wait_for_message(&self, message: &str) -> Result<(), &'static str> {
        assert_eq!(message, "Read-only server started");
        wait_for("a read-only server", || is_ro(self.port) == "ro");
        Ok(())
    }
}

/// What a server answers to `isro`.
fn is_ro(port: u16) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
        let asked = stream.write_all(b"isro");
        let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
    }
    answer
}

/// The same text, with paths on this machine for those in the container.
fn on_this_machine(text: &str, volumes: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (there, here) in volumes.iter().filter(|(there, _)| *there != "/conf/zoo.cfg") {
        text = text.replace(&format!("={there}"), &format!("={here}"));
    }
    text
}

/// The port at the end of the server's own line.
fn port_of_own(settings: &str, data: &str) -> u16 {
    let id = fs::read_to_string(PathBuf::from(data).join("myid")).unwrap();
    let prefix = format!("server.{}=", id.trim());
    let line = settings.lines().find(|line| line.starts_with(&prefix)).unwrap();
    line.rsplit(':').next().unwrap().parse().unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        sleep(POLL);
        assert!(begun.elapsed() < PATIENCE, "waited for {what} for {PATIENCE:?}");
    }
}
