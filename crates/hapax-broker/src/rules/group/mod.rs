//! A classic group: who is in it, which generation, who leads, who waits for an answer.
//!
//! Reads: requests, timers that ran out, the time. Writes: nothing but itself; what must happen comes out as a [`Step`].
//! Invariant: every ticket that went in comes out with exactly one answer, and only the current generation is told OK.
//! Not here: clocks, locks, the store (`crate::group`).

mod check;
mod event;
mod expiry;
mod join;
mod leave;
mod member;
mod rebalance;
mod saved;
mod state;
mod subscription;
mod sync;

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod rig;

pub use event::{
    Answer, Identity, Join, JoinAnswer, JoinRefusal, Joined, JoinedMember, Leaving, Save, Step, Sync, SyncAnswer,
    Synced, Ticket, Timer,
};
pub use expiry::Expiry;
pub use member::{Member, Protocol};
pub use saved::SavedGroupError;
pub use state::{Group, Limits, Phase};
pub use subscription::{CONSUMER, Subscribed};
