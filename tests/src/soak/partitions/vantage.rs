//! Threads of this process that see the network from a namespace, each with a runtime of its own: what they share, they share
//! in memory.

use std::{fs::File, io, os::fd::AsFd as _, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::{runtime::Builder, sync::oneshot};

use super::network::Party;

/// Does this from the namespace of clients. What is returned resolves when it is done, or to why it is not.
pub(super) fn spawn<F: Future<Output = ()>>(
    from: Party,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (done, outcome) = oneshot::channel();
    thread::Builder::new().name(from.name()).spawn(move || {
        let working = || {
            let namespace = File::open(format!("/run/netns/{}", from.name()))?;
            // Of this thread alone, and of those that it starts.
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Builder::new_current_thread().enable_all().build()?.block_on(work());
            Ok(())
        };
        // A panic closes the channel instead.
        let _ = done.send(working());
    })?;
    Ok(outcome)
}
