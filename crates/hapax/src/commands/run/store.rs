//! The state store of a process that is about to run: a server that is away is waited for.

use std::time::Instant;

use hapax_engine::backoff::Backoff;
use hapax_engine::source::Follow;
use hapax_model::delivery::Retries;
use tokio::sync::mpsc;

use super::signals::Order;
use crate::assemble::{AnyState, Place};
use crate::config::Config;
use crate::exit::Failure;

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
        let Some(wait) = wait else { return Err(failure) };
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

/// Returns when the process is asked to end. Cancel-safe: only words that mean nothing yet are lost.
async fn asked_to_end(orders: &mut mpsc::Receiver<Order>) {
    while orders.recv().await.is_some_and(|order| order != Order::Drain) {}
}
