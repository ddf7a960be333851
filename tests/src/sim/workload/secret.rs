//! A node that only its creator may touch: credentials count on every connection.

use zk_client::{Acl, AclList, Rejection, WriteError};

use super::Worker;

/// What a client proves to be, if it does.
pub(crate) fn identity(client: u32) -> Option<String> {
    (client % 4 == 1).then(|| format!("c{client}:secret"))
}

pub(super) async fn work(mut worker: Worker) {
    let acl = AclList::from_iter([Acl::creator_all()]);
    let path = format!("/secret-{}", worker.ctx.number);
    loop {
        let pause = worker.rng.scaled(100, 20_000);
        if !worker.think(pause).await {
            return;
        }
        let mut outcome = worker.client.set(&path, b"secret").await.map(drop);
        if let Err(WriteError::Rejected(Rejection::NoNode)) = outcome {
            outcome = worker.client.create(&path, b"").acl(&acl).await.map(drop);
        }
        match outcome {
            Err(WriteError::Rejected(Rejection::NoAuth)) => {
                let ctx = &worker.ctx;
                let text = format!("c{} is a stranger to its own node", ctx.number);
                ctx.check().violated("L1", text);
            }
            Err(error) if error.session_end().is_some() => return,
            _ => worker.ctx.count("secrets written"),
        }
    }
}
