//! What happens without a request: leases, retention, compaction, expiry, snapshots.
