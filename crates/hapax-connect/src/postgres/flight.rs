//! Requests that are on their way together: each is sent when it is started, and answered in that order.
//!
//! The driver puts a request on the wire when its future is first polled; so a future is polled once when it is
//! started, and its answer is waited for later. Invariant: order of starting = order on the wire = order of answers.
//! While some are on their way nothing else may be asked of the session: its answer would be stuck behind theirs.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// How many requests are on their way at most, and how many bytes of inputs, unless a single one has more: enough to
/// keep the server busy also where statements are small, few enough to bound the memory.
const MOST: usize = 64;
const MOST_BYTES: usize = 2 << 20;

pub(super) struct Flights<F: Future> {
    flying: VecDeque<(usize, Flight<F>)>,
    bytes: usize,
}

enum Flight<F: Future> {
    Flying(Pin<Box<F>>),
    Landed(F::Output),
}

impl<F: Future> Flights<F> {
    pub(super) const fn new() -> Self {
        Self { flying: VecDeque::new(), bytes: 0 }
    }

    /// Whether a request of so many bytes should wait until others have landed.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.flying.len() >= MOST || (!self.flying.is_empty() && self.bytes + bytes > MOST_BYTES)
    }

    /// Sends the request, which carries so many bytes.
    pub(super) async fn start(&mut self, request: F, bytes: usize) {
        let mut request = Box::pin(request);
        let landed = poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await;
        let flight = match landed {
            Poll::Ready(answer) => Flight::Landed(answer),
            Poll::Pending => Flight::Flying(request),
        };
        self.bytes += bytes;
        self.flying.push_back((bytes, flight));
    }

    /// Waits for the answer to the first request; none if nothing is on its way.
    pub(super) async fn land(&mut self) -> Option<F::Output> {
        let (bytes, first) = self.flying.pop_front()?;
        self.bytes -= bytes;
        match first {
            Flight::Landed(answer) => Some(answer),
            Flight::Flying(request) => Some(request.await),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Goal: requests leave at once and are answered in their order. Method: note when each is polled and answered.
    #[tokio::test]
    async fn requests_leave_in_order_before_the_first_answer_is_read() {
        let sent = RefCell::new(Vec::new());
        let request = |n: usize| {
            let sent = &sent;
            async move {
                sent.borrow_mut().push(n);
                tokio::task::yield_now().await;
                n
            }
        };
        let mut flights = Flights::new();
        for n in 0..3 {
            assert!(!flights.is_full(MOST_BYTES / 3));
            flights.start(request(n), MOST_BYTES / 3).await;
        }
        assert_eq!(*sent.borrow(), [0, 1, 2]);
        assert!(flights.is_full(MOST_BYTES / 3), "the bytes are bounded");
        assert_eq!(flights.land().await, Some(0));
        assert!(!flights.is_full(MOST_BYTES / 3));
        let mut answers = Vec::new();
        while let Some(n) = flights.land().await {
            answers.push(n);
        }
        assert_eq!(answers, [1, 2]);
        assert!(!flights.is_full(usize::MAX / 2), "a single one may be larger");
    }
}
