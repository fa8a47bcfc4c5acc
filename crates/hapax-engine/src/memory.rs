//! One memory budget for all buffers of the process; deliveries borrow from it, and each keeps a reserve of its own.
//!
//! Invariant: a delivery that holds no more than its reserve never waits for another one, whatever the others hold.
//! Not here: what a buffer does when it gets no more (`runtime/fill.rs`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hapax_model::fault::{Bug, planted};
use tokio::sync::Notify;

/// What every delivery may always hold: one chunk of the filler. Longer inputs borrow the rest.
pub const RESERVE_BYTES: usize = 1024 * 1024;

/// How much all buffers together may hold.
#[derive(Debug)]
pub struct MemoryBudget {
    total: usize,
    lent: Mutex<Lent>,
    returned: Notify,
}

/// What is lent out.
#[derive(Debug, Default)]
struct Lent {
    /// By all deliveries together, their reserves included.
    held: usize,
    /// Of that, what is beyond the reserves.
    borrowed: usize,
    /// How many deliveries keep a reserve.
    reserves: usize,
}

impl MemoryBudget {
    /// A budget of `total` bytes.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, lent: Mutex::default(), returned: Notify::new() })
    }

    /// What is lent out now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lent().held
    }

    /// What may be borrowed beyond the reserves. Where there are more deliveries than the budget has reserves, each still
    /// keeps its own, and nothing is left to borrow.
    fn shared(&self, lent: &Lent) -> usize {
        if planted(Bug::NoReserve) {
            return self.total;
        }
        self.total.saturating_sub(lent.reserves.saturating_mul(RESERVE_BYTES))
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of one delivery: its reserve, and what its buffers borrow. The reserve is kept as long as this lives.
#[derive(Debug)]
pub struct DeliveryMemory {
    budget: Arc<MemoryBudget>,
    /// What its buffers hold together. Changed only under the budget's lock.
    held: Mutex<usize>,
}

impl DeliveryMemory {
    /// Sets a reserve aside for one more delivery.
    #[must_use]
    pub fn new(budget: Arc<MemoryBudget>) -> Arc<Self> {
        budget.lent().reserves += 1;
        Arc::new(Self { budget, held: Mutex::new(0) })
    }

    /// Whether this delivery may hold `more` bytes; if so it does from now on.
    fn try_take(&self, more: usize) -> bool {
        let mut lent = self.budget.lent();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let borrowed = beyond_reserve(held.saturating_add(more)) - beyond_reserve(*held);
        if borrowed > 0 && lent.borrowed.saturating_add(borrowed) > self.budget.shared(&lent) {
            return false;
        }
        *held += more;
        lent.held += more;
        lent.borrowed += borrowed;
        true
    }

    /// Takes or gives back the difference, whether or not there is room.
    fn change(&self, from: usize, to: usize) {
        let mut lent = self.budget.lent();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let after = *held - from + to;
        lent.held = lent.held - from + to;
        lent.borrowed = lent.borrowed - beyond_reserve(*held) + beyond_reserve(after);
        *held = after;
        drop((held, lent));
        if to < from {
            self.budget.returned.notify_waiters();
        }
    }
}

impl Drop for DeliveryMemory {
    fn drop(&mut self) {
        self.budget.lent().reserves -= 1;
        self.budget.returned.notify_waiters();
    }
}

fn beyond_reserve(held: usize) -> usize {
    if planted(Bug::NoReserve) { held } else { held.saturating_sub(RESERVE_BYTES) }
}

/// What one buffer of a delivery holds; given back when it is dropped.
#[derive(Debug)]
pub struct Loan {
    memory: Arc<DeliveryMemory>,
    held: usize,
}

impl Loan {
    /// A loan of nothing yet.
    #[must_use]
    pub const fn new(memory: Arc<DeliveryMemory>) -> Self {
        Self { memory, held: 0 }
    }

    /// Grows to `bytes` if the delivery's reserve or the budget has room.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(self.held);
        let grown = self.memory.try_take(wanted);
        if grown {
            self.held += wanted;
        }
        grown
    }

    /// Grows to the size of the reserve, which waits at most for the delivery's own other buffer. Cancel-safe: nothing is
    /// taken until it returns.
    pub async fn grow_to_reserve(&mut self) {
        loop {
            let memory = Arc::clone(&self.memory);
            let mut returned = std::pin::pin!(memory.budget.returned.notified());
            // Enabled before the try: what is returned between the two wakes it.
            returned.as_mut().enable();
            if self.try_grow(RESERVE_BYTES) {
                return;
            }
            returned.await;
        }
    }

    /// Sets the loan to what the buffer really holds, which may be a little more than was asked for.
    pub fn settle(&mut self, bytes: usize) {
        self.memory.change(self.held, bytes);
        self.held = bytes;
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.settle(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn loan(memory: &Arc<DeliveryMemory>) -> Loan {
        Loan::new(Arc::clone(memory))
    }

    /// Goal: the budget is a bound beyond the reserves. Method: two deliveries on one budget of ten MiB, two of which are
    /// their reserves.
    #[test]
    fn what_is_borrowed_beyond_the_reserves_is_bounded() {
        let budget = MemoryBudget::new(10 * MIB);
        let (one, other) = (DeliveryMemory::new(Arc::clone(&budget)), DeliveryMemory::new(Arc::clone(&budget)));
        let (mut first, mut second) = (loan(&one), loan(&other));
        assert!(first.try_grow(8 * MIB));
        assert!(!second.try_grow(3 * MIB), "seven of eight are borrowed");
        assert!(second.try_grow(2 * MIB));
        assert_eq!(budget.used(), 10 * MIB);
        drop(first);
        assert!(second.try_grow(9 * MIB) && !second.try_grow(100 * MIB));
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    /// Goal: a delivery waits for its own other buffer, and for nobody else. Method: its first buffer holds the reserve while
    /// another delivery holds everything else; the second buffer has the reserve once the first is returned.
    #[tokio::test]
    async fn a_buffer_waits_for_the_other_one_of_its_delivery_only() {
        let budget = MemoryBudget::new(4 * MIB);
        let (greedy, modest) = (DeliveryMemory::new(Arc::clone(&budget)), DeliveryMemory::new(Arc::clone(&budget)));
        let (mut taken, mut committing, mut filling) = (loan(&greedy), loan(&modest), loan(&modest));
        taken.settle(40 * MIB);
        assert!(committing.try_grow(MIB));
        let waiting = tokio::spawn(async move {
            filling.grow_to_reserve().await;
            filling
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(committing);
        drop(waiting.await.expect("the waiter ends"));
        assert_eq!(budget.used(), 40 * MIB);
    }

    /// Goal: nobody can take a delivery's reserve. Method: another takes all that it can, by asking and beyond it; the
    /// reserve is there, in one buffer or in two, and a byte more is not.
    #[test]
    fn a_reserve_is_there_whatever_others_hold() {
        let budget = MemoryBudget::new(4 * MIB);
        let (greedy, modest) = (DeliveryMemory::new(Arc::clone(&budget)), DeliveryMemory::new(Arc::clone(&budget)));
        let mut taken = loan(&greedy);
        assert!(taken.try_grow(3 * MIB) && !taken.try_grow(3 * MIB + 1));
        taken.settle(40 * MIB);
        let (mut filling, mut committing) = (loan(&modest), loan(&modest));
        assert!(filling.try_grow(MIB / 2) && committing.try_grow(MIB / 2));
        assert!(!filling.try_grow(MIB / 2 + 1));
        drop(committing);
        assert!(filling.try_grow(MIB));
    }

    /// Goal: reserves that the budget cannot hold are kept all the same. Method: five deliveries, a budget for two.
    #[test]
    fn more_deliveries_than_reserves_each_keep_theirs() {
        let budget = MemoryBudget::new(2 * MIB);
        let deliveries: Vec<_> = (0..5).map(|_| DeliveryMemory::new(Arc::clone(&budget))).collect();
        let mut loans: Vec<_> = deliveries.iter().map(loan).collect();
        assert!(loans.iter_mut().all(|loan| loan.try_grow(MIB)));
        assert!(!loans[0].try_grow(MIB + 1), "there is nothing to borrow");
        drop((loans, deliveries));
        let alone = DeliveryMemory::new(Arc::clone(&budget));
        assert!(loan(&alone).try_grow(2 * MIB), "the reserves of others end with them");
    }
}
