//! The ensemble's members, and changing them.

use bytes::Bytes;
use zk_proto::{
    Stat, Zxid,
    session::{Answer, WatchBy},
};

use super::{
    answer::Unread,
    ask::{Arm, Ask, Members},
    builder::{Request, Watchable},
    client::Client,
};
use crate::error::{ReadError, WriteError};

impl Client {
    /// The ensemble's configuration. The chroot does not apply. Since 3.5; earlier servers answer
    /// [`NoNode`](crate::Rejection::NoNode).
    ///
    /// A [watch](Request::watch) fires when the configuration changes. Its event has the servers' absolute path.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// // Follow the members.
    /// loop {
    ///     let ((config, _), changed) = zk.config().watch().await?;
    ///     let servers = config.connect_string();
    ///     if !servers.is_empty() {
    ///         zk.update_servers(&servers)?;
    ///     }
    ///     changed.await?;
    /// }
    /// # }
    /// ```
    pub const fn config(&self) -> Request<'_, (EnsembleConfig, Stat), ReadError> {
        Request::watchable(self.target(), Ask::Config(Arm::Nothing))
    }

    /// Changes the ensemble's members; resolves to the new configuration. Servers must allow it (`reconfigEnabled`),
    /// and the session must have permission to write the configuration, which by default only the super user has. Since
    /// 3.5.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::Error> {
    /// let (config, _) = zk.config().await?;
    /// let change = zk.reconfig().join(4, "zk4:2888:3888;2181").leave(1);
    /// let (new, _) = match config.version {
    ///     Some(version) => change.version(version).await?,
    ///     None => change.await?,
    /// };
    /// println!("{}", new.text);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reconfig(&self) -> Request<'_, (EnsembleConfig, Stat), WriteError> {
        Request::new(self.target(), Ask::Reconfig(Box::default()), Watchable::read)
    }
}

/// Options of [`Client::reconfig`].
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
impl Request<'_, (EnsembleConfig, Stat), WriteError> {
    /// Adds a member, or changes one of this number. `spec` is as in [`EnsembleMember::spec`].
    pub fn join(self, id: i64, spec: &str) -> Self {
        self.change(|members| members.joining.push(format!("server.{id}={spec}")))
    }

    /// Removes a member.
    pub fn leave(self, id: i64) -> Self {
        self.change(|members| members.leaving.push(id.to_string()))
    }

    /// Replaces all members by these. Not together with [`join`](Self::join) and [`leave`](Self::leave).
    pub fn members<'m>(self, members: impl IntoIterator<Item = (i64, &'m str)>) -> Self {
        let specs = members.into_iter().map(|(id, spec)| format!("server.{id}={spec}"));
        self.change(|members| members.all = Some(specs.collect()))
    }

    /// Requires that the configuration has this [version](EnsembleConfig::version); otherwise fails with
    /// [`BadVersion`](crate::Rejection::BadVersion). -1, by which servers mean any, is refused with
    /// [`Cause::InvalidArgument`](crate::Cause::InvalidArgument).
    pub fn version(self, version: Zxid) -> Self {
        self.change(|members| members.version = Some(version))
    }

    fn change(mut self, change: impl FnOnce(&mut Members)) -> Self {
        if let Ask::Reconfig(members) = &mut self.ask {
            change(members);
        }
        self
    }
}

impl Watchable for (EnsembleConfig, Stat) {
    const BY: WatchBy = WatchBy::Data;
    fn read(answer: &Answer) -> Result<Self, Unread> {
        let (text, stat) = <(Bytes, Stat)>::read(answer)?;
        Ok((EnsembleConfig::parse(&text), stat))
    }
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
    /// What [`Request::version`] compares with. `None` of a standalone server.
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
