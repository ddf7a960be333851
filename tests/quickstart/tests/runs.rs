//! The program runs, and `zk-locks` is all that it needs.

use std::process::Command;

use zk_testkit::TestServer;

#[test]
fn program_takes_the_lock_and_cleans_up() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(TestServer::start()).unwrap();
    for _ in 0..2 {
        let program = env!("CARGO_BIN_EXE_zk-quickstart");
        let output = Command::new(program).arg(server.connect_string()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("report written under token "), "{text}");
    }
    assert_eq!(server.paths(), ["/locks", "/locks/report"]);
}

#[test]
fn only_dependency_is_zk_locks() {
    let manifest = include_str!("../Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let dependencies: Vec<&str> =
        dependencies.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(dependencies.len(), 1, "{dependencies:?}");
    assert!(dependencies[0].starts_with("zk-locks = "), "{dependencies:?}");
}
