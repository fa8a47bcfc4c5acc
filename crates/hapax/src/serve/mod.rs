//! The process's own pages: `/metrics`, `/healthz`, `/readyz`. Off unless the configuration has `http`.
//!
//! Reads: what the process is about (the roster, or the broker). Writes: nothing. Invariant: with a token every page but
//! `/healthz` wants it, and the port is ours before any delivery starts. Not here: what is counted (the engine's meters).

#[cfg(feature = "broker")]
mod broker;
mod connections;
mod health;
mod metrics;
pub(crate) mod names;

use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use crate::config::{Http, Secret};
use crate::descriptors::Descriptors;
use crate::exit::Failure;
use crate::roster::Roster;

#[cfg(feature = "broker")]
pub(crate) use broker::BrokerPages;
use connections::Connections;
use health::Verdict;

/// What the pages say.
pub(crate) trait Pages: Send + Sync {
    /// `/metrics`.
    fn metrics(&self) -> Result<String, std::fmt::Error>;
    /// `/healthz`: whether the process is well.
    fn health(&self) -> Verdict;
    /// `/readyz`: whether it does its work.
    fn ready(&self) -> Verdict;
    /// The descriptors of the process, of which the connections to the pages take their share.
    fn descriptors(&self) -> &Arc<Descriptors>;
}

impl Pages for Roster {
    fn metrics(&self) -> Result<String, std::fmt::Error> {
        metrics::page(self)
    }

    fn health(&self) -> Verdict {
        health::health(self)
    }

    fn ready(&self) -> Verdict {
        health::ready(self)
    }

    fn descriptors(&self) -> &Arc<Descriptors> {
        &self.process.descriptors
    }
}

type Shown = Arc<dyn Pages>;

/// Takes the port and serves in the background until the task is dropped.
///
/// # Errors
/// `HX5060` if the port cannot be taken: a process that should be watched does not run unwatched.
pub(crate) fn serve(http: &Http, pages: Shown) -> Result<Server, Failure> {
    let taken = |error: std::io::Error| {
        let message = format!(
            "{} cannot be listened on ({error}), so nothing was started: another process may have it; name another port \
             under http.listen, or remove http",
            http.listen
        );
        Failure::new("HX5060", message)
    };
    let listener = TcpListener::bind(http.listen).map_err(taken)?;
    listener.set_nonblocking(true).map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(taken)?;
    let connections = Connections::new(Arc::clone(pages.descriptors()));
    let pages = router(pages, http.token.clone(), Reach::of(address.ip()));
    let task = tokio::spawn(connections.serve(listener, pages));
    tracing::info!(%address, "metrics and health over HTTP");
    Ok(Server { task })
}

/// Pages that are being served; dropped, they end.
#[derive(Debug)]
pub(crate) struct Server {
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who can reach the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// This machine only, perhaps without a token.
    Loopback,
    /// Other machines, by whatever name; there is a token.
    Others,
}

impl Reach {
    const fn of(address: IpAddr) -> Self {
        if address.to_canonical().is_loopback() { Self::Loopback } else { Self::Others }
    }

    /// Whether a request may name this host. On loopback only the machine itself may be named: a page on the web that makes a
    /// browser call here under a name of its own is not answered.
    fn may_name(self, host: &str) -> bool {
        match self {
            Self::Others => true,
            Self::Loopback => {
                let name = without_port(host);
                name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
            }
        }
    }
}

/// The host of `host`, `host:port`, `[v6]` or `[v6]:port`.
fn without_port(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']').map_or("", |(address, _)| address),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    }
}

fn router(pages: Shown, token: Option<Secret>, reach: Reach) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/readyz", get(show_ready))
        .fallback(no_such_page)
        .layer(middleware::from_fn_with_state(token.map(Arc::new), only_with_token));
    Router::new()
        .route("/healthz", get(show_health))
        .merge(guarded)
        .with_state(pages)
        .layer(middleware::from_fn_with_state(reach, only_by_our_name))
}

/// Refuses whoever calls the process by a name that is not its own, and whoever sends more than a question.
async fn only_by_our_name(State(reach): State<Reach>, request: Request, next: Next) -> Response {
    let refuse = |status: StatusCode, why: &str| {
        let close = [(header::CONNECTION, "close")];
        (status, close, json(&serde_json::json!({ "error": why }))).into_response()
    };
    let hosts = request.headers().get_all(header::HOST).iter();
    let named = hosts.map(|host| host.to_str().unwrap_or_default()).chain(request.uri().host());
    if !named.into_iter().all(|host| reach.may_name(host)) {
        return refuse(StatusCode::MISDIRECTED_REQUEST, "ask for localhost or the machine's own address");
    }
    if !request.body().is_end_stream() {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the pages take no body");
    }
    next.run(request).await
}

/// Refuses whoever does not send the token, if there is one.
async fn only_with_token(State(token): State<Option<Arc<Secret>>>, request: Request, next: Next) -> Response {
    match token {
        Some(token) if !carries(request.headers(), &token) => {
            let wanted = [(header::WWW_AUTHENTICATE, "Bearer")];
            let body = serde_json::json!({"error": "send the header Authorization: Bearer TOKEN"});
            (StatusCode::UNAUTHORIZED, wanted, json(&body)).into_response()
        }
        Some(_) | None => next.run(request).await,
    }
}

fn carries(headers: &HeaderMap, token: &Secret) -> bool {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = sent.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    bearer.is_some_and(|(_, sent)| same(sent.trim().as_bytes(), token.0.as_bytes()))
}

/// Compares in a time that tells only whether the lengths differ.
fn same(sent: &[u8], token: &[u8]) -> bool {
    sent.len() == token.len() && sent.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

async fn show_metrics(State(pages): State<Shown>) -> Response {
    match pages.metrics() {
        Ok(page) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn show_health(State(pages): State<Shown>) -> Response {
    answer(pages.health())
}

async fn show_ready(State(pages): State<Shown>) -> Response {
    answer(pages.ready())
}

async fn no_such_page() -> Response {
    let body = serde_json::json!({"error": "there are /metrics, /healthz and /readyz"});
    (StatusCode::NOT_FOUND, json(&body)).into_response()
}

fn answer(verdict: Verdict) -> Response {
    let status = if verdict.good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, json(&verdict.body)).into_response()
}

fn json(body: &Value) -> ([(header::HeaderName, &'static str); 1], String) {
    ([(header::CONTENT_TYPE, "application/json")], format!("{body}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: on loopback only names of this machine are answered. Method: names and addresses in all their spellings.
    #[test]
    fn a_foreign_name_is_refused_on_loopback_only() {
        let loopback = Reach::of(IpAddr::from([127, 0, 0, 1]));
        for host in ["localhost", "LOCALHOST:8077", "127.0.0.1:8077", "127.0.0.1", "[::1]:8077", "[::1]", "10.1.2.3:80"]
        {
            assert!(loopback.may_name(host), "{host}");
        }
        for host in
            ["evil.example", "evil.example:8077", "localhost.evil.example", "", "[::1", "127.0.0.1.evil.example"]
        {
            assert!(!loopback.may_name(host), "{host}");
        }
        assert!(Reach::of(IpAddr::from([0, 0, 0, 0])).may_name("worker-1:8077"));
    }

    /// Goal: only the whole token is let in. Method: right, wrong, shorter, longer, other schemes, none.
    #[test]
    fn only_the_whole_token_is_let_in() {
        let token = Secret("0123456789abcdef".into());
        let asked = |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::AUTHORIZATION, value.parse().expect("a header"));
            }
            carries(&headers, &token)
        };
        assert!(asked(Some("Bearer 0123456789abcdef")) && asked(Some("bearer 0123456789abcdef")));
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
        ] {
            assert!(!asked(Some(wrong)), "{wrong}");
        }
        assert!(!asked(None));
    }
}
