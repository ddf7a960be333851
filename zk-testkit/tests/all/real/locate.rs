//! Finding a server, and saying why there is none.

use std::path::PathBuf;
use std::thread;

use zk_testkit::real::{Error, Install, Locator, Release, Server, Source};

#[test]
fn failure_lists_locations_and_packages() {
    let empty = tempfile::tempdir().expect("a directory");
    let locator = Locator::from_env()
        .cache_dir(empty.path())
        .search_path(empty.path())
        .install(Install::Forbidden);
    // Not a line that a package of some distribution happens to have installed here.
    let line: Release = "3.4".parse().expect("a release");
    let error = locator.locate(line).expect_err("nothing there");
    let places: Vec<_> = error.attempts().iter().map(|a| a.place()).collect();
    let expected = ["ZK_TESTKIT_HOME", "Maven's cache", "Maven", "Debian's package", "installing"];
    assert_eq!(places, expected, "{error}");
    let text = error.to_string();
    for word in ["no ZooKeeper 3.4", "mvn is not on the PATH", "not allowed", "install Maven"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn home_of_another_release_line_is_skipped() {
    let home = tempfile::tempdir().expect("a directory");
    let error =
        Locator::from_env().homes([home.path()]).locate(Release::V3_9).expect_err("an empty home");
    assert_eq!(error.attempts().len(), 1, "{error}");

    std::fs::write(home.path().join("zookeeper-3.5.10.jar"), b"").expect("a file");
    let locator = Locator::from_env().homes([home.path()]);
    let other = locator.locate(Release::V3_9).expect("from elsewhere");
    assert_eq!(other.version().release(), Release::V3_9);
    assert_ne!(other.source(), Source::Home);
    let this = locator.locate(Release::V3_5).expect("the home");
    assert_eq!(this.source(), Source::Home);
}

/// The lock makes the second wait; what the first fetched is then there for both.
#[test]
fn concurrent_downloads_do_not_conflict() {
    let cache = tempfile::tempdir().expect("a directory");
    let locate = || {
        let no_home = Vec::<PathBuf>::new();
        let locator = Locator::from_env().homes(no_home).cache_dir(cache.path());
        locator.locate(Release::V3_8).expect("a distribution")
    };
    let versions = thread::scope(|scope| {
        let both = [scope.spawn(locate), scope.spawn(locate)];
        both.map(|one| one.join().expect("no panic").version().clone())
    });
    assert_eq!(versions[0], versions[1]);
    let entries = std::fs::read_dir(cache.path()).expect("a directory").count();
    assert_eq!(entries, 2, "the jars and the lock, nothing unfinished");
}

#[tokio::test]
async fn missing_server_is_a_typed_error() {
    let empty = tempfile::tempdir().expect("a directory");
    let locator = Locator::from_env().homes([empty.path()]);
    let outcome = Server::builder().locator(locator).start().await;
    assert!(matches!(outcome, Err(Error::Locate(_))), "{outcome:?}");
}
