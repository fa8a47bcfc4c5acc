//! Every cell of every client is a test, on our broker and on Apache Kafka. A client's program runs once per broker: the
//! first test that needs it waits for it, the others read its lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use hapax_conform::cells::{Cell, Outcome};
use hapax_conform::client::Client;
use hapax_conform::matrix::{Codecs, run};
use hapax_conform::table;
use hapax_conform::target::Target;

/// What a client has no words for, by its own documents.
const CANNOT: [(Client, Cell); 1] = [(Client::Kcat, Cell::Admin)];

#[derive(Debug, Clone, Copy)]
enum Broker {
    Ours,
    Kafka,
    OnPostgres,
}

impl Broker {
    fn target(self) -> Result<&'static Target, String> {
        static TARGETS: [OnceLock<Result<Target, String>>; 3] = [const { OnceLock::new() }; 3];
        let start = || match self {
            Self::Ours => Target::ours(),
            Self::Kafka => Target::kafka(),
            Self::OnPostgres => Target::ours_on_postgres(),
        };
        let target = TARGETS[self as usize].get_or_init(|| start().map_err(|error| format!("{error:#}")));
        target.as_ref().map_err(Clone::clone)
    }
}

type Outcomes = Result<BTreeMap<Cell, Outcome>, String>;

fn outcomes(client: Client, broker: Broker) -> &'static Outcomes {
    static FOUND: [[OnceLock<Outcomes>; Client::ALL.len()]; 3] =
        [const { [const { OnceLock::new() }; Client::ALL.len()] }; 3];
    FOUND[broker as usize][client as usize].get_or_init(|| {
        let target = broker.target()?;
        let codecs = if matches!(broker, Broker::OnPostgres) { Codecs::Undone } else { Codecs::Kept };
        run(client, target, codecs, &Cell::ALL).map_err(|error| format!("{error:#}"))
    })
}

/// The two runs at the same time: a client waits more than it works.
fn run_on_both(client: Client) {
    std::thread::scope(|scope| {
        scope.spawn(|| outcomes(client, Broker::Kafka));
        outcomes(client, Broker::Ours);
    });
}

fn check(client: Client, cell: Cell, broker: Broker) {
    judge(client, cell, outcomes(client, broker), &format!("{broker:?}"));
}

fn judge(client: Client, cell: Cell, outcomes: &Outcomes, broker: &str) {
    let name = format!("{} on {broker}", client.title());
    let found = outcomes.as_ref().unwrap_or_else(|error| panic!("{name}: {error}"));
    match &found[&cell] {
        Outcome::Pass(_) => {}
        Outcome::Cannot(why) => assert!(CANNOT.contains(&(client, cell)), "{name}: {cell}: {why}"),
        Outcome::Fail(why) => panic!("{name}: {cell}: {why}"),
    }
}

macro_rules! cells {
    ($($module:ident: $client:ident;)*) => { $( mod $module {
        use super::{Broker, Cell, Client, check, run_on_both};
        cells! { @ $client
            records_pass_uncompressed: Plain, records_pass_by_gzip: Gzip, records_pass_by_snappy: Snappy,
            records_pass_by_lz4: Lz4, records_pass_by_zstd: Zstd, lost_answers_double_nothing: Idempotent,
            members_come_and_go: Group, topics_are_managed: Admin, time_finds_offsets: Time }
    } )* };
    (@ $client:ident $($name:ident: $cell:ident),*) => { $(
        /// Goal: the client does here what it does on Apache Kafka. Method: its program, on both.
        #[test]
        fn $name() {
            run_on_both(Client::$client);
            check(Client::$client, Cell::$cell, Broker::Ours);
            check(Client::$client, Cell::$cell, Broker::Kafka);
        }
    )* };
}

cells! {
    java_client: Java;
    java_tools: Tools;
    confluent_kafka: Confluent;
    kcat: Kcat;
    kafka_python: KafkaPython;
    franz_go: Franz;
    sarama: Sarama;
    kafkajs: Kafkajs;
}

/// Goal: the store makes no difference. Method: every cell of three clients of different making, on PostgreSQL.
#[test]
fn clients_see_no_difference_on_postgres() {
    for client in [Client::Java, Client::Confluent, Client::Franz] {
        Cell::ALL.into_iter().for_each(|cell| check(client, cell, Broker::OnPostgres));
    }
}

/// Goal: a transactional producer is told at once that there are no transactions, and does not wait for its timeout.
/// Method: the two clients that most others are made of, on both stores; on Apache Kafka the same programs commit.
#[test]
fn transactional_producers_are_told_at_once() {
    for client in [Client::Java, Client::Confluent] {
        for (broker, expected) in
            [(Broker::Ours, "refused"), (Broker::OnPostgres, "refused"), (Broker::Kafka, "committed")]
        {
            let target = broker.target().expect("it starts");
            let found = run(client, target, Codecs::Undone, &[Cell::Transaction]).expect("it runs");
            let outcome = Outcome::Pass(expected.to_owned());
            assert_eq!(found[&Cell::Transaction], outcome, "{} on {broker:?}", client.title());
        }
    }
}

/// Goal: what is shipped is what was tried. Method: every cell of librdkafka on `hapax broker`, a process of its own.
#[test]
fn clients_see_no_difference_in_the_shipped_program() {
    let client = Client::Confluent;
    let target = Target::program().expect("it starts"); // not kept for ever like the others: its process must end
    let outcomes = run(client, &target, Codecs::Kept, &Cell::ALL).map_err(|error| format!("{error:#}"));
    Cell::ALL.into_iter().for_each(|cell| judge(client, cell, &outcomes, "the program"));
}

/// Goal: the table in the documents is what was seen. Method: make it from the outcomes on ours, compare or write.
#[test]
fn the_table_of_clients_is_what_was_seen() {
    let found = Client::ALL.map(|client| (client, outcomes(client, Broker::Ours).clone().unwrap_or_default()));
    let text = table::document(&BTreeMap::from(found));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kafka/clients-table.md");
    if std::env::var_os("HAPAX_BLESS").is_some() {
        std::fs::write(&path, text).expect("the table can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, text, "run `HAPAX_BLESS=1 cargo test -p hapax-conform the_table`");
}
