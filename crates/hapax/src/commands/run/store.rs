//! The state store of a process that is about to run: a server that is away is waited for.

use std::time::Instant;

use hapax_engine::backoff::Backoff;
use hapax_engine::source::Follow;
use hapax_model::delivery::Retries;
use tokio::sync::mpsc;

use super::signals::Order;
use crate::assemble::{AnyState, Place, parts};
use crate::config::Config;
use crate::exit::Failure;

/// A right is missing.
const DENIED: &str = "HX4016";

/// What came of waiting.
pub(super) enum Opened {
    /// The store, or that there is none.
    State(Option<AnyState>),
    /// The process was asked to end first.
    Asked,
}

/// Opens the store. Who follows waits for a server, as for a target; who asks for what is there now is told at once.
pub(super) async fn open(
    config: &Config,
    follow: Follow,
    orders: &mut mpsc::Receiver<Order>,
) -> Result<Opened, Failure> {
    let patient = follow == Follow::Yes && Place::of_state(config).is_some_and(|place| place.is_remote());
    let mut backoff = Backoff::new(&Retries::default());
    loop {
        let opened = tokio::select! {
            opened = AnyState::open(config) => opened,
            () = asked_to_end(orders) => return Ok(Opened::Asked),
        };
        let failure = match opened {
            Ok(state) => return Ok(Opened::State(state)),
            Err(failure) => failure,
        };
        let wait = backoff.failed(Instant::now(), fastrand::f64()).filter(|_| patient && failure.may_pass);
        let Some(wait) = wait else { return Err(with_denied_targets(config, failure).await) };
        tracing::warn!(
            code = failure.code,
            error = failure.message,
            attempt = backoff.attempts(),
            wait_ms = wait.as_millis(),
            "the state store is away; trying again"
        );
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = asked_to_end(orders) => return Ok(Opened::Asked),
        }
    }
}

/// A right that is missing in the store is often not the only one: those that are missing on targets are named with it.
async fn with_denied_targets(config: &Config, failure: Failure) -> Failure {
    let mut message = failure.message.clone();
    if failure.code == Some(DENIED) {
        for part in parts(config) {
            if let Err(target) = part.live().await
                && target.code == Some(DENIED)
            {
                message = format!("{message} And {}", target.message);
            }
        }
    }
    Failure { message, ..failure }
}

/// Returns when the process is asked to end. Cancel-safe: only words that mean nothing yet are lost.
async fn asked_to_end(orders: &mut mpsc::Receiver<Order>) {
    while orders.recv().await.is_some_and(|order| order != Order::Drain) {}
}
