//! The tables of the embedded store, and its version.
//!
//! A person may look at all of them with `sqlite3` while the broker runs. Times are milliseconds since 1970.
//! `batches` says where each row of the log stands, `batch_data` holds its bytes: lists, sizes, searches by time and
//! trimming never touch the pages of the data.

/// The version of these tables. A file with a greater one was written by a newer program.
pub(super) const VERSION: i64 = 1;

/// SQLite's `application_id` of our files: "hpxb".
pub(super) const APPLICATION_ID: i32 = 0x6870_7862;

/// All tables. Numbers of topics and partitions are never given out twice (`AUTOINCREMENT`).
pub(super) const TABLES: &str = r#"
CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

CREATE TABLE topics (id INTEGER PRIMARY KEY AUTOINCREMENT, uuid BLOB NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL);
CREATE TABLE partitions (id INTEGER PRIMARY KEY AUTOINCREMENT, topic_id INTEGER NOT NULL, "index" INTEGER NOT NULL,
    leader INTEGER, leader_epoch INTEGER NOT NULL DEFAULT 0, log_start INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic_id, "index"));
CREATE TABLE leader_epochs (partition_id INTEGER NOT NULL, epoch INTEGER NOT NULL, start_offset INTEGER NOT NULL,
    PRIMARY KEY (partition_id, epoch)) WITHOUT ROWID;

CREATE TABLE batches (partition_id INTEGER NOT NULL, base_offset INTEGER NOT NULL, last_offset INTEGER NOT NULL,
    size INTEGER NOT NULL, high_timestamp INTEGER NOT NULL, data_id INTEGER NOT NULL,
    PRIMARY KEY (partition_id, base_offset)) WITHOUT ROWID;
CREATE TABLE batch_data (id INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- Partitions of deleted topics whose rows are still to be removed, a few megabytes at a time.
CREATE TABLE removed_partitions (partition_id INTEGER PRIMARY KEY);

CREATE TABLE producer_ids (producer_id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL DEFAULT 0, client_id TEXT,
    transactional_id TEXT, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL);
CREATE INDEX producer_ids_by_transactional_id ON producer_ids (transactional_id) WHERE transactional_id IS NOT NULL;
CREATE TABLE snapshots (partition_id INTEGER PRIMARY KEY, upto INTEGER NOT NULL);
CREATE TABLE producer_sequences (producer_id INTEGER NOT NULL, topic_id INTEGER NOT NULL, partition_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL, last_sequence INTEGER NOT NULL DEFAULT -1, ring BLOB NOT NULL, open_since INTEGER,
    upto INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    PRIMARY KEY (partition_id, producer_id)) WITHOUT ROWID;
CREATE TABLE transactions (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, serial INTEGER NOT NULL,
    state INTEGER NOT NULL, version INTEGER NOT NULL, producer_id INTEGER NOT NULL, epoch INTEGER NOT NULL,
    last_epoch INTEGER NOT NULL, prev_producer_id INTEGER NOT NULL, next_producer_id INTEGER NOT NULL,
    timeout_ms INTEGER NOT NULL, updated INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE shards (id INTEGER PRIMARY KEY, epoch INTEGER NOT NULL);
CREATE TABLE "groups" (id TEXT PRIMARY KEY, empty_since INTEGER, state BLOB NOT NULL);
CREATE TABLE group_offsets (group_id TEXT NOT NULL, topic_id INTEGER NOT NULL, "index" INTEGER NOT NULL,
    "offset" INTEGER NOT NULL, leader_epoch INTEGER NOT NULL, metadata TEXT NOT NULL, committed INTEGER NOT NULL,
    PRIMARY KEY (group_id, topic_id, "index")) WITHOUT ROWID;
CREATE INDEX group_offsets_by_topic ON group_offsets (topic_id);

INSERT INTO meta VALUES ('next_producer_id', 0);
INSERT INTO shards VALUES (0, 0);
"#;
