//! Named points at which a prover kills, stops or pauses the broker, and planted bugs. Empty without the `fault` feature.
//!
//! The points: `append.before_commit`, `append.after_commit` (durable, not yet visible), `append.before_answer` (visible, not
//! yet answered), `broker.taken_over` (loaded, serving), `compaction.before_replace` (rows rewritten, not yet stored),
//! `compaction.after_replace`; `retention.start_moved` (durable, nobody told), `retention.before_trim` (a snapshot is there, the
//! rows, too); `group.before_save`, `group.after_save` (durable, nobody told), `offsets.before_commit`, `offsets.after_commit`
//! (durable, not yet answered).

pub use hapax_model::fault::{Bug, planted, point};
