//! `zk stat`: what servers know of a node besides its data.

use zk_client::{ReadError, Rejection, Stat};

use crate::{
    args::{CommonArgs, StatArgs},
    exit::{Exit, Failure},
    render::{self, NodeReport},
};

pub(crate) async fn run(args: StatArgs) -> Result<Exit, Failure> {
    let StatArgs { common: CommonArgs { connect, output }, path } = &args;
    let stat = connect
        .with_session(|client| async move {
            let stat = client.exists(path).await.map_err(Failure::read(path))?;
            let missing = ReadError::Rejected(Rejection::NoNode);
            stat.ok_or_else(|| Failure::read(path)(missing))
        })
        .await?;
    if output.json {
        render::json(&NodeReport::new(path, &stat))?;
    } else {
        render::bytes(text(&stat).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn text(stat: &Stat) -> String {
    let ephemeral = match render::session(stat) {
        Some(session) => format!("as long as session {session}"),
        None => "no".to_owned(),
    };
    [
        ("version", stat.version.to_string()),
        ("bytes", stat.data_length.to_string()),
        ("children", stat.num_children.to_string()),
        ("ephemeral", ephemeral),
        ("created", format!("{} by {}", render::moment(stat.ctime), stat.czxid)),
        ("written", format!("{} by {}", render::moment(stat.mtime), stat.mzxid)),
        ("children changed", format!("by {}", stat.pzxid)),
        ("children version", stat.cversion.to_string()),
        ("acl version", stat.aversion.to_string()),
    ]
    .map(|(what, value)| format!("{what:<17} {value}\n"))
    .concat()
}
