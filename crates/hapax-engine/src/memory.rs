//! One memory budget for all buffers of the process; lanes borrow from it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How much all buffers together may hold.
#[derive(Debug)]
pub struct MemoryBudget {
    total: usize,
    used: AtomicUsize,
    returned: Notify,
}

impl MemoryBudget {
    /// A budget of `total` bytes.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total, used: AtomicUsize::new(0), returned: Notify::new() })
    }

    /// What is lent out now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// What one buffer has borrowed; given back when it is dropped.
#[derive(Debug)]
pub struct Loan {
    budget: Arc<MemoryBudget>,
    held: usize,
}

impl Loan {
    /// A loan of nothing yet.
    #[must_use]
    pub const fn new(budget: Arc<MemoryBudget>) -> Self {
        Self { budget, held: 0 }
    }

    /// Grows to `bytes` if the budget has room. A loan that is the only one may always grow to the whole budget, and
    /// a request beyond the whole budget counts as the whole: one large input must not wait for ever.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let wanted = bytes.min(self.budget.total).saturating_sub(self.held);
        let room = |used: usize| used.checked_add(wanted).filter(|sum| *sum <= self.budget.total);
        let grown = self.budget.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_ok();
        if grown {
            self.held += wanted;
        }
        grown
    }

    /// Grows to `bytes`, waiting for other loans to be returned. Cancel-safe: nothing is taken until it returns.
    pub async fn grow(&mut self, bytes: usize) {
        loop {
            let budget = Arc::clone(&self.budget);
            let returned = budget.returned.notified();
            if self.try_grow(bytes) {
                return;
            }
            returned.await;
        }
    }

    /// Sets the loan to what the buffer really holds, which may be a little more than was asked for.
    pub fn settle(&mut self, bytes: usize) {
        if bytes >= self.held {
            self.budget.used.fetch_add(bytes - self.held, Ordering::AcqRel);
        } else {
            self.budget.used.fetch_sub(self.held - bytes, Ordering::AcqRel);
            self.budget.returned.notify_waiters();
        }
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

    /// Goal: the budget is a bound, and a returned loan frees a waiter. Method: two loans on one budget.
    #[tokio::test]
    async fn a_loan_waits_until_another_is_returned() {
        let budget = MemoryBudget::new(100);
        let mut first = Loan::new(Arc::clone(&budget));
        let mut second = Loan::new(Arc::clone(&budget));
        assert!(first.try_grow(80));
        assert!(!second.try_grow(30));
        assert!(second.try_grow(20));
        let waiting = tokio::spawn(async move {
            second.grow(90).await;
            second
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        let second = waiting.await.expect("the waiter ends");
        assert_eq!(budget.used(), 90);
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    /// Goal: an input larger than the whole budget does not wait for ever.
    #[test]
    fn a_lone_loan_may_have_everything() {
        let mut loan = Loan::new(MemoryBudget::new(100));
        assert!(loan.try_grow(1_000));
    }
}
