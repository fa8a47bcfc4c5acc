//! The ledger: every input read is delivered, filtered, dead or in flight, and nothing else.

/// Totals of a delivery since its first claim. They commit with the data, so they never disagree with it.
///
/// Counted in inputs; `rows` is a second counter, because one input may make several rows, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Inputs read from the source.
    pub read: u64,
    /// Inputs all of whose outputs are in the target.
    pub delivered: u64,
    /// Inputs that had no output.
    pub filtered: u64,
    /// Inputs of which an output, or the input itself, became a dead letter.
    pub dead: u64,
    /// Rows (or records, or requests) written.
    pub rows: u64,
}

impl Totals {
    /// These totals with `counts` of one epoch added.
    #[must_use]
    pub const fn plus(self, counts: Self) -> Self {
        Self {
            read: self.read + counts.read,
            delivered: self.delivered + counts.delivered,
            filtered: self.filtered + counts.filtered,
            dead: self.dead + counts.dead,
            rows: self.rows + counts.rows,
        }
    }

    /// Whether the books balance for committed totals, which have nothing in flight.
    #[must_use]
    pub const fn adds_up(&self) -> bool {
        self.read == self.delivered + self.filtered + self.dead
    }
}

/// A delivery's books at one moment: committed totals and what is read but not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ledger {
    /// What committed.
    pub totals: Totals,
    /// Inputs read by the live worker and not yet committed.
    pub in_flight: u64,
}

impl Ledger {
    /// All inputs read so far, the ones in flight included.
    #[must_use]
    pub const fn read(&self) -> u64 {
        self.totals.read + self.in_flight
    }

    /// `read = delivered + filtered + dead + in flight`, the law of the ledger.
    #[must_use]
    pub const fn adds_up(&self) -> bool {
        self.read() == self.totals.delivered + self.totals.filtered + self.totals.dead + self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a lost or doubled count is seen. Method: each counter off by one.
    #[test]
    fn the_books_balance_only_if_every_input_has_one_fate() {
        let good = Totals { read: 10, delivered: 7, filtered: 2, dead: 1, rows: 9 };
        assert!(good.adds_up());
        assert!(Ledger { totals: good, in_flight: 5 }.adds_up());
        for bad in [
            Totals { read: 11, ..good },
            Totals { delivered: 8, ..good },
            Totals { filtered: 1, ..good },
            Totals { dead: 0, ..good },
        ] {
            assert!(!bad.adds_up());
            assert!(!Ledger { totals: bad, in_flight: 5 }.adds_up());
        }
    }

    /// Goal: totals add field by field.
    #[test]
    fn an_epoch_adds_to_every_total() {
        let a = Totals { read: 1, delivered: 2, filtered: 3, dead: 4, rows: 5 };
        let b = Totals { read: 10, delivered: 20, filtered: 30, dead: 40, rows: 50 };
        assert_eq!(a.plus(b), Totals { read: 11, delivered: 22, filtered: 33, dead: 44, rows: 55 });
    }
}
