//! Every operation on a server of every release line: works, works with less, or is refused. What comes of it is the
//! table in `zk-client/src/guide/compatibility.md`; the in-process server does as the real ones do; and what is lost on older servers
//! is what other tests expect to be.

mod operations;
mod table;

use zk_testkit::real::Release;
use zk_tests::site::{Kind, Site};

use self::{
    operations::{OPERATIONS, Outcome, needs, outcome},
    table::{columns, documented, rendered},
};

/// What becomes of each operation on a server.
async fn on(kind: Kind) -> Vec<Outcome> {
    let server = Site::start(kind).await;
    let mut outcomes = Vec::new();
    for (number, name) in OPERATIONS.iter().enumerate() {
        println!("{kind}: {name}");
        outcomes.push(outcome(&server, number).await);
    }
    outcomes
}

#[tokio::test]
async fn compatibility_table_is_up_to_date() {
    let mut found = Vec::new();
    for release in Release::ALL {
        let (real, ours) = (on(Kind::Real(release)).await, on(Kind::InProcess(release)).await);
        for ((name, real), ours) in OPERATIONS.iter().zip(&real).zip(&ours) {
            assert_eq!(real, ours, "{name} on {release}, real and in-process");
            let is_whole = needs(name).is_none_or(|feature| feature.is_in(release));
            assert_eq!(*real == Outcome::Works, is_whole, "{name} on {release}: {real}");
        }
        found.push(real);
    }
    let rendered = rendered(&found);
    assert!(
        documented() == rendered,
        "zk-client/src/guide/compatibility.md should have this table:\n\n{rendered}"
    );
}

#[test]
fn the_table_has_a_column_for_every_release() {
    assert_eq!(columns().len(), Release::ALL.len());
}
