//! What servers know of this session.

use bytes::Bytes;
use zk_proto::{
    ClientInfo, Secret,
    request::{GetEphemeralsResponse, WhoAmIResponse},
    session::Auth,
};

use super::{answer::body, ask::Ask, builder::Request, client::Client, pending::Pending};
use crate::error::ReadError;

impl Client {
    /// The paths of this session's ephemeral nodes that begin with `prefix`, unordered. The prefix is not limited to
    /// whole components: `/a` matches `/ab` too. `/` matches all; a client with a chroot sees only those inside. Since
    /// 3.6.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for path in zk.ephemerals("/locks/").await? {
    ///     println!("{path} goes with the session");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn ephemerals<'a>(&'a self, prefix: &'a str) -> Request<'a, Vec<String>, ReadError> {
        Request::new(self.target(), Ask::Ephemerals(prefix), |answer, context| {
            let GetEphemeralsResponse { ephemerals } = body(&answer)?;
            // A chroot is a prefix of its siblings' names too.
            let inside = ephemerals.strs().filter(|path| context.chroot.contains(path));
            Ok(inside.map(|path| context.chroot.relative(&path).to_owned()).collect())
        })
    }

    /// The identities of this session as its server knows them, one entry each, unordered. Since 3.7.
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// for identity in zk.who_am_i().await? {
    ///     println!("{} {}", identity.auth_scheme, identity.user);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub const fn who_am_i(&self) -> Request<'_, Vec<ClientInfo>, ReadError> {
        Request::new(self.target(), Ask::WhoAmI, |answer, _| {
            let WhoAmIResponse { client_info } = body(&answer)?;
            Ok(client_info.iter().collect())
        })
    }

    /// Proves another identity, on this connection and every later one. Servers check earlier requests without it,
    /// later ones with it. Submitted when this returns; dropping the returned future does not undo it.
    ///
    /// For the scheme `digest` the bytes are `user:password`; they are sent in plain text.
    ///
    /// A server that refuses ends the session, with [`SessionEnd::AuthFailed`](crate::SessionEnd::AuthFailed), as with
    /// [`ConnectOptions::auth`](crate::ConnectOptions::auth).
    ///
    /// ```no_run
    /// # async fn example(zk: zk_client::Client) -> Result<(), zk_client::ReadError> {
    /// zk.add_auth("digest", "ann:secret").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn add_auth(&self, scheme: &str, auth: impl Into<Bytes>) -> Pending<(), ReadError> {
        let auth = Auth { scheme: scheme.into(), auth: Secret(auth.into()) };
        Pending::add_auth(&self.handle, auth)
    }
}
