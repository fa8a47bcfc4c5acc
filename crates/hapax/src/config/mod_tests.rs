use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use hapax_engine::source::StartAt;
use hapax_model::delivery::{Delivery, Guarantee, Mechanism};
use hapax_model::field::FieldPath;
use hapax_model::mode::{ConflictMode, ProgressPlace};
use hapax_model::rejects::OnReject;
use hapax_model::units::{ByteSize, Share};
use proptest::prelude::*;
use std::time::Duration;

use super::checked::*;
use super::problem::Problem;
use hapax_connect::file::FileFormat;

use super::*;

/// Files by path and variables by name; a path that ends in / is a folder.
#[derive(Default)]
pub(super) struct World {
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(super) variables: BTreeMap<String, String>,
}

impl World {
    pub(super) fn of(text: &str) -> Self {
        Self::default().with("etc/hapax.yaml", text)
    }

    pub(super) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.as_bytes().to_vec());
        self
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub(super) fn load(&self, path: &str) -> Result<Loaded, Problems> {
        load(Path::new(path), self)
    }
}

impl Surroundings for World {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).map(Into::into)
    }

    fn read(&self, path: &Path, _: usize) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let inside: Vec<_> = self.files.keys().filter(|file| file.parent() == Some(path)).rev().cloned().collect();
        match (self.files.contains_key(path), inside.is_empty()) {
            (true, _) => Ok(None),
            (false, false) => Ok(Some(inside)),
            (false, true) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

pub(super) fn loaded(text: &str) -> Loaded {
    World::of(text).load("etc/hapax.yaml").unwrap_or_else(|problems| panic!("{problems}"))
}

/// The problems of a file, each as line, code and the text that people see.
pub(super) fn problems_of(text: &str) -> Vec<(usize, &'static str, String)> {
    let problems = World::of(text).load("etc/hapax.yaml").err().unwrap_or_default();
    problems.iter().map(|it: &Problem| (it.place.line, it.code, it.to_string())).collect()
}

/// Asserts that a text has one problem, at this line, with this code, whose text holds all these parts.
pub(super) fn assert_problem(text: &str, line: usize, code: &str, parts: &[&str]) {
    let problems = problems_of(text);
    assert_eq!(problems.len(), 1, "{text}: {problems:#?}");
    let (found_line, found_code, shown) = &problems[0];
    assert_eq!((*found_line, *found_code), (line, code), "{text}: {shown}");
    for part in parts {
        assert!(shown.contains(part), "{text}: {shown} lacks {part:?}");
    }
}

/// Goal: the examples of the delivery-guarantees document are read as they stand. Method: its three workflows.
#[test]
fn the_three_workflows_of_the_specification_are_read_as_written() {
    let loaded = loaded(
        "workflows:
  - id: sales-orders-to-erp
    delivery:
      guarantee: exactly-once
      mechanism: transactional-outbox
      deduplication:
        keyFields: [database, table, primaryKey]
        ttl: 30d
    
  - id: product-sync-to-search
    delivery:
      guarantee: at-least-once
      mechanism: kafka-offsets
      retries:
        maxAttempts: 5
        backoffMs: [1000, 2000, 5000, 10000, 30000]
    
  - id: audit-logs-to-warehouse
    delivery:
      guarantee: idempotent-keys
      mechanism: generated-keys
      clientGuidance: true
",
    );
    let [sales, products, audit] = loaded.config.workflows.as_slice() else { panic!("three workflows") };
    assert_eq!(sales.delivery.guarantee, Guarantee::ExactlyOnce);
    assert_eq!(sales.delivery.mechanism, Some(Mechanism::TransactionalOutbox));
    let fields = ["database", "table", "primaryKey"].map(FieldPath::of_name);
    assert_eq!(sales.delivery.deduplication.key_fields, fields);
    assert_eq!(sales.delivery.deduplication.ttl, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!(products.delivery.mechanism, Some(Mechanism::KafkaOffsets));
    assert_eq!(products.delivery.retries, Delivery::default().retries);
    assert!(audit.delivery.client_guidance);
    let ids: Vec<_> = loaded.config.workflows.iter().map(|workflow| workflow.id.as_str()).collect();
    assert_eq!(ids, ["sales-orders-to-erp", "product-sync-to-search", "audit-logs-to-warehouse"]);
    assert_eq!(products.delivery.guarantee, Guarantee::AtLeastOnce);
    let promised = (audit.delivery.guarantee, audit.delivery.mechanism);
    assert_eq!(promised, (Guarantee::IdempotentKeys, Some(Mechanism::GeneratedKeys)));
    for workflow in &loaded.config.workflows {
        assert_eq!(workflow.incomplete(), Some("a source and a sink"));
    }
}

/// Goal: what a key is made of and what clients are told reach the typed form. Method: blocks in which nothing has its
/// default; then a hash that there is not.
#[test]
fn the_key_and_the_words_for_clients_arrive() {
    let loaded = loaded(
        "workflows:
  - id: w
    delivery:
      idempotencyKey: { format: \"{table}/{id}\", hashAlgorithm: SHA256, includedInPayload: false }
      documentation: { deduplicationRequired: false, sdkAvailable: false, exampleCode: \"https://example.test\" }
",
    );
    let delivery = &loaded.config.workflows[0].delivery;
    assert_eq!(delivery.idempotency_key.format.names(), ["table", "id"]);
    assert!(!delivery.idempotency_key.included_in_payload);
    let documentation = &delivery.documentation;
    assert!(!documentation.deduplication_required);
    assert!(!documentation.sdk_available);
    assert_eq!(documentation.example_code.as_deref(), Some("https://example.test"));
    let wrong = "workflows:\n  - id: w\n    delivery:\n      idempotencyKey: { hashAlgorithm: MD5 }\n";
    assert_problem(wrong, 4, "HX1013", &["MD5", "SHA256"]);
}

/// Goal: the document's default block is read as it stands, and holds for workflows. Method: it, and one workflow.
#[test]
fn the_default_block_of_the_specification_is_the_default_of_all_workflows() {
    let block = "# Default for new workflows
delivery:
  guarantee: idempotent-keys
  mechanism: generated-keys
  
  # Idempotency key generation
  idempotencyKey:
    format: \"{database}:{table}:{primaryKey}:{changeVersion}\"
    hashAlgorithm: SHA256
    includedInPayload: true
  
  # Retry behavior (platform-side)
  retries:
    enabled: true
    maxAttempts: 5
    backoffMs: [1000, 2000, 5000, 10000, 30000]
    giveUpAfter: 1h
  
  # Client guidance
  documentation:
    deduplicationRequired: true
    sdkAvailable: true
    exampleCode: \"https://docs.platform/client-dedup-examples\"
";
    assert_eq!(loaded(block).config.workflows, []);
    let workflows = "workflows:
  - id: inherits
  - id: other-promise
    delivery: { guarantee: exactly-once }
  - id: same-promise
    delivery: { guarantee: idempotent-keys, retries: { maxAttempts: 2 } }
";
    let loaded = loaded(&format!("{block}{workflows}"));
    let [inherits, other, same] = loaded.config.workflows.as_slice() else { panic!("three workflows") };
    let example = Some("https://docs.platform/client-dedup-examples".to_owned());
    assert_eq!(inherits.delivery.mechanism, Some(Mechanism::GeneratedKeys));
    assert_eq!(inherits.delivery.documentation.example_code, example);
    assert_eq!((other.delivery.guarantee, other.delivery.mechanism), (Guarantee::ExactlyOnce, None));
    assert_eq!(other.delivery.documentation.example_code, example);
    assert_eq!(same.delivery.mechanism, Some(Mechanism::GeneratedKeys));
    assert_eq!((same.delivery.retries.max_attempts, same.delivery.retries.backoff.len()), (2, 5));
}

/// Goal: the merge that `config show` prints is the model's own. Method: blocks laid over each other by both.
#[test]
fn blocks_are_merged_as_the_model_merges_them() {
    let blocks = [
        "{ guarantee: exactly-once, mechanism: transaction, retries: { maxAttempts: 2 }, conditions: [one-worker] }",
        "{ mechanism: generated-keys, deduplication: { keyFields: [a, b], ttl: 1d }, receiver: { keyTtl: 2d } }",
        "{ guarantee: exactly-once, deduplication: { keyFields: [c] }, retries: { backoffMs: [7] }, conditions: [] }",
        "{ epoch: { interval: 1s }, receiver: { deduplicates: true }, documentation: { exampleCode: x }, lease: 9s }",
        "{}",
    ];
    let written = |block: &str| {
        let loaded = loaded(&format!("delivery: {block}\n"));
        build::build_delivery(loaded.effective.get("delivery").expect("a block"))
    };
    // `written` has every default; the model's merge needs only what stands in the block.
    let only = |block: &str| {
        let mut problems = Problems::default();
        let node = yaml::parse(&"x".into(), block, &mut problems).expect("a block");
        let value = check::check(&node, &schema::Kind::Object(&schema::DELIVERY), "delivery", &mut problems);
        build::build_delivery(&value.expect("a block"))
    };
    for under in blocks {
        assert_eq!(Delivery::from(written(under)), Delivery::from(only(under)));
        for own in blocks {
            let loaded = loaded(&format!("delivery: {under}\nworkflows: [{{ id: w, delivery: {own} }}]\n"));
            assert_eq!(
                loaded.config.workflows[0].delivery,
                Delivery::merged(&only(under), &only(own)),
                "{own} / {under}"
            );
        }
    }
}

const EVERYTHING: &str = "state: sqlite:///var/state.db
memory: 64MiB
workflows:
  - id: files
    source:
      file: { path: in/orders.jsonl, start: latest, maxLine: 1MiB }
    sinks:
      - name: erp
        sqlite:
          path: /data/erp.db
          table: 'a\"; DROP TABLE x; --'
          onConflict: newer
          keyColumn: hapax_key
          versionColumn: version
          columns: { id: .order.id, 'odd name': total }
          deleteWhen: '.op == \"d\"'
          busyTimeout: 250ms
      - name: copy
        sqlite: { path: copy.db, table: orders, columns: strict, progress: state, progressInterval: 5s }
    delivery:
      guarantee: exactly-once
      mechanism: transaction
      deduplication: { keyFields: [order_id, .line.number], ttl: 30d, unique: true, strategy: content }
      retries: { enabled: false, maxAttempts: 3, backoffMs: [10], giveUpAfter: 2h }
      epoch: { interval: 50ms, maxEvents: 1000, maxBytes: 1MiB, commitTimeout: 3s, abortTimeout: 2s }
      onReject: stop
      maxRejects: 2.5%
      claimTimeout: 1s
      lease: 2s
      receiver: { deduplicates: true, keyTtl: 30d, refusesOlder: true }
      readers: { isolation: read_committed }
      writer: { serialisesKeys: true }
      conditions: [one-worker]
      autoFenceOnStartup: false
  - id: made-up
    source: { generate: { seed: 7, count: 1000, rate: 500/s, keys: 10, updates: 20%, deletes: 5%, poison: 1% } }
    sink: { sqlite: { path: out.db, table: orders } }
";

/// Goal: every field reaches the typed form. Method: a file in which nothing has its default.
#[test]
fn everything_that_is_written_arrives() {
    let loaded = loaded(EVERYTHING);
    let config = &loaded.config;
    assert_eq!(config.state, StateUrl::Sqlite("/var/state.db".into()));
    assert_eq!(config.memory, ByteSize::mebibytes(64));
    let files = &config.workflows[0];
    let source = FileSource {
        path: "etc/in/orders.jsonl".into(),
        written: "in/orders.jsonl".into(),
        start: StartAt::Latest,
        max_line: ByteSize(1 << 20),
        format: FileFormat::JsonLines,
        rotation: hapax_connect::file::RotationRule::Suffixes,
        many: None,
    };
    assert_eq!(files.source, Some(Source::File(source)));
    let erp = SqliteSink {
        path: "/data/erp.db".into(),
        table: TableSink {
            name: "a\"; DROP TABLE x; --".into(),
            on_conflict: Some(ConflictMode::Newer),
            key_column: Some("hapax_key".into()),
            version_column: Some("version".into()),
            columns: Columns::Mapped(vec![
                ("id".into(), ".order.id".parse().expect("a path")),
                ("odd name".into(), FieldPath::of_name("total")),
            ]),
            delete_when: ".op == \"d\"".parse().ok(),
            progress: ProgressPlace::Sink,
            progress_interval: Duration::from_secs(1),
        },
        busy_timeout: Duration::from_millis(250),
    };
    let copy = SqliteSink {
        path: "etc/copy.db".into(),
        table: TableSink {
            name: "orders".into(),
            on_conflict: None,
            key_column: None,
            version_column: None,
            columns: Columns::Strict,
            delete_when: None,
            progress: ProgressPlace::State,
            progress_interval: Duration::from_secs(5),
        },
        busy_timeout: Duration::from_secs(5),
    };
    let named = |name: &str, sink| Sink { name: name.into(), target: Target::Sqlite(sink) };
    assert_eq!(files.sinks, [named("erp", erp), named("copy", copy)]);
    assert_eq!(files.incomplete(), None);
    let made_up = &config.workflows[1];
    let Some(Source::Generate(generate)) = &made_up.source else { panic!("generated") };
    assert_eq!((generate.seed, generate.count, generate.keys), (7, Some(1000), 10));
    assert_eq!(generate.rate, Some(500));
    let shares = [generate.updates, generate.deletes, generate.poison];
    assert_eq!(shares, [200, 50, 10].map(Share::of_mille));
    assert_eq!((made_up.sinks[0].name.as_str(), &made_up.delivery), ("sqlite", &Delivery::default()));
}

/// Goal: every field of `delivery` reaches the typed form. Method: the same file, block by block.
#[test]
fn the_whole_delivery_block_arrives() {
    let loaded = loaded(EVERYTHING);
    let delivery = &loaded.config.workflows[0].delivery;
    let default = Delivery::default();
    assert_eq!((delivery.guarantee, delivery.mechanism), (Guarantee::ExactlyOnce, Some(Mechanism::Transaction)));
    assert_eq!(delivery.deduplication.key_fields.len(), 2);
    assert!(delivery.deduplication.unique && delivery.deduplication.strategy.is_some());
    assert!(!delivery.retries.enabled);
    assert_eq!((delivery.retries.max_attempts, delivery.retries.backoff.len()), (3, 1));
    assert_eq!(delivery.retries.give_up_after, Duration::from_secs(7200));
    let epoch = &delivery.epoch;
    assert_eq!((epoch.interval, epoch.max_events), (Duration::from_millis(50), 1000));
    assert_eq!(
        (epoch.max_bytes, epoch.commit_timeout.as_secs(), epoch.abort_timeout.as_secs()),
        (ByteSize(1 << 20), 3, 2)
    );
    assert_eq!((delivery.on_reject, delivery.max_rejects_per_mille), (OnReject::Stop, 25));
    assert_eq!((delivery.claim_timeout.as_secs(), delivery.lease.as_secs()), (1, 2));
    assert!(delivery.receiver.deduplicates && delivery.receiver.refuses_older && delivery.receiver.key_ttl.is_some());
    assert!(delivery.readers.isolation.is_some() && delivery.writer.serialises_keys);
    assert_eq!((delivery.conditions.len(), delivery.auto_fence_on_startup), (1, Some(false)));
    assert_eq!(delivery.idempotency_key, default.idempotency_key);
    let warnings: Vec<_> = loaded.warnings.iter().map(|it| (it.place.line, it.code)).collect();
    assert_eq!(warnings, [(34, "HX1050")]);
}

/// Goal: all problems are told at once, in the order of the file. Method: a file with one of nearly every sort.
#[test]
fn all_problems_are_told_at_once() {
    let text = "stat: none
memory: lots
workflows:
  - id: a b
    source: { file: { path: 7, start: earlyest } }
    sink: { sqlite: { path: \"${NOWHERE}\", table: } }
  - id: x
    delivery: { guarantee: exactly-onec, epoch: { interval: 0ms }, maxRejects: 200% }
  - id: x
    sink: {}
    transform: .a = 1
tests: [{ workflow: nobody, input: [{ id: 1 }] }]
";
    let told: Vec<_> = problems_of(text).into_iter().map(|(line, code, _)| (line, code)).collect();
    let mut expected = vec![
        (1, "HX1010"),
        (2, "HX1016"),
        (4, "HX1016"),
        (5, "HX1011"),
        (5, "HX1013"),
        (6, "HX1020"),
        (6, "HX1015"),
        (8, "HX1013"),
        (8, "HX1012"),
        (8, "HX1016"),
        (9, "HX1030"),
        (10, "HX1017"),
        (12, "HX1450"),
    ];
    if !cfg!(feature = "transform") {
        expected.insert(expected.len() - 1, (11, "HX1300"));
    }
    assert_eq!(told, expected, "{:#?}", problems_of(text));
}

/// Goal: a file for a later version is refused for what is planned in it, and for nothing else.
/// Method: every block that there will be, in one file; an edition without one of them refuses more.
#[cfg(all(feature = "broker", feature = "http", feature = "postgres", feature = "transform"))]
#[test]
fn a_file_of_a_later_version_is_refused_only_for_what_is_planned() {
    let text = "state: \"sqlite://hapax-data/state.db\"
memory: 256MiB
workflows:
  - id: orders-to-erp
    source:
      kafka: { brokers: \"localhost:9092\", topics: [orders], format: json, start: earliest }
    transform: |
      .amount = to_int!(.cents) / 100
      if .test == true { abort }
    sink:
      postgres:
        url: \"${ERP_DATABASE_URL}\"
        table: orders
        deleteWhen: .op == \"d\"
    delivery:
      guarantee: exactly-once
      deduplication: { keyFields: [order_id], ttl: 30d }
      retries: { maxAttempts: 5, backoffMs: [1000, 2000, 5000, 10000, 30000], giveUpAfter: 1h }
      epoch: { interval: 200ms, maxEvents: 100000, maxBytes: 64MiB, commitTimeout: 30s, abortTimeout: 10s }
      onReject: deadLetter
      maxRejects: 10%
      claimTimeout: 10s
      lease: 5s
broker: { listen: \"127.0.0.1:9092\", store: embedded, data: hapax-data/broker }
alerts: { webhook: \"https://example.org\" }
tests:
  - workflow: orders-to-erp
    input:  [{ order_id: 7, cents: 1250 }]
    expect: [{ order_id: 7, amount: 12.5 }]
";
    let world = World::of(text).variable("ERP_DATABASE_URL", "postgres://me:hunter2@host/erp");
    let problems = world.load("etc/hapax.yaml").expect_err("planned");
    let told: Vec<_> = problems.iter().map(|it| (it.place.line, it.code)).collect();
    assert_eq!(told, [6].map(|line| (line, "HX1040")), "{problems}");
    assert!(!problems.to_string().contains("hunter2"));
}

/// Goal: the worst file has a short answer. Method: ten thousand unknown fields; too many workflows.
#[test]
fn problems_and_workflows_are_bounded() {
    let text: String = (0..10_000).map(|at| format!("x{at}: 1\n")).collect();
    let problems = World::of(&text).load("etc/hapax.yaml").expect_err("unknown fields");
    assert_eq!(problems.iter().count(), 100);
    assert!(problems.to_string().ends_with("… and 9900 more"));
    assert_eq!(problems.to_json()["more"], 9900);
    let workflows: String = (0..=MOST_WORKFLOWS).map(|at| format!("  - id: w{at}\n")).collect();
    assert_problem(&format!("workflows:\n{workflows}"), 2, "HX1012", &["10001 items", "from 0 to 10000"]);
}

proptest! {
    /// Goal: no file panics the program, and every problem has a code and a cure. Method: words of the schema, shuffled.
    #[test]
    fn no_configuration_panics(pieces in prop::collection::vec(prop_oneof![
        prop::sample::select(vec!["workflows:", "- id: a", "source:", "sink:", "sinks:", "sqlite:", "file:", "delivery:",
            "{ guarantee: exactly-once }", "path: x", "table: t", "epoch: { interval: 1ms }", "columns: strict", "[", "]",
            "generate: { rate: 5, updates: 99%, deletes: 2% }", "${A}", "\"${A:-x}\"", "state: none", "memory: 1", "~",
            "onConflict: append", "keyColumn: k", "retries: { backoffMs: [] }", "&a", "*a", "name: n", "delivery: 7"]),
        prop::sample::select(vec!["\n", "\n  ", "\n    ", "\n      ", " ", ", ", ": "]),
    ], 0..30)) {
        let world = World::of(&pieces.concat()).variable("A", "b");
        match world.load("etc/hapax.yaml") {
            Ok(loaded) => {
                let again = World::of(&loaded.to_yaml()).load("etc/hapax.yaml");
                let masked = loaded.to_yaml().contains("***");
                prop_assert!(masked || again.is_ok_and(|again| again.to_yaml() == loaded.to_yaml()));
            }
            Err(problems) => prop_assert!(problems.iter().all(|it| it.code.len() == 6 && !it.cure.is_empty())),
        }
    }
}
