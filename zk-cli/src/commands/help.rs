//! `zk help`: subcommands, and topics that several of them share.

use clap::{CommandFactory as _, Parser as _, ValueEnum as _};

use crate::{
    args::{Args, HelpArgs, help::Topic, is_help, mistake},
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
                match all.find_subcommand_mut(topic) {
                    Some(command) => command.render_long_help().to_string(),
                    // It knows the words that are close to others.
                    None => return Err(unknown(topic)),
                }
            }
        },
    };
    render::bytes(text.as_bytes())?;
    Ok(Exit::Done)
}

/// With what the command line itself advises on such a word.
fn unknown(topic: &str) -> Failure {
    let why = format!("help: {topic:?} is neither a subcommand nor a topic");
    match Args::try_parse_from(["zk", topic]) {
        Err(error) if !is_help(&error) => mistake(error).retold(|text| {
            let tips = text.lines().filter(|line| line.trim_start().starts_with("tip: "));
            [why.as_str()].into_iter().chain(tips).collect::<Vec<_>>().join("\n")
        }),
        _ => Failure::new(Exit::Usage, why),
    }
}
