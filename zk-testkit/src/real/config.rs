//! The files and arguments that a server starts from.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::distribution::Distribution;

/// What a caller can choose about a server, alone or as a member.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) tick_time: Duration,
    pub(super) read_only_mode: bool,
    pub(super) force_sync: bool,
    pub(super) lines: Vec<String>,
    pub(super) properties: Vec<(String, String)>,
    pub(super) java_options: Vec<String>,
    /// Names and contents.
    pub(super) files: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            // Sessions are kept in buckets of one tick, and the shortest lasts two: at ZooKeeper's
            // usual 2 s, tests of expiry would wait for seconds.
            tick_time: Duration::from_millis(200),
            read_only_mode: false,
            // Tests kill processes, not machines: what was written survives in the page cache.
            force_sync: false,
            lines: Vec::new(),
            properties: Vec::new(),
            java_options: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// What stands for the folder of a server's files in its settings.
const FILES: &str = "{files}";

/// The longest session that a test can ask for, unless it configures more.
const SESSION_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Makes a fresh server start in a fraction of a second, and stay small.
const JVM_OPTIONS: [&str; 8] = [
    "-Xmx192m",
    "-XX:+UseSerialGC",
    // The optimising compiler would cost more than it gives in a server's short life.
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true",
    // Followers usually find their leader a few milliseconds before it listens.
    "-Dzookeeper.leaderConnectDelayDuringRetryMs=10",
    // Members that have been without a quorum for long would otherwise look for one every minute.
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
];

const MAIN_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Each distribution brings one of three logging bindings; they are configured alike here.
const SIMPLE_LOGGER_OPTIONS: [&str; 3] = [
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
];

const LOG4J_PROPERTIES: &str = "\
log4j.rootLogger=INFO, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{HH:mm:ss.SSS} [%t] %-5p %c{1} - %m%n
";

const LOGBACK_XML: &str = "\
<configuration>
  <appender name=\"CONSOLE\" class=\"ch.qos.logback.core.ConsoleAppender\">
    <encoder><pattern>%d{HH:mm:ss.SSS} [%t] %-5p %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level=\"INFO\"><appender-ref ref=\"CONSOLE\"/></root>
</configuration>
";

impl Settings {
    /// Writes everything that a server reads into `dir`, and returns Java's arguments.
    ///
    /// `ensemble` holds the lines that make it a member.
    pub(super) fn write(
        &self,
        dir: &Path,
        distribution: &Distribution,
        client_addr: SocketAddr,
        ensemble: &str,
    ) -> io::Result<Vec<OsString>> {
        let settings = dir.join("settings");
        fs::create_dir_all(&settings)?;
        fs::create_dir_all(data_dir(dir))?;
        fs::write(settings.join("log4j.properties"), LOG4J_PROPERTIES)?;
        fs::write(settings.join("logback.xml"), LOGBACK_XML)?;
        let files = dir.join("files");
        fs::create_dir_all(&files)?;
        for (name, contents) in &self.files {
            fs::write(files.join(name), contents)?;
        }
        let config = dir.join("zoo.cfg");
        fs::write(&config, self.zoo_cfg(dir, client_addr, ensemble))?;

        let mut arguments: Vec<OsString> = Vec::new();
        arguments.extend(JVM_OPTIONS.map(Into::into));
        arguments.extend(self.java_options.iter().map(Into::into));
        arguments.extend(SIMPLE_LOGGER_OPTIONS.map(Into::into));
        arguments.push(format!("-Dreadonlymode.enabled={}", self.read_only_mode).into());
        for (name, value) in &self.properties {
            let value = value.replace(FILES, &files.to_string_lossy());
            arguments.push(format!("-D{name}={value}").into());
        }
        arguments.push("-cp".into());
        arguments.push(distribution.class_path(&settings));
        arguments.push(MAIN_CLASS.into());
        arguments.push(config.into());
        Ok(arguments)
    }

    fn zoo_cfg(&self, dir: &Path, client_addr: SocketAddr, ensemble: &str) -> String {
        let tick = self.tick_time.as_millis();
        let mut config = String::new();
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            // Writing to a string cannot fail.
            let _ = writeln!(config, "{key}={value}");
        };
        line("tickTime", &tick);
        line("minSessionTimeout", &(2 * tick));
        line("maxSessionTimeout", &SESSION_TIMEOUT_MAX.as_millis());
        line("dataDir", &data_dir(dir).display());
        line("clientPort", &client_addr.port());
        line("clientPortAddress", &client_addr.ip());
        line("maxClientCnxns", &0);
        line("forceSync", &if self.force_sync { "yes" } else { "no" });
        // Kilobytes that the transaction log grows by; 64 MB by default.
        line("preAllocSize", &4096);
        line("admin.enableServer", &false);
        line("4lw.commands.whitelist", &"*");
        line("extendedTypesEnabled", &true);
        config.push_str(ensemble);
        for line in &self.lines {
            config.push_str(&line.replace(FILES, &dir.join("files").to_string_lossy()));
            config.push('\n');
        }
        config
    }
}

/// Where a server that lives in `dir` keeps its log of transactions, snapshots and `myid`.
pub(super) fn data_dir(dir: &Path) -> std::path::PathBuf {
    dir.join("data")
}
