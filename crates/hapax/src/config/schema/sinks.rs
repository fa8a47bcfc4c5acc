//! Where events go.

use super::rules_of_text::{
    COLUMN_NAME, CONDITION, FIELD_PATH, ID, MYSQL_TABLE, MYSQL_URL, PATH, POSTGRES_TABLE, POSTGRES_URL, TABLE_NAME,
};
use super::{Choice, Field, Kind, Table};
use hapax_connect::sqlite::config::BUSY_TIMEOUT;
use hapax_sql::limits::Limits;

/// What every session of a server limits itself to, unless the file says otherwise.
const LIMITS: Limits = Limits::DEFAULT;

const SQLITE_FIELD: Field = Field::new("sqlite", Kind::Object(&SQLITE), "A table of a SQLite database.");
const POSTGRES_FIELD: Field = Field::new("postgres", Kind::Object(&POSTGRES), "A table of a PostgreSQL database.");
const MYSQL_FIELD: Field = Field::new("mysql", Kind::Object(&MYSQL), "A table of a MySQL or MariaDB database.");
const KAFKA_FIELD: Field = Field::planned("kafka", "A topic of a Kafka cluster.");
const HTTP_FIELD: Field = Field::planned("http", "An HTTP endpoint.");
const OUTBOX_FIELD: Field = Field::planned("outbox", "An outbox table.");

const KINDS: &[&str] = &["sqlite", "postgres", "mysql", "kafka", "http", "outbox"];

pub(super) static SINK: Table = Table {
    name: "sink",
    doc: "Exactly one kind of sink.",
    fields: &[SQLITE_FIELD, POSTGRES_FIELD, MYSQL_FIELD, KAFKA_FIELD, HTTP_FIELD, OUTBOX_FIELD],
    exactly_one_of: KINDS,
};

pub(super) static NAMED_SINK: Table = Table {
    name: "sinks[]",
    doc: "A name and exactly one kind of sink.",
    fields: &[
        Field::new("name", Kind::Text(&ID), "Its name, unique in the workflow, and part of the progress key.")
            .required(),
        SQLITE_FIELD,
        POSTGRES_FIELD,
        MYSQL_FIELD,
        KAFKA_FIELD,
        HTTP_FIELD,
        OUTBOX_FIELD,
    ],
    exactly_one_of: KINDS,
};

static ON_CONFLICT: [Choice; 4] = [
    Choice { name: "append", doc: "every event is a new row; no key is looked at" },
    Choice { name: "ignore", doc: "the first event of a key stays" },
    Choice { name: "update", doc: "the last event of a key stays" },
    Choice { name: "newer", doc: "the event with the highest version stays; deletes are tombstones" },
];

static PROGRESS: [Choice; 2] = [
    Choice { name: "sink", doc: "in the target, in the same transaction as the rows" },
    Choice { name: "state", doc: "in the state store: rows and position are two commits" },
];

static STRICT: [Choice; 1] =
    [Choice { name: "strict", doc: "columns by name; an event with a field that has no column is rejected" }];

static PATH_OF_COLUMN: Kind = Kind::Text(&FIELD_PATH);

// What every table has, whatever its database.
const ON_CONFLICT_FIELD: Field = Field::new(
    "onConflict",
    Kind::Choice(&ON_CONFLICT),
    "What happens when a row's key exists. Without it: `update` where `keyFields` or a primary key are known, \
     else `append`; `hapax check` prints which.",
);
const KEY_COLUMN_FIELD: Field = Field::new(
    "keyColumn",
    Kind::Text(&COLUMN_NAME),
    "A column for the key: the entity key with `update` and `newer`, the event key with `ignore`. Without it the \
     unique index over `keyFields` is used.",
);
const VERSION_COLUMN_FIELD: Field = Field::new(
    "versionColumn",
    Kind::Text(&COLUMN_NAME),
    "The column that `newer` compares. Without it `hapax_version`, which the sink fills itself.",
);
const COLUMNS_FIELD: Field = Field::new(
    "columns",
    Kind::Map { of: &PATH_OF_COLUMN, or: &STRICT },
    "Only what differs from the event's names: column and path, such as `{ id: .order.id }`. Fields of an event \
     without a column are counted and named once.",
);
const DELETE_WHEN_FIELD: Field = Field::new(
    "deleteWhen",
    Kind::Text(&CONDITION),
    "An event that matches deletes its row (`update`) or marks it as deleted (`newer`).",
);
const PROGRESS_FIELD: Field =
    Field::new("progress", Kind::Choice(&PROGRESS), "Where the delivery's progress is kept.").or("sink");
const CONNECTIONS_FIELD: Field = Field::new(
    "connections",
    Kind::Integer { least: 1, most: 1000 },
    "How many sessions all lanes and workflows of this process share with this database. Where several workflows name \
     one `url`, the largest number counts.",
)
.or("8");
const PROGRESS_INTERVAL_FIELD: Field = Field::new(
    "progressInterval",
    Kind::Duration { least: 1, most: 3_600_000 },
    "How often the position is saved with `progress: state`.",
)
.or("1s");

static SQLITE: Table = Table {
    name: "sink.sqlite",
    doc: "A table of a SQLite database. Columns are filled by name, with the types of the live table.",
    fields: &[
        Field::new(
            "path",
            Kind::Text(&PATH),
            "The database file. A relative path begins at the configuration's own folder.",
        )
        .required(),
        Field::new("table", Kind::Text(&TABLE_NAME), "The table; always quoted.").required(),
        ON_CONFLICT_FIELD,
        KEY_COLUMN_FIELD,
        VERSION_COLUMN_FIELD,
        COLUMNS_FIELD,
        DELETE_WHEN_FIELD,
        PROGRESS_FIELD,
        PROGRESS_INTERVAL_FIELD,
        Field::new(
            "busyTimeout",
            Kind::Duration { least: 0, most: 3_600_000 },
            "How long to wait for another writer of the database.",
        )
        .or_seconds(BUSY_TIMEOUT),
    ],
    exactly_one_of: &[],
};

static POSTGRES: Table = Table {
    name: "sink.postgres",
    doc: "A table of a PostgreSQL database. Columns are filled by name, with the types of the live table.",
    fields: &[
        Field::new(
            "url",
            Kind::Text(&POSTGRES_URL),
            "The database, as libpq writes it: user, password, hosts, database, `sslmode`, `sslrootcert`, `sslcert`, \
             `sslkey`. The password is best kept in a variable.",
        )
        .required(),
        Field::new(
            "table",
            Kind::Text(&POSTGRES_TABLE),
            "The table, with its schema if it is not found by the search path; always quoted, so upper case counts.",
        )
        .required(),
        ON_CONFLICT_FIELD,
        KEY_COLUMN_FIELD,
        VERSION_COLUMN_FIELD,
        COLUMNS_FIELD,
        DELETE_WHEN_FIELD,
        PROGRESS_FIELD,
        PROGRESS_INTERVAL_FIELD,
        CONNECTIONS_FIELD,
        Field::new(
            "statementTimeout",
            Kind::Duration { least: 100, most: 3_600_000 },
            "How long one statement may run before the server ends it.",
        )
        .or_seconds(LIMITS.statement),
        Field::new(
            "lockTimeout",
            Kind::Duration { least: 10, most: 3_600_000 },
            "How long one statement may wait for a lock.",
        )
        .or_seconds(LIMITS.lock),
        Field::new(
            "idleTimeout",
            Kind::Duration { least: 1_000, most: 3_600_000 },
            "How long an open transaction may wait for its worker before the server ends the session: what frees the \
             locks of a worker that hangs.",
        )
        .or_seconds(LIMITS.idle_in_transaction),
    ],
    exactly_one_of: &[],
};

static MYSQL: Table = Table {
    name: "sink.mysql",
    doc: "A table of a MySQL or MariaDB database. Columns are filled by name, with the types of the live table.",
    fields: &[
        Field::new(
            "url",
            Kind::Text(&MYSQL_URL),
            "The database: `mysql://user:password@host:port/database`, with `ssl-mode`, `ssl-ca`, `ssl-cert`, `ssl-key` \
             as options. The password is best kept in a variable.",
        )
        .required(),
        Field::new(
            "table",
            Kind::Text(&MYSQL_TABLE),
            "The table, with its database if it is not the one of `url`; always quoted.",
        )
        .required(),
        ON_CONFLICT_FIELD,
        KEY_COLUMN_FIELD,
        VERSION_COLUMN_FIELD,
        COLUMNS_FIELD,
        DELETE_WHEN_FIELD,
        PROGRESS_FIELD,
        PROGRESS_INTERVAL_FIELD,
        CONNECTIONS_FIELD,
        Field::new(
            "statementTimeout",
            Kind::Duration { least: 1_000, most: 3_600_000 },
            "How long one statement may run before it is ended.",
        )
        .or_seconds(LIMITS.statement),
        Field::new(
            "lockTimeout",
            Kind::Duration { least: 1_000, most: 3_600_000 },
            "How long one statement may wait for a lock; the server counts whole seconds.",
        )
        .or_seconds(LIMITS.lock),
        Field::new(
            "idleTimeout",
            Kind::Duration { least: 1_000, most: 3_600_000 },
            "How long an open transaction may wait for its worker before the server ends the session: what frees the \
             locks of a worker that hangs. MySQL has this limit only for the whole session.",
        )
        .or_seconds(LIMITS.idle_in_transaction),
    ],
    exactly_one_of: &[],
};
