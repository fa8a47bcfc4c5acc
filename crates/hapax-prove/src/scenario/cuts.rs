//! The same input in epochs of other sizes, into tables where a row meets others than that of its key, or keeps what was removed.
//!
//! Writes: a table, a workflow and its letters for each rule and each size. Invariant: tables, what their triggers saw, and letters
//! are the same for all sizes, though the worker was killed on the way.

use std::fmt::Write as _;

use anyhow::Context as _;

use crate::check::Anomaly;
use crate::child::Exit;
use crate::database::{Database, Engine};
use crate::feed::append;
use crate::setting::{Guarantee, Place, Setting};
use crate::shape::Shape;
use crate::world::{World, url};

/// Where progress is in the target there is one way to write, for all who deliver everything.
pub(super) const SETTINGS: [Setting; 3] = [
    Setting::new(Guarantee::ExactlyOnce, Shape::Update, Place::Sink),
    Setting::new(Guarantee::AtLeastOnce, Shape::Update, Place::Sink),
    Setting::new(Guarantee::IdempotentKeys, Shape::Update, Place::Sink),
];
/// How many events there are.
const EVENTS: usize = 80;
/// Over so few keys, and as many values that they take from each other.
const KEYS: u32 = 5;
/// How many events an epoch of a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// One: what all others are compared with.
    One,
    /// A few, in each life of the worker so many as are drawn.
    Few,
    /// Any number, drawn as well.
    Any,
    /// As it is by default: all of them.
    Default,
}

impl Cut {
    const ALL: [Self; 4] = [Self::One, Self::Few, Self::Any, Self::Default];

    const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Few => "few",
            Self::Any => "any",
            Self::Default => "default",
        }
    }

    /// The most that an epoch has in the life of a worker that begins now.
    fn draw(self, random: &mut fastrand::Rng) -> Option<usize> {
        match self {
            Self::One => Some(1),
            Self::Few => Some(random.usize(2..10)),
            Self::Any => Some(random.usize(2..EVENTS)),
            Self::Default => None,
        }
    }
}

/// What makes a row meet others, or show what was in it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A second unique index.
    Unique,
    /// A foreign key to the table itself.
    Parent,
    /// An exclusion constraint.
    Apart,
    /// Triggers that refuse, and write down what they saw.
    Triggers,
    /// Removed rows stay, with a column that no tombstone may clear.
    Tombstones,
}

impl Rule {
    const fn name(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Parent => "parent",
            Self::Apart => "apart",
            Self::Triggers => "triggers",
            Self::Tombstones => "tombstones",
        }
    }

    /// What the sink's block says of conflicts.
    const fn on_conflict(self) -> &'static str {
        match self {
            Self::Unique | Self::Parent | Self::Apart | Self::Triggers => "onConflict: update",
            Self::Tombstones => "onConflict: newer, versionColumn: v",
        }
    }

    /// Everything that a row of its tables holds.
    const fn whole_row(self) -> &'static str {
        match self {
            Self::Unique | Self::Parent | Self::Apart | Self::Triggers => "concat_ws(' ', id, a, coalesce(b, -1))",
            Self::Tombstones => {
                "concat_ws(' ', id, coalesce(a, '-'), b, v, CASE WHEN hapax_deleted THEN 'gone' ELSE 'there' END)"
            }
        }
    }

    /// Those that a database has, and that Hapax takes there.
    const fn all(engine: Engine) -> &'static [Self] {
        match engine {
            Engine::Sqlite => &[Self::Unique, Self::Parent, Self::Triggers, Self::Tombstones],
            Engine::Postgres => &[Self::Unique, Self::Parent, Self::Apart, Self::Triggers, Self::Tombstones],
            Engine::Mysql => &[Self::Parent, Self::Triggers, Self::Tombstones],
        }
    }

    /// The statements that make the table `t`.
    fn tables(self, engine: Engine, t: &str) -> String {
        let columns = "id int NOT NULL PRIMARY KEY, a varchar(9), b int";
        match self {
            Self::Unique => format!("CREATE TABLE {t} ({columns}, UNIQUE (b));"),
            Self::Parent => format!("CREATE TABLE {t} ({columns}, FOREIGN KEY (b) REFERENCES {t} (id));"),
            Self::Apart => format!("CREATE TABLE {t} ({columns}, EXCLUDE USING btree (b WITH =));"),
            Self::Triggers => format!("CREATE TABLE {t} ({columns});{}", triggers(engine, t)),
            Self::Tombstones => {
                let deleted = match engine {
                    Engine::Sqlite => "INTEGER NOT NULL DEFAULT 0",
                    Engine::Postgres | Engine::Mysql => "boolean NOT NULL DEFAULT false",
                };
                format!("CREATE TABLE {t} ({columns} NOT NULL, v int NOT NULL, hapax_deleted {deleted});")
            }
        }
    }
}

/// Nobody may change a row without changing its `b`; every change is written down.
fn triggers(engine: Engine, t: &str) -> String {
    match engine {
        Engine::Sqlite => format!(
            "CREATE TABLE seen_{t} (n INTEGER PRIMARY KEY AUTOINCREMENT, what text);
             CREATE TRIGGER r_{t} BEFORE UPDATE ON {t} WHEN NEW.b = OLD.b BEGIN SELECT RAISE(ABORT, 'the same again'); END;
             CREATE TRIGGER i_{t} AFTER INSERT ON {t} BEGIN INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'c', NEW.id, NEW.a)); END;
             CREATE TRIGGER u_{t} AFTER UPDATE ON {t} BEGIN INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'u', NEW.id, NEW.a)); END;
             CREATE TRIGGER d_{t} AFTER DELETE ON {t} BEGIN INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'd', OLD.id, OLD.a)); END;"
        ),
        Engine::Mysql => format!(
            "CREATE TABLE seen_{t} (n int AUTO_INCREMENT PRIMARY KEY, what text);
             CREATE TRIGGER r_{t} BEFORE UPDATE ON {t} FOR EACH ROW
             IF NEW.b = OLD.b THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the same again'; END IF;
             CREATE TRIGGER i_{t} AFTER INSERT ON {t} FOR EACH ROW INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'c', NEW.id, NEW.a));
             CREATE TRIGGER u_{t} AFTER UPDATE ON {t} FOR EACH ROW INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'u', NEW.id, NEW.a));
             CREATE TRIGGER d_{t} AFTER DELETE ON {t} FOR EACH ROW INSERT INTO seen_{t} (what) VALUES (concat_ws(' ', 'd', OLD.id, OLD.a));"
        ),
        Engine::Postgres => format!(
            "CREATE TABLE seen_{t} (n bigint GENERATED ALWAYS AS IDENTITY, what text);
             CREATE FUNCTION f_{t}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF TG_OP = 'UPDATE' AND NEW.b = OLD.b THEN RAISE EXCEPTION 'the same again'; END IF;
             INSERT INTO seen_{t} (what) VALUES (CASE TG_OP WHEN 'INSERT' THEN concat_ws(' ', 'c', NEW.id, NEW.a)
             WHEN 'UPDATE' THEN concat_ws(' ', 'u', NEW.id, NEW.a) ELSE concat_ws(' ', 'd', OLD.id, OLD.a) END);
             RETURN NULL; END $$;
             CREATE TRIGGER t_{t} AFTER INSERT OR UPDATE OR DELETE ON {t} FOR EACH ROW EXECUTE FUNCTION f_{t}();"
        ),
    }
}

/// Every size of epoch, into every kind of table, killed twice and with other sizes then: the ends are equal.
///
/// # Errors
/// If it could not be told to its end.
pub fn compared(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let engine = world.target().engine();
    for rule in Rule::all(engine) {
        for cut in Cut::ALL {
            world.target().execute(&rule.tables(engine, &table(*rule, cut)))?;
        }
    }
    let lines: Vec<String> = (0..EVENTS).map(|n| event(n, random)).collect();
    append(&world.dir.join("cuts.jsonl"), lines.iter().map(String::as_str))?;
    for point in ["sql.before_commit", "sql.bisect_middle"] {
        draw_sizes(world, random)?;
        let faults = format!("{point}:kill:{}", random.u64(2..=20));
        let mut killed = world.launch("killed", &["run", "--once", "--take-over"]).faults(faults).start()?;
        world.expect(&mut killed, Exit::KILLED)?;
        let happened = world.fault_happened(&killed, point);
        world.must(happened.into(), format!("{} never passed {point}", killed.name));
    }
    draw_sizes(world, random)?;
    let mut last = world.launch("last", &["run", "--once", "--take-over"]).start()?;
    world.expect(&mut last, Exit::Code(0))?;
    for rule in Rule::all(engine) {
        compare(world, *rule)?;
    }
    Ok(())
}

/// The sizes of epochs from the next life on.
fn draw_sizes(world: &mut World, random: &mut fastrand::Rng) -> anyhow::Result<()> {
    let (sink, guarantee) = (sink(world), world.setting.guarantee);
    world.config.further.clear();
    for rule in Rule::all(world.target().engine()) {
        for cut in Cut::ALL {
            let table = table(*rule, cut);
            let text = workflow(&sink, &table, (rule.on_conflict(), guarantee), cut.draw(random));
            world.config.further.push_str(&text);
        }
    }
    world.write_config()
}

fn table(rule: Rule, cut: Cut) -> String {
    format!("{}_{}", rule.name(), cut.name())
}

/// The target, as a sink's block begins; its end is left open.
fn sink(world: &World) -> String {
    let server = url(&world.target(), None).unwrap_or_default();
    match world.target().engine() {
        Engine::Sqlite => format!("sqlite: {{ path: \"{}\"", world.config.target.display()),
        Engine::Postgres => format!("postgres: {{ url: \"{server}\""),
        Engine::Mysql => format!("mysql: {{ url: \"{server}\""),
    }
}

fn workflow(sink: &str, table: &str, (on_conflict, guarantee): (&str, Guarantee), most: Option<usize>) -> String {
    let epoch = most.map_or_else(String::new, |events| format!("epoch: {{ maxEvents: {events} }}, "));
    format!(
        "\x20 - id: {table}\n\
         \x20   source: {{ file: {{ path: cuts.jsonl, start: earliest }} }}\n\
         \x20   sink: {{ {sink}, table: {table}, {on_conflict}, deleteWhen: '.op == \"d\"' }} }}\n\
         \x20   delivery: {{ guarantee: {guarantee}, deduplication: {{ keyFields: [id] }}, {epoch}maxRejects: 100%, \
         lease: 1500ms, retries: {{ backoffMs: [20, 50, 100] }} }}\n",
        guarantee = guarantee.name(),
    )
}

fn event(n: usize, random: &mut fastrand::Rng) -> String {
    let (id, v) = (random.u32(0..KEYS), n + random.usize(0..3));
    match random.u32(0..10) {
        0 | 1 => format!("{{\"id\":{id},\"v\":{v},\"op\":\"d\"}}"),
        2 => format!("{{\"id\":{id},\"v\":{v},\"a\":\"n{n}\",\"b\":null}}"),
        _ => format!("{{\"id\":{id},\"v\":{v},\"a\":\"n{n}\",\"b\":{}}}", random.u32(0..KEYS)),
    }
}

/// Accuses every size whose end is another than that of single events.
fn compare(world: &mut World, rule: Rule) -> anyhow::Result<()> {
    let target = world.target();
    let letters = match target.engine() {
        Engine::Postgres => "hapax.dead_letters",
        Engine::Sqlite | Engine::Mysql => "hapax_dead_letters",
    };
    let mut ends = Vec::new();
    for cut in Cut::ALL {
        let t = table(rule, cut);
        let rows = texts(&target, &format!("SELECT {} FROM {t} ORDER BY id", rule.whole_row()))?;
        let dead = texts(
            &target,
            &format!("SELECT concat_ws(' ', position, code) FROM {letters} WHERE workflow = '{t}' ORDER BY id"),
        )?;
        let seen = match rule {
            Rule::Triggers => texts(&target, &format!("SELECT what FROM seen_{t} ORDER BY n"))?,
            Rule::Unique | Rule::Parent | Rule::Apart | Rule::Tombstones => Vec::new(),
        };
        ends.push((t, [rows, dead, seen]));
    }
    let (first, [rows, dead, _]) = &ends[0];
    world.must((!rows.is_empty() && !dead.is_empty()).into(), format!("{first} has no rows or no letters"));
    for (other, end) in &ends[1..] {
        let named = [Anomaly::WrongState, Anomaly::LetterLost, Anomaly::Reordered];
        for ((anomaly, expected), found) in named.into_iter().zip(&ends[0].1).zip(end) {
            if expected != found {
                let mut text = format!("{other} is another than {first}");
                for (expected, found) in expected.iter().zip(found).filter(|(one, two)| one != two).take(3) {
                    write!(text, "; {found:?} and not {expected:?}")?;
                }
                write!(text, "; {} and {}", found.len(), expected.len())?;
                world.accuse(anomaly, text);
            }
        }
    }
    Ok(())
}

/// One column of an answer.
fn texts(database: &Database, sql: &str) -> anyhow::Result<Vec<String>> {
    match database {
        Database::File(path) => {
            let connection = rusqlite::Connection::open(path)?;
            let mut statement = connection.prepare(sql).with_context(|| sql.to_owned())?;
            Ok(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
        }
        Database::Postgres { .. } | Database::Mysql { .. } => {
            let answer = database.ask(sql)?;
            Ok(answer.rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect())
        }
    }
}
