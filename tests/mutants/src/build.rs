//! What is built of the copy. Once: which mutant it is, a process learns from its environment.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

use crate::{copy, mutant::Judge};

/// Programs with all mutants in them.
#[derive(Debug)]
pub(crate) struct Built {
    /// The copy of the workspace.
    source: PathBuf,
    target: PathBuf,
    /// By judge: a program, and the folder that it runs in.
    programs: BTreeMap<Judge, (PathBuf, PathBuf)>,
}

/// How what is built is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// To run for long.
    Release,
    /// To be built soon.
    Dev,
}

impl Built {
    /// Makes the copy, and builds what has to judge these mutants.
    pub(crate) fn new(
        root: &Path,
        mutated: &BTreeMap<String, String>,
        judges: &BTreeSet<Judge>,
        profile: Profile,
    ) -> Result<Self, String> {
        let source = source(root);
        copy::refresh(root, &source, mutated).map_err(|error| error.to_string())?;
        let target = root.join("target/mutation/build");
        let mut built = Self { source, target, programs: BTreeMap::new() };
        for judge in judges {
            let same = built.programs.iter().find(|(other, _)| other.is_same_program(judge));
            let program = match same {
                Some((_, program)) => program.clone(),
                None => built.program(judge, profile)?,
            };
            built.programs.insert(judge.clone(), program);
        }
        Ok(built)
    }

    fn program(&self, judge: &Judge, profile: Profile) -> Result<(PathBuf, PathBuf), String> {
        let mut cargo = Command::new(env!("CARGO"));
        match judge {
            Judge::Simulator => {
                cargo.args(["build", "--package", "zk-tests", "--bin", "zk-sim"]);
            }
            Judge::Test { package, target, .. } => {
                cargo.args(["test", "--no-run", "--package", package]);
                match &**target {
                    "lib" => cargo.arg("--lib"),
                    target => cargo.args(["--test", target]),
                };
            }
        }
        cargo.args(["--quiet", "--locked", "--message-format"]);
        // Mutants need not be tidy. Other flags than usual would have the registry's crates built anew.
        if profile == Profile::Dev {
            cargo.arg("json");
        } else {
            cargo.args(["json-render-diagnostics", "--release"]);
            cargo.env("RUSTFLAGS", "--cap-lints allow");
            for check in ["debug-assertions", "overflow-checks"] {
                cargo.args(["--config", &format!("profile.release.{check}=true")]);
            }
        }
        cargo.arg("--target-dir").arg(&self.target).current_dir(&self.source);
        cargo.stderr(Stdio::inherit());
        let output = cargo.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err("the mutants do not compile".to_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        // The tests of a package come with its programs, in any order.
        let is_test = matches!(judge, Judge::Test { .. });
        let mut programs = messages.filter_map(|message| {
            if message["profile"]["test"] != is_test {
                return None;
            }
            let folder = path(&message["manifest_path"])?.parent()?.to_owned();
            Some((path(&message["executable"])?, folder))
        });
        programs.next().ok_or_else(|| "nothing was built".to_owned())
    }

    /// The program that judges a mutant, in a process that is this mutant, or the product.
    pub(crate) fn command(&self, judge: &Judge, mutant: Option<&str>) -> Command {
        let (program, folder) = &self.programs[judge];
        let mut command = Command::new(program);
        command.current_dir(folder).env_remove("ZK_MUTANT");
        if let Some(mutant) = mutant {
            command.env("ZK_MUTANT", mutant);
        }
        command
    }
}

/// Where the copy of the workspace is.
pub(crate) fn source(root: &Path) -> PathBuf {
    root.join("target/mutation/source")
}
