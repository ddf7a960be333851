//! Members and clients in network namespaces of their own, joined by a bridge whose frames can be dropped.
//!
//! The bridge has an address too, for this process. What goes from there to members, and back, is not forwarded, and so never
//! dropped: the test sees all members at all times.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
    process::{Command, Stdio},
};

use tokio::{io::AsyncWriteExt as _, process};

use super::enclosure::complete;

/// This process's own address.
pub(super) const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// Members have the addresses behind this one, and clients those behind the other.
const MEMBERS: u8 = 10;
const CLIENTS: u8 = 100;

/// Who has a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    /// A member of the ensemble.
    Member(usize),
    /// Clients that see the network from the same place.
    Client(usize),
}

impl Party {
    /// The name of its namespace.
    pub(super) fn name(self) -> String {
        match self {
            Self::Member(number) => format!("m{number}"),
            Self::Client(number) => format!("c{number}"),
        }
    }

    pub(super) fn addr(self) -> IpAddr {
        let (base, number) = match self {
            Self::Member(number) => (MEMBERS, number),
            Self::Client(number) => (CLIENTS, number),
        };
        let last = base + u8::try_from(number).expect("a handful of namespaces");
        let [a, b, c, _] = HERE.octets();
        Ipv4Addr::new(a, b, c, last).into()
    }

    /// What runs a program there; it becomes that program.
    pub(super) fn enter(self) -> [String; 4] {
        ["ip", "netns", "exec", &self.name()].map(str::to_owned)
    }
}

/// What is wrong with the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Weather {
    /// From whom nothing gets through, and to whom.
    pub(super) cuts: BTreeSet<(Party, Party)>,
    /// How many packets of a hundred are lost, of all.
    pub(super) loss: u32,
    /// How many packets a second get through from each to each; the others come later, as TCP sends them again.
    pub(super) rate: Option<u32>,
}

impl Weather {
    /// For `nft`, which makes it true all at once.
    fn rules(&self) -> String {
        let mut rules = "flush set bridge soak cut\nflush chain bridge soak trouble\n".to_owned();
        for (from, to) in &self.cuts {
            // Writing to a string cannot fail.
            let _ = writeln!(
                rules,
                "add element bridge soak cut {{ {} . {} }}",
                from.addr(),
                to.addr()
            );
        }
        if self.loss > 0 {
            let loss = self.loss;
            let _ = writeln!(
                rules,
                "add rule bridge soak trouble numgen random mod 100 < {loss} counter name lost drop"
            );
        }
        if let Some(rate) = self.rate {
            let _ = writeln!(
                rules,
                "add rule bridge soak trouble update @pace {{ ip saddr . ip daddr limit rate over {rate}/second }} \
                 counter name lost drop"
            );
        }
        rules
    }
}

/// What is there before anything is wrong.
const RULES: &str = "
table bridge soak {
  set cut { type ipv4_addr . ipv4_addr; }
  set pace { type ipv4_addr . ipv4_addr; size 4096; flags dynamic; timeout 10s; }
  counter dropped { }
  counter lost { }
  chain trouble { }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip saddr . ip daddr @cut counter name dropped drop
    ip protocol tcp jump trouble
  }
}
";

/// The bridge, and what hangs on it.
#[derive(Debug)]
pub(super) struct Network;

impl Network {
    /// Makes a namespace for each.
    ///
    /// # Errors
    /// The kernel refuses, or has no bridges, or no rules for what goes over them.
    pub(super) async fn join(parties: impl Iterator<Item = Party>) -> Result<Self, Box<dyn Error>> {
        ip("link set lo up")?;
        ip("link add soak type bridge")?;
        ip(&format!("address add {HERE}/24 dev soak"))?;
        ip("link set soak up")?;
        for party in parties {
            let (name, addr) = (party.name(), party.addr());
            ip(&format!("netns add {name}"))?;
            ip(&format!("link add {name} type veth peer name uplink netns {name}"))?;
            ip(&format!("link set {name} master soak up"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} address add {addr}/24 dev uplink"))?;
            ip(&format!("-n {name} link set uplink up"))?;
        }
        nft(RULES).await?;
        Ok(Self)
    }

    /// From now on this is wrong, and nothing else.
    pub(super) async fn set(&self, weather: &Weather) -> Result<(), Box<dyn Error>> {
        nft(&weather.rules()).await.map(drop)
    }

    /// How many packets have been dropped: by cuts, and otherwise.
    pub(super) async fn dropped(&self) -> Result<[u64; 2], Box<dyn Error>> {
        let told = nft("list counters table bridge soak\n").await?;
        let count = |name: &str| {
            let (_, after) = told.split_once(&format!("counter {name} {{"))?;
            let (_, after) = after.split_once("packets ")?;
            after.split(' ').next()?.parse().ok()
        };
        match (count("dropped"), count("lost")) {
            (Some(cut), Some(lost)) => Ok([cut, lost]),
            _ => Err(format!("nft does not tell how much it dropped: {told}").into()),
        }
    }
}

fn ip(words: &str) -> Result<(), Box<dyn Error>> {
    complete(Command::new("ip").args(words.split(' ')))
}

/// What `nft` says to these commands.
async fn nft(commands: &str) -> Result<String, Box<dyn Error>> {
    let mut nft = process::Command::new("nft");
    nft.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut nft = nft.spawn()?;
    if let Some(mut input) = nft.stdin.take() {
        input.write_all(commands.as_bytes()).await?;
    }
    let output = nft.wait_with_output().await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("nft ended with {}: {why}", output.status).into())
}
