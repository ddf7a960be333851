//! Settings that follow a node.

use std::{convert::Infallible, fs, io, num::NonZero, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use zk_client::{Cache, Client, ConnectOptions, Error, Interruption, Supervise};

/// What can be set. Whatever does not fit is refused as a whole: types are the place for bounds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) greeting: String,
    pub(crate) name_length_max: NonZero<usize>,
}

/// The settings that were good last, which outlive sessions, servers and, in a file, this process.
pub(crate) struct LastGood {
    settings: watch::Sender<Option<Arc<Settings>>>,
    file: PathBuf,
}

impl LastGood {
    /// Begins with the settings of the file, if there are any.
    pub(crate) fn load(file: PathBuf) -> (Self, watch::Receiver<Option<Arc<Settings>>>) {
        let (sender, receiver) = watch::channel(None);
        let last_good = Self { settings: sender, file };
        match fs::read(&last_good.file) {
            Ok(text) => last_good.offer(&text),
            Err(error) => println!("begins without settings: {error}"),
        }
        (last_good, receiver)
    }

    /// Follows the node, in one session after the other. Returns only if no further one can help.
    pub(crate) async fn follow(&self, options: ConnectOptions, node: &str) -> Interruption<Error> {
        let sessions = Supervise::new(options).stop_if(|why| {
            println!("keeps the settings: {why}");
            why.is_lasting()
        });
        let Err(ended) = sessions.run(|zk| self.session(zk, node)).await;
        ended
    }

    async fn session(&self, zk: Client, node: &str) -> Result<Infallible, Error> {
        // The server of this session may be behind that of the last one.
        zk.sync(node).await?;
        let cache = Cache::node(&zk, node).start()?;
        let mut changes = cache.events_from_the_start();
        while changes.next().await.is_some() {
            // Whatever has changed, the newest counts.
            match cache.get(node) {
                Some(there) => self.offer(&there.data),
                None => println!("keeps the settings: there is no {node}"),
            }
        }
        Err(zk.session().ended().await.into())
    }

    /// Takes settings if they are good.
    fn offer(&self, text: &[u8]) {
        match serde_json::from_slice::<Settings>(text) {
            Ok(settings) => {
                let settings = Some(Arc::new(settings));
                if *self.settings.borrow() == settings {
                    return;
                }
                println!("goes by {}", String::from_utf8_lossy(text));
                self.settings.send_replace(settings);
                if let Err(error) = self.save(text) {
                    println!("cannot write {}: {error}", self.file.display());
                }
            }
            Err(error) => println!("keeps the settings: {error}"),
        }
    }

    /// The old text or the new one, whatever happens.
    fn save(&self, text: &[u8]) -> io::Result<()> {
        let next = self.file.with_extension("next");
        fs::write(&next, text)?;
        fs::rename(next, &self.file)
    }
}
