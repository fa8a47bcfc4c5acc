//! The layout of our own tables in PostgreSQL: the steps that lead from nothing to the newest version.
//!
//! Invariant: a step that was ever released is never changed; what changes is a new step at the end of its list.
//! Not here: who runs the steps, and when (`tables`).

/// The steps of one set of tables: step `n` of the list leads to version `n`, counted from 1.
pub type Steps = &'static [&'static str];

/// The lists of both roles.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// What every role has: progress, epoch log, dead letters.
    pub target: Steps,
    /// What only a state store has besides.
    pub state: Steps,
}

/// What this program makes and understands.
pub const LAYOUT: Layout = Layout { target: &[TARGET_1], state: &[STATE_1] };

/// The tables of every role, in the order in which messages name them.
pub const TARGET_TABLES: [&str; 5] = ["meta", "progress", "epochs", "dead_letters", "adopted"];
/// The tables that only a state store has.
pub const STATE_TABLES: [&str; 6] = ["leases", "witness", "notes", "intents", "pauses", "suspects"];

// Names are compared byte by byte (COLLATE "C"): an index over them must not break when the server's libraries
// change how a language sorts.
//
// The progress row is written once per epoch. Half of each page stays free, so that the new version of the row fits
// beside the old one and no index has to follow it.
const TARGET_1: &str = r#"CREATE TABLE hapax.meta (
  name text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

CREATE TABLE hapax.progress (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  position text NOT NULL,
  incarnation text NOT NULL,
  contract text NOT NULL,
  snapshot text,
  session text NOT NULL,
  read bigint NOT NULL,
  delivered bigint NOT NULL,
  filtered bigint NOT NULL,
  dead bigint NOT NULL,
  rows bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) WITH (fillfactor = 50);

CREATE TABLE hapax.epochs (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  generation bigint NOT NULL,
  from_position text NOT NULL,
  to_position text NOT NULL,
  incarnation text NOT NULL,
  read bigint NOT NULL,
  delivered bigint NOT NULL,
  filtered bigint NOT NULL,
  dead bigint NOT NULL,
  rows bigint NOT NULL,
  opened_at_ms bigint NOT NULL,
  closed_at_ms bigint NOT NULL,
  committed_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane, epoch, generation)
);

CREATE TABLE hapax.dead_letters (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  generation bigint NOT NULL,
  position text NOT NULL,
  incarnation text NOT NULL,
  stage text NOT NULL,
  code text NOT NULL,
  message text NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  bytes bytea NOT NULL,
  length bigint NOT NULL,
  sha256 bytea,
  event_key text COLLATE "C",
  in_doubt boolean NOT NULL DEFAULT false,
  safe_until_ms bigint,
  written_at_ms bigint NOT NULL,
  state text NOT NULL DEFAULT 'dead' CHECK (state IN ('dead', 'replayed', 'discarded')),
  state_at_ms bigint,
  replay_count bigint NOT NULL DEFAULT 0
);
CREATE INDEX dead_letters_dead ON hapax.dead_letters (workflow, sink, id) WHERE state = 'dead';
CREATE INDEX dead_letters_causes ON hapax.dead_letters (fingerprint, id) WHERE state = 'dead';
CREATE INDEX dead_letters_counts ON hapax.dead_letters (workflow, sink, lane, state);
CREATE INDEX dead_letters_event_keys ON hapax.dead_letters (event_key) WHERE event_key IS NOT NULL;

CREATE TABLE hapax.adopted (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  by_workflow text NOT NULL,
  adopted_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
);
"#;

const STATE_1: &str = r#"CREATE TABLE hapax.leases (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  holder text NOT NULL,
  token text NOT NULL,
  expires_at_ms bigint NOT NULL,
  machine text NOT NULL,
  pid bigint NOT NULL,
  started bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) WITH (fillfactor = 50);

CREATE TABLE hapax.witness (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  position text NOT NULL,
  incarnation text NOT NULL,
  saved_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) WITH (fillfactor = 50);

CREATE TABLE hapax.notes (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  state text NOT NULL,
  exit_code bigint,
  code text,
  message text NOT NULL,
  session text NOT NULL,
  noted_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
);

CREATE TABLE hapax.intents (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  epoch bigint NOT NULL,
  from_position text NOT NULL,
  from_incarnation text NOT NULL,
  to_position text NOT NULL,
  to_incarnation text NOT NULL,
  digest bytea NOT NULL,
  saved_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
) WITH (fillfactor = 50);

CREATE TABLE hapax.pauses (
  workflow text COLLATE "C" PRIMARY KEY,
  paused_by text NOT NULL,
  why text NOT NULL,
  since_ms bigint NOT NULL,
  until_ms bigint
);

CREATE TABLE hapax.suspects (
  workflow text COLLATE "C" NOT NULL,
  sink text COLLATE "C" NOT NULL,
  lane text COLLATE "C" NOT NULL,
  position text NOT NULL,
  incarnation text NOT NULL,
  lives bigint NOT NULL,
  verdict text,
  noted_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)
);
"#;
