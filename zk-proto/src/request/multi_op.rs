//! The items behind the headers of a multi: operations, and their results.

use bytes::{Bytes, BytesMut};

use crate::{
    code::ErrorCode,
    jute::{Decode, DecodeError, DecodeErrorKind, Encode, Reader},
    op::OpCode,
    record::record,
    request::{
        Create2Response, CreateRequest, CreateResponse, CreateTtlRequest, DeleteRequest,
        ErrorResponse, GetChildrenRequest, GetChildrenResponse, GetDataRequest, GetDataResponse,
        Request, SetDataRequest, SetDataResponse,
    },
    text::Str,
};

record! {
    /// In front of every operation and every result of a multi, and at the end of its stream.
    #[derive(Copy)]
    fixed MultiHeader {
        /// The operation, or the kind of a result: not always the operation's, since old servers
        /// answer `create2` with the result of `create`.
        #[cfg_attr(feature = "serde", serde(rename = "type"))]
        op: OpCode,
        /// Whether this is the end of the stream.
        done: bool,
        /// In a result: its error. In a request: -1 or 0, ignored.
        err: ErrorCode,
    }
}

impl MultiHeader {
    /// The closing header of every stream.
    pub const END: Self = Self { op: OpCode::ERROR, done: true, err: ErrorCode(-1) };

    /// The error for which a transaction has failed, of its results: [`ErrorCode::OK`] if it has not, or if they cannot be
    /// read.
    pub(crate) fn first_error(results: &Bytes) -> ErrorCode {
        let mut reader = Reader::new(results);
        loop {
            match Self::decode(&mut reader) {
                // What did not fail itself has another code, and behind each the code is repeated.
                Ok(Self { op: OpCode::ERROR, done: false, err }) => {
                    if !err.is_ok() && err != ErrorCode::RUNTIME_INCONSISTENCY {
                        return err;
                    }
                    if i32::decode(&mut reader).is_err() {
                        return ErrorCode::OK;
                    }
                }
                _ => return ErrorCode::OK,
            }
        }
    }
}

record! {
    /// Insist on a version without writing.
    CheckVersionRequest<'a> {
        /// The node's path.
        path: Str<'a>,
        /// Expected data version; -1 only asks for existence.
        version: i32,
    }
}

/// `check` as a request of its own, for servers, proxies and tests.
///
/// **Clients must not send it**: it poisons the transaction log of servers before 3.8.5 and 3.9.3.
/// It exists because it does occur on the wire.
impl Request for CheckVersionRequest<'_> {
    const OP: OpCode = OpCode::CHECK;
    type Response = ();
}

/// One operation of a multi.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the operation of its name")]
pub enum MultiOp<'a> {
    Create(CreateRequest<'a>),
    Create2(CreateRequest<'a>),
    CreateContainer(CreateRequest<'a>),
    CreateTtl(CreateTtlRequest<'a>),
    Delete(DeleteRequest<'a>),
    SetData(SetDataRequest<'a>),
    Check(CheckVersionRequest<'a>),
    /// Only in a [`MultiReadRequest`](crate::request::MultiReadRequest).
    GetData(GetDataRequest<'a>),
    /// Only in a [`MultiReadRequest`](crate::request::MultiReadRequest).
    GetChildren(GetChildrenRequest<'a>),
}

/// The result of one operation of a multi.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the result of the operation of its name")]
pub enum MultiResult {
    Create(CreateResponse),
    /// Also for containers and nodes with a time to live.
    Create2(Create2Response),
    Delete,
    SetData(SetDataResponse),
    Check,
    GetData(GetDataResponse),
    GetChildren(GetChildrenResponse),
    /// In a failed multi every operation has one: 0 before the failing one, its code, and
    /// [`ErrorCode::RUNTIME_INCONSISTENCY`] behind it.
    Error(ErrorCode),
}

/// An item behind a header in a stream.
pub(super) trait Item<'a>: Sized {
    fn op(&self) -> OpCode;
    fn decode_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
    /// Checks the item and moves past it.
    fn skip_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<(), DecodeError>;
    fn encode_body(&self, out: &mut BytesMut);
}

impl<'a> Item<'a> for MultiOp<'a> {
    fn op(&self) -> OpCode {
        match self {
            Self::Create(_) => OpCode::CREATE,
            Self::Create2(_) => OpCode::CREATE2,
            Self::CreateContainer(_) => OpCode::CREATE_CONTAINER,
            Self::CreateTtl(_) => OpCode::CREATE_TTL,
            Self::Delete(_) => OpCode::DELETE,
            Self::SetData(_) => OpCode::SET_DATA,
            Self::Check(_) => OpCode::CHECK,
            Self::GetData(_) => OpCode::GET_DATA,
            Self::GetChildren(_) => OpCode::GET_CHILDREN,
        }
    }

    fn decode_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match header.op {
            OpCode::CREATE => Self::Create(Decode::decode(reader)?),
            OpCode::CREATE2 => Self::Create2(Decode::decode(reader)?),
            OpCode::CREATE_CONTAINER => Self::CreateContainer(Decode::decode(reader)?),
            OpCode::CREATE_TTL => Self::CreateTtl(Decode::decode(reader)?),
            OpCode::DELETE => Self::Delete(Decode::decode(reader)?),
            OpCode::SET_DATA => Self::SetData(Decode::decode(reader)?),
            OpCode::CHECK => Self::Check(Decode::decode(reader)?),
            OpCode::GET_DATA => Self::GetData(Decode::decode(reader)?),
            OpCode::GET_CHILDREN => Self::GetChildren(Decode::decode(reader)?),
            op => return Err(not_in_multi(op, reader)),
        })
    }

    fn skip_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        match header.op {
            OpCode::CREATE | OpCode::CREATE2 | OpCode::CREATE_CONTAINER => {
                CreateRequest::skip(reader)
            }
            OpCode::CREATE_TTL => CreateTtlRequest::skip(reader),
            OpCode::DELETE => DeleteRequest::skip(reader),
            OpCode::SET_DATA => SetDataRequest::skip(reader),
            OpCode::CHECK => CheckVersionRequest::skip(reader),
            OpCode::GET_DATA => GetDataRequest::skip(reader),
            OpCode::GET_CHILDREN => GetChildrenRequest::skip(reader),
            op => Err(not_in_multi(op, reader)),
        }
    }

    fn encode_body(&self, out: &mut BytesMut) {
        match self {
            Self::Create(create) | Self::Create2(create) | Self::CreateContainer(create) => {
                create.encode(out);
            }
            Self::CreateTtl(create) => create.encode(out),
            Self::Delete(delete) => delete.encode(out),
            Self::SetData(set) => set.encode(out),
            Self::Check(check) => check.encode(out),
            Self::GetData(get) => get.encode(out),
            Self::GetChildren(list) => list.encode(out),
        }
    }
}

impl<'a> Item<'a> for MultiResult {
    fn op(&self) -> OpCode {
        match self {
            Self::Create(_) => OpCode::CREATE,
            Self::Create2(_) => OpCode::CREATE2,
            Self::Delete => OpCode::DELETE,
            Self::SetData(_) => OpCode::SET_DATA,
            Self::Check => OpCode::CHECK,
            Self::GetData(_) => OpCode::GET_DATA,
            Self::GetChildren(_) => OpCode::GET_CHILDREN,
            Self::Error(_) => OpCode::ERROR,
        }
    }

    fn decode_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match header.op {
            OpCode::CREATE => Self::Create(Decode::decode(reader)?),
            OpCode::CREATE2 => Self::Create2(Decode::decode(reader)?),
            OpCode::DELETE => Self::Delete,
            OpCode::SET_DATA => Self::SetData(Decode::decode(reader)?),
            OpCode::CHECK => Self::Check,
            OpCode::GET_DATA => Self::GetData(Decode::decode(reader)?),
            OpCode::GET_CHILDREN => Self::GetChildren(Decode::decode(reader)?),
            OpCode::ERROR => Self::Error(ErrorResponse::decode(reader)?.err),
            op => return Err(not_in_multi(op, reader)),
        })
    }

    fn skip_behind(header: MultiHeader, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        match header.op {
            OpCode::CREATE => CreateResponse::skip(reader),
            OpCode::CREATE2 => Create2Response::skip(reader),
            OpCode::DELETE | OpCode::CHECK => Ok(()),
            OpCode::SET_DATA => SetDataResponse::skip(reader),
            OpCode::GET_DATA => GetDataResponse::skip(reader),
            OpCode::GET_CHILDREN => GetChildrenResponse::skip(reader),
            OpCode::ERROR => ErrorResponse::skip(reader),
            op => Err(not_in_multi(op, reader)),
        }
    }

    fn encode_body(&self, out: &mut BytesMut) {
        match self {
            Self::Create(created) => created.encode(out),
            Self::Create2(created) => created.encode(out),
            Self::Delete | Self::Check => {}
            Self::SetData(set) => set.encode(out),
            Self::GetData(data) => data.encode(out),
            Self::GetChildren(children) => children.encode(out),
            Self::Error(err) => err.encode(out),
        }
    }
}

/// The error for an operation in a header that has just been read.
fn not_in_multi(op: OpCode, behind: &Reader<'_>) -> DecodeError {
    let header = behind.offset().saturating_sub(MultiHeader::LEN_MIN);
    DecodeError::at(header, DecodeErrorKind::NotInMulti(op.0)).within("MultiHeader", "op")
}

impl MultiResult {
    /// The `err` in the header of this result.
    pub(super) const fn err(&self) -> ErrorCode {
        match self {
            Self::Error(err) => *err,
            _ => ErrorCode::OK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transaction_fails_for_the_error_that_is_its_own() {
        let results = |codes: &[ErrorCode]| {
            let mut out = BytesMut::new();
            for err in codes {
                MultiHeader { op: OpCode::ERROR, done: false, err: *err }.encode(&mut out);
                ErrorResponse { err: *err }.encode(&mut out);
            }
            MultiHeader::END.encode(&mut out);
            out.freeze()
        };
        let (undone, skipped) = (ErrorCode::OK, ErrorCode::RUNTIME_INCONSISTENCY);
        let refused = ErrorCode::SESSION_EXPIRED;
        for (codes, first) in [
            (&[refused, skipped][..], refused),
            (&[undone, refused, ErrorCode::NO_NODE], refused),
            (&[undone, skipped, refused], refused),
            (&[undone, skipped], ErrorCode::OK),
            (&[], ErrorCode::OK),
        ] {
            let results = results(codes);
            assert_eq!(MultiHeader::first_error(&results), first, "{codes:?}");
            // One that is cut off in the repeated code has said all before.
            for len in 0..results.len() {
                let cut = MultiHeader::first_error(&results.slice(..len));
                assert!(cut == first || cut.is_ok(), "{len} bytes of {codes:?}");
            }
        }
        let mut done = BytesMut::new();
        MultiHeader { op: OpCode::DELETE, done: false, err: undone }.encode(&mut done);
        MultiHeader { op: OpCode::ERROR, done: false, err: refused }.encode(&mut done);
        assert_eq!(MultiHeader::first_error(&done.freeze()), ErrorCode::OK, "it was carried out");
    }
}
