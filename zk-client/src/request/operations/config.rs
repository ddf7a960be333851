//! The ensemble's members, and changing them.

use bytes::Bytes;
use zk_proto::{
    Stat, Str, Zxid,
    frame::RequestFrame,
    request::{GetDataRequest, ReconfigRequest},
    session::{Answer, OnLoss, WatchBy, WatchIntent},
};

use super::{
    builder::{armed, awaitable},
    read::read_data,
};
use crate::{
    chroot::Chroot,
    error::{CallError as _, Cause, ReadError, WriteError},
    request::{
        answer::Unread, call::Call, call_options::Admission, pending::Pending, target::Target,
        watch_stream::Attached,
    },
    watch::{Listener, Watch},
};

/// The node where servers keep the configuration. The chroot does not apply to it.
const CONFIG_NODE: &str = "/zookeeper/config";

awaitable! {
    Config: (EnsembleConfig, Stat), ReadError;
    ConfigWatched: ((EnsembleConfig, Stat), Watch), ReadError;
    Reconfig: (EnsembleConfig, Stat), WriteError;
}

/// An ensemble's configuration, as its servers write it down.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = zk_testkit::TestServer::start().await?;
/// # let zk = zk_client::Client::connect(&server.connect_string()).await?;
/// let (config, _) = zk.config().await?;
/// for member in &config.members {
///     println!("{} {:?}{}", member.id, member.client_addr, if member.votes { "" } else { ", observes" });
/// }
/// if config.members.len() > 1 {
///     zk.update_servers(&config.connect_string())?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnsembleConfig {
    /// The entire text.
    pub text: String,
    /// The members, in the order of the text. None of a standalone server.
    pub members: Vec<EnsembleMember>,
    /// What [`Reconfig::version`] compares with. `None` of a standalone server.
    pub version: Option<Zxid>,
}

/// A member of an ensemble, as listed in its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnsembleMember {
    /// Its number.
    pub id: i64,
    /// Everything after the equals sign: `host:quorumPort:electionPort[:role];[[clientHost]:clientPort]`.
    pub spec: String,
    /// Whether it votes; observers do not.
    pub votes: bool,
    /// Where clients connect without TLS, as `host:port`, if given. If the configuration has "any address", the host is
    /// that of the quorum.
    pub client_addr: Option<String>,
}

impl EnsembleConfig {
    fn parse(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text).into_owned();
        let mut members = Vec::new();
        let mut version = None;
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if let Some(id) = key.trim().strip_prefix("server.").and_then(|id| id.parse().ok()) {
                members.push(EnsembleMember::parse(id, value.trim()));
            } else if key.trim() == "version" {
                version = i64::from_str_radix(value.trim(), 16).ok().map(Zxid);
            }
        }
        Self { text, members, version }
    }

    /// The members that clients can connect to without TLS, as a list for
    /// [`Client::update_servers`](crate::Client::update_servers); empty if none is known.
    #[must_use]
    pub fn connect_string(&self) -> String {
        let addrs = self.members.iter().filter_map(|member| member.client_addr.as_deref());
        addrs.collect::<Vec<_>>().join(",")
    }
}

impl EnsembleMember {
    fn parse(id: i64, spec: &str) -> Self {
        let (quorum, clients) = match spec.split_once(';') {
            Some((quorum, clients)) => (quorum, Some(clients)),
            None => (spec, None),
        };
        // Several addresses of the same member are separated by bars.
        let first = quorum.split('|').next().unwrap_or_default();
        let host = host_of(first);
        let client_addr = clients.and_then(|clients| {
            let plain = clients.split(';').next().unwrap_or_default();
            let (of, port) = plain.rsplit_once(':').unwrap_or(("", plain));
            let is_any = matches!(of, "" | "0.0.0.0" | "[::]" | "[0:0:0:0:0:0:0:0]");
            let port = port.parse::<u16>().ok().filter(|port| *port != 0)?;
            Some(format!("{}:{port}", if is_any { host } else { of }))
        });
        Self { id, spec: spec.to_owned(), votes: !quorum.ends_with(":observer"), client_addr }
    }
}

/// The part before the first port; brackets belong to it.
fn host_of(address: &str) -> &str {
    let end = match address.find(']') {
        Some(bracket) => bracket + 1,
        None => address.find(':').unwrap_or(address.len()),
    };
    address.get(..end).unwrap_or(address)
}

/// Reads the ensemble's configuration: see [`Client::config`](crate::Client::config).
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Config<'a> {
    target: Target<'a>,
}

/// A [`Config`] that also arms a watch.
#[derive(Clone, Copy, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct ConfigWatched<'a> {
    target: Target<'a>,
}

fn read_config(answer: &Answer) -> Result<(EnsembleConfig, Stat), Unread> {
    read_data(answer).map(|(text, stat): (Bytes, Stat)| (EnsembleConfig::parse(&text), stat))
}

fn get_config(watch: bool) -> RequestFrame {
    RequestFrame::of(&GetDataRequest { path: Str::from(CONFIG_NODE), watch })
}

impl<'a> Config<'a> {
    pub(crate) const fn new(target: Target<'a>) -> Self {
        Self { target }
    }

    /// Also arms a watch, which fires when the configuration changes. Its event has the servers' absolute path.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let ((config, _), changed) = zk.config().watch().await?;
    /// changed.await?;
    /// println!("these were the members: {:?}", config.members);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn watch(self) -> ConfigWatched<'a> {
        ConfigWatched { target: self.target }
    }

    fn start(self, admission: Admission) -> Pending<(EnsembleConfig, Stat), ReadError> {
        let call = Call {
            frame: get_config(false),
            on_loss: OnLoss::Resend,
            watch: None,
            instead: None,
            read: |answer, _| read_config(&answer),
        };
        self.target.call(call, admission)
    }
}

impl ConfigWatched<'_> {
    fn start(self, admission: Admission) -> Pending<((EnsembleConfig, Stat), Watch), ReadError> {
        let (watch, sender) = Watch::new(Chroot::default());
        let watcher = Listener::Once(sender);
        let intent = Box::new(WatchIntent { path: CONFIG_NODE.into(), by: WatchBy::Data, watcher });
        let call = Call {
            frame: get_config(true),
            on_loss: OnLoss::Resend,
            watch: Some((intent, Attached::Once(watch))),
            instead: None,
            read: |answer, context| armed(read_config(&answer)?, context.watch),
        };
        self.target.call(call, admission)
    }
}

/// Null is "not used"; an empty string is not.
fn text(list: Option<&String>) -> Str<'_> {
    list.map_or(Str::NULL, |list| Str::from(&**list))
}

/// Changes the ensemble's members: see [`Client::reconfig`](crate::Client::reconfig).
///
/// ```no_run
/// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
/// // Replaces member 1 by member 4, unless another client changes the members in the meantime.
/// let (before, _) = zk.config().await?;
/// let version = before.version.ok_or("a single server has no members")?;
/// let change = zk.reconfig().leave(1).join(4, "zk4:2888:3888;2181").version(version);
/// let (after, _) = change.await?;
/// println!("{:?}", after.members);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens until it is awaited or submitted"]
pub struct Reconfig<'a> {
    target: Target<'a>,
    joining: Vec<String>,
    leaving: Vec<String>,
    all: Option<Vec<String>>,
    version: Option<Zxid>,
}

impl<'a> Reconfig<'a> {
    pub(crate) const fn new(target: Target<'a>) -> Self {
        Self { target, joining: Vec::new(), leaving: Vec::new(), all: None, version: None }
    }

    /// Adds a member, or changes one of this number. `spec` is as in [`EnsembleMember::spec`].
    pub fn join(mut self, id: i64, spec: &str) -> Self {
        self.joining.push(format!("server.{id}={spec}"));
        self
    }

    /// Removes a member.
    pub fn leave(mut self, id: i64) -> Self {
        self.leaving.push(id.to_string());
        self
    }

    /// Replaces all members by these. Not together with [`join`](Self::join) and [`leave`](Self::leave).
    pub fn members<'m>(mut self, members: impl IntoIterator<Item = (i64, &'m str)>) -> Self {
        let specs = members.into_iter().map(|(id, spec)| format!("server.{id}={spec}"));
        self.all = Some(specs.collect());
        self
    }

    /// Requires that the configuration has this [version](EnsembleConfig::version); otherwise fails with
    /// [`BadVersion`](crate::Rejection::BadVersion).
    pub const fn version(mut self, version: Zxid) -> Self {
        self.version = Some(version);
        self
    }

    fn start(self, admission: Admission) -> Pending<(EnsembleConfig, Stat), WriteError> {
        let Self { target, joining, leaving, all, version } = self;
        let refuse = |why| Pending::failed(WriteError::not_sent(Cause::InvalidArgument(why)));
        match (&all, joining.is_empty() && leaving.is_empty()) {
            (Some(_), false) => return refuse("either all members or changes of them"),
            (None, true) => return refuse("no change of members"),
            _ => {}
        }
        let list = |list: &[String]| (!list.is_empty()).then(|| list.join(","));
        let (joining, leaving, all) = (list(&joining), list(&leaving), all.as_deref().map(list));
        let all = all.flatten();
        let (joining_servers, leaving_servers) = (text(joining.as_ref()), text(leaving.as_ref()));
        let request = ReconfigRequest {
            joining_servers,
            leaving_servers,
            new_members: text(all.as_ref()),
            cur_config_id: version.unwrap_or(Zxid(-1)),
        };
        let call = Call {
            frame: RequestFrame::of(&request),
            on_loss: OnLoss::Report,
            watch: None,
            instead: None,
            read: |answer, _| read_config(&answer),
        };
        target.call(call, admission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_as_servers_write_them() {
        let text = b"server.1=zk1:2888:3888:participant;0.0.0.0:2181\n\
                     server.2=[fd00::2]:2888:3888;[fd00::2]:2182\n\
                     server.3=a:1:2|b:1:2:observer;2183;0.0.0.0:2281\n\
                     server.4=zk4:2888:3888\nversion=100000003";
        let config = EnsembleConfig::parse(text);
        assert_eq!(config.version, Some(Zxid(0x1_0000_0003)));
        assert_eq!(config.connect_string(), "zk1:2181,[fd00::2]:2182,a:2183");
        let votes: Vec<_> = config.members.iter().map(|it| (it.id, it.votes)).collect();
        assert_eq!(votes, [(1, true), (2, true), (3, false), (4, true)]);
        assert_eq!(EnsembleConfig::parse(b""), EnsembleConfig::default());
    }
}
