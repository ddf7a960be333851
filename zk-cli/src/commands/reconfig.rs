//! `zk reconfig`: changes the ensemble's members.

use std::path::Path;

use zk_client::{ErrorCode, Rejection, WriteError};

use crate::{
    args::{CommonArgs, ReconfigArgs, member},
    commands::{
        config::{self, NODE},
        text,
    },
    exit::{Exit, Failure},
};

pub(crate) async fn run(args: ReconfigArgs) -> Result<Exit, Failure> {
    let ReconfigArgs { common: CommonArgs { connect, output }, add, remove, members, version } =
        &args;
    let members = members.as_deref().map(read).transpose()?;
    let (config, _) = connect
        .with_session(|client| async move {
            let mut change = client.reconfig();
            for (id, spec) in add {
                change = change.join(*id, spec);
            }
            for id in remove {
                change = change.leave(*id);
            }
            if let Some(members) = &members {
                change = change.members(members.iter().map(|(id, spec)| (*id, &**spec)));
            }
            if let Some(version) = *version {
                change = change.version(version);
            }
            change.await.map_err(refused)
        })
        .await?;
    config::print(&config, *output)?;
    Ok(Exit::Done)
}

/// The members of a file, as servers have it: what else is there is none of them.
fn read(file: &Path) -> Result<Vec<(i64, String)>, Failure> {
    let name = file.to_string_lossy();
    let text = text(file).map_err(Failure::local(&name))?;
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("server."));
    let members: Result<Vec<_>, String> = lines.map(member).collect();
    let members =
        members.map_err(|why| Failure::new(Exit::Usage, format_args!("{name}: {why}")))?;
    if members.is_empty() {
        let why = format!("{name}: no line server.ID=SPEC");
        return Err(Failure::new(Exit::Usage, why).next("zk config prints the members of now"));
    }
    Ok(members)
}

fn refused(error: WriteError) -> Failure {
    let no =
        |why: &str, next: &str| Failure::new(Exit::No, format_args!("reconfig: {why}")).next(next);
    let WriteError::Rejected(rejection) = error else { return Failure::write(NODE)(error) };
    match rejection {
        Rejection::Unimplemented => no(
            "the servers do not know it: they are older than 3.5, or standalone",
            "zk health prints the servers' releases",
        ),
        Rejection::Other(ErrorCode::RECONFIG_DISABLED) => no(
            "the servers do not allow it",
            "set reconfigEnabled=true in the configuration of each server",
        ),
        Rejection::NoAuth => no(
            "no permission to write /zookeeper/config",
            "be the servers' super user (--auth-file), or one of `zk acl /zookeeper/config`",
        ),
        Rejection::BadVersion => no(
            "the members are of another version by now",
            "zk config prints the members and their version",
        ),
        Rejection::Other(ErrorCode::NEW_CONFIG_NO_QUORUM) => no(
            "no quorum of the new members is up to date",
            "start the new members first, as observers of these; zk health asks each server",
        ),
        Rejection::Other(ErrorCode::RECONFIG_IN_PROGRESS) => {
            no("another change is under way", "try again; zk config prints the members")
        }
        Rejection::BadArguments => {
            no("the servers do not accept these members", "zk config prints how they are written")
        }
        rejection => Failure::rejected(NODE, rejection),
    }
}
