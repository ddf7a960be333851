//! A span for each request, by OpenTelemetry's conventions for clients of databases; with the feature `trace-requests`.

#[cfg(feature = "trace-requests")]
pub(super) use traced::RequestSpan;
#[cfg(not(feature = "trace-requests"))]
pub(super) use untraced::RequestSpan;

#[cfg(feature = "trace-requests")]
mod traced {
    use std::sync::Arc;

    use tracing::{Span, field::Empty};
    use zk_proto::OpCode;

    use crate::{
        error::{CallError, Cause},
        report::stats::Counters,
        request::handle::Handle,
    };

    /// What filters of `tracing` know these spans by.
    const TARGET: &str = "zk_client::request";

    /// The span of a request, if a subscriber wants it: from the submission until its caller has the result.
    pub(in crate::request) struct RequestSpan(Option<Box<Open>>);

    struct Open {
        span: Span,
        /// Not the handle, which would keep the session alive.
        counters: Arc<Counters>,
        /// Whether the server was known at the beginning.
        has_server: bool,
    }

    impl RequestSpan {
        pub(in crate::request) const NONE: Self = Self(None);

        /// Begins a request, whose path is as the caller has named it.
        #[inline]
        pub(in crate::request) fn begin(handle: &Handle, op: OpCode, path: Option<&str>) -> Self {
            if tracing::span_enabled!(target: TARGET, tracing::Level::DEBUG) {
                return Self(Some(Self::open(handle, op, path)));
            }
            Self::NONE
        }

        #[cold]
        fn open(handle: &Handle, op: OpCode, path: Option<&str>) -> Box<Open> {
            let op = op.to_string();
            let server = handle.shared.counters.server();
            let name = server.as_ref().map(|server| format!("{op} {server}"));
            let span = tracing::debug_span!(
                target: TARGET,
                "zk.request",
                otel.name = name.as_ref().unwrap_or(&op),
                otel.kind = "client",
                otel.status_code = Empty,
                otel.status_description = Empty,
                db.system.name = "zookeeper",
                db.operation.name = op,
                db.response.status_code = Empty,
                error.r#type = Empty,
                server.address = Empty,
                server.port = Empty,
                zookeeper.path = path,
            );
            let counters = handle.shared.counters.clone();
            let open = Open { span, counters, has_server: server.is_some() };
            open.record_server(server.as_deref());
            Box::new(open)
        }

        /// Ends the request, with its error if it has failed.
        #[inline]
        pub(in crate::request) fn end<E: CallError>(&mut self, error: Option<&E>) {
            if let Some(open) = self.0.take() {
                open.end(error);
            }
        }
    }

    impl Open {
        fn record_server(&self, server: Option<&str>) {
            let Some((host, port)) = server.and_then(|server| server.rsplit_once(':')) else {
                return;
            };
            self.span.record("server.address", host.trim_start_matches('[').trim_end_matches(']'));
            if let Ok(port) = port.parse::<u16>() {
                self.span.record("server.port", port);
            }
        }

        #[cold]
        fn end<E: CallError>(&self, error: Option<&E>) {
            if !self.has_server {
                self.record_server(self.counters.server().as_deref());
            }
            let Some(error) = error else { return };
            self.span.record("otel.status_code", "ERROR");
            self.span.record("otel.status_description", error.to_string());
            match error.answer() {
                Ok(rejection) => {
                    let code = rejection.code().to_string();
                    self.span.record("db.response.status_code", &code);
                    self.span.record("error.type", code);
                }
                Err(cause) => {
                    self.span.record("error.type", kind(cause));
                }
            }
        }
    }

    /// The value of `error.type` for a request without an answer.
    const fn kind(cause: &Cause) -> &'static str {
        match cause {
            Cause::Disconnected(_) => "disconnected",
            Cause::SessionEnded(_) => "session_ended",
            Cause::TooLarge { .. } => "too_large",
            Cause::ReplyTooLarge { .. } => "reply_too_large",
            Cause::CostsConnection(_) => "costs_connection",
            Cause::NotConnected => "not_connected",
            Cause::DeadlineExceeded => "deadline_exceeded",
            Cause::QueueFull => "queue_full",
            Cause::InvalidPath(_) | Cause::InvalidArgument(_) => "invalid_argument",
            Cause::Throttled => "throttled",
            Cause::Undecodable(_) => "undecodable",
            Cause::Mismatch(_) => "mismatch",
        }
    }
}

#[cfg(not(feature = "trace-requests"))]
mod untraced {
    use zk_proto::OpCode;

    use crate::{error::CallError, request::handle::Handle};

    /// No span.
    pub(in crate::request) struct RequestSpan(());

    impl RequestSpan {
        pub(in crate::request) const NONE: Self = Self(());

        #[inline(always)]
        pub(in crate::request) const fn begin(_: &Handle, _: OpCode, _: Option<&str>) -> Self {
            Self::NONE
        }

        #[expect(clippy::unused_self, reason = "stands for one that ends")]
        #[expect(clippy::needless_pass_by_ref_mut, reason = "as above")]
        #[inline(always)]
        pub(in crate::request) const fn end<E: CallError>(&mut self, _: Option<&E>) {}
    }
}
