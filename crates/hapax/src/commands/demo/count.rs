//! What was sent, and what an outsider counts.

use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::batch::Inputs;
use hapax_engine::source::{Follow, Polled, Room, Source as _, StartAt};

use crate::exit::Failure;

/// What was sent.
pub(super) struct Truth {
    pub(super) orders: u64,
    pub(super) cents: i64,
}

impl Truth {
    /// Reads the stream itself, as anybody with the seed could.
    pub(super) async fn of(seed: u64, orders: u64) -> Result<Self, Failure> {
        let mut source = GenerateSource::new(GenerateConfig { seed, count: Some(orders), ..GenerateConfig::default() });
        let start = source.start(StartAt::Earliest).await?;
        source.assign(&start, Follow::No).await?;
        let mut truth = Self { orders: 0, cents: 0 };
        loop {
            let mut inputs = Inputs::default();
            let polled = source.poll(&mut inputs, Room { events: 1000, bytes: usize::MAX }).await?;
            for index in 0..inputs.len() {
                truth.orders += 1;
                truth.cents += cents(inputs.bytes(index));
            }
            if polled == Polled::End {
                return Ok(truth);
            }
        }
    }
}

fn cents(order: &[u8]) -> i64 {
    let order: serde_json::Value = serde_json::from_slice(order).unwrap_or_default();
    order.get("amount_cents").and_then(serde_json::Value::as_i64).unwrap_or_default()
}

/// What the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) rows: u64,
    /// Orders that are there at least once.
    pub(super) different: u64,
    /// What the balance, kept by a trigger, says.
    pub(super) cents: i64,
}

impl Count {
    pub(super) const fn lost(&self, truth: &Truth) -> u64 {
        truth.orders.saturating_sub(self.different)
    }

    pub(super) const fn doubled(&self) -> u64 {
        self.rows - self.different
    }

    pub(super) const fn balance_off_by(&self, truth: &Truth) -> i64 {
        self.cents - truth.cents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lost and doubled are told apart even when they cancel out. Method: one lost, one twice.
    #[test]
    fn a_lost_and_a_doubled_order_do_not_cancel_out() {
        let truth = Truth { orders: 10, cents: 1000 };
        let count = Count { rows: 10, different: 9, cents: 1005 };
        assert_eq!((count.lost(&truth), count.doubled(), count.balance_off_by(&truth)), (1, 1, 5));
    }

    /// Goal: the truth is the stream's own, however often it is asked for.
    #[tokio::test]
    async fn the_truth_is_a_function_of_the_seed() {
        let (a, b) = (Truth::of(3, 500).await.expect("reads"), Truth::of(3, 500).await.expect("reads"));
        assert_eq!((a.orders, a.cents), (500, b.cents));
        assert!(a.cents > 0);
    }
}
