//! Starting contenders: Curator and kazoo are fetched by Maven and pip, once.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process,
};

use tokio::{process::Command, task::spawn_blocking};
use zk_testkit::real::{Locator, Release};

use super::{
    claim::Party,
    contender::Contend,
    fetch::{FetchLock, complete, digest, finish, unfinished},
    go,
};

const POM: &str = include_str!("../../interop/curator/pom.xml");
const CURATOR_CONTENDER: &str = include_str!("../../interop/curator/Contender.java");
const KAZOO_CONTENDER: &str = include_str!("../../interop/kazoo/contender.py");

const GO_CONTENDER: go::Sources = [
    ("go.mod", include_str!("../../interop/go/go.mod")),
    ("go.sum", include_str!("../../interop/go/go.sum")),
    ("main.go", include_str!("../../interop/go/main.go")),
];

/// The one that the notes on names were made with.
const KAZOO: &str = "kazoo==2.11.0";

/// What contenders are started with.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The command whose `contend` is a contender of ours.
    zk_interop: PathBuf,
    java: PathBuf,
    /// Curator, and the contender that uses it.
    class_path: OsString,
    /// Of an environment that has kazoo.
    python: PathBuf,
    /// The contender that uses go-zookeeper, if it was [built](Tools::with_go).
    golang: PathBuf,
}

/// A small and quickly started JVM.
const JVM_OPTIONS: [&str; 5] = [
    "-Xmx96m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
];

impl Tools {
    /// Finds everything, or fetches it into the testkit's cache directory, beside the command `zk-interop`.
    /// Processes that do so at the same time wait for each other.
    ///
    /// # Errors
    /// What is missing, or why it could not be fetched, with the end of what Maven or pip said.
    pub async fn prepare(zk_interop: PathBuf) -> Result<Self, String> {
        let locator = Locator::from_env();
        let cache = locator.cache().join("interop");
        let _lock = FetchLock::acquire(&cache).await?;
        // The server's Java is good enough for its clients; it may have to be installed first, and Maven too.
        let found = spawn_blocking(move || locator.locate(Release::V3_9)).await;
        let found = found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let java = found.java().to_owned();
        let curator = curator(&cache, &java).await.map_err(|why| format!("no Curator: {why}"))?;
        let kazoo = kazoo(&cache).await.map_err(|why| format!("no kazoo: {why}"))?;
        let class_path = class_path(&curator)?;
        let (python, golang) = (kazoo.join("bin/python"), PathBuf::from("go-contender"));
        Ok(Self { zk_interop, java, class_path, python, golang })
    }

    /// Builds the contender in Go as well.
    ///
    /// # Errors
    /// There is no Go, or why it could not build, with what it said.
    pub async fn with_go(mut self) -> Result<Self, String> {
        self.golang = go::build("contender", &GO_CONTENDER).await?;
        Ok(self)
    }

    /// How a contender is started.
    #[must_use]
    pub fn command(&self, told: &Contend) -> process::Command {
        let start = |program: &Path| process::Command::new(program);
        let mut command = match told.party {
            Party::Ours | Party::Impatient => {
                let mut command = start(&self.zk_interop);
                command.arg("contend");
                command
            }
            Party::Curator => {
                let mut command = start(&self.java);
                command.args(JVM_OPTIONS).arg("-cp").arg(&self.class_path).arg("Contender");
                command
            }
            Party::Go => start(&self.golang),
            Party::Kazoo | Party::KazooAsIs => {
                let mut command = start(&self.python);
                command.args(["-c", KAZOO_CONTENDER]);
                command
            }
        };
        command.args(told.arguments());
        command
    }
}

/// The directory with Curator's jars in `jars`, and the contender in `classes`.
async fn curator(cache: &Path, java: &Path) -> Result<PathBuf, String> {
    let target = cache.join(format!("curator-{:016x}", digest(&[POM, CURATOR_CONTENDER])));
    if target.exists() {
        return Ok(target);
    }
    eprintln!("interop: fetching Curator with Maven");
    let unfinished = unfinished(cache)?;
    let dir = unfinished.path().join("curator");
    let pom = dir.join("pom.xml");
    let source = dir.join("Contender.java");
    let written = fs::create_dir(&dir)
        .and_then(|()| fs::write(&pom, POM))
        .and_then(|()| fs::write(&source, CURATOR_CONTENDER));
    written.map_err(|error| format!("cannot write to {}: {error}", dir.display()))?;
    let copy = async |network: &[&str]| {
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode"]).args(network).arg("-f").arg(&pom);
        command.arg("dependency:copy-dependencies");
        command.arg(format!("-DoutputDirectory={}", dir.join("jars").display()));
        complete(command).await
    };
    if copy(&["--offline"]).await.is_err() {
        copy(&[]).await?;
    }
    // A compiler that comes as a jar: a Java runtime is enough.
    let mut compile = Command::new(java);
    compile.arg("-cp").arg(class_path(&dir)?).arg("org.eclipse.jdt.internal.compiler.batch.Main");
    compile.args(["-17", "-nowarn", "-proc:none", "-cp"]).arg(class_path(&dir)?);
    compile.arg("-d").arg(dir.join("classes")).arg(&source);
    complete(compile).await?;
    finish(&dir, target)
}

/// The virtual environment.
async fn kazoo(cache: &Path) -> Result<PathBuf, String> {
    let target = cache.join(KAZOO.replace("==", "-"));
    if target.exists() {
        return Ok(target);
    }
    eprintln!("interop: fetching kazoo with pip");
    let unfinished = unfinished(cache)?;
    let dir = unfinished.path().join("kazoo");
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(&dir);
    complete(environment).await?;
    let mut install = Command::new(dir.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", KAZOO]);
    complete(install).await?;
    finish(&dir, target)
}

fn class_path(curator: &Path) -> Result<OsString, String> {
    let jars = curator.join("jars");
    let entries = fs::read_dir(&jars).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|error| format!("cannot read {}: {error}", jars.display()))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    paths.insert(0, curator.join("classes"));
    env::join_paths(paths).map_err(|error| error.to_string())
}
