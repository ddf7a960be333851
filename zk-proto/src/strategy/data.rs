//! Strategies for parts of records: node metadata, access control, lists, headers.

use core::fmt::Debug;

use proptest::{
    arbitrary::{Arbitrary, any},
    collection::vec,
    prop_oneof,
    strategy::{BoxedStrategy, Just, Strategy},
};

use crate::{
    code::ErrorCode,
    data::{Acl, ClientInfo, Id, Perms, SessionId, Stat, Xid, Zxid},
    frame::{ReplyHeader, RequestHeader},
    jute::{Decode, Encode},
    list::List,
    op::OpCode,
    request::MultiHeader,
    strategy::{
        AsRecord,
        number::{int, long},
        record::{arbitrary, is_record, records},
        text::text,
    },
};

/// Most elements of a generated list.
const ELEMENTS_MAX: usize = 5;

records! {
    Stat {
        czxid: any::<Zxid>(),
        mzxid: any::<Zxid>(),
        ctime: long(),
        mtime: long(),
        version: int(),
        cversion: int(),
        aversion: int(),
        ephemeral_owner: any::<SessionId>(),
        data_length: int(),
        num_children: int(),
        pzxid: any::<Zxid>(),
    }
    ClientInfo { auth_scheme: text(), user: text() }
    RequestHeader { xid: any::<Xid>(), op: any::<OpCode>() }
    ReplyHeader { xid: any::<Xid>(), zxid: any::<Zxid>(), err: any::<ErrorCode>() }
    MultiHeader { op: any::<OpCode>(), done: any::<bool>(), err: any::<ErrorCode>() }
}

arbitrary! {
    Id = prop_oneof![
        1 => Just(Acl::open_unsafe().id),
        1 => Just(Acl::creator_all().id),
        2 => (text(), text()).prop_map(|(scheme, id)| Self { scheme, id }),
    ];
    Acl = (any::<Perms>(), any::<Id>()).prop_map(|(perms, id)| Self { perms, id });
}
is_record!(Id, Acl);

/// A few elements, none, or null.
impl<T> Arbitrary for List<T>
where
    T: Arbitrary + Encode + for<'a> Decode<'a> + 'static,
    T::Strategy: 'static,
{
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;
    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![
            8 => vec(any::<T>(), 0..=ELEMENTS_MAX).prop_map(Self::from_iter),
            1 => Just(Self::NULL),
        ]
        .boxed()
    }
}

impl<T: Debug + Encode + for<'b> Decode<'b> + 'static> AsRecord for List<T> {
    type Record<'a> = Self;
    fn as_record(&self) -> Self {
        self.clone()
    }
}
