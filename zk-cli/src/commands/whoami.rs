//! `zk whoami`: who the servers take us for.

use serde::Serialize;
use zk_client::{ReadError, Rejection};

use crate::{
    args::CommonArgs,
    exit::{Exit, Failure},
    render::{self, printable},
};

#[derive(Debug, Serialize)]
struct Report {
    identities: Vec<Identity>,
}

#[derive(Debug, Serialize)]
struct Identity {
    scheme: String,
    user: String,
}

pub(crate) async fn run(args: CommonArgs) -> Result<Exit, Failure> {
    let CommonArgs { connect, output } = &args;
    let infos = connect
        .with_session(|client| async move {
            client.who_am_i().await.map_err(|error| match error {
                ReadError::Rejected(Rejection::Unimplemented) => {
                    let why = "whoami: the servers do not know it: they are older than 3.7";
                    Failure::new(Exit::No, why).next("zk health prints the servers' releases")
                }
                error => Failure::read("whoami")(error),
            })
        })
        .await?;
    let identity = |info: &zk_client::ClientInfo| Identity {
        scheme: info.auth_scheme.to_string(),
        user: info.user.to_string(),
    };
    let mut identities: Vec<_> = infos.iter().map(identity).collect();
    identities.sort_by(|a, b| (&a.scheme, &a.user).cmp(&(&b.scheme, &b.user)));
    if output.json {
        render::json(&Report { identities })?;
    } else {
        let line = |it: &Identity| printable(&format!("{}:{}", it.scheme, it.user)) + "\n";
        render::bytes(identities.iter().map(line).collect::<String>().as_bytes())?;
    }
    Ok(Exit::Done)
}
