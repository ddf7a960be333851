//! `zk help`: subcommands, and topics that several of them share.

use clap::{CommandFactory as _, ValueEnum as _};

use crate::{
    args::{Args, HelpArgs, help::Topic},
    exit::{Exit, Failure},
    render,
};

pub(crate) fn run(args: &HelpArgs) -> Result<Exit, Failure> {
    let mut all = Args::command();
    all.build();
    let text = match &args.topic {
        None => all.render_long_help().to_string(),
        Some(topic) => match Topic::from_str(topic, false) {
            Ok(topic) => topic.text(),
            Err(_) => {
                let command = all.find_subcommand_mut(topic).ok_or_else(|| {
                    let why = format!("help: {topic:?} is neither a subcommand nor a topic");
                    Failure::new(Exit::Usage, why).next("zk help lists both")
                })?;
                command.render_long_help().to_string()
            }
        },
    };
    render::bytes(text.as_bytes())?;
    Ok(Exit::Done)
}
