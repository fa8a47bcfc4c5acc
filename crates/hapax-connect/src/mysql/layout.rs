//! The layout of our own tables in MySQL and MariaDB: the steps that lead from nothing to the newest version.
//!
//! Invariant: a step that was ever released is never changed; what changes is a new step at the end of its list.
//! DDL commits at once here, so every statement of a step may find its own work done already, by a setup that was
//! ended in the middle. Not here: who runs the steps, and when (`tables`).

use hapax_sql::mysql::Flavour;

/// Step `n` of the list leads to version `n`, counted from 1; a step is a list of statements.
pub type Steps = &'static [&'static [&'static str]];

/// What this program makes and understands.
pub const LAYOUT: Steps = &[&STEP_1];

/// Our tables, in the order in which messages name them. `hapax_meta` is made first and dropped last: it says whether
/// the others are whole.
pub const TABLES: [&str; 5] = ["hapax_meta", "hapax_progress", "hapax_epochs", "hapax_dead_letters", "hapax_adopted"];

/// With this every table of ours begins its comment: a stranger's table of the same name does not.
pub const MARK: &str = "Hapax: ";

/// How many characters the names of a delivery may have: they are keys, and InnoDB keys have 3,072 bytes at most.
pub const LONGEST_NAME: usize = 120;
/// How many characters a lane may have.
pub const LONGEST_LANE: usize = 512;
/// How many characters of a cause's fingerprint are kept.
pub const LONGEST_FINGERPRINT: usize = 1_000;
/// How many characters of an event key are kept; ours have 100 at most.
pub const LONGEST_KEY: usize = 255;

/// What the statements write where the collation is named.
const COLLATION: &str = "{exact}";

/// A statement of the layout as this server takes it.
///
/// Names must be compared byte by byte, a space at the end included. The one collation that both servers share,
/// `utf8mb4_bin`, takes "a" and "a " for the same key; the exact one has a name of its own in each.
#[must_use]
pub fn for_server(statement: &str, flavour: Flavour) -> String {
    let exact = match flavour {
        Flavour::MariaDb => "utf8mb4_nopad_bin",
        Flavour::Mysql => "utf8mb4_0900_bin",
    };
    statement.replace(COLLATION, exact)
}

/// What every table of ours says about itself.
macro_rules! table {
    ($name:literal, $columns:literal, $about:literal) => {
        concat!(
            "CREATE TABLE IF NOT EXISTS ",
            $name,
            " (\n",
            $columns,
            "\n) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE {exact}\n  COMMENT 'Hapax: ",
            $about,
            "'"
        )
    };
}

// In `hapax_progress`, `connection_id` is the server's number of the session that wrote the row last. While that
// session's transaction is open, a reader of uncommitted rows learns from it who holds the row.
const STEP_1: [&str; 5] = [
    table!(
        "hapax_meta",
        "  name varchar(100) NOT NULL,
  value varchar(255) NOT NULL,
  PRIMARY KEY (name)",
        "the version of these tables, and their own id"
    ),
    table!(
        "hapax_progress",
        "  workflow varchar(120) NOT NULL,
  sink varchar(120) NOT NULL,
  lane varchar(512) NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  position varchar(255) NOT NULL,
  incarnation text NOT NULL,
  contract text NOT NULL,
  snapshot text,
  session text NOT NULL,
  connection_id bigint NOT NULL,
  `read` bigint NOT NULL,
  delivered bigint NOT NULL,
  filtered bigint NOT NULL,
  dead bigint NOT NULL,
  `rows` bigint NOT NULL,
  updated_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)",
        "where each delivery stands"
    ),
    table!(
        "hapax_epochs",
        "  workflow varchar(120) NOT NULL,
  sink varchar(120) NOT NULL,
  lane varchar(512) NOT NULL,
  epoch bigint NOT NULL,
  generation bigint NOT NULL,
  from_position varchar(255) NOT NULL,
  to_position varchar(255) NOT NULL,
  incarnation text NOT NULL,
  `read` bigint NOT NULL,
  delivered bigint NOT NULL,
  filtered bigint NOT NULL,
  dead bigint NOT NULL,
  `rows` bigint NOT NULL,
  opened_at_ms bigint NOT NULL,
  closed_at_ms bigint NOT NULL,
  committed_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane, epoch, generation)",
        "one row for each of the last epochs"
    ),
    table!(
        "hapax_dead_letters",
        "  id bigint NOT NULL AUTO_INCREMENT,
  workflow varchar(120) NOT NULL,
  sink varchar(120) NOT NULL,
  lane varchar(512) NOT NULL,
  epoch bigint NOT NULL,
  generation bigint NOT NULL,
  position varchar(255) NOT NULL,
  incarnation text NOT NULL,
  stage varchar(50) NOT NULL,
  code varchar(50) NOT NULL,
  message mediumtext NOT NULL,
  fingerprint varchar(1000) NOT NULL,
  bytes longblob NOT NULL,
  length bigint NOT NULL,
  sha256 binary(32),
  event_key varchar(255),
  in_doubt tinyint(1) NOT NULL DEFAULT 0,
  safe_until_ms bigint,
  written_at_ms bigint NOT NULL,
  state varchar(10) NOT NULL DEFAULT 'dead' CHECK (state IN ('dead', 'replayed', 'discarded')),
  state_at_ms bigint,
  replay_count bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  KEY dead_letters_states (state, id),
  KEY dead_letters_causes (state, fingerprint(200), id),
  KEY dead_letters_counts (workflow, sink, lane, state),
  KEY dead_letters_event_keys (event_key)",
        "inputs that could not be delivered"
    ),
    table!(
        "hapax_adopted",
        "  workflow varchar(120) NOT NULL,
  sink varchar(120) NOT NULL,
  lane varchar(512) NOT NULL,
  by_workflow varchar(120) NOT NULL,
  adopted_at_ms bigint NOT NULL,
  PRIMARY KEY (workflow, sink, lane)",
        "names that a renamed workflow had"
    ),
];
