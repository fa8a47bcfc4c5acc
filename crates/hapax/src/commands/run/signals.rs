//! What the outside asks of a running process.
//!
//! SIGTERM and SIGINT: drain; a second one ends at once. SIGHUP: read the configuration again.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Deliver what was read, read no more, end.
    Drain,
    /// Read the configuration again.
    Reload,
}

/// Listens until the task is aborted.
pub(crate) fn listen() -> (tokio::task::JoinHandle<()>, mpsc::Receiver<Order>) {
    let (send, receive) = mpsc::channel(4);
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()));
    let task = match signals {
        (Ok(term), Ok(interrupt), Ok(hangup)) => tokio::spawn(pass_on(term, interrupt, hangup, send)),
        _ => {
            tracing::error!("signals cannot be received; end this process with SIGKILL, nothing is lost by it");
            // The channel stays open: nobody ever says anything.
            tokio::spawn(async move {
                let _open = send;
                std::future::pending().await
            })
        }
    };
    (task, receive)
}

/// Signals so close to each other are one: `timeout` and terminals send them to a process and to its group.
const SAME_ORDER: Duration = Duration::from_millis(200);

async fn pass_on(mut term: Signal, mut interrupt: Signal, mut hangup: Signal, orders: mpsc::Sender<Order>) {
    let mut draining: Option<Instant> = None;
    loop {
        let order = tokio::select! {
            _ = term.recv() => Order::Drain,
            _ = interrupt.recv() => Order::Drain,
            _ = hangup.recv() => Order::Reload,
        };
        if order == Order::Drain {
            match draining {
                None => draining = Some(Instant::now()),
                Some(since) if since.elapsed() < SAME_ORDER => continue,
                Some(_) => {
                    tracing::warn!("asked twice: ending at once; nothing is lost, what was in flight is read again");
                    std::process::exit(1);
                }
            }
        }
        // One place is kept for the word to end: a queue full of reloads must not keep a second signal from being heard.
        if order == Order::Drain || orders.capacity() > 1 {
            orders.try_send(order).ok();
        }
    }
}
