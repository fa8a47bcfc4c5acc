//! Who leads what: one pure function of the brokers that live, so that all of them agree without a vote.

use crate::model::{BrokerId, LiveBroker};

/// The broker that leads everything: the one with the lowest number.
pub(crate) fn leader(live: &[LiveBroker]) -> Option<&LiveBroker> {
    live.iter().min_by_key(|broker| broker.id)
}

/// Whether `me` leads everything.
pub(crate) fn leads(live: &[LiveBroker], me: BrokerId) -> bool {
    leader(live).is_some_and(|leader| leader.id == me)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the lowest number leads, whatever the order; nobody leads nothing. Method: three brokers.
    #[test]
    fn the_lowest_number_leads() {
        let broker = |id| LiveBroker { id: BrokerId(id), host: "h".to_owned(), port: 1 };
        let live = [broker(7), broker(2), broker(5)];
        assert_eq!(leader(&live), Some(&live[1]));
        assert!(leads(&live, BrokerId(2)) && !leads(&live, BrokerId(5)));
        assert_eq!(leader(&[]), None);
        assert!(!leads(&[], BrokerId(1)));
    }
}
