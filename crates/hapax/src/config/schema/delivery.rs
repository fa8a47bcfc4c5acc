//! The `delivery:` block.

use super::rules_of_text::{ANY_TEXT, FIELD_PATH, KEY_FORMAT, STRATEGY};
use super::{Choice, Field, Kind, Table};

const DAY: u64 = 86_400_000;
const YEARS: u64 = 3660 * DAY;
const HOUR: u64 = 3_600_000;

static GUARANTEES: [Choice; 4] = [
    Choice { name: "at-most-once", doc: "an event may be lost; none arrives twice" },
    Choice { name: "at-least-once", doc: "no event is lost; one may arrive twice" },
    Choice { name: "idempotent-keys", doc: "no event is lost; what arrives twice carries the same key" },
    Choice { name: "exactly-once", doc: "no event is lost and none takes effect twice" },
];

static MECHANISMS: [Choice; 4] = [
    Choice { name: "kafka-offsets", doc: "the source's position, of whatever source, is saved apart from the data" },
    Choice { name: "generated-keys", doc: "every event carries a key that a repetition carries too" },
    Choice { name: "transaction", doc: "data and position are one transaction of the target" },
    Choice { name: "transactional-outbox", doc: "events are stored with their position, and sent from there" },
];

static ON_REJECT: [Choice; 2] = [
    Choice { name: "deadLetter", doc: "it becomes a dead letter in the epoch's transaction; the rest goes on" },
    Choice { name: "stop", doc: "the epoch is not committed and the workflow stops" },
];

static CONDITIONS: [Choice; 3] = [
    Choice { name: "one-worker", doc: "there is never more than one live worker" },
    Choice { name: "engine-survives-crash", doc: "the storage engine keeps what it acknowledged" },
    Choice { name: "custom-key-deterministic", doc: "the custom key function gives the same key for the same event" },
];

static ISOLATION: [Choice; 2] = [
    Choice { name: "read_committed", doc: "readers see only records of committed transactions" },
    Choice { name: "read_uncommitted", doc: "readers see all records" },
];

static HASHES: [Choice; 1] = [Choice { name: "SHA256", doc: "the only one" }];

static ONE_CONDITION: Kind = Kind::Choice(&CONDITIONS);
static ONE_FIELD: Kind = Kind::Text(&FIELD_PATH);
static ONE_WAIT: Kind = Kind::Integer { least: 0, most: DAY };

pub(crate) static DELIVERY: Table = Table {
    name: "delivery",
    doc: "What a workflow promises, and how it keeps it.",
    fields: &[
        Field::new("guarantee", Kind::Choice(&GUARANTEES), "The promise; audited before the workflow starts.")
            .or("idempotent-keys"),
        Field::new(
            "mechanism",
            Kind::Choice(&MECHANISMS),
            "How the promise is kept; derived if it is not written, checked if it is.",
        ),
        Field::new("deduplication", Kind::Object(&DEDUPLICATION), "What names an event.").or("{}"),
        Field::new("idempotencyKey", Kind::Object(&IDEMPOTENCY_KEY), "What a key is made of and how it travels.")
            .or("{}"),
        Field::new("retries", Kind::Object(&RETRIES), "When a failed attempt is tried again.").or("{}"),
        Field::new("epoch", Kind::Object(&EPOCH), "When a commit happens, and how long it may take.").or("{}"),
        Field::new("onReject", Kind::Choice(&ON_REJECT), "What happens to an event that cannot be delivered.")
            .or("deadLetter"),
        Field::new(
            "maxRejects",
            Kind::Share,
            "More rejects than this among the last 1,000 events since the worker started stop the workflow.",
        )
        .or("10%"),
        Field::new(
            "claimTimeout",
            Kind::Duration { least: 1, most: HOUR },
            "How long a claim waits before it ends the sessions that block it.",
        )
        .or("10s"),
        Field::new(
            "lease",
            Kind::Duration { least: 100, most: HOUR },
            "After how long without a sign of life another worker takes over.",
        )
        .or("5s"),
        Field::new("receiver", Kind::Object(&RECEIVER), "A condition: what the receiver does with our keys."),
        Field::new("readers", Kind::Object(&READERS), "A condition: how the target's readers read."),
        Field::new("writer", Kind::Object(&WRITER), "A condition: how the application writes its outbox."),
        Field::new(
            "conditions",
            Kind::List { of: &ONE_CONDITION, fewest: 0, most: 3 },
            "Other conditions that hold, as the workflow states it.",
        )
        .or("[]"),
        Field::new("clientGuidance", Kind::Boolean, "Whether `check` prints the text for clients without being asked.")
            .or("false"),
        Field::new("documentation", Kind::Object(&DOCUMENTATION), "What the text for clients mentions.").or("{}"),
        Field::new("autoFenceOnStartup", Kind::Boolean, "Accepted and without effect: fencing cannot be switched off."),
    ],
    exactly_one_of: &[],
};

static DEDUPLICATION: Table = Table {
    name: "delivery.deduplication",
    doc: "What names an event.",
    fields: &[
        Field::new(
            "keyFields",
            Kind::List { of: &ONE_FIELD, fewest: 1, most: 32 },
            "The fields that name the thing an event is about: the entity key. The event key adds the version.",
        ),
        Field::new(
            "ttl",
            Kind::Duration { least: 1, most: YEARS },
            "How long our own memory of keys lasts; the receiver's is `receiver.keyTtl`.",
        ),
        Field::new("unique", Kind::Boolean, "The fields alone name the event; no version is needed.").or("false"),
        Field::new(
            "strategy",
            Kind::Text(&STRATEGY),
            "How keys are made: `content`, `content-with-epoch`, `composite`, `epoch-sequence`, `source-offset`, \
             `change-key`, `derived`, `window-sequence` or `custom:NAME`; derived from the source and `keyFields` if it \
             is not written.",
        ),
    ],
    exactly_one_of: &[],
};

static IDEMPOTENCY_KEY: Table = Table {
    name: "delivery.idempotencyKey",
    doc: "What a key is made of and how it travels.",
    fields: &[
        Field::new(
            "format",
            Kind::Text(&KEY_FORMAT),
            "The parts of the key of a changed row; no source gives such rows yet, so it changes no key, and `check` says so. \
             What stands between the braces is for the eye and never enters the key.",
        )
        .or("\"{database}:{table}:{primaryKey}:{changeVersion}\""),
        Field::new("hashAlgorithm", Kind::Choice(&HASHES), "How the parts become a key.").or("SHA256"),
        Field::new("includedInPayload", Kind::Boolean, "Whether the key is in the message itself too.").or("true"),
    ],
    exactly_one_of: &[],
};

static RETRIES: Table = Table {
    name: "delivery.retries",
    doc: "When a failed attempt is tried again.",
    fields: &[
        Field::new("enabled", Kind::Boolean, "Off means one attempt.").or("true"),
        Field::new(
            "maxAttempts",
            Kind::Integer { least: 1, most: 1000 },
            "How often `run --once` tries at its start to reach the source, or a target on a server; the first try is one of them. \
             A worker that follows, and every commit, is bounded by `giveUpAfter` alone.",
        )
        .or("5"),
        Field::new(
            "backoffMs",
            Kind::List { of: &ONE_WAIT, fewest: 1, most: 100 },
            "The longest wait after the first, second, … failed attempt, in milliseconds; the last one repeats.",
        )
        .or("[1000, 2000, 5000, 10000, 30000]"),
        Field::new(
            "giveUpAfter",
            Kind::Duration { least: 1, most: YEARS },
            "No attempt comes later than this after the first that failed.",
        )
        .or("1h"),
    ],
    exactly_one_of: &[],
};

static EPOCH: Table = Table {
    name: "delivery.epoch",
    doc: "An epoch is what one commit makes visible. The first of the three bounds closes it.",
    fields: &[
        Field::new(
            "interval",
            Kind::Duration { least: 1, most: HOUR },
            "The longest time from its first event to its commit.",
        )
        .or("200ms"),
        Field::new("maxEvents", Kind::Integer { least: 1, most: 10_000_000 }, "How many events it may hold at most. On a backlog a worker begins with 1,000 and doubles them while that pays.")
            .or("100000"),
        Field::new("maxBytes", Kind::Size { least: 1 << 10, most: 1 << 30 }, "How large its events may be together.")
            .or("64MiB"),
        Field::new(
            "commitTimeout",
            Kind::Duration { least: 1, most: HOUR },
            "After this a commit is in doubt, and is looked up.",
        )
        .or("30s"),
        Field::new(
            "abortTimeout",
            Kind::Duration { least: 1, most: HOUR },
            "After this an abort is given up, and the next claim of the delivery does it.",
        )
        .or("10s"),
    ],
    exactly_one_of: &[],
};

static RECEIVER: Table = Table {
    name: "delivery.receiver",
    doc: "What the receiver of HTTP calls does, as the workflow states it.",
    fields: &[
        Field::new("deduplicates", Kind::Boolean, "It remembers keys and does nothing twice."),
        Field::new("keyTtl", Kind::Duration { least: 1, most: YEARS }, "For how long it remembers them."),
        Field::new("refusesOlder", Kind::Boolean, "It refuses a version older than the one it has."),
    ],
    exactly_one_of: &[],
};

static READERS: Table = Table {
    name: "delivery.readers",
    doc: "How those who read a Kafka target read, as the workflow states it.",
    fields: &[Field::new("isolation", Kind::Choice(&ISOLATION), "Which records they see.")],
    exactly_one_of: &[],
};

static WRITER: Table = Table {
    name: "delivery.writer",
    doc: "How the application fills its outbox, as the workflow states it.",
    fields: &[Field::new("serialisesKeys", Kind::Boolean, "It writes the events of one key one after the other.")],
    exactly_one_of: &[],
};

static DOCUMENTATION: Table = Table {
    name: "delivery.documentation",
    doc: "What the text for clients mentions.",
    fields: &[
        Field::new("deduplicationRequired", Kind::Boolean, "That clients must look for keys they know.").or("true"),
        Field::new("sdkAvailable", Kind::Boolean, "That there is a library for it.").or("true"),
        Field::new("exampleCode", Kind::Text(&ANY_TEXT), "Where examples are."),
    ],
    exactly_one_of: &[],
};
