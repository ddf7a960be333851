//! From an operation number to the type of its request.

/// Evaluates an expression about the request type of an operation number; `None` if the operation has no request. The
/// type goes by the given name, with a lifetime, and what the expression needs of it, traits of one's own included, is checked for
/// every request.
///
/// ```
/// use zk_proto::{OpCode, Request, dispatch};
///
/// let len_min = |op| dispatch!(op, R => <R<'_> as zk_proto::jute::Decode>::LEN_MIN);
/// assert_eq!(len_min(OpCode::DELETE), Some(8));
/// assert_eq!(len_min(OpCode::NOTIFICATION), None);
/// ```
#[macro_export]
macro_rules! dispatch {
    ($op:expr, $request:ident => $result:expr) => {
        $crate::for_each_request!($crate::dispatch, @arms $op, $request => $result;)
    };
    (@arms $op:expr, $request:ident => $result:expr;
     $($code:ident $variant:ident($record:ident $(<$lt:lifetime>)?) $twin:ident;)*) => {
        match $op {
            $($crate::OpCode::$code => {
                type $request<'a> = $crate::request::$record $(<$lt>)?;
                ::core::option::Option::Some($result)
            })*
            _ => ::core::option::Option::None,
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{op::OpCode, request::Request};

    #[test]
    fn every_operation_has_a_request_or_none() {
        const WITHOUT_REQUEST: [OpCode; 3] =
            [OpCode::NOTIFICATION, OpCode::CREATE_SESSION, OpCode::ERROR];
        for &op in OpCode::KNOWN {
            let expected = (!WITHOUT_REQUEST.contains(&op)).then_some(op);
            assert_eq!(dispatch!(op, R => R::OP), expected, "{op:?}");
        }
    }
}
