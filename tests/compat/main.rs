//! Every operation on a server of every release line: works, works with less, or is refused. What comes of it is the
//! table in `docs/compatibility.md`; and the in-process server does as the real ones do.

mod operations;
mod table;

use zk_testkit::real::Release;
use zk_tests::site::{Kind, Site};

use self::{
    operations::{OPERATIONS, Outcome, outcome},
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
async fn the_guide_says_what_becomes_of_every_operation_on_every_release() {
    let mut found = Vec::new();
    for release in Release::ALL {
        let (real, ours) = (on(Kind::Real(release)).await, on(Kind::InProcess(release)).await);
        for ((name, real), ours) in OPERATIONS.iter().zip(&real).zip(&ours) {
            assert_eq!(real, ours, "{name} on {release}, real and in-process");
        }
        found.push(real);
    }
    let rendered = rendered(&found);
    assert!(
        documented() == rendered,
        "docs/compatibility.md should have this table:\n\n{rendered}"
    );
}

#[test]
fn the_table_has_a_column_for_every_release() {
    assert_eq!(columns().len(), Release::ALL.len());
}
