//! The process's own pages: `/metrics`, `/healthz`, `/readyz`. Off unless the configuration has `http`.
//!
//! Reads: what the process is about (the roster, or the broker). Writes: nothing. Invariant: with a token every page but `/healthz` wants it, and the port is ours
//! before any delivery starts. Not here: what is counted (the engine's meters).

#[cfg(feature = "broker")]
mod broker;
mod health;
mod metrics;
pub(crate) mod names;

use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;

use crate::config::{Http, Secret};
use crate::exit::Failure;
use crate::roster::Roster;

#[cfg(feature = "broker")]
pub(crate) use broker::BrokerPages;
use health::Verdict;

/// What the pages say.
pub(crate) trait Pages: Send + Sync {
    /// `/metrics`.
    fn metrics(&self) -> Result<String, std::fmt::Error>;
    /// `/healthz`: whether the process is well.
    fn health(&self) -> Verdict;
    /// `/readyz`: whether it does its work.
    fn ready(&self) -> Verdict;
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
    let pages = router(pages, http.token.clone());
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, pages).await {
            tracing::error!(%error, "the pages of this process are gone; its work goes on");
        }
    });
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

fn router(pages: Shown, token: Option<Secret>) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/readyz", get(show_ready))
        .fallback(no_such_page)
        .layer(middleware::from_fn_with_state(token.map(Arc::new), only_with_token));
    Router::new().route("/healthz", get(show_health)).merge(guarded).with_state(pages)
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
