//! Starts the servers, and waits.

use std::error::Error;
use std::io;

use zk_testkit::real::{Ensemble, Server, Wanted};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let wanted = match arguments.next().as_deref() {
        None | Some("any") => Wanted::Any,
        Some(line) => Wanted::Line(line.parse()?),
    };
    match arguments.next() {
        None => {
            let server = Server::start(wanted).await?;
            print(&server);
            until_input_ends()
        }
        Some(members) => {
            let members = members.parse()?;
            let ensemble = Ensemble::builder().release(wanted).members(members);
            let ensemble = ensemble.start().await?;
            ensemble.members().iter().for_each(print);
            until_input_ends()
        }
    }
}

fn print(server: &Server) {
    let process = server.process_id().unwrap_or_default();
    let (addr, version) = (server.addr(), server.version());
    println!("{addr} process={process} version={version} data={}", server.data_dir().display());
}

fn until_input_ends() -> Result<(), Box<dyn Error>> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
