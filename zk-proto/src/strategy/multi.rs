//! Several operations in one request.

use alloc::vec::Vec;
use core::cmp::Ordering;

use proptest::{
    arbitrary::any,
    collection::vec,
    option, prop_oneof,
    sample::Index,
    strategy::{BoxedStrategy, Just, Strategy},
};

use crate::{
    code::ErrorCode,
    request::{
        Create2Response, CreateResponse, GetChildrenResponse, GetDataResponse, MultiOp,
        MultiReadRequest, MultiRequest, MultiResponse, MultiResult, SetDataResponse,
    },
    strategy::{
        AsRecord, OwnedCheckVersionRequest, OwnedCreateRequest, OwnedCreateTtlRequest,
        OwnedDeleteRequest, OwnedGetChildrenRequest, OwnedGetDataRequest, OwnedSetDataRequest,
        number::{lasting_refusal, refusal},
        record::{arbitrary, is_record},
    },
};

/// Most operations of a generated multi.
const OPS_MAX: usize = 5;

/// Owns what a [`MultiOp`] borrows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is the operation of its name")]
pub enum OwnedMultiOp {
    Create(OwnedCreateRequest),
    Create2(OwnedCreateRequest),
    CreateContainer(OwnedCreateRequest),
    CreateTtl(OwnedCreateTtlRequest),
    Delete(OwnedDeleteRequest),
    SetData(OwnedSetDataRequest),
    Check(OwnedCheckVersionRequest),
    GetData(OwnedGetDataRequest),
    GetChildren(OwnedGetChildrenRequest),
}

impl OwnedMultiOp {
    /// The operation, borrowing from `self`.
    #[must_use]
    pub fn as_op(&self) -> MultiOp<'_> {
        match self {
            Self::Create(create) => MultiOp::Create(create.as_record()),
            Self::Create2(create) => MultiOp::Create2(create.as_record()),
            Self::CreateContainer(create) => MultiOp::CreateContainer(create.as_record()),
            Self::CreateTtl(create) => MultiOp::CreateTtl(create.as_record()),
            Self::Delete(delete) => MultiOp::Delete(delete.as_record()),
            Self::SetData(set) => MultiOp::SetData(set.as_record()),
            Self::Check(check) => MultiOp::Check(check.as_record()),
            Self::GetData(get) => MultiOp::GetData(get.as_record()),
            Self::GetChildren(list) => MultiOp::GetChildren(list.as_record()),
        }
    }
}

/// An operation that writes, or checks a version: an element of a [`MultiRequest`].
pub fn multi_write() -> impl Strategy<Value = OwnedMultiOp> {
    prop_oneof![
        any::<OwnedCreateRequest>().prop_map(OwnedMultiOp::Create),
        any::<OwnedCreateRequest>().prop_map(OwnedMultiOp::Create2),
        any::<OwnedCreateRequest>().prop_map(OwnedMultiOp::CreateContainer),
        any::<OwnedCreateTtlRequest>().prop_map(OwnedMultiOp::CreateTtl),
        any::<OwnedDeleteRequest>().prop_map(OwnedMultiOp::Delete),
        any::<OwnedSetDataRequest>().prop_map(OwnedMultiOp::SetData),
        any::<OwnedCheckVersionRequest>().prop_map(OwnedMultiOp::Check),
    ]
}

/// An operation that reads: an element of a [`MultiReadRequest`].
pub fn multi_read() -> impl Strategy<Value = OwnedMultiOp> {
    prop_oneof![
        any::<OwnedGetDataRequest>().prop_map(OwnedMultiOp::GetData),
        any::<OwnedGetChildrenRequest>().prop_map(OwnedMultiOp::GetChildren),
    ]
}

/// Operations as a request.
fn request(ops: impl Strategy<Value = OwnedMultiOp>) -> impl Strategy<Value = MultiRequest> {
    vec(ops, 0..=OPS_MAX).prop_map(|ops| ops.iter().map(OwnedMultiOp::as_op).collect())
}

/// A legal answer to `request`: results of all operations, or, if one of them failed, errors of all
/// of them.
pub fn multi_response(request: &MultiRequest) -> BoxedStrategy<MultiResponse> {
    let results: Vec<_> = request.iter().map(|(_, op)| result_of(&op)).collect();
    (results, failure(refusal())).prop_map(|(results, failure)| together(results, failure)).boxed()
}

/// The operation that fails in a multi, if one does, and its error.
fn failure(
    error: impl Strategy<Value = ErrorCode>,
) -> impl Strategy<Value = Option<(Index, ErrorCode)>> {
    option::weighted(0.25, (any::<Index>(), error))
}

/// The results, or errors of all of them.
fn together(results: Vec<MultiResult>, failure: Option<(Index, ErrorCode)>) -> MultiResponse {
    let count = results.len();
    match failure {
        Some((blamed, err)) if count > 0 => {
            let blamed = blamed.index(count);
            let errors = (0..count).map(|at| match at.cmp(&blamed) {
                Ordering::Less => ErrorCode::OK,
                Ordering::Equal => err,
                Ordering::Greater => ErrorCode::RUNTIME_INCONSISTENCY,
            });
            errors.map(MultiResult::Error).collect()
        }
        _ => results.into_iter().collect(),
    }
}

/// A multi with a legal answer, behind which the connection goes on.
pub(super) fn multi_exchange() -> impl Strategy<Value = (MultiRequest, MultiResponse)> {
    (vec(with_result(multi_write()), 0..=OPS_MAX), failure(lasting_refusal())).prop_map(
        |(pairs, failure)| {
            let (ops, results): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
            (ops.iter().map(OwnedMultiOp::as_op).collect(), together(results, failure))
        },
    )
}

/// Several reads with a legal answer.
pub(super) fn multi_read_exchange() -> impl Strategy<Value = (MultiReadRequest, MultiResponse)> {
    vec(with_result(multi_read()), 0..=OPS_MAX).prop_map(|pairs| {
        let (ops, results): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let request = ops.iter().map(OwnedMultiOp::as_op).collect();
        (MultiReadRequest(request), results.into_iter().collect())
    })
}

fn with_result(
    op: impl Strategy<Value = OwnedMultiOp>,
) -> impl Strategy<Value = (OwnedMultiOp, MultiResult)> {
    op.prop_flat_map(|op| {
        let result = result_of(&op.as_op());
        (Just(op), result)
    })
}

/// A legal answer to `request`: each read succeeds or fails on its own.
pub fn multi_read_response(request: &MultiReadRequest) -> BoxedStrategy<MultiResponse> {
    results_of(&request.0)
}

/// A result for each operation, in order.
fn results_of(request: &MultiRequest) -> BoxedStrategy<MultiResponse> {
    let results: Vec<_> = request.iter().map(|(_, op)| result_of(&op)).collect();
    results.prop_map(MultiResponse::from_iter).boxed()
}

/// A legal result of one operation that was carried out.
fn result_of(op: &MultiOp<'_>) -> BoxedStrategy<MultiResult> {
    let created = any::<CreateResponse>().prop_map(MultiResult::Create);
    let created2 = any::<Create2Response>().prop_map(MultiResult::Create2);
    match op {
        MultiOp::Create(_) => created.boxed(),
        // Old servers mistake one for the other.
        MultiOp::Create2(_) => prop_oneof![created, created2].boxed(),
        MultiOp::CreateContainer(_) | MultiOp::CreateTtl(_) => created2.boxed(),
        MultiOp::Delete(_) => Just(MultiResult::Delete).boxed(),
        MultiOp::SetData(_) => any::<SetDataResponse>().prop_map(MultiResult::SetData).boxed(),
        MultiOp::Check(_) => Just(MultiResult::Check).boxed(),
        MultiOp::GetData(_) => read(any::<GetDataResponse>().prop_map(MultiResult::GetData)),
        MultiOp::GetChildren(_) => {
            read(any::<GetChildrenResponse>().prop_map(MultiResult::GetChildren))
        }
    }
}

/// Reads succeed or fail each on its own.
fn read(result: impl Strategy<Value = MultiResult> + 'static) -> BoxedStrategy<MultiResult> {
    prop_oneof![3 => result, 1 => refusal().prop_map(MultiResult::Error)].boxed()
}

arbitrary! {
    OwnedMultiOp = prop_oneof![3 => multi_write(), 1 => multi_read()];
    MultiRequest = request(multi_write());
    MultiReadRequest = request(multi_read()).prop_map(Self);
    MultiResult = any::<OwnedMultiOp>()
        .prop_flat_map(|op| prop_oneof![
            3 => result_of(&op.as_op()),
            1 => any::<ErrorCode>().prop_map(MultiResult::Error),
        ]);
    MultiResponse = vec(any::<MultiResult>(), 0..=OPS_MAX).prop_map(Self::from_iter);
}
is_record!(MultiRequest, MultiReadRequest, MultiResponse);
