//! State shared by the requests of one client's connection.

use super::ProxyState;
use crate::session::Session;
use crate::transport::{StreamHandles, code};
use h3::{ConnectionState, SharedState};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// State shared by the requests of a connection.
pub(super) struct Client {
    pub(super) shared: Arc<ProxyState>,
    pub(super) session: Arc<Session>,
    pub(super) address: SocketAddr,
    pub(super) http: Arc<SharedState>,
    pub(super) handles: StreamHandles,
    /// Wakers of requests that wait for the client's settings.
    pub(super) early: Mutex<Vec<Waker>>,
    /// Number of streams that ended without a request.
    pub(super) fruitless: AtomicU64,
}

impl Client {
    /// Whether the client accepts HTTP datagrams (RFC 9297 section 2.1.1).
    pub(super) fn takes_datagrams(&self) -> bool {
        self.http.settings().enable_datagram() && self.session.connection.max_datagram_size().is_some()
    }

    pub(super) fn has_settings(&self) -> bool {
        matches!(self.http.settings(), std::borrow::Cow::Borrowed(_))
    }

    pub(super) fn early(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the client's settings, which determine the form of the response.
    pub(super) async fn settings(&self) {
        poll_fn(|context| {
            let mut early = self.early();
            if self.has_settings() {
                return Poll::Ready(());
            }
            early.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Counts a stream without a request. It costs nearly as much as a request, and h3 remembers it. The proxy
    /// tolerates as many as there can be open requests (RFC 9114 section 10.5).
    pub(super) fn note_fruitless(&self) {
        if self.fruitless.fetch_add(1, Ordering::Relaxed) >= self.shared.settings().max_requests_per_connection.into() {
            self.session.connection.close(code::EXCESSIVE_LOAD.into(), b"streams without requests");
        }
    }
}
