//! Posts alerts to the webhook, one after the other, each with a few tries.
//!
//! Invariant: the URL is never logged; redirects are not followed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::mpsc;

use super::Alert;
use crate::config::Secret;
use crate::exit::Failure;
use crate::roster::{Process, count};

/// How long one try may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Waits between tries; after the last the alert is given up.
const WAITS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
    Duration::from_secs(120),
];

/// Sends alerts.
pub(super) struct Sender {
    client: Caller,
    url: Uri,
    /// Scheme and host: all of the URL that may be printed.
    shown: String,
    process: Arc<Process>,
}

/// A client for the webhook's scheme.
enum Caller {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

/// Why a try failed.
enum Refused {
    /// Another try may help.
    ForNow(String),
    /// It will not.
    ForGood(String),
}

impl Sender {
    pub(super) fn new(webhook: Secret, process: Arc<Process>) -> Result<Self, Failure> {
        let unusable = |what: &str| Failure::new("HX5062", format!("alerts.webhook cannot be called: {what}"));
        let url: Uri = webhook.0.parse().map_err(|_| unusable("it is no URL"))?;
        let builder = Client::builder(TokioExecutor::new());
        let client = if url.scheme_str() == Some("http") {
            // No roots of trust are needed, and a machine may have none.
            Caller::Plain(builder.build(HttpConnector::new()))
        } else {
            let connector = HttpsConnectorBuilder::new().with_native_roots();
            let connector = connector.map_err(|error| unusable(&format!("no roots of trust were found ({error})")))?;
            Caller::Tls(builder.build(connector.https_only().enable_http1().build()))
        };
        let shown = format!("{}://{}", url.scheme_str().unwrap_or_default(), url.host().unwrap_or_default());
        Ok(Self { client, url, shown, process })
    }

    /// Sends what comes until nobody is left to say anything.
    pub(super) async fn run(self, mut queue: mpsc::Receiver<Alert>) {
        while let Some(alert) = queue.recv().await {
            match self.deliver(&alert).await {
                Ok(()) => count(&self.process.alerts_sent),
                Err(why) => {
                    count(&self.process.alerts_failed);
                    tracing::error!(webhook = self.shown, delivery = %alert.id, why, "an alert could not be sent");
                }
            }
        }
    }

    async fn deliver(&self, alert: &Alert) -> Result<(), String> {
        let body = Bytes::from(alert.body().to_string());
        let mut waits = WAITS.iter();
        loop {
            let why = match self.post(body.clone()).await {
                Ok(()) => return Ok(()),
                Err(Refused::ForGood(why)) => return Err(why),
                Err(Refused::ForNow(why)) => why,
            };
            let Some(wait) = waits.next() else { return Err(why) };
            tracing::debug!(webhook = self.shown, why, "an alert was not taken; trying again");
            tokio::time::sleep(*wait).await;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), Refused> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("hapax/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(body))
            .map_err(|error| Refused::ForGood(error.to_string()))?;
        let asked = match &self.client {
            Caller::Plain(client) => client.request(request),
            Caller::Tls(client) => client.request(request),
        };
        let answered = tokio::time::timeout(TIMEOUT, asked).await;
        match answered {
            Err(_) => Err(Refused::ForNow(format!("no answer within {} s", TIMEOUT.as_secs()))),
            // The error's own text names neither path nor query.
            Ok(Err(error)) => Err(Refused::ForNow(innermost(&error))),
            Ok(Ok(answer)) => judge(answer.status()),
        }
    }
}

fn judge(status: StatusCode) -> Result<(), Refused> {
    let may_pass = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
    match status {
        status if status.is_success() => Ok(()),
        status if may_pass => Err(Refused::ForNow(format!("it answered {status}"))),
        status => Err(Refused::ForGood(format!("it answered {status}"))),
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
