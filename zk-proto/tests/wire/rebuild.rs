//! Lists and multis stay encoded when decoded; here they are taken apart and put together again.

use bytes::Bytes;
use zk_proto::{
    ErrorCode, List, OpCode, Text,
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, Encode},
    request::{
        Create2Request, CreateContainerRequest, CreateRequest, CreateTtlRequest, GetAclResponse,
        GetChildren2Response, GetChildrenResponse, GetEphemeralsResponse, MultiHeader, MultiOp,
        MultiReadRequest, MultiRequest, MultiResponse, MultiResult, SetAclRequest, SetWatches,
        SetWatches2, WhoAmIResponse,
    },
};

use crate::message::{Message, decode, encode};

/// What became of a frame.
pub(crate) enum Rebuilt {
    NothingToRebuild,
    /// A multi with headers that its items do not determine and that servers ignore.
    OtherHeaders,
    Content(Bytes),
}

impl Message {
    /// Decodes `content`, rebuilds every list and multi in it from its items, and encodes that.
    pub(crate) fn rebuild(self, content: &Bytes) -> Rebuilt {
        match self {
            Self::Request(op) => match op {
                OpCode::CREATE => request::<CreateRequest<'_>>(content),
                OpCode::CREATE2 => request::<Create2Request<'_>>(content),
                OpCode::CREATE_CONTAINER => request::<CreateContainerRequest<'_>>(content),
                OpCode::CREATE_TTL => request::<CreateTtlRequest<'_>>(content),
                OpCode::SET_ACL => request::<SetAclRequest<'_>>(content),
                OpCode::SET_WATCHES => request::<SetWatches>(content),
                OpCode::SET_WATCHES2 => request::<SetWatches2>(content),
                OpCode::MULTI => request::<MultiRequest>(content),
                OpCode::MULTI_READ => request::<MultiReadRequest>(content),
                _ => Rebuilt::NothingToRebuild,
            },
            Self::Reply(op) => match op {
                OpCode::GET_ACL => reply::<GetAclResponse>(content),
                OpCode::GET_CHILDREN => reply::<GetChildrenResponse>(content),
                OpCode::GET_CHILDREN2 => reply::<GetChildren2Response>(content),
                OpCode::GET_EPHEMERALS => reply::<GetEphemeralsResponse>(content),
                OpCode::WHO_AM_I => reply::<WhoAmIResponse>(content),
                OpCode::MULTI | OpCode::MULTI_READ => reply::<MultiResponse>(content),
                _ => Rebuilt::NothingToRebuild,
            },
            Self::ConnectRequest | Self::ConnectResponse | Self::Notification | Self::Refusal => {
                Rebuilt::NothingToRebuild
            }
        }
    }
}

fn request<'a, B: Rebuild + Decode<'a> + Encode>(content: &'a Bytes) -> Rebuilt {
    whole::<RequestHeader, B>(content)
}

fn reply<'a, B: Rebuild + Decode<'a> + Encode>(content: &'a Bytes) -> Rebuilt {
    whole::<ReplyHeader, B>(content)
}

fn whole<'a, H: Decode<'a> + Encode, B: Rebuild + Decode<'a> + Encode>(
    content: &'a Bytes,
) -> Rebuilt {
    let (header, body) = decode::<H, B>(content).expect("recorded frames decode");
    match body.rebuild() {
        Some(body) => Rebuilt::Content(encode(&header, &body)),
        None => Rebuilt::OtherHeaders,
    }
}

/// Something with lists in it. `None` if its items do not say all that is on the wire.
trait Rebuild: Sized {
    fn rebuild(self) -> Option<Self>;
}

impl<T: Encode + for<'a> Decode<'a>> Rebuild for List<T> {
    fn rebuild(self) -> Option<Self> {
        assert_eq!(self.iter().count(), self.len());
        assert_eq!(self.to_vec().len(), self.len());
        Some(if self.is_null() { Self::NULL } else { self.iter().collect() })
    }
}

/// As the list of any other type, and from `str`s where the strings are such.
fn rebuild_texts(list: List<Text>) -> Option<List<Text>> {
    let is_utf8 =
        |text: Text| text.as_bytes().is_some_and(|bytes| std::str::from_utf8(bytes).is_ok());
    if !list.is_null() && list.iter().all(is_utf8) {
        let strs: Vec<_> = list.strs().collect();
        assert_eq!(List::of_strs(strs.iter().map(AsRef::as_ref)), list);
    }
    list.rebuild()
}

/// Rebuilds the named fields; the others stay as they are.
macro_rules! rebuild {
    ($($record:ty { $($field:ident by $rebuild:path),* })*) => {$(
        impl Rebuild for $record {
            fn rebuild(mut self) -> Option<Self> {
                $(self.$field = $rebuild(self.$field)?;)*
                Some(self)
            }
        }
    )*};
}

rebuild! {
    CreateRequest<'_> { acl by Rebuild::rebuild }
    CreateTtlRequest<'_> { acl by Rebuild::rebuild }
    SetAclRequest<'_> { acl by Rebuild::rebuild }
    SetWatches { data_watches by rebuild_texts, exist_watches by rebuild_texts, child_watches by rebuild_texts }
    SetWatches2 {
        data_watches by rebuild_texts, exist_watches by rebuild_texts, child_watches by rebuild_texts,
        persistent_watches by rebuild_texts, persistent_recursive_watches by rebuild_texts
    }
    GetAclResponse { acl by Rebuild::rebuild }
    GetChildrenResponse { children by rebuild_texts }
    GetChildren2Response { children by rebuild_texts }
    GetEphemeralsResponse { ephemerals by rebuild_texts }
    WhoAmIResponse { client_info by Rebuild::rebuild }
}

impl Rebuild for Create2Request<'_> {
    fn rebuild(self) -> Option<Self> {
        self.0.rebuild().map(Self)
    }
}

impl Rebuild for CreateContainerRequest<'_> {
    fn rebuild(self) -> Option<Self> {
        self.0.rebuild().map(Self)
    }
}

impl Rebuild for MultiRequest {
    fn rebuild(self) -> Option<Self> {
        let ours = self.iter().all(|(header, _)| header.err == ErrorCode(-1));
        let ops = self.iter().map(|(_, op)| op.rebuild());
        let again = ops.collect::<Option<Self>>()?;
        (ours && ends_as_ours(&self)).then_some(again)
    }
}

impl Rebuild for MultiReadRequest {
    fn rebuild(self) -> Option<Self> {
        self.0.rebuild().map(Self)
    }
}

impl Rebuild for MultiOp<'_> {
    fn rebuild(self) -> Option<Self> {
        Some(match self {
            Self::Create(create) => Self::Create(create.rebuild()?),
            Self::Create2(create) => Self::Create2(create.rebuild()?),
            Self::CreateContainer(create) => Self::CreateContainer(create.rebuild()?),
            Self::CreateTtl(create) => Self::CreateTtl(create.rebuild()?),
            other => other,
        })
    }
}

/// Servers write nothing into the headers of results that the results do not say, so that this always
/// succeeds.
impl Rebuild for MultiResponse {
    fn rebuild(self) -> Option<Self> {
        assert!(ends_as_ours(&self));
        Some(self.iter().map(|(_, result): (MultiHeader, MultiResult)| result).collect())
    }
}

fn ends_as_ours(multi: &impl Encode) -> bool {
    encode(&(), multi).ends_with(&encode(&(), &MultiHeader::END))
}
