//! How many connections there may be, in all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Resource, Rlimit};

/// Counts connections.
pub(crate) struct Admission {
    max: usize,
    max_per_address: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The right to a connection; dropping it gives it back, also when its task panics.
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    address: IpAddr,
}

/// Files that a broker needs besides its connections.
const OWN_FILES: u64 = 200;

/// Of the connections that are wanted, those for which the system gives files: what it allows is raised as far as it goes.
/// More would leave none for the store.
pub(crate) fn affordable(wanted: usize) -> usize {
    let files = rustix::process::getrlimit(Resource::Nofile);
    let needed = u64::try_from(wanted).unwrap_or(u64::MAX).saturating_add(OWN_FILES);
    let current = files.current.unwrap_or(u64::MAX);
    let possible = files.maximum.unwrap_or(u64::MAX).min(needed).max(current);
    let allowed = if possible > current {
        let raised = Rlimit { current: Some(possible), maximum: files.maximum };
        rustix::process::setrlimit(Resource::Nofile, raised).map_or(current, |()| possible)
    } else {
        current
    };
    let left = usize::try_from(allowed.saturating_sub(OWN_FILES)).unwrap_or(usize::MAX).max(1);
    if left < wanted {
        tracing::warn!(wanted, possible = left, "the system allows fewer connections; see ulimit -n");
    }
    left.min(wanted)
}

impl Admission {
    pub(crate) fn new(max: usize, max_per_address: usize) -> Arc<Self> {
        Arc::new(Self { max, max_per_address, open: Mutex::default() })
    }

    /// Counts one more of this address, if there may be one.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admitted> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let here = open.by_address.get(&address).copied().unwrap_or(0);
        if open.all >= self.max || here >= self.max_per_address {
            return None;
        }
        open.all += 1;
        open.by_address.insert(address, here + 1);
        Some(Admitted { admission: Arc::clone(self), address })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.all -= 1;
        match open.by_address.get_mut(&self.address) {
            Some(here) if *here > 1 => *here -= 1,
            _ => {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no more connections than the system gives files for. Method: few, and more than any system gives.
    #[test]
    fn connections_are_bounded_by_the_files_that_the_system_gives() {
        assert_eq!(affordable(10), 10);
        let most = affordable(usize::MAX);
        let files = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        assert!(most >= 10 && u64::try_from(most).expect("a number") <= files, "{most} of {files}");
    }

    /// Goal: both limits hold, and an end makes room. Method: three addresses against 3 in all and 2 each.
    #[test]
    fn connections_are_bounded_in_all_and_per_address() {
        let [a, b, c] = [1, 2, 3].map(|last| IpAddr::from([127, 0, 0, last]));
        let admission = Admission::new(3, 2);
        let first = admission.admit(a).expect("room");
        let _second = admission.admit(a).expect("room");
        assert!(admission.admit(a).is_none(), "two of one address are enough");
        let _third = admission.admit(b).expect("room");
        assert!(admission.admit(c).is_none(), "three in all are enough");
        drop(first);
        assert!(admission.admit(c).is_some());
        assert_eq!(admission.open.lock().expect("whole").by_address.len(), 2, "who left is forgotten");
    }
}
