use crate::config::tests::{World, loaded};

const FILE: &str = "workflows:
  - id: w
    source: { file: { path: \"in.jsonl\" } }
    sink: { sqlite: { path: out.db, table: \"a b\", columns: { id: .order.id, \"7\": x } } }
    delivery: { guarantee: exactly-once, deduplication: { keyFields: [id] } }
";

/// Goal: `config show` prints everything, defaults too, always in the same form. Method: a whole page, as expected.
#[test]
fn the_page_is_whole_and_the_same_every_time() {
    let expected = "state: \"sqlite://hapax-data/state.db\"
memory: 256MiB
workflows:
  - id: w
    source:
      file:
        path: in.jsonl
        rotation: suffixes
        start: earliest
        maxLine: 16MiB
    transformTimeout: 10s
    sink:
      sqlite:
        path: out.db
        table: \"a b\"
        columns:
          id: .order.id
          \"7\": x
        progress: sink
        progressInterval: 1s
        busyTimeout: 5s
    delivery:
      guarantee: exactly-once
      deduplication:
        keyFields: [id]
        unique: false
      idempotencyKey:
        format: \"{database}:{table}:{primaryKey}:{changeVersion}\"
        hashAlgorithm: SHA256
        includedInPayload: true
      retries:
        enabled: true
        maxAttempts: 5
        backoffMs: [1000, 2000, 5000, 10000, 30000]
        giveUpAfter: 1h
      epoch:
        interval: 200ms
        maxEvents: 100000
        maxBytes: 64MiB
        commitTimeout: 30s
        abortTimeout: 10s
      onReject: deadLetter
      maxRejects: 10%
      claimTimeout: 10s
      lease: 5s
      conditions: []
      clientGuidance: false
      documentation:
        deduplicationRequired: true
        sdkAvailable: true
";
    assert_eq!(loaded(FILE).to_yaml(), expected);
}

/// Goal: what is printed reads back as the same configuration. Method: print, read, compare both forms.
#[test]
fn the_page_reads_back_as_the_same_configuration() {
    let first = loaded(&format!("delivery: {{ lease: 9s, mechanism: transaction }}\n{FILE}  - id: z\n"));
    let second = loaded(&first.to_yaml());
    assert_eq!(second.to_yaml(), first.to_yaml());
    assert_eq!(second.to_json(), first.to_json());
    let deliveries = |loaded: &crate::config::Loaded| {
        loaded.config.workflows.iter().map(|workflow| workflow.delivery.clone()).collect::<Vec<_>>()
    };
    assert_eq!(deliveries(&second), deliveries(&first));
    assert_eq!(first.to_json()["workflows"][0]["delivery"]["retries"]["backoffMs"][0], 1000);
    assert_eq!(first.to_json()["workflows"][0]["delivery"]["lease"], "9s");
}

/// Goal: secrets never print. Method: values from variables and files, and a URL with a password, in both forms.
#[test]
fn secrets_print_as_stars() {
    let text = "workflows:
  - id: w
    sink: { sqlite: { path: \"${SECRET}/x\", table: \"${file:table}\", columns: { id: \"${SECRET}\" } } }
    delivery: { lease: \"${LEASE}\", documentation: { exampleCode: \"https://me:hunter2@host/x\" } }
";
    let world = World::of(text).with("etc/table", "hunter2\n").variable("SECRET", "hunter2").variable("LEASE", "7s");
    let loaded = world.load("etc/hapax.yaml").expect("a configuration");
    for page in [loaded.to_yaml(), loaded.to_json().to_string()] {
        assert!(!page.contains("hunter2") && !page.contains("7s"), "{page}");
    }
    let page = loaded.to_yaml();
    for line in ["path: \"***\"", "table: \"***\"", "id: \"***\"", "lease: \"***\"", "\"https://me:***@host/x\""] {
        assert!(page.contains(line), "{page} lacks {line}");
    }
    assert_eq!(loaded.config.workflows[0].delivery.lease.as_secs(), 7);
}

/// Goal: a plain `${` survives printing. Method: an escaped one.
#[test]
fn an_escaped_variable_is_printed_escaped() {
    let first = loaded("workflows:\n  - id: w\n    source: { file: { path: \"$${a}\" } }\n");
    assert!(first.to_yaml().contains("path: \"$${a}\""), "{}", first.to_yaml());
    assert_eq!(loaded(&first.to_yaml()).config.workflows[0].source, first.config.workflows[0].source);
}
